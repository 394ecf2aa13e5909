/*
 * holdfast.h - sessions, tenants, an offline queue and an encrypted cache for apps on Supabase.
 *
 * The host passes JSON and receives JSON. Holdfast decides and the host acts: it sends the HTTP
 * requests that holdfast_poll() returns, shows the screens that decisions name, and asks for
 * biometrics when a decision says so. Holdfast opens no socket, starts no thread and sets no timer.
 *
 * CONVENTIONS
 *
 * Calls      Every operation is
 *              int32_t holdfast_<noun>_<verb>(holdfast *self, const char *request, char **reply);
 *            `request` is a NUL-terminated UTF-8 JSON object; NULL or "" means {}.
 *            `reply`, if not NULL, receives a JSON object on success and on error (NULL only with
 *            HOLDFAST_NOMEM). The caller owns it and releases it with holdfast_free().
 * Status     The result is HOLDFAST_OK or one of the classes below. The error reply is
 *              {"error":{"code":"queue.item_too_large","message":"...","field":"/payload/note",
 *                        "retryable":false,"detail":{}}}
 *            `code` is stable. `field` is a JSON Pointer into the request, or null. Messages are
 *            for developers and never contain user data.
 * Strict     HOLDFAST_INVALID rejects invalid UTF-8, duplicate keys, nesting deeper than 64, wrong
 *            types and unknown fields, and names the field. Server responses are read tolerantly.
 * Numbers    Integers lie within +-2^53. Other numbers in a payload are doubles: one that a double
 *            cannot hold exactly as written is refused. 1e3 is the integer 1000. `..._ms` of an
 *            instant is milliseconds since 1970 (UTC). Durations end in `_s` or `_ms`.
 * Threads    Any thread may use any handle at any time. A handle runs one call at a time. No call
 *            waits for a network, a user or a timer, except holdfast_wait(), which waits for work.
 *            A call waits at most 5 s in all for locks of other processes (HOLDFAST_BUSY).
 * Handles    A handle is an opaque token and is never dereferenced. Every call on a closed or
 *            garbage handle returns HOLDFAST_CLOSED, also from a finaliser on another thread.
 * fork       In a child process every call on an inherited handle returns HOLDFAST_FORKED. A child
 *            may open its own only if no other thread was inside a call at the fork(): SQLite's locks
 *            are copied, so the open can wait for ever, or return HOLDFAST_FORKED. Else call exec().
 * Files      `data_dir` holds holdfast.db, cache.db (SQLite) and, with the built-in key store,
 *            keys/. Several handles and processes may use one folder at once: what one changes
 *            wakes the hosts of the others (see holdfast_wait and holdfast_wake_fd).
 * Limits     A thread needs 128 kB of stack for a call, besides what callbacks of the host use. Not
 *            promised: that a process lives whose heap is full (the Swift runtime may end it), or
 *            whose file "-shm" somebody with its rights shortens while it is open (SIGBUS: SQLite
 *            maps it). Nothing acknowledged is lost then.
 *
 * NOTATION   `x?` is optional, `x=v` has the default v, `x|y` is one of several, n is an integer.
 *
 * DECISION   The one shape from which a host draws its screens:
 *              {"screen":"home|unlock|sign_in|select_org|wait","reason":"...","route":"/..."|null,
 *               "org":{"id","name","role"}|null,"message":{"code","text","cause"?}|null,
 *               "can_unlock":bool,"methods":[{"id","label","flow"}],"orgs":[<membership>...],
 *               "banners":[{"code","tone","text","as_of_ms"}],"deadline_ms":n|null,"number":n}
 *            number: rises with a handle's decisions. Show none below the one on the screen.
 *            An event "decision" follows every `wait`, by `deadline_ms`; after keystore_* and
 *            server_unreachable when the answer is there. cause: why a sign-in failed.
 * MEMBERSHIP {"org_id","name","role","status":"active|revoked|disabled","current":bool}
 * ITEM       {"id","seq","kind","state":"pending|sending|waiting|parked","payload","org_id",
 *             "depends_on":[id...],"attempts","created_ms","occurred_at_ms"|null,
 *             "reason":{"code","text"}|null,"field":"column"|null,"not_before_ms"|null}
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct holdfast holdfast;

/* ---- Status codes: stable, one per class ------------------------------------------------------ */
#define HOLDFAST_OK 0
#define HOLDFAST_INVALID 1   /* the request is malformed; `field` says where */
#define HOLDFAST_STATE 2     /* not allowed now: locked, signed out, no organisation, in flight */
#define HOLDFAST_NOT_FOUND 3 /* no such item, contact, organisation or sign-in */
#define HOLDFAST_CONFLICT 4  /* the id exists with other content, or a confirmation does not match */
#define HOLDFAST_KEYSTORE 5  /* the key store gave no key; nothing was changed */
#define HOLDFAST_STORAGE 6   /* a file could not be read or written; nothing was changed */
#define HOLDFAST_FULL 7      /* the disk is full; nothing was changed */
#define HOLDFAST_BUSY 8      /* another process is writing, or a callback made the call */
#define HOLDFAST_CLOSED 9    /* the handle is closed or garbage */
#define HOLDFAST_FORKED 10   /* the handle belongs to the parent process */
#define HOLDFAST_NOMEM 11    /* out of memory, handles or descriptors */
#define HOLDFAST_INTERNAL 12 /* a defect of this library; please report `error.code` */

