/*
 * holdfast.h - sessions, tenants, an offline queue and an encrypted cache for apps on Supabase.
 *
 * The host calls operations, and holdfast_next() gives it one thing at a time. The library has no
 * socket, thread or timer; holdfast_http.h is a driver that sends the requests. docs/hosts.md is
 * the contract, docs/reference.md has every field and error; holdfast.schema.json is for programs.
 *
 * Calls      `request`: a JSON object in UTF-8; NULL or "" means {}. `reply`, if not NULL, receives
 *            one, also on an error (NULL only with HOLDFAST_NOMEM); holdfast_free() it.
 * Errors     {"error":{"code":"queue.item_too_large","message":"...","field":"/payload/note",
 *            "retryable":false,"detail":{}}}. `code` is stable, `field` a JSON Pointer or null.
 *            An error changes nothing; but after an error of the storage, a lock holds.
 * Numbers    Integers lie within +-2^53. `..._ms` of an instant: milliseconds since 1970 (UTC).
 * Threads    Any thread may use any handle, which runs one call at a time. No call waits for longer
 *            than 5 s, for another process (HOLDFAST_BUSY), but holdfast_next(). Stack: 128 kB.
 * Handles    Several handles and processes may use one data_dir.
 *
 * NOTATION   `x?` is optional, `x=v` has the default v, `x|y` is one of several, n is an integer.
 * DECISION   {"screen":"home|unlock|sign_in|select_org|wait","route"|null,
 *             "org":{"id","name","role"}|null,"message":{"code","text","cause"?}|null,
 *             "can_unlock":bool,"methods":[{"id","label","flow"}],"orgs":[<membership>...],
 *             "banners":[{"code","tone","text","as_of_ms"}],"deadline_ms":n|null}
 * MEMBERSHIP {"org_id","name","role","status":"active|revoked|disabled","current":bool}
 * ITEM       {"id","seq","kind","state":"pending|sending|waiting|parked","payload","org_id",
 *             "attempts","occurred_at_ms"|null,"reason":{"code","text"}|null,"field"|null,...}
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct holdfast holdfast;
/* ---- Status codes: stable, one per class ----------------------------------------------------- */
#define HOLDFAST_OK 0
#define HOLDFAST_INVALID 1   /* the request is malformed; `field` says where */
#define HOLDFAST_STATE 2     /* not allowed now: locked, signed out, no organisation, in flight */
#define HOLDFAST_NOT_FOUND 3 /* no such item, contact, organisation or sign-in */
#define HOLDFAST_CONFLICT 4  /* the id exists with other content, or a confirmation is wrong */
#define HOLDFAST_KEYSTORE 5  /* the key store gave no key */
#define HOLDFAST_STORAGE 6   /* a file could not be read or written */
#define HOLDFAST_FULL 7      /* the disk is full */
#define HOLDFAST_BUSY 8      /* another process is writing, or a callback made the call */
#define HOLDFAST_CLOSED 9    /* the handle is closed or garbage */
#define HOLDFAST_FORKED 10   /* the handle belongs to the parent process */
#define HOLDFAST_NOMEM 11    /* out of memory, handles or descriptors */
#define HOLDFAST_INTERNAL 12 /* a defect of this library; report `error.code` */

/* ---- Key store: results of its functions ----------------------------------------------------- */
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

/* The platform's keychain, as functions. Keys have 32 bytes: "device", "session", "biometric".
 * load     Writes the key (`capacity` bytes of room) and its length. Never prompts: the host does,
 *          before holdfast_session_unlock(). Inside that call "biometric" is the key that the user
 *          has released; else it answers CANCELLED if it needs a prompt, NOT_FOUND if it is gone.
 * save     Stores or replaces, durably. The library reads "device" and "session" back.
 * erase    NOT_FOUND counts as success. The library looks for the key afterwards.
 * destroy  NULL, or called once when the library will not use `context` again.
 * They are called inside the host's calls, on its thread, one at a time for each handle. They must
 * not call the library (HOLDFAST_BUSY), wait for a person, nor throw. The struct is copied.
 * holdfast_keys.h: for a keychain that answers from elsewhere. */
typedef struct holdfast_keystore {
  size_t size; /* sizeof(holdfast_keystore) */
  void *context;
  int32_t (*load)(void *context, const char *name, uint8_t *key, size_t capacity, size_t *length);
  int32_t (*save)(void *context, const char *name, const uint8_t *key, size_t length,
                  int32_t protection);
  int32_t (*erase)(void *context, const char *name);
  void (*destroy)(void *context);
} holdfast_keystore;

/* ---- Life cycle ------------------------------------------------------------------------------ */
/* Open a data folder, made if absent, and decide the first screen from disk alone: {"data_dir",
 * "backend":{"url","api_key",...},"auth_methods":[...]?,"redirect_url"?,"routes"?,"policy"?,
 * "locale":"en|nb|nn"="en","template":"volunteers"?,"development":bool=false,"role":"app|worker",
 * "keystore":{"kind":"file"}?} -> {"version","recovered":bool,"keystore":"file|host",
 * "unlock_prompt","screen":<decision>|null}. `keystore` NULL needs "development" or
 * {"kind":"file"}: key files beside the data. A worker has no screen. */
