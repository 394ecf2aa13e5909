/* The public functions, and the list of drivers.
 *
 * The host holds a token, which is looked up in the list and never dereferenced. Each driver counts
 * its users: the list, its thread, and the calls that have entered it. The last one to leave
 * destroys it. */
#define _GNU_SOURCE
#pragma GCC visibility push(default)
#include "holdfast_http.h"
#pragma GCC visibility pop
#include "driver.h"

#include <fcntl.h>
#ifndef __APPLE__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct driver {
  struct driver *next;
  uintptr_t token;
  hfh_worker worker;
  holdfast_mailbox *box;     /* NULL: the key store is not "host" */
  holdfast_keyring *keyring; /* NULL: it is not "secret_service" */
  char *kept;                /* see hfh_keep(); protected by the list's lock, as the next one */
  bool resumes;              /* see hfh_owe_resume() */
  pthread_t thread;
  int users;   /* the list, the thread if there is one, and calls; protected by the list's lock */
  bool forked; /* the driver belongs to the parent process */
};

/* ---- the list ---- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct driver *list = NULL;
static uintptr_t last_token = 0;

static struct driver **place_of(const holdfast_http *token) {
  struct driver **place = &list;
  while (*place != NULL && (*place)->token != (uintptr_t)token)
    place = &(*place)->next;
  return place;
}

static void destroy(struct driver *driver) {
  hfh_worker *worker = &driver->worker;
  if (worker->multi != NULL)
    curl_multi_cleanup(worker->multi);
  hfh_loop_free(worker);
  if (worker->wake >= 0)
    close(worker->wake);
  pthread_mutex_destroy(&worker->lock);
  hfh_options_free(&worker->options);
  holdfast_mailbox_free(driver->box);
  holdfast_keyring_free(driver->keyring);
  holdfast_free(driver->kept);
  free(driver);
}

static void leave(struct driver *driver) {
  pthread_mutex_lock(&list_lock);
  bool last = --driver->users == 0;
  pthread_mutex_unlock(&list_lock);
  if (last)
    destroy(driver);
}

holdfast_http *hfh_driver_of(const holdfast *self) {
  const struct driver *found = NULL;
  pthread_mutex_lock(&list_lock);
  for (const struct driver *driver = list; driver != NULL; driver = driver->next)
    if (driver->worker.self == self && (found == NULL || found->forked))
      found = driver;
  uintptr_t token = found == NULL ? 0 : found->token;
  pthread_mutex_unlock(&list_lock);
  return (holdfast_http *)token;
}

/* Look up a token. After HOLDFAST_OK, the caller must call leave(). */
static int32_t enter(const holdfast_http *token, struct driver **found) {
  int32_t status = HOLDFAST_CLOSED;
  pthread_mutex_lock(&list_lock);
  struct driver *driver = *place_of(token);
  if (driver != NULL && driver->forked) {
    status = HOLDFAST_FORKED;
  } else if (driver != NULL) {
    driver->users += 1;
    *found = driver;
    status = HOLDFAST_OK;
  }
  pthread_mutex_unlock(&list_lock);
  return status;
}

/* ---- the log ---- */

/* The library has one log for the whole process. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long log_level = -1;
/* How many handles are being opened that want lines of each level. */
static int opening[4];

/* Called by the library, inside any call. */
void hfh_log_line(void *context, int32_t level, const char *line) {
  (void)context;
  if (level > atomic_load(&log_level))
    return;
  static const char *const names[] = {"error", "warning", "info", "debug"};
  fprintf(stderr, "holdfast: %s: %s\n", names[level < 0 || level > 3 ? 3 : level], line);
}

/* Drivers have started or stopped, or are about to: write as many lines as the one wants that wants
 * most. */
static void follow_log(void) {
  pthread_mutex_lock(&log_lock);
  long wanted = 3;
  while (wanted >= 0 && opening[wanted] == 0)
    wanted--;
  pthread_mutex_lock(&list_lock);
  for (const struct driver *driver = list; driver != NULL; driver = driver->next)
    if (!driver->forked && driver->worker.options.log_level > wanted)
      wanted = driver->worker.options.log_level;
  pthread_mutex_unlock(&list_lock);
  if (wanted != atomic_load(&log_level)) /* else the host's own function stays */
    holdfast_log((int32_t)wanted, wanted < 0 ? NULL : hfh_log_line, NULL);
  atomic_store(&log_level, wanted);
  pthread_mutex_unlock(&log_lock);
}

void hfh_log_opening(long level, int change) {
  if (level < 0)
    return;
  pthread_mutex_lock(&log_lock);
  opening[level] += change;
  pthread_mutex_unlock(&log_lock);
  follow_log();
}

/* In a child process the worker threads are gone, and the locks of a driver may never be released.
 * The child only keeps the tokens, to answer with HOLDFAST_FORKED. */
static void before_fork(void) {
  pthread_mutex_lock(&log_lock);
  pthread_mutex_lock(&list_lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&list_lock);
  pthread_mutex_unlock(&log_lock);
}
static void in_child(void) {
  for (struct driver *driver = list; driver != NULL; driver = driver->next)
    driver->forked = true;
  after_fork();
}

