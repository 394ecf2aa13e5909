/* A fake libholdfast: hands out the test's requests and events, and records completions. One handle
 * at a time. conftest.py builds it together with the driver's sources. */
#define _GNU_SOURCE
#include "holdfast.h"

#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static json_t *requests, *events, *completions;
static json_int_t acked = -1;
static int descriptor = -1, stuck = 0, poll_status = 0, polls = 0, handle_number = 0;
static int busy, busy_status = HOLDFAST_BUSY, wake_in_ms = -1;
static void (*on_poll)(void);
static bool paused;
static pid_t process;
static holdfast_keystore keys;
static atomic_int replies;
enum { PAGE = 200 };

static holdfast *current(void) { return (holdfast *)(uintptr_t)(handle_number * 2 + 1); }

static int32_t check(const holdfast *self) {
  if (descriptor < 0 || self != current())
    return HOLDFAST_CLOSED;
  return process == getpid() ? HOLDFAST_OK : HOLDFAST_FORKED;
}

static void raise_descriptor(void) {
  uint64_t one = 1;
  ssize_t done = write(descriptor, &one, sizeof one);
  (void)done;
}

/* ---- called by the test ---- */

/* The real core does this with the last call on a closed handle; here the next one does. */
static void drop_keys(void) {
  if (keys.destroy != NULL)
    keys.destroy(keys.context);
  keys = (holdfast_keystore){0};
}

holdfast *fake_open(void) {
  drop_keys();
  pthread_mutex_lock(&lock);
  json_decref(requests);
  json_decref(events);
  json_decref(completions);
  requests = json_array();
  events = json_array();
  completions = json_array();
  acked = -1;
  stuck = poll_status = polls = busy = 0;
  wake_in_ms = -1;
  on_poll = NULL;
  descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  handle_number += 1;
  process = getpid();
  pthread_mutex_unlock(&lock);
  return current();
}

void holdfast_close(holdfast *self) {
  pthread_mutex_lock(&lock);
  if (check(self) == HOLDFAST_OK) {
    raise_descriptor();
    close(descriptor);
    descriptor = -1;
  }
  pthread_mutex_unlock(&lock);
}

static void add(json_t **to, const char *text) {
  pthread_mutex_lock(&lock);
  json_array_append_new(*to, json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL));
  raise_descriptor();
  pthread_mutex_unlock(&lock);
}

void fake_request(const char *text) { add(&requests, text); }
/* At most PAGE events are in one poll, none if it has "max_events":0. An event with "durable":true
 * returns in every poll until it is acknowledged. */
void fake_event(const char *text) { add(&events, text); }

void fake_set(int new_stuck, int new_poll_status) {
  pthread_mutex_lock(&lock);
  stuck = new_stuck;
  poll_status = new_poll_status;
  raise_descriptor();
  pthread_mutex_unlock(&lock);
}

/* The next `times` completions are refused with this status, as while another process writes. */
void fake_busy(int times, int status) {
  pthread_mutex_lock(&lock);
  busy = times;
  busy_status = status;
  pthread_mutex_unlock(&lock);
}

/* The `wake_in_ms` of the next poll only; negative: null. */
void fake_wake_in(int ms) {
  pthread_mutex_lock(&lock);
  wake_in_ms = ms;
  pthread_mutex_unlock(&lock);
}

/* Call the host in every poll, as the core calls its key store and log. */
void fake_on_poll(void (*function)(void)) { on_poll = function; }

int fake_polls(void) {
  pthread_mutex_lock(&lock);
  int count = polls;
  pthread_mutex_unlock(&lock);
  return count;
}

/* The number of events that no poll has returned yet. */
int fake_events(void) {
  pthread_mutex_lock(&lock);
  int count = (int)json_array_size(events);
  pthread_mutex_unlock(&lock);
  return count;
}

int64_t fake_acked(void) {
  pthread_mutex_lock(&lock);
  int64_t seq = acked;
  pthread_mutex_unlock(&lock);
  return seq;
}

