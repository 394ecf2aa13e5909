/* A fake libholdfast: gives the test's requests and news, and records completions. One handle
 * at a time. conftest.py builds it together with the driver's sources. */
#define _GNU_SOURCE
#include "holdfast.h"

#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static json_t *requests, *news, *completions;
static int descriptor = -1, stuck = 0, next_status = 0, asked = 0, handle_number = 0;
static int wake_in_ms = -1;
static void (*on_next)(void);
static pid_t process;
static holdfast_keystore keys;
static atomic_int replies;

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

static struct timespec after(int ms) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += ms / 1000;
  limit.tv_nsec += (ms % 1000) * 1000000L;
  limit.tv_sec += limit.tv_nsec / 1000000000L;
  limit.tv_nsec %= 1000000000L;
  return limit;
}

/* ---- called by the test ---- */

/* The real core does this with the last call on a closed handle; here the next one does. */
static void drop_keys(void) {
  if (keys.destroy != NULL)
    keys.destroy(keys.context);
  keys = (holdfast_keystore){0};
}

static void set_fork_hooks(void);

holdfast *fake_open(void) {
  static pthread_once_t hooks = PTHREAD_ONCE_INIT;
  pthread_once(&hooks, set_fork_hooks);
  drop_keys();
  pthread_mutex_lock(&lock);
  json_decref(requests);
  json_decref(news);
  json_decref(completions);
  requests = json_array();
  news = json_array();
  completions = json_array();
  stuck = next_status = asked = 0;
  wake_in_ms = -1;
  on_next = NULL;
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
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
}

static void add(json_t **to, const char *text) {
  pthread_mutex_lock(&lock);
  json_array_append_new(*to, json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL));
  raise_descriptor();
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

void fake_request(const char *text) { add(&requests, text); }
/* A thing for a reader of news, such as {"screen":{...}}. */
void fake_news(const char *text) { add(&news, text); }

void fake_set(int new_stuck, int new_next_status) {
  pthread_mutex_lock(&lock);
  stuck = new_stuck;
  next_status = new_next_status;
  raise_descriptor();
  pthread_mutex_unlock(&lock);
}

/* The next `wake_in_ms` only; negative: null. */
void fake_wake_in(int ms) {
  pthread_mutex_lock(&lock);
  wake_in_ms = ms;
  pthread_mutex_unlock(&lock);
}

/* Call the host each time that requests are asked for, as the core calls its key store and log. */
void fake_on_next(void (*function)(void)) { on_next = function; }

/* How often requests were asked for. */
int fake_asked(void) {
  pthread_mutex_lock(&lock);
  int count = asked;
  pthread_mutex_unlock(&lock);
  return count;
}

/* The next argument of holdfast_complete(), or NULL when none came within `timeout_ms`. */
char *fake_completion(int timeout_ms) {
  struct timespec limit = after(timeout_ms);
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
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static bool forks_in_log;
static atomic_bool is_forking;

/* A fork holds the log, as that of the real core, whose hooks are set by the first open. */
static void before_fork(void) {
  pthread_mutex_lock(&log_lock);
  is_forking = true;
}
static void after_fork(void) { pthread_mutex_unlock(&log_lock); }
static void set_fork_hooks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static void *fork_once(void *unused) {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, NULL, 0);
  return unused;
}

/* Fork on another thread in the middle of the next holdfast_log(). */
void fake_fork_in_log(void) { forks_in_log = true; }

void holdfast_log(int32_t level, holdfast_log_fn fn, void *context) {
  (void)context;
  pthread_t thread;
  bool forks = forks_in_log;
  forks_in_log = false;
  if (forks)
    pthread_create(&thread, NULL, fork_once, NULL);
  while (forks && !is_forking)
    sched_yield();
  pthread_mutex_lock(&log_lock);
  log_function = fn;
  log_level = fn == NULL ? -1 : level;
  pthread_mutex_unlock(&log_lock);
  if (forks)
    pthread_join(thread, NULL);
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

static char *replied_json(const json_t *value) {
  atomic_fetch_add(&replies, 1);
  return json_dumps(value, JSON_COMPACT);
}

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
  json_object_del(given, "role");
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

int32_t holdfast_wake_fd(holdfast *self, int32_t what) {
  (void)what; /* the driver only asks for that of requests */
  pthread_mutex_lock(&lock);
  int number = check(self) == HOLDFAST_OK ? descriptor : -1;
  pthread_mutex_unlock(&lock);
  return number;
}

int32_t holdfast_session_status(holdfast *self, const char *request, char **reply) {
  (void)request;
  (void)reply; /* the driver only asks whether the handle is open */
  pthread_mutex_lock(&lock);
  int32_t status = check(self);
  pthread_mutex_unlock(&lock);
  return status;
}

/* With the key store "host", the first holdfast_next() begins with this. */
int32_t holdfast_session_resume(holdfast *self, const char *request, char **reply) {
  return holdfast_session_status(self, request, reply);
}

/* The first thing of a list, taken out of it; a new reference, or NULL. */
static json_t *first(json_t *list, const char *name) {
  json_t *taken = json_incref(json_array_get(list, 0));
  json_array_remove(list, 0);
  if (taken == NULL || name == NULL)
    return taken;
  return json_pack("{s:o}", name, taken);
}

static json_t *take_request(void) {
  asked += 1;
  uint64_t count;
  ssize_t done = stuck ? 0 : read(descriptor, &count, sizeof count);
  (void)done;
  json_t *thing = first(requests, "request");
  if (thing != NULL && json_array_size(requests) > 0)
    raise_descriptor();
  return thing;
}

static json_t *take_news(const holdfast *self, int32_t timeout_ms) {
  struct timespec limit = after(timeout_ms < 0 ? 0 : timeout_ms);
  while (timeout_ms != 0 && json_array_size(news) == 0 && check(self) == HOLDFAST_OK) {
    if (timeout_ms < 0)
      pthread_cond_wait(&changed, &lock);
    else if (pthread_cond_timedwait(&changed, &lock, &limit) != 0)
      break;
  }
  return first(news, NULL);
}

int32_t holdfast_next(holdfast *self, int32_t what, int32_t timeout_ms, char **reply) {
  *reply = NULL;
  if (what == HOLDFAST_NEXT_REQUESTS && on_next != NULL)
    on_next();
  pthread_mutex_lock(&lock);
  json_t *thing = NULL;
  int32_t status = check(self);
  if (status == HOLDFAST_OK && what == HOLDFAST_NEXT_REQUESTS)
    status = next_status;
  if (status == HOLDFAST_OK) {
    thing = what == HOLDFAST_NEXT_REQUESTS ? take_request() : take_news(self, timeout_ms);
    status = check(self);
  }
  if (status == HOLDFAST_OK && thing == NULL) {
    thing =
        json_pack("{s:o}", "wake_in_ms", wake_in_ms < 0 ? json_null() : json_integer(wake_in_ms));
    wake_in_ms = -1;
  }
  if (status == HOLDFAST_OK)
    *reply = replied_json(thing);
  else
    *reply = replied("{\"error\":{\"code\":\"handle.closed\"}}");
  json_decref(thing);
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
  if (status == HOLDFAST_OK)
    json_array_append(completions, answer);
  json_decref(answer);
  pthread_cond_broadcast(&told);
  pthread_mutex_unlock(&lock);
  return status;
}