/* ---- once per process ---- */

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool ready = false;

/* Requests with credentials pass through jansson, which is inside the driver, hidden. */
#ifdef __APPLE__
static void zero_what_jansson_frees(void) {}
#else
static void zeroing_free(void *bytes) {
  if (bytes == NULL)
    return;
  explicit_bzero(bytes, malloc_usable_size(bytes));
  free(bytes);
}
static void zero_what_jansson_frees(void) { json_set_alloc_funcs(malloc, zeroing_free); }
#endif

/* For json_loadf(), which nothing calls (mk/library.mk). */
__attribute__((visibility("hidden"))) void *hfh_no_stdin = NULL;

static void prepare(void) {
  zero_what_jansson_frees();
  ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
          pthread_atfork(before_fork, after_fork, in_child) == 0;
}

bool hfh_prepare(void) {
  pthread_once(&prepared, prepare);
  return ready;
}

/* ---- start ---- */

static void *run(void *context) {
  struct driver *driver = context;
  hfh_worker_run(&driver->worker);
  leave(driver);
  return NULL;
}

/* Start the thread with all signals blocked, so that only threads of the host handle them. */
static bool start_thread(struct driver *driver) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&driver->thread, NULL, run, driver) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

/* Duplicate the handle's descriptor for requests. The original is closed with the handle, and its
 * number may then be used for another file. */
static int32_t watch(hfh_worker *worker) {
  int descriptor = holdfast_wake_fd(worker->self, HOLDFAST_NEXT_REQUESTS);
  worker->wake = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (worker->wake >= 0)
    return HOLDFAST_OK;
  int32_t status = holdfast_session_status(worker->self, NULL, NULL);
  return status == HOLDFAST_CLOSED || status == HOLDFAST_FORKED ? status : HOLDFAST_NOMEM;
}

static int32_t make(holdfast *self, const char *options, struct driver **made) {
  struct driver *driver = calloc(1, sizeof *driver);
  if (driver == NULL)
    return HOLDFAST_NOMEM;
  hfh_worker *worker = &driver->worker;
  worker->self = self;
  worker->wake = -1;
  worker->loop = (hfh_loop){.set = -1, .bell = -1, .timer = -1};
  hfh_wrong wrong;
  int32_t status = hfh_options_read(options, &worker->options, &wrong);
  if (status != HOLDFAST_OK) {
    hfh_options_free(&worker->options);
    free(driver);
    return status;
  }
  pthread_mutex_init(&worker->lock, NULL);
  status = watch(worker);
  if (status == HOLDFAST_OK) {
    worker->multi = curl_multi_init();
    if (worker->multi == NULL)
      status = HOLDFAST_NOMEM;
    else
      curl_multi_setopt(worker->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, worker->options.connections);
  }
  if (status == HOLDFAST_OK && !worker->options.thread)
    status = hfh_loop_init(worker);
  if (status != HOLDFAST_OK)
    destroy(driver);
  else
    *made = driver;
  return status;
}

static bool has_driver(const holdfast *self) {
  for (const struct driver *driver = list; driver != NULL; driver = driver->next)
    if (driver->worker.self == self && !driver->forked)
      return true;
  return false;
}

/* Tokens are odd numbers near the address of our own data, so that none is a valid pointer. */
static uintptr_t new_token(void) {
  if (last_token == 0)
    last_token = (uintptr_t)&list | 1;
  last_token += 2;
  return last_token;
}

int32_t hfh_start(holdfast *self, const char *options, holdfast_mailbox *box,
                  holdfast_keyring *keyring, holdfast_http **driver) {
  *driver = NULL;
  struct driver *made = NULL;
  int32_t status = hfh_prepare() ? make(self, options, &made) : HOLDFAST_INTERNAL;
  if (status != HOLDFAST_OK) {
    holdfast_mailbox_free(box);
    holdfast_keyring_free(keyring);
    return status;
  }
  made->box = box;
  made->keyring = keyring;
  pthread_mutex_lock(&list_lock);
  status = has_driver(self) ? HOLDFAST_STATE : HOLDFAST_OK;
  bool threaded = made->worker.options.thread;
  made->users = threaded ? 2 : 1; /* set before the thread can leave */
  if (status == HOLDFAST_OK && threaded && !start_thread(made))
    status = HOLDFAST_INTERNAL;
  if (status == HOLDFAST_OK) {
    made->token = new_token();
    made->next = list;
    list = made;
    *driver = (holdfast_http *)made->token;
  }
  pthread_mutex_unlock(&list_lock);
  if (status != HOLDFAST_OK)
    destroy(made);
  else
    follow_log();
  return status;
}

int32_t holdfast_http_start(holdfast *self, const char *options, holdfast_http **driver) {
  return driver == NULL ? HOLDFAST_INVALID : hfh_start(self, options, NULL, NULL, driver);
}

/* ---- on the host's loop ---- */