/* ---- Key store -------------------------------------------------------------------------------- */
/* Results of the functions of a key store. */
#define HOLDFAST_KEY_OK 0
#define HOLDFAST_KEY_NOT_FOUND 1         /* the store can be read now, and has no such key */
#define HOLDFAST_KEY_LOCKED 2            /* the device was not unlocked since it started */
#define HOLDFAST_KEY_CANCELLED 3         /* the user dismissed the prompt */
#define HOLDFAST_KEY_FAILED 4            /* biometrics did not match, or the store failed */
#define HOLDFAST_KEY_LOCKOUT 5           /* too many attempts, for now */
#define HOLDFAST_KEY_LOCKOUT_PERMANENT 6 /* too many attempts; the device's passcode is needed */
#define HOLDFAST_KEY_NOT_ENROLLED 7      /* no finger or face is enrolled */
#define HOLDFAST_KEY_INVALIDATED 8       /* enrolment changed; the key is lost */
#define HOLDFAST_KEY_UNAVAILABLE 9       /* no such hardware, or switched off */

/* The protection that `save` asks for. */
#define HOLDFAST_PROTECT_DEVICE 0    /* readable after the first unlock; never leaves this device */
#define HOLDFAST_PROTECT_BIOMETRIC 1 /* needs the user's presence; lost on re-enrolment */

/* The platform's keychain, as functions. A key has 32 bytes. The names of keys:
 *
 * device     one per installation, HOLDFAST_PROTECT_DEVICE. Where it was lost, the next sign-in saves
 *            device_b, then device_c, ...: none is saved over one that may come back.
 * session    new with every sign-in and unlock, erased by every lock; like device.
 * biometric  new with every sign-in, HOLDFAST_PROTECT_BIOMETRIC.
 *
 * load   writes the key to `key` (`capacity` bytes of room) and its length to `*length`. OK with
 *        another length than 32 counts as HOLDFAST_KEY_FAILED.
 *        NOT_FOUND of "device" beside files that it opened, or of "session" where no "biometric" could
 *        open them, counts as no answer for `guard_timeout_ms`. Then the sign-in is offered, and the
 *        store is asked again all the same.
 *        No load prompts. The host prompts before it calls holdfast_session_unlock(), and inside that
 *        call "biometric" is answered at once with the key that the user has released. Any other load
 *        of it answers CANCELLED for a key that needs a prompt, and NOT_FOUND for one that is gone.
 * save   stores or replaces; `protection` is HOLDFAST_PROTECT_*. Durable when it returns OK. The
 *        library loads "device" and "session" afterwards, and acknowledges nothing on a key that it
 *        does not get back. It cannot do so for "biometric", which takes the user.
 * erase  removes the key; NOT_FOUND counts as success. The library calls load() afterwards: any
 *        other answer than NOT_FOUND or INVALIDATED means that the key is not erased.
 * destroy  NULL, or called once with `context` when the library will not use it again: after
 *        holdfast_close() and the last running call, on its thread, or before a failed
 *        holdfast_open() returns, except for a struct that it refuses (/keystore/... but not kind).
 *
 * Threads    The library calls the functions only inside a call of the host, on the same thread, and
 *            one at a time for one handle; handles that share a `context` call at the same time. The
 *            functions must not call the library (such a call returns HOLDFAST_BUSY, whatever the
 *            handle), nor wait for a person or for the thread that made the call. A keychain that
 *            answers on another thread is waited for, with a limit; holdfast_http.h has a mailbox
 *            for that.
 * Exceptions Nothing may be thrown, raised or longjmp()ed across a function: the library's frames
 *            are not unwound, and its lock stays held. Catch all; return HOLDFAST_KEY_FAILED.
 * Memory     The struct is copied. `context` and the functions must live until destroy() is called:
 *            where memory is collected, hold references until then, for example in a static table.
 * Size       `size` is sizeof(holdfast_keystore).
 */
