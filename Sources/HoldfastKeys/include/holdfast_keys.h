/*
 * holdfast_keys.h - key stores for holdfast_open(), for a host that has none of its own: the
 * desktop's keyring, and a mailbox for a keychain that answers on another thread.
 *
 * Each makes a holdfast_keystore of holdfast.h:
 *
 *   holdfast_keystore store = holdfast_mailbox_keystore(box);
 *   holdfast_open(config, &store, &app, &reply);
 *
 * holdfast_http_call() has both by name ("keystore":{"kind":...}), and the driver needs this
 * library for that. It needs neither the core nor the driver: only threads and, when a keyring is
 * opened, libsecret-1.so.0.
 *
 * Shares     A keyring and a mailbox are freed with their last share. The one who makes it has a
 *            share, and so has each holdfast_keystore of it, which the library ends with
 *            destroy(). So a host may free its own at once.
 * Threads    Any thread may call any function that is given a share.
 */
#ifndef HOLDFAST_KEYS_H
#define HOLDFAST_KEYS_H

#include "holdfast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The desktop's keyring ------------------------------------------------------------------- */

/* GNOME Keyring, KWallet or KeePassXC, over the secret service. It asks for no presence, so it
 * keeps no key "biometric": use "policy":{"biometric":"off"} or "preferred". */
typedef struct holdfast_keyring holdfast_keyring;

/* What a keyring does by itself when it is locked. */
#define HOLDFAST_KEYRING_ASKS 0   /* a load and a save ask the user to unlock it, and wait */
#define HOLDFAST_KEYRING_SILENT 1 /* they answer HOLDFAST_KEY_LOCKED at once */

/*
 * Make the key store of the app that `name` names, for one `data_dir`, which need not exist yet.
 * `name` finds the keys: one for each data_dir, such as "com.example.visits". A cause that is new
 * goes to `log`, if it is not NULL, as a line of level 1.
 * Errors: HOLDFAST_NOT_FOUND (libsecret is not installed), HOLDFAST_NOMEM.
 */
int32_t holdfast_keyring_new(const char *name, const char *data_dir, int32_t locked,
                             holdfast_log_fn log, holdfast_keyring **keyring);
/* End a share. NULL is ignored. */
void holdfast_keyring_free(holdfast_keyring *keyring);
/* The functions for holdfast_open(), with a share: make them once for each holdfast_open(). */
holdfast_keystore holdfast_keyring_keystore(holdfast_keyring *keyring);
/*
 * Another folder with data whose keys have this name: two folders with one name would overwrite
 * each other's keys. Ask before holdfast_open(). The caller releases it with free(). NULL if there
 * is none, or if the keyring cannot tell without a prompt.
 */
char *holdfast_keyring_other_folder(holdfast_keyring *keyring);
/* Write why the last load, save or erase gave no key: "" if it did. At most `capacity` bytes. */
void holdfast_keyring_cause(holdfast_keyring *keyring, char *cause, size_t capacity);
/* ---- A mailbox ------------------------------------------------------------------------------- */

/* Its functions put each request of the library into the mailbox, and wait until another thread has
 * answered it. One mailbox serves one handle, and so has one request at a time. */
typedef struct holdfast_mailbox holdfast_mailbox;

#define HOLDFAST_MAILBOX_WAIT_MS 10000 /* how long a request should wait for its answer */

typedef struct holdfast_key_request {
  int64_t id;
  const char *operation;  /* "load", "save" or "erase" */
  char name[16];          /* of the key */
  const char *protection; /* of a save: "device" or "biometric"; else NULL */
  char value[45];         /* of a save: the 32 bytes of the key in base64; else "" */
} holdfast_key_request;

/* Make a mailbox whose requests wait for `wait_ms`. NULL without memory. */
holdfast_mailbox *holdfast_mailbox_new(int32_t wait_ms);
/* Make another share, for a thread that uses it while the others may end theirs. */
holdfast_mailbox *holdfast_mailbox_share(holdfast_mailbox *box);
/* End a share. NULL is ignored. */
void holdfast_mailbox_free(holdfast_mailbox *box);
/* The functions for holdfast_open(), with a share: make them once for each holdfast_open(). */
holdfast_keystore holdfast_mailbox_keystore(holdfast_mailbox *box);
/* Take the request, waiting for one: for ever with a negative time. Zero it after use.
 * HOLDFAST_NOT_FOUND: none came in time. HOLDFAST_CLOSED: none will come. */
int32_t holdfast_mailbox_next(holdfast_mailbox *box, int32_t timeout_ms,
                              holdfast_key_request *request);
/* Zero a request after its use: it may hold a key. */
void holdfast_mailbox_zero(holdfast_key_request *request);
/*
 * Answer a request, with a HOLDFAST_KEY_* as a word ("ok", "not_found", ...) and, if a load found
 * the key, the key in base64. HOLDFAST_NOT_FOUND: the request no longer waits. HOLDFAST_INVALID:
 * `wrong` receives the field that is wrong, "/result" or "/value", and the request waits for a
 * right answer.
 */
int32_t holdfast_mailbox_complete(holdfast_mailbox *box, int64_t id, const char *result,
                                  const char *value, const char **wrong);
/* The HOLDFAST_KEY_* of such a word: "ok", "not_found", "locked", ... -1: it is none, or NULL. */
int32_t holdfast_mailbox_result(const char *word);
/* Whether (1, or 0) a call that needs a key would wait for the calling thread itself: it was the
 * last one in the two functions above, and no other thread waits for requests. The functions of the
 * key store then fail at once. */
int32_t holdfast_mailbox_is_answered_here(holdfast_mailbox *box);
/* Requests fail from now on, also the one that waits. */
void holdfast_mailbox_close(holdfast_mailbox *box);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_KEYS_H */
