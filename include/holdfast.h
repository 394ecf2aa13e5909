/*
 * holdfast.h - sessions, tenants, an offline queue and an encrypted cache for apps on Supabase.
 *
 * The host passes JSON and receives JSON. It calls operations, and holdfast_next() gives it one
 * thing at a time: a screen to show, an HTTP request to send, something to tell. Holdfast opens
 * no socket, starts no thread and sets no timer; holdfast_http.h is a driver that sends the
 * requests. holdfast.schema.json has every shape, field and error, and docs/reference.md is made
 * from it.
 *
 * Calls      int32_t holdfast_<noun>_<verb>(holdfast *self, const char *request, char **reply);
 *            `request`: a JSON object in UTF-8; NULL or "" means {}. `reply`, if not NULL,
 *            receives a JSON object, also on an error (NULL only with HOLDFAST_NOMEM);
 *            holdfast_free() it.
 * Errors     {"error":{"code":"queue.item_too_large","message":"...","field":"/payload/note",
 *            "retryable":false,"detail":{}}}. `code` is stable, `field` a JSON Pointer or null.
 *            Requests are read strictly: an unknown field or a wrong type is named. Messages are
 *            for developers and hold no user data. An error changes nothing, unless it says so.
 * Numbers    Integers lie within +-2^53. `..._ms` of an instant: milliseconds since 1970 (UTC).
 * Threads    Any thread may use any handle; a handle runs one call at a time. No call but
 *            holdfast_next() waits for longer than 5 s, which other processes may hold a lock
 *            (HOLDFAST_BUSY). A thread needs 128 kB of stack for a call.
 * Handles    Opaque, never dereferenced: a closed or garbage one gives HOLDFAST_CLOSED. In a
 *            forked child an inherited one gives HOLDFAST_FORKED; open a new one only if no
 *            thread was inside a call at the fork.
 * Files      Several handles and processes may use one data_dir at once; what one changes wakes
 *            the others.
 *
 * NOTATION   `x?` is optional, `x=v` has the default v, `x|y` is one of several, n is an
 *            integer.
 * DECISION   {"screen":"home|unlock|sign_in|select_org|wait","reason","route"|null,
 *             "org":{"id","name","role"}|null,"message":{"code","text","cause"?}|null,
 *             "can_unlock":bool, "methods":[{"id","label","flow"}],"orgs":[<membership>...],
 *             "banners":[{"code","tone","text","as_of_ms"}],"deadline_ms":n|null}
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
#define HOLDFAST_CONFLICT 4  /* the id exists with other content, or a confirmation is wrong */
#define HOLDFAST_KEYSTORE 5  /* the key store gave no key; nothing was changed */
#define HOLDFAST_STORAGE 6   /* a file could not be read or written; nothing was changed */
#define HOLDFAST_FULL 7      /* the disk is full; nothing was changed */
#define HOLDFAST_BUSY 8      /* another process is writing, or a callback made the call */
#define HOLDFAST_CLOSED 9    /* the handle is closed or garbage */
#define HOLDFAST_FORKED 10   /* the handle belongs to the parent process */
#define HOLDFAST_NOMEM 11    /* out of memory, handles or descriptors */
#define HOLDFAST_INTERNAL 12 /* a defect of this library; please report `error.code` */

/* ---- Key store ------------------------------------------------------------------------------- */
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

/* The platform's keychain, as functions. Keys have 32 bytes: "device" (one per installation;
 * device_b, ... where it was lost), "session" (erased by every lock), "biometric"
 * (HOLDFAST_PROTECT_BIOMETRIC).
 *
 * load     Writes the key to `key` (`capacity` bytes of room), and its length. No load prompts:
 *          the host prompts before holdfast_session_unlock(), and inside that call "biometric"
 *          is answered with the key that the user has released, or with why there is none. Any
 *          other load of it answers CANCELLED for a key that needs a prompt, and NOT_FOUND for
 *          one that is gone.
 * save     Stores or replaces, durably. The library reads "device" and "session" back.
 * erase    NOT_FOUND counts as success. The library looks for the key afterwards.
 * destroy  NULL, or called once when the library will not use `context` again.
 *
 * They are called only inside a call of the host, on its thread, one at a time for each handle.
 * They must not call the library (HOLDFAST_BUSY, whatever the handle), wait for a person, nor
 * throw. The struct is copied; `context` and the functions live until destroy(). A keychain that
 * answers on another thread: see holdfast_http.h, key_next. */