typedef struct holdfast_keystore {
  size_t size;
  void *context;
  int32_t (*load)(void *context, const char *name, uint8_t *key, size_t capacity, size_t *length);
  int32_t (*save)(void *context, const char *name, const uint8_t *key, size_t length,
                  int32_t protection);
  int32_t (*erase)(void *context, const char *name);
  void (*destroy)(void *context);
} holdfast_keystore;

/* ---- Life cycle ------------------------------------------------------------------------------- */
/* The version of this header: 0.2.0 is 2000. In the preprocessor or a static assertion:
 * #if !HOLDFAST_VERSION_AT_LEAST(0, 2, 0). */
#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 2
#define HOLDFAST_VERSION_PATCH 0
#define HOLDFAST_VERSION_NUMBER 2000
#define HOLDFAST_VERSION_AT_LEAST(major, minor, patch)                                             \
  (HOLDFAST_VERSION_NUMBER >= (major)*1000000 + (minor)*1000 + (patch))

/* The version of the library, "MAJOR.MINOR.PATCH". Static; never NULL. */
const char *holdfast_version(void);

/* The same as a number: a host needs at least its header's HOLDFAST_VERSION_NUMBER. */
int32_t holdfast_version_number(void);

/* What the library consists of, as JSON. Static; never NULL.
 * {"version":"0.2.0","abi":1,"flavour":"embedded|runtime|bundled","sqlite":"3.40.1",
 *  "libsodium":"1.0.18","jansson":"2.14"}
 * `abi`: the number in the soname. A bundled library has the other three inside. */
const char *holdfast_build_info(void);

/* Open a data folder; create it with mode 0700 if absent. Reads no key, uses no network.
 *
 * config {"data_dir":"/path","backend":{"url":"https://x.supabase.co","api_key":"...","queue":{...},
 *   "memberships":{...},"contacts":{...},"summary":{...}},"auth_methods":[...],
 *   "redirect_url":"app.example://signed-in","routes":{...},"policy":{...},"locale":"nb-NO|nn|en",
 *   "keystore":{"kind":"file"},"clock":"system|manual"}
 * Required: data_dir, backend.url, backend.api_key, and redirect_url if a method has the flow pkce.
 * "Config" in holdfast.schema.json has all fields. memberships, contacts and summary can be null.
 * data_dir  Links to it are followed. A folder that another user owns or that others may write to
 *           is refused (request.invalid_value), and so is a file in it, a link in a file's place and
 *           a file with a second name (storage.not_private; detail.file names it). The private group
 *           of the user, which has the user's number, may write. A folder that others may read is
 *           accepted: every file in it has mode 0600 and sealed content. A full disk, or a quota that
 *           is used up, gives storage.full, a read-only disk storage.read_only, a lock kept for 5 s
 *           storage.busy.
 * backend.url  A folder belongs to the project with which it was first opened: scheme, host, port
 *           and path. Another URL is refused (request.invalid_value, /backend/url; detail.project
 *           names it), because tokens and queued items would go there. Where the project gets a
 *           second address, keep the first. Where it moves, send the queue, log out, and open
 *           another data_dir; docs/storage.md says what to do when the old address is gone.
 * redirect_url  https, a reverse-domain scheme of this app (com.example.app:/signed-in), or http on
 *           this machine, without a fragment. Anything else is refused (/redirect_url).
 * keystore  With NULL, the configuration must say {"kind":"file"}: key files with mode 0600 beside
 *           the data, for development, servers and kiosks. They protect against no reader of the
 *           folder and need no prompt, so "biometric":"required", the default, is refused.
 * reply     {"version":"...","recovered":bool,"keystore":"file|host","unlock_prompt":"..."};
 *           recovered: damaged files were set aside; keystore: the key files, or the functions;
 *           unlock_prompt: the text of the prompt with which the user releases "biometric".
 * Errors: request.* (INVALID), storage.* (STORAGE, FULL, BUSY), handle.too_many (NOMEM). */
