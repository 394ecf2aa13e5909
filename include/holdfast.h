/*
 * holdfast.h - sessions, tenants, an offline queue and an encrypted cache for apps on Supabase.
 *
 * A host hands Holdfast JSON and gets JSON. Holdfast decides; the host acts: it sends the HTTP
 * requests that holdfast_poll() names, shows the screens that decisions name, and asks for
 * biometrics when told to. Holdfast itself opens no socket, starts no thread and sets no timer.
 *
 * CONVENTIONS
 *
 * Calls      Every operation is
 *              int32_t holdfast_<noun>_<verb>(holdfast *self, const char *request, char **reply);
 *            `request` is a NUL-terminated UTF-8 JSON object; NULL or "" means {}.
 *            `reply`, if not NULL, receives a JSON object on success and on error alike (NULL only
 *            with HOLDFAST_NOMEM); the caller owns it and releases it with holdfast_free().
 * Status     The result is HOLDFAST_OK or one of the classes below. The error reply is
 *              {"error":{"code":"queue.item_too_large","message":"...","field":"/payload/note",
 *                        "retryable":false,"detail":{}}}
 *            `code` is stable; `field` is a JSON Pointer into the request, or null; messages are for
 *            developers and never hold user data.
 * Strict     Invalid UTF-8, duplicate keys, nesting deeper than 64, a wrong type or an unknown field
 *            is HOLDFAST_INVALID and names the field. Replies of servers are read tolerantly.
 * Numbers    Integers lie within +-2^53. `..._ms` at an instant is milliseconds since 1970 (UTC);
 *            durations end in `_s` or `_ms` and say so.
 * Threads    Any thread may use any handle at any time; a handle serves one call after another. No
 *            call waits for a network, a user or a timer (holdfast_wait() alone waits, for work); a
 *            call waits at most 5 s for another process that is writing (HOLDFAST_BUSY).
 * Handles    A handle is an opaque token and is never dereferenced: one that is closed, closed twice
 *            or garbage is answered with HOLDFAST_CLOSED, also from a finaliser on another thread.
 * fork       In a child process every call on an inherited handle answers HOLDFAST_FORKED.
 * Files      `data_dir` holds holdfast.db, cache.db (SQLite) and, with the built-in key store,
 *            keys/. Several processes may use one folder at once.
 *
 * DECISION   The one shape from which a host draws its screens:
 *              {"screen":"home|unlock|sign_in|select_org|wait","reason":"...","route":"/..."|null,
 *               "org":{"id","name","role"}|null,"message":{"code","text"}|null,
 *               "methods":[{"id","label","flow"}],"orgs":[<membership>...],
 *               "banners":[{"code","tone","text","as_of_ms"}],"deadline_ms":n|null}
 *            `wait` is always followed by an event "decision" at the latest when `deadline_ms` has
 *            passed. `methods` is filled with sign_in, `orgs` with select_org.
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

/* A handle: opaque, never dereferenced. */
typedef struct holdfast holdfast;

/* ---- Status codes: stable, one per class ------------------------------------------------------ */

#define HOLDFAST_OK 0
#define HOLDFAST_INVALID 1   /* the request is malformed; `field` says where */
#define HOLDFAST_STATE 2     /* not allowed now: locked, signed out, no organisation, in flight */
#define HOLDFAST_NOT_FOUND 3 /* no such item, contact, organisation or sign-in */
#define HOLDFAST_CONFLICT 4  /* the id exists with other content, or a confirmation does not match */
#define HOLDFAST_KEYSTORE 5  /* the key store did not answer; nothing was changed */
#define HOLDFAST_STORAGE 6   /* a file could not be read or written; nothing was changed */
#define HOLDFAST_FULL 7      /* no room on the disk */
#define HOLDFAST_BUSY 8      /* another process holds the file, or the call came from a callback */
#define HOLDFAST_CLOSED 9    /* the handle is closed or never was one */
#define HOLDFAST_FORKED 10   /* the handle belongs to the parent process */
#define HOLDFAST_NOMEM 11    /* out of memory, handles or descriptors */
#define HOLDFAST_INTERNAL 12 /* a defect of this library; please report `error.code` */

