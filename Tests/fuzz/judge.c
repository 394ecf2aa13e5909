/* Checks every call against the schema and against the promises in README.md. */
#include "judge.h"

#include "scene.h"
#include "tables.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A call that takes longer hangs. CPU time, in seconds. Under valgrind the first open of a process
 * takes 1.3 to more than 2 s, because it is translated, so this is no limit for speed. */
static const double max_seconds = 20;

const char *judge_line = "";
bool judge_prints = false;

void judge_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "\n== the library broke a promise: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n== at: %.2000s\n", judge_line);
  va_end(arguments);
  abort();
}

/* The CPU time of this thread, so that a busy machine causes no false alarm. */
static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool is_among(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
      return true;
  return false;
}

/* Whether an object has all required members of the shape, and only allowed ones. */
static bool fits(const json_t *object, const shape *it) {
  const char *key;
  json_t *value;
  size_t required = 0;
  json_object_foreach((json_t *)object, key, value) {
    if (!is_among(it->allowed, key))
      return false;
    required += is_among(it->required, key);
  }
  size_t words = it->required[0] != 0;
  for (const char *at = it->required; *at != 0; at++)
    words += *at == ' ';
  return required == words;
}

static void judge_success(const char *name, const json_t *reply) {
  for (size_t at = 0; at < sizeof shapes / sizeof *shapes; at++)
    if (strcmp(shapes[at].operation, name) == 0 && fits(reply, &shapes[at]))
      return;
  judge_fail("the reply of %s does not match the schema", name);
}

static void judge_error(const json_t *reply) {
  static const shape it = {"error", "code message field retryable detail",
                           "code message field retryable detail"};
  const json_t *error = json_object_get(reply, "error");
  if (json_object_size(reply) != 1 || !json_is_object(error) || !fits(error, &it))
    judge_fail("the error does not match the schema");
  const char *code = json_string_value(json_object_get(error, "code"));
  const json_t *field = json_object_get(error, "field");
  if (code == NULL || !is_among(error_codes, code))
    judge_fail("the code %s is not in the schema", code == NULL ? "null" : code);
  if (!json_is_null(field) && !json_is_string(field))
    judge_fail("the error's field is neither a string nor null");
  if (!json_is_string(json_object_get(error, "message")) ||
      !json_is_object(json_object_get(error, "detail")) ||
      !json_is_boolean(json_object_get(error, "retryable")))
    judge_fail("a member of the error has the wrong type");
}

/* Check the result of a call. Returns the reply, or NULL for an error. */
static json_t *judge(const char *name, int32_t status, char *reply, double began) {
  double took = seconds() - began;
  if (judge_prints)
    fprintf(stderr, "%.300s\n  %s: %d %s\n", judge_line, name, status, reply == NULL ? "" : reply);
  if (took > max_seconds)
    judge_fail("%s took %.1f s", name, took);
  if (status < HOLDFAST_OK || status >= HOLDFAST_NOMEM)
    judge_fail("%s returns %d: %s", name, status, reply == NULL ? "no reply" : reply);
  if (reply == NULL)
    judge_fail("%s returns %d without a reply", name, status);
  json_error_t error;
  json_t *value = json_loads(reply, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(value))
    judge_fail("the reply of %s is not a JSON object: %s", name, error.text);
  holdfast_free(reply);
  if (status == HOLDFAST_OK) {
    judge_success(name, value);
    return value;
  }
  judge_error(value);
  json_decref(value);
  return NULL;
}

/* Check that `wake_in_ms` is 0 only if there is work. `reply` is NULL after any other call, which
 * may create work. */
static void judge_wake(const json_t *reply) {
  const json_t *wake = json_object_get(reply, "wake_in_ms");
  bool again = json_is_integer(wake) && json_integer_value(wake) == 0;
  the_scene.idle_turns = again ? the_scene.idle_turns + 1 : 0;
  if (the_scene.idle_turns > 2)
    judge_fail("next gave nothing with wake_in_ms 0 three times in a row");
}

json_t *judge_next(holdfast *handle, int32_t what, int32_t timeout_ms) {
  char *reply = NULL;
  double began = seconds();
  int32_t status = holdfast_next(handle, what, timeout_ms, &reply);
  json_t *value = judge("next", status, reply, began);
  if (handle == NULL && status != HOLDFAST_CLOSED)
    judge_fail("next returns %d without a handle", status);
  judge_wake(value);
  return value;
}

static void judge_added(holdfast *handle, const json_t *reply) {
  const char *id = json_string_value(json_object_get(reply, "id"));
  if (id == NULL || strlen(id) != sizeof the_scene.item - 1)
    judge_fail("queue_add returns no id");
  snprintf(the_scene.item, sizeof the_scene.item, "%s", id);
  char request[64], *answer = NULL;
  snprintf(request, sizeof request, "{\"id\":\"%s\"}", id);
  double began = seconds();
  int32_t status = holdfast_queue_get(handle, request, &answer);
  json_decref(judge("queue_get", status, answer, began));
  if (status != HOLDFAST_OK && !(the_scene.damaged && status == HOLDFAST_STORAGE))
    judge_fail("an accepted item is not found: %d", status);
}

/* An exact copy, so that AddressSanitizer notices a read past its end. */
static char *exactly(const char *text) { return text == NULL ? NULL : strdup(text); }

json_t *judge_ask(const char *name, operation *function, holdfast *handle, const char *request) {
  char *reply = NULL, *sent = exactly(request);
  double began = seconds();
  int32_t status = function(handle, sent, &reply);
  free(sent);
  json_t *value = judge(name, status, reply, began);
  if (handle == NULL && status != HOLDFAST_CLOSED)
    judge_fail("%s returns %d without a handle", name, status);
  judge_wake(NULL);
  if (value != NULL && strcmp(name, "queue_add") == 0)
    judge_added(handle, value);
  return value;
}

void judge_call(const char *name, operation *function, holdfast *handle, const char *request) {
  json_decref(judge_ask(name, function, handle, request));
}

void judge_open(const char *config, const holdfast_keystore *store, holdfast **handle) {
  char *reply = NULL, *sent = exactly(config);
  double began = seconds();
  int32_t status = holdfast_open(sent, store, handle, &reply);
  free(sent);
  json_decref(judge("open", status, reply, began));
  if ((status == HOLDFAST_OK) != (*handle != NULL))
    judge_fail("open returns %d and %s handle", status, *handle == NULL ? "no" : "a");
}

void judge_reentry(void) {
  char *reply = NULL;
  double began = seconds();
  int32_t status = holdfast_session_status(scene_handle(), NULL, &reply);
  json_decref(judge("session_status", status, reply, began));
  if (scene_handle() != NULL && status != HOLDFAST_BUSY)
    judge_fail("a call from a callback returns %d", status);
}

void judge_nothing_left(void) {
  if (holdfast_live_count() != 0)
    judge_fail("%lld handles or replies are not freed", (long long)holdfast_live_count());
}

void judge_log(void *context, int32_t level, const char *line) {
  (void)context;
  if (level < 0 || level > 3 || line == NULL)
    judge_fail("a log line has the level %d", level);
  if (strstr(line, "secret") != NULL || strstr(line, "eyJ") != NULL || strstr(line, USER) != NULL)
    judge_fail("a log line contains a secret: %s", line);
}