int32_t holdfast_open(const char *config, const holdfast_keystore *keystore, holdfast **self,
                      char **reply);

/* Close. Never blocks: running calls on other threads finish first, and the last one cleans up.
 * Wakes every holdfast_wait(), which returns CLOSED. Accepts NULL, closed and garbage handles.
 * Zeroes the memory that held keys. */
void holdfast_close(holdfast *self);

/* Zero and release a reply. Accepts NULL. */
void holdfast_free(void *reply);

/* The number of open handles and unreleased replies in this process, for leak tests. */
int64_t holdfast_live_count(void);

/* Send log lines for developers to `fn`, process-wide. The library calls fn(context, level, line)
 * inside a call of the host, on the same thread. Levels: 0 error, 1 warning, 2 info, 3 debug; lines
 * above `level` are skipped. Lines never contain tokens, names, ids of people or organisations, or
 * payloads. NULL as `fn` switches logging off. */
typedef void (*holdfast_log_fn)(void *context, int32_t level, const char *line);
void holdfast_log(int32_t level, holdfast_log_fn fn, void *context);

/* Make a call by the name of its operation: holdfast_call(self, "queue_add", request, &reply) is
 * holdfast_queue_add(self, request, &reply). It has every operation of the schema's x-operations
 * but open, so a binding needs no other function for them.
 * Errors: request.unknown_operation (INVALID), which suggests a near name. */
int32_t holdfast_call(holdfast *self, const char *operation, const char *request, char **reply);

/* Set the clock of a handle that was opened with "clock":"manual", for tests.
 * {"now_ms":n,"monotonic_ms":n?,"boot_id":"..."?} -> {}. Errors: clock.not_manual (STATE).
 * Without monotonic_ms the monotonic clock advances with now_ms, and never goes back. */
int32_t holdfast_clock_set(holdfast *self, const char *request, char **reply);

/* ---- Session ---------------------------------------------------------------------------------- */
/* Adopt a session that the host obtained: the token response exactly as the server sent it.
 * {"session":{"access_token","refresh_token","expires_in","user":{"id",...},...}} -> decision.
 * Read as tolerantly as a response; access_token, refresh_token, expires_in and user.id are
 * required, and each token has at most 16384 bytes. Errors: session.invalid (INVALID, field),
 * keystore.*, storage.*. An error changes nothing. */
int32_t holdfast_session_start(holdfast *self, const char *request, char **reply);

/* Begin a sign-in with a method of "auth_methods". {"method":"bankid"} -> by flow:
 * pkce      {"url":"https://..."}. Open the url in a browser. It names redirect_url exactly as
 *           configured; the project must list it. The library seals the PKCE verifier on disk, where
 *           it outlives the process and stays valid for 15 minutes.
 * id_token  {"needs":["id_token","nonce"],"nonce":"..."}. Pass sha256(nonce) in hex to the identity
 *           provider. The nonce is stored as the verifier is, and completes one sign-in.
 * password  {"needs":["email","password"]}.
 * Errors: sign_in.unknown_method (INVALID, /method). */
int32_t holdfast_sign_in_begin(holdfast *self, const char *request, char **reply);