typedef struct holdfast_keystore {
  size_t size;
  void *context;
  int32_t (*load)(void *context, const char *name, uint8_t *key, size_t capacity, size_t *length);
  int32_t (*save)(void *context, const char *name, const uint8_t *key, size_t length,
                  int32_t protection);
  int32_t (*erase)(void *context, const char *name);
  void (*destroy)(void *context);
} holdfast_keystore;

/* ---- Life cycle ------------------------------------------------------------------------------ */
/* The version of this header: 0.2.0 is 2000. */
#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 2
#define HOLDFAST_VERSION_PATCH 0
#define HOLDFAST_VERSION_NUMBER 2000
#define HOLDFAST_VERSION_AT_LEAST(major, minor, patch)                                             \
  (HOLDFAST_VERSION_NUMBER >= (major)*1000000 + (minor)*1000 + (patch))

/* The version of the library, "MAJOR.MINOR.PATCH". Static. */
const char *holdfast_version(void);

/* The same as a number, to compare with HOLDFAST_VERSION_NUMBER. */
int32_t holdfast_version_number(void);

/* {"version","abi":1,"flavour":"embedded|runtime|bundled","sqlite","libsodium","jansson"}.
 *       Static. */
const char *holdfast_build_info(void);

/* Open a data folder, made with mode 0700 if absent, and decide the first screen from disk
 * alone. config
 * {"data_dir":"/path","backend":{"url":"https://x.supabase.co","api_key":"...","queue":{...},
 * "memberships":{...}|null,"contacts":{...}|null,"summary":{...}|null},"auth_methods":[...],
 * "redirect_url":"app.example://signed-in","routes":{...},"policy":{...},"locale":"nb-NO|nn|en",
 * "template":"volunteers"?,"development":bool=false,"keystore":{"kind":"file"}?,
 * "role":"app|worker","clock":"system|manual"} keystore NULL needs {"kind":"file"}, or
 * "development": key files beside the data, without a prompt. A worker only sends what is
 * queued: it has no screen before holdfast_session_resume(). ->
 * {"version","recovered":bool,"keystore":"file|host","unlock_prompt","screen":<decision>|null}.
 * Errors: request.* (INVALID), storage.* (STORAGE, FULL, BUSY), handle.too_many (NOMEM). */
int32_t holdfast_open(const char *config, const holdfast_keystore *keystore, holdfast **self,
                      char **reply);

/* Close. Never blocks: running calls finish first. Every waiting holdfast_next() returns CLOSED. */
void holdfast_close(holdfast *self);

/* Zero and release a reply. Accepts NULL. */
void holdfast_free(void *reply);

/* The number of open handles and unreleased replies in this process, for leak tests. */
int64_t holdfast_live_count(void);

/* Send log lines for developers to `fn`, process-wide, inside the host's calls. Levels: 0 error,
 * 1 warning, 2 info, 3 debug. Lines hold no tokens, names, ids of people or payloads. */
typedef void (*holdfast_log_fn)(void *context, int32_t level, const char *line);
void holdfast_log(int32_t level, holdfast_log_fn fn, void *context);

/* ---- What the host gets ---------------------------------------------------------------------- */
/* What a reader takes from holdfast_next(). */
#define HOLDFAST_NEXT_NEWS 1     /* all but requests: a host beside a driver */
#define HOLDFAST_NEXT_REQUESTS 2 /* requests alone: a driver */
#define HOLDFAST_NEXT_ALL 3

/* Get the next thing, one at a time. Looks for work, and waits for it up to timeout_ms (0: not
 * at all; negative: no limit). One reader for each handle and `what`.
 * {"screen":<decision>}  Show it: only the newest comes, so none is ever old. It comes when it
 *       changed, and first of all after a call whose purpose is a screen (marked "screen"
 *       below).
 * {"answer":{"to":"contact_get|session_token",...}}  To a live contact_get; or there is another
 *       token.
 * {"notice":{"type":"item_parked|session_ended|org_access_changed|storage_recovered",
 *       "reason","text", ...}}  Tell the user. Asking for the next thing acknowledges it; else
 *       it comes again after a restart.
 * {"sync":{"running","sent","parked","left","waiting","ids","message",...}}  Sync has changed:
 *       during a run at most every 200 ms, after the end of a run or a pull always.
 * {"request":{"id","purpose":"refresh|validate|guard|upload|pull|summary|revoke|live|sign_in",
 *       "method", "url","headers","body","timeout_ms"}}  Send it once, and complete it. It
 *       carries credentials.
 * {"wake_in_ms":n|null}  Nothing now. Ask again within this time; null: after a call or a
 *       response.
 * HOLDFAST_CLOSED: the handle is closed. After another failure, ask again. */