/* ---- Key store -------------------------------------------------------------------------------- */

/* Answers of a key store's functions. */
#define HOLDFAST_KEY_OK 0
#define HOLDFAST_KEY_NOT_FOUND 1         /* the store works and holds no such key */
#define HOLDFAST_KEY_LOCKED 2            /* the device was not unlocked since it started */
#define HOLDFAST_KEY_CANCELLED 3         /* the user dismissed the prompt */
#define HOLDFAST_KEY_FAILED 4            /* biometrics did not match, or the store failed */
#define HOLDFAST_KEY_LOCKOUT 5           /* too many attempts, for now */
#define HOLDFAST_KEY_LOCKOUT_PERMANENT 6 /* too many attempts: the device's code is needed */
#define HOLDFAST_KEY_NOT_ENROLLED 7      /* no finger or face is enrolled */
#define HOLDFAST_KEY_INVALIDATED 8       /* enrolment changed; the key is gone for good */
#define HOLDFAST_KEY_UNAVAILABLE 9       /* no such hardware, or switched off */

/* The protection that `save` asks for. */
#define HOLDFAST_PROTECT_DEVICE 0    /* readable after the first unlock; never leaves this device */
#define HOLDFAST_PROTECT_BIOMETRIC 1 /* released only to the user's presence; gone on re-enrolment */

/*
 * Where keys live: the platform's keychain, given as functions. Names are "device" and "biometric";
 * keys are 32 bytes. The functions are called only inside a call of the host's, on its thread, and
 * must not call back into the library (such a call answers HOLDFAST_BUSY). `size` is
 * sizeof(holdfast_keystore). The struct is copied; `context` must live until holdfast_close().
 *
 * load   writes the key to `key` (room for `capacity` bytes) and its length to `*length`.
 * save   stores or replaces; protection is HOLDFAST_PROTECT_*. Durable when it returns OK.
 * erase  removes; NOT_FOUND counts as success.
 */
typedef struct holdfast_keystore {
  size_t size;
  void *context;
  int32_t (*load)(void *context, const char *name, uint8_t *key, size_t capacity, size_t *length);
  int32_t (*save)(void *context, const char *name, const uint8_t *key, size_t length,
                  int32_t protection);
  int32_t (*erase)(void *context, const char *name);
} holdfast_keystore;

/* ---- Life cycle ------------------------------------------------------------------------------- */

/* The library's version, "MAJOR.MINOR.PATCH". Static; never NULL. @since 0.1 */
const char *holdfast_version(void);

/*
 * Open a data folder (created 0700 if absent). Reads no key and touches no network.
 *
 * config {"data_dir":"/path",
 *   "backend":{"url":"https://x.supabase.co","api_key":"...",
 *     "queue":{"activity":{"table":"activities","columns":[...],"upload":"table|rpc",
 *              "function":"submit_activities"},...},
 *     "memberships":{"table":"memberships"},
 *     "contacts":{"table":"contacts","columns":[...],"withheld":[...]},
 *     "summary":{"function":"activity_summary","kind":"activity"}},
 *   "auth_methods":[{"id":"bankid","provider":"bankid","flow":"pkce|id_token|password",
 *                    "label":"BankID"}],
 *   "redirect_url":"app.example://signed-in",
 *   "routes":{"peer_mentor":{"home":"/mentor","screens":["/mentor","/contacts"]},...},
 *   "policy":{"session_window_s":43200,"background_timeout_s":300,"offline_limit_s":1209600,
 *             "guard_timeout_ms":2500,"refresh_margin_s":90,
 *             "biometric":"required|preferred|off","pull_interval_s":900,
 *             "reconcile_interval_s":86400,"erase_on_switch":false},
 *   "locale":"nb|nn|en","keystore":{"kind":"file"},"clock":"system|manual"}
 * Required: data_dir, backend.url, backend.api_key. Every other part has a default that fits the
 * project's example backend. A screen of "*" allows every route; one ending in slash-star allows
 * everything below it.
 * data_dir  A link is followed. The folder of another user, and one in which everybody may write, is
 *           refused (request.invalid_value); one that others may read stays as it is, since every
 *           file in it is 0600 and sealed. On a full or read-only disk: storage.full, .read_only.
 * keystore  NULL means the built-in "file" key store: a 0600 key file beside the data, for
 *           development, servers and kiosks. It protects nothing from who can read the folder, and
 *           releases the "biometric" key to anybody.
 * reply     {"version":"...","recovered":bool}: recovered when damaged files were set aside.
 * Errors: request.* (INVALID), storage.* (STORAGE, FULL, BUSY), handle.too_many (NOMEM). @since 0.1
 */