/* Complete a sign-in. {"callback_url":"..."} | {"id_token","nonce","method"?} |
 * {"email","password","method"?} -> decision. The decision is `wait` while the library asks the
 * server; the next decision comes as an event. Without a network, or when it goes meanwhile, the
 * decision is `sign_in` with the reason `sign_in_offline`; without an answer for a minute,
 * `sign_in_unreachable`. A callback_url that was refused offline can be passed again.
 * Any app can send a callback_url. The server takes its code only with the verifier of a sign-in
 * that was begun here (PKCE). A foreign code (reason `sign_in_foreign`), an unknown one and a
 * callback with an error prove nothing: they leave the sign-ins that are under way valid and lead
 * back to the screen that was shown, with the reason if that was the sign-in. A success ends all
 * other sign-ins.
 * Errors: sign_in.unknown_method (no method has this flow), sign_in.state_mismatch, sign_in.expired,
 * sign_in.cancelled, sign_in.foreign_callback (INVALID, /callback_url or /nonce),
 * request.invalid_value (/callback_url: a parameter such as `code` comes more than once). */
int32_t holdfast_sign_in_complete(holdfast *self, const char *request, char **reply);

/* Cancel the sign-in that is under way. {} -> {"cancelled":bool,"decision":<decision>}: what was
 * shown before it. `cancelled` is false if none was under way, which is no error.
 * Ends all sign-ins in a browser, also those that another handle on the folder began: a callback
 * that comes later is refused with sign_in.cancelled. An exchange in flight signs nobody in, and
 * the session that the server made is ended there. */
int32_t holdfast_sign_in_cancel(holdfast *self, const char *request, char **reply);

/* Decide what to show at a cold start, from disk alone. {} -> decision. Call it first after
 * holdfast_open(). Does not wait for the network; requests to the server follow.
 * Until this call, holdfast_session_foreground(), holdfast_session_unlock() or a sign-in lets the
 * user in, calls that show or change data fail with session.locked (session.none), and other
 * decisions are those of this call. Queued items are sent meanwhile, as the lock's rules allow. */
int32_t holdfast_session_resume(holdfast *self, const char *request, char **reply);

/* Report the outcome of the biometric prompt, which the host has shown before. {"outcome":"success|
 * failed|cancelled|lockout|lockout_permanent|not_enrolled|invalidated|unavailable"} -> decision. On
 * success the library loads "biometric". Without that key the session stays locked, even if the
 * host reports success. After failed, cancelled, lockout and unavailable the decision is `sign_in`
 * with `can_unlock`: offer the prompt beside the methods, and report its next outcome here. */
int32_t holdfast_session_unlock(holdfast *self, const char *request, char **reply);

/* Lock now. {} -> decision. Only the biometric key can open the session afterwards; without one, a
 * sign-in. Old copies of the files do not open either. If the key store does not erase the "session"
 * key, the session is locked all the same, decisions have the banner `erasure_owed`, and every
 * later call asks the key store again. After an error of the storage the session is locked, too. */
int32_t holdfast_session_lock(holdfast *self, const char *request, char **reply);

/* Report that the app left the screen; its time away starts. {} -> decision. */
int32_t holdfast_session_background(holdfast *self, const char *request, char **reply);

/* Report that the app is back. {} -> decision: `unlock` after more than background_timeout_s. */
int32_t holdfast_session_foreground(holdfast *self, const char *request, char **reply);

/* Return the state of the session.
 * {} -> {"state":"signed_out|locked|active","stale":bool,"user_id":"..."|null,
 *        "expires_ms":n|null,"validated_ms":n|null,"validated_age_ms":n|null,
 *        "owed":["refresh"|"validation"|"guard"|"revoke"|"erase"...],"clock_offset_ms":n,
 *        "generation":n}
 * expires_ms and validated_ms are in server time. user_id is null unless active (somebody came in on
 * this handle). `owed`: what the server will be asked, and `erase` if the key store has to erase. */
int32_t holdfast_session_status(holdfast *self, const char *request, char **reply);

/* Return the access token of the open session, for the host's own calls to storage, realtime and
 * functions. {} -> {"access_token":"...","expires_ms":n}; expires_ms is in server time. Ask before
 * every call and keep no copy. A token that is about to end (refresh_margin_s), or that the server
 * refused, is refreshed first: session.refreshing, with detail.wait_ms, and an event token_changed
 * once there is another one. After the first call the event also tells of every other new token.
 * Errors: session.none, session.locked (also before anybody came in on this handle),
 * session.refreshing (STATE, retryable), keystore.* (KEYSTORE). */
int32_t holdfast_session_token(holdfast *self, const char *request, char **reply);

