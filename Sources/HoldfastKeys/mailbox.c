/* The mailbox. A request that is not answered in time fails, and an answer that comes later is
 * ignored: its id was given once. "locked" would be a lie about the device. */
#define _GNU_SOURCE
#include "holdfast_keys.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  KEY_LENGTH = 32,
  KEY_TEXT = sizeof((holdfast_key_request){0}.value), /* in base64, with the NUL */
};

struct holdfast_mailbox {
  pthread_mutex_t lock; /* protects all members */
  pthread_cond_t changed;
  int shares;
  int32_t wait_ms;
  bool closed;
  int64_t count;              /* the id of the last request */
  holdfast_key_request asked; /* id 0: none */
  bool taken;
  int32_t result; /* of the request; -1: no answer yet */
  uint8_t key[KEY_LENGTH];
  int takers;         /* threads that wait for a request */
  bool has_answerer;  /* a thread was in next or complete: */
  pthread_t answerer; /* the last one */
};

#ifdef __APPLE__ /* without pthread_condattr_setclock and explicit_bzero */
static const clockid_t waiting_clock = CLOCK_REALTIME;
static void set_clock(pthread_condattr_t *attributes) { (void)attributes; }
static void zero(void *bytes, size_t size) { memset_s(bytes, size, 0, size); }
#else
static const clockid_t waiting_clock = CLOCK_MONOTONIC;
static void set_clock(pthread_condattr_t *attributes) {
  pthread_condattr_setclock(attributes, waiting_clock);
}
static void zero(void *bytes, size_t size) { explicit_bzero(bytes, size); }
#endif

static struct timespec after(int32_t ms) {
  struct timespec moment;
  clock_gettime(waiting_clock, &moment);
  moment.tv_sec += ms / 1000;
  moment.tv_nsec += ms % 1000 * 1000000L;
  if (moment.tv_nsec >= 1000000000L) {
    moment.tv_sec += 1;
    moment.tv_nsec -= 1000000000L;
  }
  return moment;
}

/* ---- keys in base64 ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Three bytes are four digits; of the last three, the third is not there: the digit is '='. */
static void write_key(const uint8_t key[KEY_LENGTH], char text[KEY_TEXT]) {
  for (size_t i = 0; i < KEY_LENGTH; i += 3, text += 4) {
    bool whole = i + 2 < KEY_LENGTH;
    uint32_t bits = (uint32_t)key[i] << 16 | (uint32_t)key[i + 1] << 8 | (whole ? key[i + 2] : 0);
    for (int digit = 0; digit < 4; digit++)
      text[digit] = digits[bits >> (18 - 6 * digit) & 63];
    if (!whole)
      text[3] = '=';
  }
  *text = 0;
}

/* False if it is not the base64 of 32 bytes. */
static bool read_key(const char *text, uint8_t key[KEY_LENGTH]) {
  if (text == NULL || strlen(text) != KEY_TEXT - 1 || text[KEY_TEXT - 2] != '=')
    return false;
  uint32_t bits = 0;
  size_t length = 0;
  for (size_t i = 0; i < KEY_TEXT - 2; i++) {
    const char *digit = memchr(digits, text[i], sizeof digits - 1);
    if (digit == NULL)
      return false;
    bits = bits << 6 | (uint32_t)(digit - digits);
    if (i % 4 != 0)
      key[length++] = (uint8_t)(bits >> (6 - i % 4 * 2));
  }
  return (bits & 3) == 0; /* else another text would be the same key */
}

/* ---- the library's side ---- */

/* Both with the lock. */
static bool is_answered_here(const holdfast_mailbox *box) {
  return box->takers == 0 && box->has_answerer && pthread_equal(box->answerer, pthread_self());
}

static void note_answerer(holdfast_mailbox *box) {
  box->has_answerer = true;
  box->answerer = pthread_self();
}

/* Put the request into the mailbox, and wait for its answer; `key`: of a load. */
static int32_t ask(holdfast_mailbox *box, holdfast_key_request *asked, const char *name,
                   uint8_t *key) {
  struct timespec limit = after(box->wait_ms);
  int32_t result = HOLDFAST_KEY_FAILED;
  pthread_mutex_lock(&box->lock);
  bool fits = strlen(name) < sizeof asked->name && box->asked.id == 0;
  if (fits && !box->closed && !is_answered_here(box)) {
    strcpy(asked->name, name);
    asked->id = ++box->count;
    box->asked = *asked;
    box->taken = false;
    box->result = -1;
    pthread_cond_broadcast(&box->changed);
    bool in_time = true;
    while (box->result < 0 && !box->closed && in_time)
      in_time = pthread_cond_timedwait(&box->changed, &box->lock, &limit) != ETIMEDOUT;
    if (box->result >= 0)
      result = box->result;
    if (result == HOLDFAST_KEY_OK && key != NULL)
      memcpy(key, box->key, sizeof box->key);
    zero(box->key, sizeof box->key);
    zero(&box->asked, sizeof box->asked);
  }
  pthread_mutex_unlock(&box->lock);
  zero(asked, sizeof *asked);
  return result;
}

static int32_t load(void *context, const char *name, uint8_t *key, size_t capacity,
                    size_t *length) {
  if (capacity < KEY_LENGTH)
    return HOLDFAST_KEY_FAILED;
  *length = KEY_LENGTH;
  return ask(context, &(holdfast_key_request){.operation = "load"}, name, key);
}