int32_t holdfast_open(const char *config, const holdfast_keystore *keystore, holdfast **self,
                      char **reply);

/*
 * Close. Never blocks: calls under way on other threads finish first and the last one cleans up.
 * Wakes every holdfast_wait() (they answer CLOSED). NULL, a closed or a garbage handle is fine.
 * Memory that held keys is zeroed. @since 0.1
 */
void holdfast_close(holdfast *self);

/* Zero a reply and release it. NULL is fine. @since 0.1 */
void holdfast_free(void *reply);

/* Handles and replies not yet released in this process: for leak tests. @since 0.1 */
int64_t holdfast_live_count(void);

/*
 * Log lines for developers, process-wide: fn(context, level, line), called inside calls of the
 * host's, on its thread. Levels: 0 error, 1 warning, 2 info, 3 debug; lines above `level` are not
 * made. Lines never hold tokens, names, ids of people or organisations, or payloads. fn NULL
 * switches logging off. @since 0.1
 */
typedef void (*holdfast_log_fn)(void *context, int32_t level, const char *line);
void holdfast_log(int32_t level, holdfast_log_fn fn, void *context);

/*
 * Set the clock of a handle opened with "clock":"manual" (tests).
 * {"now_ms":n,"monotonic_ms":n?,"boot_id":"..."?} -> {}. Errors: clock.not_manual (STATE).
 * Without monotonic_ms the monotonic clock moves as far forward as now_ms did. @since 0.1
 */
int32_t holdfast_clock_set(holdfast *self, const char *request, char **reply);

/* ---- Session ---------------------------------------------------------------------------------- */

/*
 * Adopt a session that the host obtained itself: the token reply exactly as the server sent it.
 * {"session":{"access_token","refresh_token","expires_in","user":{"id",...},...}} -> decision.
 * Read tolerantly; access_token, refresh_token, expires_in and user.id must be there.
 * Errors: session.invalid (INVALID, field), keystore.* (KEYSTORE), storage.*. State is unchanged
 * on any error. @since 0.1
 */
int32_t holdfast_session_start(holdfast *self, const char *request, char **reply);

/*
 * Begin a sign-in. {"method":"bankid"} -> {"url":"https://...","state":"..."} for flow pkce (open
 * the url in a browser; state and verifier are sealed on disk and outlive the process for 15
 * minutes), {"needs":["id_token","nonce"],"nonce":"..."} for id_token (hand sha256(nonce) in hex to
 * the identity provider), {"needs":["email","password"]} for password.
 * Errors: sign_in.unknown_method (INVALID, /method). @since 0.1
 */
int32_t holdfast_sign_in_begin(holdfast *self, const char *request, char **reply);