int32_t holdfast_next(holdfast *self, int32_t what, int32_t timeout_ms, char **reply);

/* A descriptor for an event loop, readable while holdfast_next(self, what, 0) has something; -1
 * for a bad handle. Time alone does not make it readable: keep a timer of `wake_in_ms`. The
 * handle owns it. */
int32_t holdfast_wake_fd(holdfast *self, int32_t what);

/* Pass the response to a request: {"id":n,"status":200,"headers":{...},"body":"..."|null} or
 * {"id":n,"error":"offline|timeout|tls|dns|refused|cancelled"} -> {}. The library keeps it until
 * it is worked off: never repeat the call. */
int32_t holdfast_complete(holdfast *self, const char *request, char **reply);

/* ---- Session --------------------------------------------------------------------------------- */
/* Decide again what to show, as at a start. {} -> {}; screen. Called twice, it undoes nothing. */
int32_t holdfast_session_resume(holdfast *self, const char *request, char **reply);

/* The app left the screen; its time away starts. {} -> {}; screen. */
int32_t holdfast_session_background(holdfast *self, const char *request, char **reply);

/* The app is back. {} -> {}; screen: `unlock` after more than background_timeout_s. */
int32_t holdfast_session_foreground(holdfast *self, const char *request, char **reply);

/* Begin a sign-in with a method of "auth_methods". {"method"} -> by flow {"url"} for a browser
 * (pkce), {"needs":["id_token","nonce"],"nonce"}, or {"needs":["email","password"]}. Errors:
 * sign_in.unknown_method. */
int32_t holdfast_sign_in_begin(holdfast *self, const char *request, char **reply);

/* Complete a sign-in: {"callback_url"} | {"id_token","nonce","method"?} |
 * {"email","password","method"?} -> {}; screen: `wait` while the server is asked, then home, or
 * sign_in with the reason. A callback that proves nothing leaves the sign-ins that are under way
 * valid. Errors: sign_in.unknown_method, sign_in.state_mismatch, sign_in.expired,
 * sign_in.cancelled, sign_in.foreign_callback, request.invalid_value (/callback_url). */
int32_t holdfast_sign_in_complete(holdfast *self, const char *request, char **reply);

/* Cancel the sign-in that is under way. {} -> {"cancelled":bool}; screen. */
int32_t holdfast_sign_in_cancel(holdfast *self, const char *request, char **reply);

/* Adopt a session that the host obtained: {"session":<the server's token response>} -> {};
 * screen. Errors: session.invalid. */
int32_t holdfast_session_start(holdfast *self, const char *request, char **reply);

/* After the prompt: load "biometric" from the key store, whose answer is the outcome. {} -> {};
 * screen. */
int32_t holdfast_session_unlock(holdfast *self, const char *request, char **reply);

/* Lock, and erase the key "session" in any case. {} -> {}; screen. */
int32_t holdfast_session_lock(holdfast *self, const char *request, char **reply);

/* {} -> {"state":"signed_out|locked|active","stale","user_id","expires_ms","validated_ms",
 * "validated_age_ms","owed":[...],"clock_offset_ms","generation"}. */
int32_t holdfast_session_status(holdfast *self, const char *request, char **reply);

/* The access token, for the host's own calls. {} -> {"access_token","expires_ms"}. Keep no copy:
 * ask before every call. Errors: session.none, session.locked, session.refreshing (an "answer"
 * follows). */
int32_t holdfast_session_token(holdfast *self, const char *request, char **reply);

/* Log out, online or offline. {"scope":"local|global"="local","unsent":"keep|discard"?,
 * "confirm_unsent":n?} -> {"unsent":n}; screen. While items are unsent, "keep" leaves them for
 * their owner's next sign-in, and "discard" with their number erases them. Errors:
 * session.confirm_unsent (CONFLICT; detail.unsent). */
int32_t holdfast_session_logout(holdfast *self, const char *request, char **reply);

/* ---- Organisation ---------------------------------------------------------------------------- */
/* {} -> {"orgs":[<membership>...],"freshness":"confirmed|cached|none","as_of_ms":n|null}. */
int32_t holdfast_org_list(holdfast *self, const char *request, char **reply);

/* Choose an organisation, or switch. {"org_id"} -> {}; screen. Errors: org.not_a_member,
 * org.revoked, org.disabled, org.unknown_role. */
int32_t holdfast_org_select(holdfast *self, const char *request, char **reply);

/* Whether a route may open. {"route":"/contacts/1"} -> {"allow":true}, or
 * {"allow":false,"screen":<decision>}: what to show instead. */
int32_t holdfast_route_check(holdfast *self, const char *request, char **reply);