/* Log out. {"scope":"local|global"="local","discard":bool=false,"confirm_unsent":n?} ->
 * {"unsent":n,"decision":<decision>}. Erases the session's keys, tokens, wraps, choice and cache,
 * online or offline. The server's session is revoked now or when next online, unless it is locked here: its
 * tokens are unreadable then. Unsent items stay for their owner's next sign-in, unless `discard` is
 * true and `confirm_unsent` equals their number.
 * Errors: session.confirm_unsent (CONFLICT; detail.unsent). */
int32_t holdfast_session_logout(holdfast *self, const char *request, char **reply);

/* ---- Organisation ----------------------------------------------------------------------------- */
/* List the memberships. {} -> {"orgs":[<membership>...],"freshness":"confirmed|cached|none",
 *  "as_of_ms":n|null}. */
int32_t holdfast_org_list(holdfast *self, const char *request, char **reply);

/* Choose an organisation, or switch to another. {"org_id":"uuid"} -> decision.
 * Errors: org.not_a_member (NOT_FOUND, /org_id); org.revoked, org.disabled, org.unknown_role (the
 * role has no `routes`) (STATE, /org_id). An error leaves the choice unchanged. */
int32_t holdfast_org_select(holdfast *self, const char *request, char **reply);

/* Check whether a screen may open. {"route":"/contacts/1"} -> {"allow":true}, or a decision that
 * says where to go instead: the role's home with the reason route_forbidden, or unlock, sign_in,
 * select_org, wait. */
int32_t holdfast_route_check(holdfast *self, const char *request, char **reply);

/* ---- Queue ------------------------------------------------------------------------------------ */
/* Queue an item for the server, online or offline. Durable when the call returns. Delivery is
 * at least once; the id makes it idempotent, so the server stores the item once.
 * {"kind":"activity","payload":{...},"id":"uuid"?,"depends_on":["uuid"...]?,"occurred_at_ms":n?,
 *  "org_id":"uuid"?} -> {"id":"uuid","state":"pending"|"waiting"}. The default id is a new UUIDv7.
 * occurred_at_ms: milliseconds, not seconds; if it and id are absent: now, by the server's clock where
 * an answer has told it, else by the device's. The default org_id is the chosen one; in another one the user must have a membership. The payload may repeat id, org_id and
 * user_id with the same values only. A queued item with the same id and content stays; its state is
 * returned. "state" has no effect: it lets the host add the output of queue_export again.
 * depends_on names items that are queued, or stored and still remembered (policy.stored_items):
 * this one is sent after them. Any other id is refused with queue.unknown_dependency and its place
 * in `field`, also one that is added later. Errors: queue.unknown_kind, queue.invalid_id,
 * queue.invalid_payload, queue.item_too_large, queue.unknown_column, queue.unknown_dependency
 * (INVALID), queue.id_taken (CONFLICT, /id), session.locked, session.none, org.none (STATE),
 * org.not_a_member (NOT_FOUND, /org_id), keystore.*, storage.*. Limit: 256 kB per item. */
int32_t holdfast_queue_add(holdfast *self, const char *request, char **reply);

/* List queued items, in pages.
 * {"state":"pending|sending|waiting|parked"?,"after":seq?,"limit":1..500=100} ->
 * {"items":[<item>...],"next":seq|null,"counts":{"pending":n,"sending":n,"waiting":n,"parked":n}}
 * in the order of registration. `next` is the `after` of the next page. An item that cannot be
 * decrypted has a substitute id and is parked with the code `unreadable`: cancel it. */
int32_t holdfast_queue_list(holdfast *self, const char *request, char **reply);

/* Read one item. {"id":"uuid"} -> {"state":"pending|sending|waiting|parked","item":<item>}, or, of one
 * that left the queue, {"state":"stored","stored_ms":n} | {"state":"cancelled","cancelled_ms":n} |
 * {"state":"unknown_outcome","cancelled_ms":n} (cancelled, and the server may have it), in server
 * time, as long as the library remembers it (policy.stored_items). Errors: queue.not_found. */
int32_t holdfast_queue_get(holdfast *self, const char *request, char **reply);