/*
 * Complete it: {"callback_url":"..."} | {"id_token","nonce","method"?} |
 * {"email","password","method"?} -> decision, `wait` when the server must be asked; the decision
 * that follows comes as an event.
 * Errors: sign_in.state_mismatch, sign_in.expired, sign_in.foreign_callback (INVALID,
 * /callback_url). The sign-in under way stays valid after a wrong callback. @since 0.1
 */
int32_t holdfast_sign_in_complete(holdfast *self, const char *request, char **reply);

/*
 * The cold-start answer: what to show, from disk alone. {} -> decision. Call it first after
 * holdfast_open(). Never waits for the network; the server is asked afterwards. @since 0.1
 */
int32_t holdfast_session_resume(holdfast *self, const char *request, char **reply);

/*
 * What became of the biometric prompt. {"outcome":"success|failed|cancelled|lockout|
 * lockout_permanent|not_enrolled|invalidated|unavailable"} -> decision. On success the key store
 * is asked for "biometric"; without the key the session stays locked, whatever the host says.
 * @since 0.1
 */
int32_t holdfast_session_unlock(holdfast *self, const char *request, char **reply);

/* Lock now: the session can be read again only with the biometric key. {} -> decision. @since 0.1 */
int32_t holdfast_session_lock(holdfast *self, const char *request, char **reply);

/* The app left the screen: idle time starts. {} -> decision (what is shown). @since 0.1 */
int32_t holdfast_session_background(holdfast *self, const char *request, char **reply);

/* The app is back. {} -> decision: unlock when it was away longer than background_timeout_s.
 * @since 0.1 */
int32_t holdfast_session_foreground(holdfast *self, const char *request, char **reply);

/*
 * {} -> {"state":"signed_out|locked|active","stale":bool,"user_id":"..."|null,
 *        "expires_ms":n|null,"validated_ms":n|null,"validated_age_ms":n|null,
 *        "owed":["refresh"|"validation"|"guard"|"revoke"...],"clock_offset_ms":n,"generation":n}
 * expires_ms is in server time; user_id only while active. @since 0.1
 */
int32_t holdfast_session_status(holdfast *self, const char *request, char **reply);

/*
 * Log out. {"scope":"local|global"="local","discard":false,"confirm_unsent":n?} ->
 * {"unsent":n,"decision":<decision>}. Tokens, key wraps, choice and cache are gone in one step,
 * online or not; the server's session is revoked now or when next online. Unsent items stay for
 * their owner's next sign-in, unless `discard` is true and `confirm_unsent` equals their number.
 * Errors: session.confirm_unsent (CONFLICT; detail.unsent). @since 0.1
 */
int32_t holdfast_session_logout(holdfast *self, const char *request, char **reply);

/* ---- Organisation ----------------------------------------------------------------------------- */

/* {} -> {"orgs":[<membership>...],"freshness":"confirmed|cached|none","as_of_ms":n|null}. @since 0.1 */
int32_t holdfast_org_list(holdfast *self, const char *request, char **reply);

/* First choice and switch alike. {"org_id":"uuid"} -> decision.
 * Errors: org.not_a_member (NOT_FOUND, /org_id), org.revoked, org.disabled, org.unknown_role (its
 * role has no `routes`; STATE, /org_id). The choice is unchanged on any error. @since 0.1 */
int32_t holdfast_org_select(holdfast *self, const char *request, char **reply);

/* May this screen open? {"route":"/contacts/1"} -> {"allow":true} or a decision: the way to go
 * instead (reason route_forbidden with the role's home, or unlock, sign_in, select_org, wait).
 * @since 0.1 */
int32_t holdfast_route_check(holdfast *self, const char *request, char **reply);

/* ---- Queue ------------------------------------------------------------------------------------ */