/* The next argument of holdfast_complete(), or NULL when none came within `timeout_ms`. */
char *fake_completion(int timeout_ms) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += timeout_ms / 1000;
  limit.tv_nsec += (timeout_ms % 1000) * 1000000L;
  limit.tv_sec += limit.tv_nsec / 1000000000L;
  limit.tv_nsec %= 1000000000L;
  pthread_mutex_lock(&lock);
  while (json_array_size(completions) == 0 && pthread_cond_timedwait(&told, &lock, &limit) == 0)
    ;
  char *text = NULL;
  if (json_array_size(completions) > 0) {
    text = json_dumps(json_array_get(completions, 0), JSON_COMPACT);
    json_array_remove(completions, 0);
  }
  pthread_mutex_unlock(&lock);
  return text;
}

/* ---- called by the driver ---- */

static holdfast_log_fn log_function;
static int32_t log_level = -1;

void holdfast_log(int32_t level, holdfast_log_fn fn, void *context) {
  (void)context;
  log_function = fn;
  log_level = fn == NULL ? -1 : level;
}

/* A line of the library's log. Returns whether somebody wanted it. */
int fake_log(int level, const char *line) {
  bool wanted = log_function != NULL && level <= log_level;
  if (wanted)
    log_function(NULL, level, line);
  return wanted;
}

const char *holdfast_version(void) { return "0.0.0-fake"; }

void holdfast_free(void *reply) {
  if (reply != NULL)
    atomic_fetch_sub(&replies, 1);
  free(reply);
}

int64_t holdfast_live_count(void) {
  pthread_mutex_lock(&lock);
  int64_t live = atomic_load(&replies) + (descriptor >= 0);
  pthread_mutex_unlock(&lock);
  return live;
}

static char *replied(const char *text) {
  atomic_fetch_add(&replies, 1);
  return strdup(text);
}

/* How long the driver's mailbox waits for an answer. */
extern int32_t hfh_key_wait_ms;
void fake_key_wait(int ms) { hfh_key_wait_ms = ms; }

/* Calls a function of the key store, as the core does inside a call: the operation is "load",
 * "save" or "erase", and the request the name of the key. A save has the key 0, 1, 2, ... */
static char *use_key(const char *operation, const char *name) {
  uint8_t key[64];
  size_t length = 0;
  int32_t result;
  char *text = NULL;
  for (int i = 0; i < 32; i++)
    key[i] = (uint8_t)i;
  if (strcmp(operation, "load") == 0)
    result = keys.load(keys.context, name, key, 32, &length);
  else if (strcmp(operation, "save") == 0)
    result = keys.save(keys.context, name, key, 32, strcmp(name, "biometric") == 0);
  else
    result = keys.erase(keys.context, name);
  bool found = result == HOLDFAST_KEY_OK && length == 32;
  if (asprintf(&text, "{\"result\":%d,\"last\":%d}", result, found ? key[31] : -1) < 0)
    abort();
  return text;
}

/* Opens with {"data_dir":"x"}, and refuses every other configuration. */
int32_t holdfast_open(const char *config, const holdfast_keystore *keystore, holdfast **self,
                      char **reply) {
  json_t *given = config == NULL ? NULL : json_loads(config, JSON_REJECT_DUPLICATES, NULL);
  const char *folder = json_string_value(json_object_get(given, "data_dir"));
  bool known = json_object_size(given) == 1 && folder != NULL && strcmp(folder, "x") == 0;
  json_decref(given);
  *self = known ? fake_open() : NULL;
  if (keystore != NULL)
    keys = *keystore;
  if (!known)
    drop_keys();
  *reply = replied(known ? "{\"version\":\"0.0.0-fake\"}"
                         : "{\"error\":{\"code\":\"request.missing_field\"}}");
  return known ? HOLDFAST_OK : HOLDFAST_INVALID;
}