int32_t holdfast_http_fd(holdfast_http *token) {
  struct driver *driver = NULL;
  if (enter(token, &driver) != HOLDFAST_OK)
    return -1;
  int32_t descriptor = driver->worker.loop.set;
  leave(driver);
  return descriptor;
}

int32_t holdfast_http_run(holdfast_http *token, int32_t *timeout_ms) {
  if (timeout_ms != NULL)
    *timeout_ms = -1;
  struct driver *driver = NULL;
  int32_t status = enter(token, &driver);
  if (status != HOLDFAST_OK)
    return status;
  status =
      driver->worker.options.thread ? HOLDFAST_STATE : hfh_loop_run(&driver->worker, timeout_ms);
  leave(driver);
  return status;
}

/* ---- stop, free ---- */

void holdfast_http_stop(holdfast_http *token) {
  pthread_mutex_lock(&list_lock);
  struct driver **place = place_of(token);
  struct driver *driver = *place;
  if (driver != NULL && !driver->forked)
    *place = driver->next;
  else
    driver = NULL;
  pthread_mutex_unlock(&list_lock);
  if (driver == NULL)
    return;
  follow_log();
  if (driver->box != NULL) /* the worker may wait for a key */
    holdfast_mailbox_close(driver->box);
  if (!driver->worker.options.thread) {
    hfh_loop_stop(&driver->worker);
    leave(driver);
    return;
  }
  hfh_worker_stop(&driver->worker);
  if (pthread_equal(driver->thread, pthread_self()))
    pthread_detach(driver->thread);
  else
    pthread_join(driver->thread, NULL);
  leave(driver);
}

void hfh_owe_resume(const holdfast *self) {
  uintptr_t token = (uintptr_t)hfh_driver_of(self);
  pthread_mutex_lock(&list_lock);
  struct driver *driver = *place_of((holdfast_http *)token);
  if (driver != NULL)
    driver->resumes = true;
  pthread_mutex_unlock(&list_lock);
}

bool hfh_take_resume(const holdfast *self) {
  uintptr_t token = (uintptr_t)hfh_driver_of(self);
  pthread_mutex_lock(&list_lock);
  struct driver *driver = *place_of((holdfast_http *)token);
  bool resumes = driver != NULL && driver->resumes;
  if (resumes)
    driver->resumes = false;
  pthread_mutex_unlock(&list_lock);
  return resumes;
}

void hfh_keep(const holdfast *self, char *text) {
  uintptr_t token = (uintptr_t)hfh_driver_of(self);
  pthread_mutex_lock(&list_lock);
  struct driver *driver = *place_of((holdfast_http *)token);
  if (driver != NULL && driver->kept == NULL) {
    driver->kept = text;
    text = NULL;
  }
  pthread_mutex_unlock(&list_lock);
  holdfast_free(text);
}

char *hfh_kept(const holdfast *self) {
  uintptr_t token = (uintptr_t)hfh_driver_of(self);
  pthread_mutex_lock(&list_lock);
  struct driver *driver = *place_of((holdfast_http *)token);
  char *text = driver == NULL ? NULL : driver->kept;
  if (driver != NULL)
    driver->kept = NULL;
  pthread_mutex_unlock(&list_lock);
  return text;
}

/* ---- the key store "host" ---- */

int32_t hfh_key_wait_ms = HOLDFAST_MAILBOX_WAIT_MS;

int32_t hfh_key_next(const holdfast *self, int32_t timeout_ms, holdfast_key_request *request) {
  struct driver *driver = NULL;
  int32_t status = enter(hfh_driver_of(self), &driver);
  if (status != HOLDFAST_OK)
    return status;
  status = driver->box == NULL ? HOLDFAST_STATE
                               : holdfast_mailbox_next(driver->box, timeout_ms, request);
  leave(driver);
  return status;
}

int32_t hfh_key_complete(const holdfast *self, int64_t id, const char *result, const char *value,
                         const char **wrong) {
  struct driver *driver = NULL;
  int32_t status = enter(hfh_driver_of(self), &driver);
  if (status != HOLDFAST_OK)
    return status;
  status = driver->box == NULL ? HOLDFAST_STATE
                               : holdfast_mailbox_complete(driver->box, id, result, value, wrong);
  leave(driver);
  return status;
}

bool hfh_answers_keys(const holdfast *self) {
  struct driver *driver = NULL;
  if (enter(hfh_driver_of(self), &driver) != HOLDFAST_OK)
    return false;
  bool here = driver->box != NULL && holdfast_mailbox_is_answered_here(driver->box);
  leave(driver);
  return here;
}

bool hfh_keyring_cause(const holdfast *self, char *cause, size_t capacity) {
  struct driver *driver = NULL;
  if (enter(hfh_driver_of(self), &driver) != HOLDFAST_OK)
    return false;
  *cause = 0;
  if (driver->keyring != NULL)
    holdfast_keyring_cause(driver->keyring, cause, capacity);
  leave(driver);
  return *cause != 0;
}

void holdfast_http_free(char *text) {
  if (!hfh_is_constant(text))
    hfh_secret_free(text);
}
