/* A key store for hosts that can neither give C functions nor answer on the calling thread. Its
 * functions put each request into a mailbox and wait until another thread has answered it. One
 * mailbox serves one handle, and so has one request at a time.
 *
 * Only libholdfast's header and threads are needed, so that bindings can compile it in. */
#ifndef HOLDFAST_MAILBOX_H
#define HOLDFAST_MAILBOX_H

#include "holdfast.h"

#include <stdbool.h>

#pragma GCC visibility push(hidden)

enum {
  HFH_KEY_WAIT_MS = 10000, /* how long a request waits for its answer */
  HFH_KEY_LENGTH = 32,
  HFH_KEY_TEXT = 45, /* a key in base64, with the NUL */
};

typedef struct hfh_mailbox hfh_mailbox;

typedef struct {
  int64_t id;
  const char *operation;    /* "load", "save" or "erase" */
  char name[16];            /* of the key */
  const char *protection;   /* of a save: "device" or "biometric"; else NULL */
  char value[HFH_KEY_TEXT]; /* of a save: the key in base64; else "" */
} hfh_key_request;

/* Makes a mailbox whose requests wait for `wait_ms`. NULL without memory. hfh_mailbox_free() ends
 * the caller's share in it. */
hfh_mailbox *hfh_mailbox_new(int32_t wait_ms);
/* Another share, for a thread that uses it while the others may end theirs. */
hfh_mailbox *hfh_mailbox_share(hfh_mailbox *box);
void hfh_mailbox_free(hfh_mailbox *box);

/* The functions for holdfast_open(), with a share that the library ends. So call it once for each
 * holdfast_open(). */
holdfast_keystore hfh_mailbox_keystore(hfh_mailbox *box);

/* Take the request, waiting for one: for ever with a negative time. HOLDFAST_OK; HOLDFAST_NOT_FOUND
 * when none came in time; HOLDFAST_CLOSED. */
int32_t hfh_mailbox_next(hfh_mailbox *box, int32_t timeout_ms, hfh_key_request *request);
/* To be called after the use of a request, which may hold a key. */
void hfh_mailbox_zero(hfh_key_request *request);
/* Answer a request, with a HOLDFAST_KEY_* as a word ("ok", "not_found", ...) and, if a load found
 * the key, the key in base64. Returns the field that is wrong, "/result" or "/value",
 * and the request waits for a right answer; or NULL. `accepted`: the request still waited. */
const char *hfh_mailbox_complete(hfh_mailbox *box, int64_t id, const char *result,
                                 const char *value, bool *accepted);
/* Whether a call that needs a key would wait for the calling thread itself: it was the last one in
 * the two functions above, and no other thread waits for requests. The functions then fail at
 * once. */
bool hfh_mailbox_is_answered_here(hfh_mailbox *box);
/* Requests fail from now on, also the one that waits. */
void hfh_mailbox_close(hfh_mailbox *box);

#pragma GCC visibility pop

#endif /* HOLDFAST_MAILBOX_H */
