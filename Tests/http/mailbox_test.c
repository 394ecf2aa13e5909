/* What a mailbox promises (holdfast_keys.h). test_mailbox.py builds and runs it; an assertion ends
 * it. */
#define _GNU_SOURCE
#undef NDEBUG
#include "holdfast_keys.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FOR_EVER = -1, LONG_MS = 600000, KEY_LENGTH = 32 };

static holdfast_mailbox *box;
static holdfast_keystore store;
static uint8_t key[KEY_LENGTH];

static void open_box(int32_t wait_ms) {
  box = holdfast_mailbox_new(wait_ms);
  store = holdfast_mailbox_keystore(box);
  for (size_t i = 0; i < sizeof key; i++)
    key[i] = (uint8_t)(255 - 3 * i);
}

static void close_box(void) {
  holdfast_mailbox_close(box);
  holdfast_mailbox_free(box);
  assert(store.load(store.context, "device", key, sizeof key, &(size_t){0}) == HOLDFAST_KEY_FAILED);
  store.destroy(store.context);
}

/* ---- the library's thread: one function of the store ---- */

typedef struct {
  pthread_t thread;
  const char *operation;
  int32_t result;
  uint8_t loaded[KEY_LENGTH];
  size_t length;
} function;

static void *run(void *data) {
  function *it = data;
  if (strcmp(it->operation, "load") == 0)
    it->result = store.load(store.context, "biometric", it->loaded, sizeof it->loaded, &it->length);
  else if (strcmp(it->operation, "save") == 0)
    it->result = store.save(store.context, "device_b", key, sizeof key, HOLDFAST_PROTECT_BIOMETRIC);
  else
    it->result = store.erase(store.context, "session");
  return NULL;
}

static function *begin(const char *operation) {
  function *it = calloc(1, sizeof *it);
  it->operation = operation;
  assert(pthread_create(&it->thread, NULL, run, it) == 0);
  return it;
}

static int32_t end(function *it) {
  pthread_join(it->thread, NULL);
  int32_t result = it->result;
  free(it);
  return result;
}

static holdfast_key_request taken(void) {
  holdfast_key_request request;
  assert(holdfast_mailbox_next(box, FOR_EVER, &request) == HOLDFAST_OK);
  return request;
}

static bool answered(int64_t id, const char *result, const char *value) {
  const char *wrong = NULL;
  int32_t status = holdfast_mailbox_complete(box, id, result, value, &wrong);
  assert(wrong == NULL && (status == HOLDFAST_OK || status == HOLDFAST_NOT_FOUND));
  return status == HOLDFAST_OK;
}

/* ---- the promises ---- */

static void a_key_is_saved_loaded_and_erased(void) {
  open_box(LONG_MS);
  function *saving = begin("save");
  holdfast_key_request saved = taken();
  assert(strcmp(saved.operation, "save") == 0 && strcmp(saved.name, "device_b") == 0);
  assert(strcmp(saved.protection, "biometric") == 0);
  assert(strcmp(saved.value, "//z59vPw7ern5OHe29jV0s/MycbDwL26t7SxrquopaI=") == 0);
  assert(answered(saved.id, "ok", NULL) && end(saving) == HOLDFAST_KEY_OK);

  function *loading = begin("load");
  holdfast_key_request load = taken();
  assert(strcmp(load.operation, "load") == 0 && strcmp(load.name, "biometric") == 0);
  assert(load.protection == NULL && *load.value == 0 && load.id != saved.id);
  assert(answered(load.id, "ok", saved.value));
  pthread_join(loading->thread, NULL);
  assert(loading->result == HOLDFAST_KEY_OK && loading->length == sizeof key);
  assert(memcmp(loading->loaded, key, sizeof key) == 0);
  free(loading);

  function *erasing = begin("erase");
  holdfast_key_request erased = taken();
  assert(strcmp(erased.operation, "erase") == 0 && strcmp(erased.name, "session") == 0);
  assert(answered(erased.id, "not_found", NULL) && end(erasing) == HOLDFAST_KEY_NOT_FOUND);
  close_box();
}

static void every_result_has_its_number(void) {
  static const char *const names[] = {
      "ok",      "not_found",         "locked",       "cancelled",   "failed",
      "lockout", "lockout_permanent", "not_enrolled", "invalidated", "unavailable"};
  open_box(LONG_MS);
  for (int32_t i = 0; i < 10; i++) {
    function *erasing = begin("erase");
    assert(answered(taken().id, names[i], NULL) && end(erasing) == i);
  }
  close_box();
}