/*
 * Register something to be stored on the server, online or not. Durable when the call returns.
 * {"kind":"activity","payload":{...},"id":"uuid"?,"depends_on":["uuid"...]?,"occurred_at_ms":n?,
 *  "org_id":"uuid"?} -> {"id":"uuid","state":"pending"|"waiting"}. Without an id a UUIDv7 is made.
 * Organisation and user are the current ones, or an `org_id` of the user's, and must not stand in
 * the payload with other values. The same id with the same content is answered with the state it
 * has (no-op). "state" is accepted and ignored: what queue_export gives can be added again.
 * Errors: queue.unknown_kind, queue.invalid_id, queue.invalid_payload, queue.item_too_large,
 * queue.unknown_column, queue.unknown_dependency (INVALID), queue.id_taken (CONFLICT, /id),
 * session.locked, session.none, org.none (STATE), org.not_a_member (NOT_FOUND, /org_id),
 * keystore.*, storage.*. Limit: 256 kB per item.
 * @since 0.1
 */
int32_t holdfast_queue_add(holdfast *self, const char *request, char **reply);

/*
 * {"state":"pending|sending|waiting|parked"?,"after":seq?,"limit":1..500=100} ->
 * {"items":[<item>...],"next":seq|null,"counts":{"pending":n,"sending":n,"waiting":n,"parked":n}}
 * in the order of registration. One that can no longer be opened is parked as `unreadable`, with an
 * id made up for it and nothing else, to be cancelled. @since 0.1
 */
int32_t holdfast_queue_list(holdfast *self, const char *request, char **reply);

/* {"id":"uuid"} -> {"item":<item>}. Errors: queue.not_found. A stored item is no longer here.
 * @since 0.1 */
int32_t holdfast_queue_get(holdfast *self, const char *request, char **reply);

/* {"id":"uuid","payload":{...}} -> {"id","state"}: replace the payload; a parked item becomes
 * pending. If an earlier attempt had stored the old payload after all, the item is parked as
 * `unknown_outcome`. Errors: queue.in_flight (STATE, retryable), queue.not_found, and those of queue_add.
 * @since 0.1 */
int32_t holdfast_queue_edit(holdfast *self, const char *request, char **reply);

/* {"id":"uuid"} -> {"id","released":n}: remove an item that was not sent; items that depend on it
 * are freed of it. Errors: queue.in_flight (STATE, retryable), queue.not_found. @since 0.1 */
int32_t holdfast_queue_cancel(holdfast *self, const char *request, char **reply);

/* {"id":"uuid"} or {} for all parked -> {"retried":n}. @since 0.1 */
int32_t holdfast_queue_retry(holdfast *self, const char *request, char **reply);

/* {"state":"..."?} -> {"items":[<what queue_add accepts>...]} @since 0.1 */
int32_t holdfast_queue_export(holdfast *self, const char *request, char **reply);

/*
 * Why is nothing sent? {"id":"uuid"?} -> {"reasons":[{"code","text","count","until_ms"|null}...],
 * "counts":{...}}. Codes: nothing_queued, sending, offline, signed_out, locked, token, back_off,
 * organisation, dependency, parked, other_user, schema_not_ready, ready. @since 0.1
 */
int32_t holdfast_queue_explain(holdfast *self, const char *request, char **reply);

/* ---- Cache ------------------------------------------------------------------------------------ */

/*
 * Contacts from the cache: every word of the query is part of a word of the name or municipality,
 * case and diacritics folded; best match first, then by name. {"query":"..." (up to 256 bytes; empty:
 * all),"limit":1..200=50} -> {"contacts":[{"id","name",...}],"total":n,"as_of_ms":n|null,
 *  "banners":[...]}. as_of_ms: when the server was last read to the end; null: never. @since 0.1
 */
int32_t holdfast_contact_search(holdfast *self, const char *request, char **reply);

/*
 * {"id":"uuid","live":false} -> {"contact":{...},"withheld":["phone",...],"message":{...}|null,
 *  "as_of_ms":n,"request":id|null,"banners":[...]}. Withheld columns are never cached: with
 * live:true and online they are fetched, and an event "contact" {"request","contact"} brings them,
 * unless the session locks or another organisation is chosen before. Errors: contact.not_found.
 * @since 0.1
 */