/* Answers with the operation and the request. */
int32_t holdfast_call(holdfast *self, const char *operation, const char *request, char **reply) {
  pthread_mutex_lock(&lock);
  int32_t status = check(self);
  pthread_mutex_unlock(&lock);
  char *text = NULL;
  bool needs_key = keys.context != NULL && strcmp(operation, "queue_list") != 0;
  if (status == HOLDFAST_OK && needs_key) {
    atomic_fetch_add(&replies, 1);
    *reply = use_key(operation, request);
    return status;
  }
  if (status != HOLDFAST_OK ||
      asprintf(&text, "{\"called\":\"%s\",\"with\":%s}", operation, request) < 0) {
    *reply = replied("{\"error\":{\"code\":\"handle.closed\"}}");
    return status;
  }
  atomic_fetch_add(&replies, 1);
  *reply = text;
  return HOLDFAST_OK;
}

int32_t holdfast_wake_fd(holdfast *self) {
  pthread_mutex_lock(&lock);
  int number = check(self) == HOLDFAST_OK ? descriptor : -1;
  pthread_mutex_unlock(&lock);
  return number;
}

int32_t holdfast_wait(holdfast *self, int32_t timeout_ms) {
  (void)timeout_ms; /* the driver only asks whether the handle is open */
  pthread_mutex_lock(&lock);
  int32_t status = check(self);
  pthread_mutex_unlock(&lock);
  return status;
}

static void acknowledge(json_int_t seq) {
  acked = seq;
  for (size_t i = json_array_size(events); i-- > 0;) {
    const json_t *event = json_array_get(events, i);
    if (json_integer_value(json_object_get(event, "seq")) <= seq)
      json_array_remove(events, i);
  }
}

int32_t holdfast_poll(holdfast *self, const char *request, char **reply) {
  *reply = NULL;
  if (on_poll != NULL)
    on_poll();
  pthread_mutex_lock(&lock);
  int32_t status = check(self);
  if (status == HOLDFAST_OK) {
    polls += 1;
    status = poll_status;
  }
  if (status == HOLDFAST_OK) {
    uint64_t count;
    ssize_t done = stuck ? 0 : read(descriptor, &count, sizeof count);
    (void)done;
    json_t *order = json_loads(*request == 0 ? "{}" : request, 0, NULL);
    json_t *ack = json_object_get(order, "ack");
    if (ack != NULL)
      acknowledge(json_integer_value(ack));
    json_t *limit = json_object_get(order, "max_events");
    size_t most = limit == NULL ? PAGE : (size_t)json_integer_value(limit);
    paused = most == 0;
    json_decref(order);
    json_t *page = json_array();
    for (size_t i = 0; i < json_array_size(events) && json_array_size(page) < most;) {
      json_t *event = json_array_get(events, i);
      json_array_append(page, event);
      if (json_is_true(json_object_get(event, "durable")))
        i += 1;
      else
        json_array_remove(events, i);
    }
    if (!paused && json_array_size(page) == PAGE)
      raise_descriptor();
    json_t *wake = wake_in_ms < 0 ? json_null() : json_integer(wake_in_ms);
    wake_in_ms = -1;
    json_t *answer =
        json_pack("{s:O,s:o,s:o}", "requests", requests, "events", page, "wake_in_ms", wake);
    *reply = json_dumps(answer, JSON_COMPACT);
    atomic_fetch_add(&replies, 1);
    json_decref(answer);
    json_array_clear(requests);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* As strict as the real core: refuses text that is not JSON or contains a NUL. */
int32_t holdfast_complete(holdfast *self, const char *request, char **reply) {
  if (reply != NULL)
    *reply = NULL;
  json_t *answer = json_loads(request, JSON_REJECT_DUPLICATES, NULL);
  pthread_mutex_lock(&lock);
  int32_t status = check(self);
  if (status == HOLDFAST_OK && answer == NULL)
    status = HOLDFAST_INVALID;
  if (status == HOLDFAST_OK && busy > 0) {
    busy -= 1;
    status = busy_status;
  }
  if (status == HOLDFAST_OK)
    json_array_append(completions, answer);
  json_decref(answer);
  pthread_cond_broadcast(&told);
  pthread_mutex_unlock(&lock);
  return status;
}