int32_t holdfast_open(const char *config, const holdfast_keystore *keystore, holdfast **self,
                      char **reply);
/* Close. Running calls finish first; every waiting holdfast_next() returns CLOSED. */
void holdfast_close(holdfast *self);
/* Zero and release a reply. Accepts NULL. */
void holdfast_free(void *reply);
/* Log to `fn`, process-wide, inside the host's calls: no tokens, names, ids of people or payloads.
 * Levels: 0 error, 1 warning, 2 info, 3 debug. */
typedef void (*holdfast_log_fn)(void *context, int32_t level, const char *line);
void holdfast_log(int32_t level, holdfast_log_fn fn, void *context);

/* ---- What the host gets ---------------------------------------------------------------------- */
#define HOLDFAST_NEXT_NEWS 1     /* all but requests: a host beside a driver */
#define HOLDFAST_NEXT_REQUESTS 2 /* requests alone: a driver */
#define HOLDFAST_NEXT_ALL 3
/* Get the next thing; wait for it up to timeout_ms (negative: no limit). One reader for each handle
 * and `what`.
 * {"screen":<decision>}  Show it: the newest. First of all after a call marked "screen" below.
 * {"answer":{"to":"contact_get|session_token",...}}  To a live contact_get; there is another token.
 * {"notice":{"type":"item_parked|session_ended|org_access_changed|storage_recovered","reason",
 *     "text",...}}  Tell the user. Asking for the next thing acknowledges it.
 * {"sync":{"running","sent","parked","left","waiting","ids","message",...}}  Sync has changed.
 * {"request":{"id","purpose":"refresh|validate|guard|upload|pull|summary|revoke|live|sign_in",
 *     "method","url","headers","body","timeout_ms"}}  Send it once, and complete it.
 * {"wake_in_ms":n|null}  Nothing now. Ask again within this time; null: after a call or a response.
 * After a failure other than HOLDFAST_CLOSED, ask again. */
int32_t holdfast_next(holdfast *self, int32_t what, int32_t timeout_ms, char **reply);
/* A descriptor, readable while holdfast_next(self, what, 0) has something; -1 for a bad handle.
 * Keep a timer of `wake_in_ms` beside it. */
int32_t holdfast_wake_fd(holdfast *self, int32_t what);
/* Pass the response to a request: {"id":n,"status":200,"headers":{...},"body":"..."|null} or
 * {"id":n,"error":"offline|timeout|tls|dns|refused|cancelled"} -> {}. Never repeat it. */
int32_t holdfast_complete(holdfast *self, const char *request, char **reply);

/* ---- Session and organisation ---------------------------------------------------------------- */
/* Decide anew. {} -> {}; screen. */
int32_t holdfast_session_resume(holdfast *self, const char *request, char **reply);
/* The app left the screen. {} -> {}; screen. */
int32_t holdfast_session_background(holdfast *self, const char *request, char **reply);
/* It is back. {} -> {}; screen: `unlock` after more than background_timeout_s. */
int32_t holdfast_session_foreground(holdfast *self, const char *request, char **reply);
/* Begin a sign-in. {"method"} -> {"url"} for a browser, {"needs":["id_token","nonce"],"nonce"}, or
 * {"needs":["email","password"]}. */
int32_t holdfast_sign_in_begin(holdfast *self, const char *request, char **reply);
/* {"callback_url"} | {"id_token","nonce","method"?} | {"email","password","method"?} -> {};
 * screen: `wait`, then home, or sign_in, whose message says why. */
int32_t holdfast_sign_in_complete(holdfast *self, const char *request, char **reply);
/* Cancel the sign-in that is under way. {} -> {"cancelled":bool}; screen. */
int32_t holdfast_sign_in_cancel(holdfast *self, const char *request, char **reply);
/* Adopt a session: {"session":<the server's token response>} -> {}; screen. */
int32_t holdfast_session_adopt(holdfast *self, const char *request, char **reply);
/* After the prompt: load "biometric"; the key store's answer is the outcome. {} -> {}; screen. */
int32_t holdfast_session_unlock(holdfast *self, const char *request, char **reply);
/* Lock, and erase the key "session". {} -> {}; screen. */
int32_t holdfast_session_lock(holdfast *self, const char *request, char **reply);
/* {} -> {"state":"signed_out|locked|active","stale","user_id","expires_ms","validated_ms",...}. */
int32_t holdfast_session_status(holdfast *self, const char *request, char **reply);
/* The access token, for the host's own calls; keep no copy. {} -> {"access_token","expires_ms"}. */
int32_t holdfast_session_token(holdfast *self, const char *request, char **reply);
/* Log out. {"scope":"local|global"="local","unsent":"keep|discard"?} -> {"unsent":n}; screen. */
int32_t holdfast_session_logout(holdfast *self, const char *request, char **reply);
/* {} -> {"orgs":[<membership>...],"freshness":"confirmed|cached|none","as_of_ms":n|null}. */
int32_t holdfast_org_list(holdfast *self, const char *request, char **reply);
/* Choose an organisation, or switch. {"org_id"} -> {}; screen. */
int32_t holdfast_org_select(holdfast *self, const char *request, char **reply);
/* Whether a route may open. {"route"} -> {"allow":true} | {"allow":false,"screen":<decision>}. */
int32_t holdfast_route_check(holdfast *self, const char *request, char **reply);