static void a_wrong_answer_is_named_and_the_request_waits_for_a_right_one(void) {
  static const char *const no_keys[] = {
      NULL,
      "",
      "AAAA",
      "//z59vPw7ern5OHe29jV0s/MycbDwL26t7SxrquopaI",
      "//z59vPw7ern5OHe29jV0s/MycbDwL26t7SxrquopaJ=", /* bits behind the last byte */
      "//z59vPw7ern5OHe29jV0s/MycbDwL26t7SxrquopaI==",
      "-/z59vPw7ern5OHe29jV0s/MycbDwL26t7SxrquopaI=",
      "//z59vPw7ern5OHe29jV0s/MycbDwL26t7SxrquopaIA"};
  open_box(LONG_MS);
  function *loading = begin("load");
  int64_t id = taken().id;
  const char *wrong = NULL;
  for (size_t i = 0; i < sizeof no_keys / sizeof *no_keys; i++) {
    assert(holdfast_mailbox_complete(box, id, "ok", no_keys[i], &wrong) == HOLDFAST_INVALID);
    assert(strcmp(wrong, "/value") == 0);
  }
  const char *const no_results[] = {NULL, "", "OK", "pending"};
  for (size_t i = 0; i < sizeof no_results / sizeof *no_results; i++) {
    assert(holdfast_mailbox_complete(box, id, no_results[i], NULL, &wrong) == HOLDFAST_INVALID);
    assert(strcmp(wrong, "/result") == 0);
  }
  assert(answered(id, "cancelled", NULL) && end(loading) == HOLDFAST_KEY_CANCELLED);
  close_box();
}

static void only_the_request_that_waits_takes_an_answer(void) {
  open_box(LONG_MS);
  assert(!answered(0, "ok", NULL) && !answered(1, "ok", NULL));
  function *erasing = begin("erase");
  int64_t id = taken().id;
  assert(!answered(id + 1, "failed", NULL) && !answered(id - 1, "failed", NULL));
  assert(answered(id, "ok", NULL) && end(erasing) == HOLDFAST_KEY_OK);
  assert(!answered(id, "failed", NULL));
  close_box();
}

static void a_request_is_withdrawn_after_its_time(void) {
  open_box(1);
  function *erasing = begin("erase");
  assert(end(erasing) == HOLDFAST_KEY_FAILED);
  holdfast_key_request request;
  assert(holdfast_mailbox_next(box, 0, &request) == HOLDFAST_NOT_FOUND);
  assert(holdfast_mailbox_next(box, 1, &request) == HOLDFAST_NOT_FOUND);
  assert(!answered(1, "ok", NULL));
  close_box();
}

static void *close_it(void *data) {
  (void)data;
  holdfast_mailbox_close(box);
  return NULL;
}

static void a_close_ends_every_wait(void) {
  open_box(LONG_MS);
  function *loading = begin("load");
  int64_t id = taken().id;
  pthread_t closing;
  assert(pthread_create(&closing, NULL, close_it, NULL) == 0);
  holdfast_key_request request;
  assert(holdfast_mailbox_next(box, FOR_EVER, &request) == HOLDFAST_CLOSED);
  assert(end(loading) == HOLDFAST_KEY_FAILED && !answered(id, "ok", NULL));
  pthread_join(closing, NULL);
  close_box();
}

static void *take_closed(void *data) {
  holdfast_key_request request;
  int32_t *status = data;
  *status = holdfast_mailbox_next(box, FOR_EVER, &request);
  return NULL;
}

static void a_thread_that_would_wait_for_itself_fails_at_once(void) {
  open_box(LONG_MS);
  assert(!holdfast_mailbox_is_answered_here(box));
  holdfast_key_request request;
  assert(holdfast_mailbox_next(box, 0, &request) == HOLDFAST_NOT_FOUND);
  assert(holdfast_mailbox_is_answered_here(box));
  assert(store.erase(store.context, "session") == HOLDFAST_KEY_FAILED);
  assert(holdfast_mailbox_next(box, 0, &request) == HOLDFAST_NOT_FOUND);
  /* Another thread waits for requests: it will answer. */
  pthread_t taking;
  int32_t status;
  assert(pthread_create(&taking, NULL, take_closed, &status) == 0);
  while (holdfast_mailbox_is_answered_here(box))
    sched_yield();
  holdfast_mailbox_close(box);
  pthread_join(taking, NULL);
  assert(status == HOLDFAST_CLOSED);
  close_box();
}

static void what_does_not_fit_fails(void) {
  open_box(LONG_MS);
  size_t length;
  void *context = store.context;
  assert(store.erase(context, "a_name_of_16_byt") == HOLDFAST_KEY_FAILED);
  assert(store.load(context, "device", key, 31, &length) == HOLDFAST_KEY_FAILED);
  assert(store.save(context, "device", key, 31, HOLDFAST_PROTECT_DEVICE) == HOLDFAST_KEY_FAILED);
  close_box();
}

int main(void) {
  a_key_is_saved_loaded_and_erased();
  every_result_has_its_number();
  a_wrong_answer_is_named_and_the_request_waits_for_a_right_one();
  only_the_request_that_waits_takes_an_answer();
  a_request_is_withdrawn_after_its_time();
  a_close_ends_every_wait();
  a_thread_that_would_wait_for_itself_fails_at_once();
  what_does_not_fit_fails();
  return 0;
}