int32_t holdfast_contact_get(holdfast *self, const char *request, char **reply);

/*
 * {} -> {"summary":{...}|null,"as_of_ms":n|null,"sent":{"activities":n,"minutes":n},
 *  "queued":{"activities":n,"minutes":n},"banners":[...]}: the server's figures as cached; what was
 * sent since they were read; what is not yet sent (without parked items). Nothing is in two of them:
 * the sum is the user's total. @since 0.1
 */
int32_t holdfast_summary_get(holdfast *self, const char *request, char **reply);

/* ---- Network, sync, and the host's loop ------------------------------------------------------- */

/* What the host knows of the network. {"online":bool} -> {}. Until told, online is assumed.
 * @since 0.1 */
int32_t holdfast_network_set(holdfast *self, const char *request, char **reply);

/* Refresh the cache and send what waits, now; back-off that the server asked for stays.
 * {} -> {"started":bool,"reason":code|null}. @since 0.1 */
int32_t holdfast_sync_now(holdfast *self, const char *request, char **reply);

/* {} -> {"running":bool,"counts":{...},"last_completed_ms":n|null,"not_before_ms":n|null,
 *  "contacts":{"as_of_ms":n|null,"reconciled_ms":n|null,"skipped":n,"problem":"loop"|null},
 *  "summary":{"as_of_ms":n|null}}. skipped: rows of the last pull that could not be used; problem: why
 * it was given up. @since 0.1 */
int32_t holdfast_sync_status(holdfast *self, const char *request, char **reply);

/*
 * What the host should do next. {"ack":seq?} -> {"requests":[...],"events":[...],"wake_in_ms":n|null}
 *
 * request {"id":n,"purpose":"refresh|validate|guard|upload|pull|summary|revoke|live|sign_in",
 *          "method","url","headers":{...},"body":"..."|null,"timeout_ms":n}
 *         Send each once over HTTP and hand the answer to holdfast_complete(). Requests carry
 *         credentials: send them, do not log them. Each is handed out once.
 * event   {"seq":n,"type":"decision|sync_progress|sync_completed|item_parked|session_ended|
 *          org_access_changed|storage_recovered|contact|pull_completed","...":...}, in growing
 *         `seq`. Events that a user must learn of return in every poll, over restarts, until `ack`
 *         reaches them; the others come once.
 * wake_in_ms  poll again at the latest then; null: only when something calls for it (see
 *             holdfast_wake_fd). @since 0.1
 */
int32_t holdfast_poll(holdfast *self, const char *request, char **reply);

/*
 * The answer to a request: {"id":n,"status":200,"headers":{...},"body":"..."} or
 * {"id":n,"error":"offline|timeout|tls|dns|refused|cancelled"} -> {"accepted":bool}. `body` is the
 * text as received; a body that is not UTF-8 is handed over as null. accepted is false for an id
 * that is unknown, answered or timed out (timeout_ms and 5 s more): such an answer is ignored.
 * @since 0.1
 */
int32_t holdfast_complete(holdfast *self, const char *request, char **reply);

/*
 * Block until holdfast_poll() would have something, at most timeout_ms (negative: no limit).
 * HOLDFAST_OK: poll now (also when the time has passed); HOLDFAST_CLOSED: the handle was closed.
 * For a host's worker thread; other threads may use the handle meanwhile. @since 0.1
 */
int32_t holdfast_wait(holdfast *self, int32_t timeout_ms);

/*
 * A descriptor that is readable while holdfast_poll() has something, and when a call has made
 * something due earlier than the last `wake_in_ms` said; -1 on a bad handle. Owned by the handle:
 * never read, write or close it; it ends with holdfast_close(). What falls due by time alone does
 * not make it readable: keep a timer of `wake_in_ms`. @since 0.1
 */
int32_t holdfast_wake_fd(holdfast *self);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_H */