/* ---- Queue ----------------------------------------------------------------------------------- */
/* Queue an item. Durable when the call returns; the server stores it once. {"kind","payload":{...},
 * "id"?,"depends_on":[id...]?,"occurred_at_ms":n?,"org_id"?} -> {"id","state"}. */
int32_t holdfast_queue_add(holdfast *self, const char *request, char **reply);
/* {"state"?,"after":seq?,"limit":1..500=100} -> {"items":[<item>...],"next":seq|null,"counts"}. */
int32_t holdfast_queue_list(holdfast *self, const char *request, char **reply);
/* {"id"} -> {"state":<an item's>,"item":<item>} | {"state":"stored|cancelled|unknown_outcome"}. */
int32_t holdfast_queue_get(holdfast *self, const char *request, char **reply);
/* Replace the payload. {"id","payload":{...}} -> {"id","state"}. */
int32_t holdfast_queue_edit(holdfast *self, const char *request, char **reply);
/* Take an item back. {"id","force":bool=false} -> {"id","released":n,"state"|null: gone}. */
int32_t holdfast_queue_cancel(holdfast *self, const char *request, char **reply);
/* Send parked items again: all, or one. {"id"?} -> {"retried":n}. */
int32_t holdfast_queue_retry(holdfast *self, const char *request, char **reply);
/* The user's items in a form that queue_add accepts. {"state"?} -> {"items":[...]}. */
int32_t holdfast_queue_export(holdfast *self, const char *request, char **reply);
/* Why nothing is sent. {"id"?} -> {"reasons":[{"code","text","count","until_ms"}...],"counts"}. */
int32_t holdfast_queue_explain(holdfast *self, const char *request, char **reply);

/* ---- Cache, network, sync -------------------------------------------------------------------- */
/* The user's own items, stored and queued, newest first. {"kind","after"?,"limit"=50,"from_ms"?,
 * "to_ms"?} -> {"items":[{"id","state":"stored|changing|deleting" or an item's,"payload",...}...],
 * "next":text|null,"as_of_ms","banners"}. */
int32_t holdfast_item_list(holdfast *self, const char *request, char **reply);
/* {"query":"" for all,"limit":1..200=50} -> {"contacts":[...],"total","as_of_ms","banners"}. */
int32_t holdfast_contact_search(holdfast *self, const char *request, char **reply);
/* {"id","live":bool=false} -> {"contact","needs_network":[...],"message","as_of_ms","request",
 * "banners"}. With live, an "answer" has the network-only columns within 30 s. */
int32_t holdfast_contact_get(holdfast *self, const char *request, char **reply);
/* {} -> {"summary":{...}|null,"as_of_ms","sent":{"activities","minutes"},"queued","banners"}. */
int32_t holdfast_summary_get(holdfast *self, const char *request, char **reply);
/* Whether there is a network: {"online":bool} -> {}. Until then there is one. */
int32_t holdfast_network_report(holdfast *self, const char *request, char **reply);
/* Pull and send now. {} -> {"started":bool,"reason"|null}. */
int32_t holdfast_sync_now(holdfast *self, const char *request, char **reply);
/* {} -> {"running","counts","last_completed_ms","not_before_ms","pause","contacts","summary",
 * "problems":[...]: of the schema or the configuration}. */
int32_t holdfast_sync_status(holdfast *self, const char *request, char **reply);

/* ---- For bindings and tests ------------------------------------------------------------------ */
/* Call an operation by its name, such as "queue_add". */
int32_t holdfast_call(holdfast *self, const char *operation, const char *request, char **reply);
/* Set the clock of a handle with "clock":"manual". {"now_ms","monotonic_ms"?,"boot_id"?} -> {}. */
int32_t holdfast_clock_set(holdfast *self, const char *request, char **reply);
/* The version of this header: MAJOR*1000000 + MINOR*1000 + PATCH. */
#define HOLDFAST_VERSION_NUMBER 2000
/* The version of the library, in the same form. */
int32_t holdfast_version_number(void);
/* The same as "MAJOR.MINOR.PATCH". Static. */
const char *holdfast_version(void);
/* {"version","abi":1,"flavour":"embedded|runtime|bundled","sqlite","libsodium",...}. Static. */
const char *holdfast_build_info(void);
/* Open handles and unreleased replies in this process, for leak tests. */
int64_t holdfast_live_count(void);

#ifdef __cplusplus
}
#endif
#endif /* HOLDFAST_H */