/* Replace the payload. {"id":"uuid","payload":{...}} -> {"id","state"}. A parked item becomes
 * pending. If the server turns out to have stored the old payload, the item is parked as
 * `unknown_outcome`. Errors: queue.in_flight (STATE, retryable), queue.not_found, and those of
 * queue_add. */
int32_t holdfast_queue_edit(holdfast *self, const char *request, char **reply);

/* Remove an item that is not being sent. {"id":"uuid","force":bool=false} ->
 * {"id","released":n,"state":"pending|waiting"|null}. `released` items that depended on it no longer
 * wait for it. `state` null: the item is gone. Else an earlier request may have stored it, so the
 * server is asked first: without a row the item goes, with one it is parked as `unknown_outcome`, and
 * cancelling it again removes it here. Adding or editing it, and a retry with its id, take the cancel
 * back. `force` removes the item at once, whatever the server has. Errors: queue.in_flight (STATE,
 * retryable), queue.not_found. */
int32_t holdfast_queue_cancel(holdfast *self, const char *request, char **reply);

/* Send parked items again: all, or the one with `id`, which may also wait for something other than
 * a queued item. An item that was parked as "blocked" is tried once; one that waits as
 * "waiting_blocked" is sent at once, and its pause goes on if it is refused again.
 * {"id":"uuid"?} -> {"retried":n}. Errors: queue.in_flight, queue.not_found. */
int32_t holdfast_queue_retry(holdfast *self, const char *request, char **reply);

/* Export the user's items in a form that queue_add accepts. {"state":"..."?} -> {"items":[...]}.
 * Items that cannot be decrypted are left out. */
int32_t holdfast_queue_export(holdfast *self, const char *request, char **reply);

/* Explain why the queue sends nothing. {"id":"uuid"?} ->
 * {"reasons":[{"code","text","count","until_ms"|null}...],"counts":{...}}. The reasons are those
 * of the whole queue. With an id, the call fails with queue.not_found if the user has no such item.
 * Codes: nothing_queued, sending, offline, signed_out, locked, token, back_off (sync_now ends it),
 * server_pause, organisation, dependency, parked, other_user, schema_not_ready, waiting_blocked,
 * wrong_api_key, wrong_url, not_supabase, project_paused, ready. */
int32_t holdfast_queue_explain(holdfast *self, const char *request, char **reply);

/* ---- Cache ------------------------------------------------------------------------------------ */
/* Search contacts in the cache. Every word of the query must be part of a word of the name or
 * municipality; case and diacritics are ignored, but contacts that have the query's very letters come
 * before those that have only their likes. The best match comes first, then by name.
 * {"query":"..." (up to 256 bytes; empty: all),"limit":1..200=50} ->
 * {"contacts":[{"id","name",...}],"total":n,"as_of_ms":n|null,"banners":[...]}. as_of_ms: when the
 * last complete pull ended; null if none did. */
int32_t holdfast_contact_search(holdfast *self, const char *request, char **reply);

/* Read one contact. {"id":"uuid","live":bool=false} -> {"contact":{...},"withheld":["phone",...],
 *  "message":{...}|null,"as_of_ms":n|null,"request":id|null,"banners":[...]}. Withheld columns are
 * never cached. With "live":true and online the library fetches them, and one event "contact"
 * {"request","contact","message"} answers within 30 s: with the contact, or with the reason why there
 * is none: contact_gone, contact_unreachable, offline, or contact_withdrawn after a lock or another
 * choice of organisation. Errors: contact.not_found. */
int32_t holdfast_contact_get(holdfast *self, const char *request, char **reply);

/* Read the user's figures. {} -> {"summary":{...}|null,"as_of_ms":n|null,
 *  "sent":{"activities":n,"minutes":n},"queued":{"activities":n,"minutes":n},"banners":[...]}.
 * summary: the server's figures, from the cache. sent: items sent since the server counted. queued:
 * unsent items, except parked ones. No item counts twice; the sum is the user's total. */
int32_t holdfast_summary_get(holdfast *self, const char *request, char **reply);

/* ---- Network, sync, and the host's loop ------------------------------------------------------- */
/* Report whether there is a network. {"online":bool} -> {}. Until the first call the library
 * assumes that there is. */
int32_t holdfast_network_set(holdfast *self, const char *request, char **reply);