/* ---- Queue ----------------------------------------------------------------------------------- */
/* Queue an item, online or offline. Durable when the call returns; the server stores it once.
 * {"kind","payload":{...},"id":"uuid"?,"depends_on":[id...]?,"occurred_at_ms":n?,"org_id"?} ->
 * {"id","state":"pending|waiting"}. Errors: queue.unknown_kind, queue.invalid_id,
 * queue.invalid_payload, queue.item_too_large, queue.unknown_column, queue.unknown_dependency,
 * queue.id_taken, session.locked, session.none, org.none, org.not_a_member. */
int32_t holdfast_queue_add(holdfast *self, const char *request, char **reply);

/* {"state"?,"after":seq?,"limit":1..500=100} ->
 * {"items":[<item>...],"next":seq|null,"counts":{...}}. */
int32_t holdfast_queue_list(holdfast *self, const char *request, char **reply);

/* {"id"} -> {"state","item":<item>}, or what became of it: {"state":"stored","stored_ms"} |
 * {"state":"cancelled|unknown_outcome","cancelled_ms"}. Errors: queue.not_found. */
int32_t holdfast_queue_get(holdfast *self, const char *request, char **reply);

/* Replace the payload; a parked item becomes pending. {"id","payload":{...}} -> {"id","state"}.
 * Errors: queue.in_flight, queue.not_found, and those of queue_add. */
int32_t holdfast_queue_edit(holdfast *self, const char *request, char **reply);

/* Remove an item that is not being sent. {"id","force":bool=false} ->
 * {"id","released":n,"state"|null}. `state` null: it is gone; else the server is asked first.
 * Errors: queue.in_flight, queue.not_found. */
int32_t holdfast_queue_cancel(holdfast *self, const char *request, char **reply);

/* Send parked items again: all, or one. {"id"?} -> {"retried":n}. Errors: queue.in_flight,
 * queue.not_found. */
int32_t holdfast_queue_retry(holdfast *self, const char *request, char **reply);

/* The user's items in a form that queue_add accepts. {"state"?} -> {"items":[...]}. */
int32_t holdfast_queue_export(holdfast *self, const char *request, char **reply);

/* Why the queue sends nothing. {"id"?} ->
 * {"reasons":[{"code","text","count","until_ms"|null}...], "counts":{...}}. Errors:
 * queue.not_found. */
int32_t holdfast_queue_explain(holdfast *self, const char *request, char **reply);

/* ---- Cache ----------------------------------------------------------------------------------- */
/* {"query" (empty: all),"limit":1..200=50} ->
 * {"contacts":[...],"total":n, "as_of_ms":n|null,"banners":[...]}. as_of_ms null: no pull was
 * complete yet. */
int32_t holdfast_contact_search(holdfast *self, const char *request, char **reply);

/* {"id","live":bool=false} ->
 * {"contact","withheld":["phone",...],"message"|null,"as_of_ms"|null,
 * "request":n|null,"banners"}. With live, an "answer" has the withheld columns within 30 s.
 * Errors: contact.not_found. */
int32_t holdfast_contact_get(holdfast *self, const char *request, char **reply);

/* {} ->
 * {"summary":{...}|null,"as_of_ms"|null,"sent":{"activities","minutes"},"queued":{...},"banners"}.
 * No item counts twice. */
int32_t holdfast_summary_get(holdfast *self, const char *request, char **reply);

/* ---- Network and sync ------------------------------------------------------------------------ */
/* Report whether there is a network. {"online":bool} -> {}. Until then there is one. */
int32_t holdfast_network_set(holdfast *self, const char *request, char **reply);

/* Pull and send now; ends the pauses that no server asked for. {} ->
 * {"started":bool,"reason"|null}. */
int32_t holdfast_sync_now(holdfast *self, const char *request, char **reply);

/* {} -> {"running","counts","last_completed_ms","not_before_ms","pause","contacts","summary",
 * "problems":[...]}: what the server's schema refuses, a wrong key or address, nobody_asks. */
int32_t holdfast_sync_status(holdfast *self, const char *request, char **reply);

/* ---- For bindings and tests ------------------------------------------------------------------ */
/* Call an operation by its name: holdfast_call(self, "queue_add", request, &reply).
 * Errors: request.unknown_operation. */
int32_t holdfast_call(holdfast *self, const char *operation, const char *request, char **reply);

/* Set the clock of a handle with "clock":"manual". {"now_ms":n,"monotonic_ms":n?,"boot_id"?} ->
 * {}. Errors: clock.not_manual. */
int32_t holdfast_clock_set(holdfast *self, const char *request, char **reply);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_H */