static int32_t save(void *context, const char *name, const uint8_t *key, size_t length,
                    int32_t protection) {
  if (length != KEY_LENGTH)
    return HOLDFAST_KEY_FAILED;
  holdfast_key_request asked = {.operation = "save"};
  asked.protection = protection == HOLDFAST_PROTECT_BIOMETRIC ? "biometric" : "device";
  write_key(key, asked.value);
  return ask(context, &asked, name, NULL);
}

static int32_t erase(void *context, const char *name) {
  return ask(context, &(holdfast_key_request){.operation = "erase"}, name, NULL);
}

/* The library has closed its handle: nobody asks any more. */
static void destroy(void *context) {
  holdfast_mailbox_close(context);
  holdfast_mailbox_free(context);
}

holdfast_keystore holdfast_mailbox_keystore(holdfast_mailbox *box) {
  return (holdfast_keystore){
      .size = sizeof(holdfast_keystore),
      .context = holdfast_mailbox_share(box),
      .load = load,
      .save = save,
      .erase = erase,
      .destroy = destroy,
  };
}

/* ---- the host's side ---- */

int32_t holdfast_mailbox_next(holdfast_mailbox *box, int32_t timeout_ms,
                              holdfast_key_request *request) {
  struct timespec limit = after(timeout_ms > 0 ? timeout_ms : 0);
  int32_t status = HOLDFAST_NOT_FOUND;
  bool in_time = timeout_ms != 0;
  pthread_mutex_lock(&box->lock);
  note_answerer(box);
  box->takers += 1;
  while ((box->asked.id == 0 || box->taken) && !box->closed && in_time) {
    if (timeout_ms < 0)
      pthread_cond_wait(&box->changed, &box->lock);
    else
      in_time = pthread_cond_timedwait(&box->changed, &box->lock, &limit) != ETIMEDOUT;
  }
  box->takers -= 1;
  if (box->closed) {
    status = HOLDFAST_CLOSED;
  } else if (box->asked.id != 0 && !box->taken) {
    *request = box->asked;
    box->taken = true;
    status = HOLDFAST_OK;
  }
  pthread_mutex_unlock(&box->lock);
  return status;
}

void holdfast_mailbox_zero(holdfast_key_request *request) { zero(request, sizeof *request); }

int32_t holdfast_mailbox_result(const char *word) {
  static const char *const words[] = {
      [HOLDFAST_KEY_OK] = "ok",
      [HOLDFAST_KEY_NOT_FOUND] = "not_found",
      [HOLDFAST_KEY_LOCKED] = "locked",
      [HOLDFAST_KEY_CANCELLED] = "cancelled",
      [HOLDFAST_KEY_FAILED] = "failed",
      [HOLDFAST_KEY_LOCKOUT] = "lockout",
      [HOLDFAST_KEY_LOCKOUT_PERMANENT] = "lockout_permanent",
      [HOLDFAST_KEY_NOT_ENROLLED] = "not_enrolled",
      [HOLDFAST_KEY_INVALIDATED] = "invalidated",
      [HOLDFAST_KEY_UNAVAILABLE] = "unavailable",
  };
  for (size_t i = 0; word != NULL && i < sizeof words / sizeof *words; i++)
    if (strcmp(word, words[i]) == 0)
      return (int32_t)i;
  return -1;
}

int32_t holdfast_mailbox_complete(holdfast_mailbox *box, int64_t id, const char *result,
                                  const char *value, const char **wrong) {
  int32_t status = HOLDFAST_NOT_FOUND, read = holdfast_mailbox_result(result);
  pthread_mutex_lock(&box->lock);
  note_answerer(box);
  if (read < 0) {
    *wrong = "/result";
    status = HOLDFAST_INVALID;
  } else if (id > 0 && id == box->asked.id && box->taken && box->result < 0) {
    bool finds = read == HOLDFAST_KEY_OK && strcmp(box->asked.operation, "load") == 0;
    if (finds && !read_key(value, box->key)) {
      *wrong = "/value";
      status = HOLDFAST_INVALID;
    } else {
      box->result = read;
      status = HOLDFAST_OK;
      pthread_cond_broadcast(&box->changed);
    }
  }
  pthread_mutex_unlock(&box->lock);
  return status;
}

int32_t holdfast_mailbox_is_answered_here(holdfast_mailbox *box) {
  pthread_mutex_lock(&box->lock);
  bool here = is_answered_here(box);
  pthread_mutex_unlock(&box->lock);
  return here;
}

/* ---- life ---- */

void holdfast_mailbox_close(holdfast_mailbox *box) {
  pthread_mutex_lock(&box->lock);
  box->closed = true;
  pthread_cond_broadcast(&box->changed);
  pthread_mutex_unlock(&box->lock);
}

holdfast_mailbox *holdfast_mailbox_share(holdfast_mailbox *box) {
  pthread_mutex_lock(&box->lock);
  box->shares += 1;
  pthread_mutex_unlock(&box->lock);
  return box;
}

void holdfast_mailbox_free(holdfast_mailbox *box) {
  if (box == NULL)
    return;
  pthread_mutex_lock(&box->lock);
  bool last = --box->shares == 0;
  pthread_mutex_unlock(&box->lock);
  if (!last)
    return;
  pthread_mutex_destroy(&box->lock);
  pthread_cond_destroy(&box->changed);
  zero(box, sizeof *box);
  free(box);
}

holdfast_mailbox *holdfast_mailbox_new(int32_t wait_ms) {
  holdfast_mailbox *box = calloc(1, sizeof *box);
  if (box == NULL)
    return NULL;
  /* These fail on no system that the library is built for. */
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  set_clock(&attributes);
  pthread_cond_init(&box->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&box->lock, NULL);
  box->shares = 1;
  box->wait_ms = wait_ms;
  return box;
}