/* Pull and send now. Ends the back-offs of the data service and the waits of items, except those that
 * the server asked for and those of items that wait as "waiting_blocked". A back-off of the auth
 * service goes on.
 * {} -> {"started":bool,"reason":code|null}; reason, if not started: offline, token, server_pause. */
int32_t holdfast_sync_now(holdfast *self, const char *request, char **reply);

/* Return the state of sync.
 * {} -> {"running":bool,"counts":{...},"last_completed_ms":n|null,"not_before_ms":n|null,
 *  "pause":"back_off"|"server_pause"|null,
 *  "contacts":{"as_of_ms":n|null,"reconciled_ms":n|null,"skipped":n,
 *    "problem":"loop"|"unusable_row"|null},
 *  "summary":{"as_of_ms":n|null},"problems":[<problem>...]}. skipped: unusable rows of the last
 * pull. problems: what the server's schema refuses, a list of memberships or contacts that cannot be
 * used as a whole (unusable_row, loop, too_many_rows), a wrong key, a wrong address. */
int32_t holdfast_sync_status(holdfast *self, const char *request, char **reply);

/* Fetch the host's next work: requests to send and events to handle.
 * {"ack":seq?,"max_events":n?,"only_new":bool?,"from_oldest":bool?} -> {"requests":[...],
 *  "events":[...],"wake_in_ms":n|null}
 *
 * request {"id":n,"purpose":"refresh|validate|guard|upload|pull|summary|revoke|live|sign_in",
 *          "method","url","headers":{...},"body":"..."|null,"timeout_ms":n}
 *         Each request is returned once. Send it once over HTTP and pass the response to
 *         holdfast_complete(). Requests carry credentials: do not log them.
 * event   {"seq":n,"type":"decision|sync_progress|sync_completed|item_parked|session_ended|
 *          org_access_changed|storage_recovered|contact|pull_completed|token_changed","...":...},
 *         with increasing `seq`. sync_completed, item_parked, session_ended, org_access_changed and
 *         storage_recovered are durable: they return in every poll, across restarts, until `ack`
 *         reaches their seq. The others are returned once. A poll returns at most 200 durable
 *         events. If there are more, those that this handle has not returned come first, and
 *         nothing after the first one left out: poll again. When all were, the oldest come again.
 * ack         deletes durable events up to this seq, as far as this handle has returned them.
 * max_events  at most so many durable events, 0..200 (default 200). 0: no events at all, and events
 *             do not wake the host until a poll takes some: for a host whose reader is slow.
 * only_new    leave out durable events that this handle has returned before (default false).
 * from_oldest begin with the oldest durable event again, after a page that was not shown to its end.
 * wake_in_ms  poll again within this time; null: only after a call or a response. */
int32_t holdfast_poll(holdfast *self, const char *request, char **reply);

/* Pass the response to a request: {"id":n,"status":200,"headers":{...},"body":"..."} or
 * {"id":n,"error":"offline|timeout|tls|dns|refused|cancelled"} -> {"accepted":bool}. `body` is the
 * text as received, or null if it is not UTF-8. The library ignores the response, and `accepted` is
 * false, if the id is unknown, was completed before, or timed out (timeout_ms plus 5 s). */
int32_t holdfast_complete(holdfast *self, const char *request, char **reply);

/* Block until holdfast_poll() has something to return, for at most timeout_ms (negative: no limit).
 * HOLDFAST_OK: poll now, also after the time has passed. HOLDFAST_CLOSED: the handle was closed. A
 * failure takes up to 1 s. For a thread of its own. Also returns when another handle on the folder
 * gave this one work. While on the screen, other processes are looked at once a second, and every 10 s
 * whether there are any. */
int32_t holdfast_wait(holdfast *self, int32_t timeout_ms);

/* Return a descriptor for an event loop, or -1 for a bad handle. It is readable while
 * holdfast_poll() has something to return, after a call made something due earlier than the last
 * `wake_in_ms`, and when another handle of this process on the folder has changed something; the poll
 * that follows may return nothing. Time alone does not make it readable: keep a timer of `wake_in_ms`
 * (at most 1000 on screen while another process has the folder open). The handle owns the
 * descriptor: never read, write or close it. holdfast_close() ends it. */
int32_t holdfast_wake_fd(holdfast *self);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_H */
