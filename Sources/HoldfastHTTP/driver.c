/* The public functions but one, the list of drivers, and the log.
 *
 * The host holds a token, which is looked up in the list and never dereferenced. Each driver counts
 * its users: the list, its thread, and the calls that have entered it. The last one to leave
 * destroys it. */
#define _GNU_SOURCE
#pragma GCC visibility push(default)
#include "holdfast_http.h"
#pragma GCC visibility pop
#include "driver.h"

#ifdef __APPLE__
#include <malloc/malloc.h>
#define malloc_usable_size malloc_size
#else
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the list ---- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static hfh_driver *list = NULL;
static uintptr_t last_token = 0;

/* With the list's lock. A driver that a parent process left behind gives way to one of ours. */
static hfh_driver *find(const holdfast_http *token, const holdfast *self) {
  hfh_driver *found = NULL;
  for (hfh_driver *driver = list; driver != NULL; driver = driver->next) {
    if (driver->token == 0) /* it has not started: its handle is not set yet */
      continue;
    bool fits = token == NULL ? driver->worker.self == self : driver->token == (uintptr_t)token;
    if (fits && (found == NULL || found->forked))
      found = driver;
  }
  return found;
}

int32_t hfh_driver_enter(const holdfast_http *token, const holdfast *self, hfh_driver **found) {
  pthread_mutex_lock(&list_lock);
  hfh_driver *driver = find(token, self);
  int32_t status = driver == NULL   ? HOLDFAST_CLOSED
                   : driver->forked ? HOLDFAST_FORKED
                                    : HOLDFAST_OK;
  if (status == HOLDFAST_OK)
    driver->users += 1;
  *found = status == HOLDFAST_OK ? driver : NULL;
  pthread_mutex_unlock(&list_lock);
  return status;
}

static void destroy(hfh_driver *driver) {
  hfh_worker_free(&driver->worker);
  holdfast_mailbox_free(driver->box);
  holdfast_keyring_free(driver->keyring);
  holdfast_free(driver->kept);
  free(driver);
}

void hfh_driver_leave(hfh_driver *driver) {
  if (driver == NULL)
    return;
  pthread_mutex_lock(&list_lock);
  bool last = --driver->users == 0;
  pthread_mutex_unlock(&list_lock);
  if (last)
    destroy(driver);
}

/* Tokens are odd numbers near the address of our own data, so that none is a valid pointer. */
static uintptr_t new_token(void) {
  if (last_token == 0)
    last_token = (uintptr_t)&list | 1;
  last_token += 2;
  return last_token;
}

/* ---- the log ---- */

/* The library has one log for the whole process. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int64_t) log_level = -1;

/* Called by the library, inside any call. */
void hfh_log_line(void *context, int32_t level, const char *line) {
  (void)context;
  if (level > log_level)
    return;
  static const char *const names[] = {"error", "warning", "info", "debug"};
  fprintf(stderr, "holdfast: %s: %s\n", names[level < 0 || level > 3 ? 3 : level], line);
}

/* Write as many lines as the one wants that wants most. */
void hfh_follow_log(void) {
  pthread_mutex_lock(&log_lock);
  int64_t wanted = -1;
  pthread_mutex_lock(&list_lock);
  for (const hfh_driver *driver = list; driver != NULL; driver = driver->next)
    if (!driver->forked && driver->worker.options.log_level > wanted)
      wanted = driver->worker.options.log_level;
  pthread_mutex_unlock(&list_lock);
  if (wanted != log_level) /* else the host's own function stays */
    holdfast_log((int32_t)wanted, wanted < 0 ? NULL : hfh_log_line, NULL);
  log_level = wanted;
  pthread_mutex_unlock(&log_lock);
}

/* ---- once per process ---- */

/* In a child process the worker threads are gone, and the locks of a driver may never be released.
 * The child only keeps the tokens, to answer with HOLDFAST_FORKED. */
static void before_fork(void) { pthread_mutex_lock(&list_lock); }
static void after_fork(void) { pthread_mutex_unlock(&list_lock); }
static void in_child(void) {
  for (hfh_driver *driver = list; driver != NULL; driver = driver->next)
    driver->forked = true;
  after_fork();
  /* A fork cannot wait for this lock: its holder waits for the core, which is held for the fork. */
  pthread_mutex_init(&log_lock, NULL);
  log_level = -1; /* it may have been about to change */
}

/* Requests with credentials pass through jansson, which is inside the driver, hidden. */
static void zeroing_free(void *bytes) {
  if (bytes != NULL)
    hfh_zero(bytes, malloc_usable_size(bytes));
  free(bytes);
}

/* For json_loadf(), which nothing calls (mk/library.mk). */
__attribute__((visibility("hidden"))) void *hfh_no_stdin = NULL;

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool ready = false;

static void prepare(void) {
  json_set_alloc_funcs(malloc, zeroing_free);
  ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
          pthread_atfork(before_fork, after_fork, in_child) == 0;
}

bool hfh_prepare(void) {
  pthread_once(&prepared, prepare);
  return ready;
}

/* ---- start ---- */

char *hfh_driver_new(json_t *options, hfh_driver **made) {
  hfh_driver *driver = calloc(1, sizeof *driver);
  if (driver == NULL)
    return hfh_no_memory;
  driver->users = 2; /* the list and the maker */
  driver->worker.wake = driver->worker.loop.set = driver->worker.loop.timer = -1;
  char *refusal = hfh_options_read(options, &driver->worker.options);
  if (refusal != NULL) {
    destroy(driver);
    return refusal;
  }
  pthread_mutex_lock(&list_lock);
  driver->next = list;
  list = *made = driver;
  pthread_mutex_unlock(&list_lock);
  return NULL;
}

static void *run(void *context) {
  hfh_driver *driver = context;
  hfh_worker_run(&driver->worker);
  driver->has_ended = true;
  hfh_driver_leave(driver);
  return NULL;
}

/* Start the thread with all signals blocked, so that only threads of the host handle them. */
static bool start_thread(hfh_driver *driver) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&driver->thread, NULL, run, driver) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

int32_t hfh_driver_start(hfh_driver *driver, holdfast *self) {
  bool threaded = driver->worker.options.thread;
  int32_t status = hfh_worker_init(&driver->worker, self);
  if (status == HOLDFAST_OK && !threaded)
    status = hfh_loop_init(&driver->worker);
  if (status != HOLDFAST_OK)
    return status;
  pthread_mutex_lock(&list_lock);
  const hfh_driver *other = find(NULL, self);
  if (other != NULL && !other->forked)
    status = HOLDFAST_STATE;
  else if (threaded && !start_thread(driver))
    status = HOLDFAST_INTERNAL;
  if (status == HOLDFAST_OK) {
    driver->token = new_token();
    driver->users += threaded ? 1 : 0; /* the thread leaves under the lock */
  }
  pthread_mutex_unlock(&list_lock);
  return status;
}

int32_t holdfast_http_start(holdfast *self, const char *options, holdfast_http **token) {
  if (token == NULL)
    return HOLDFAST_INVALID;
  *token = NULL;
  if (!hfh_prepare())
    return HOLDFAST_INTERNAL;
  json_t *root = NULL;
  hfh_driver *driver = NULL;
  char *refusal = hfh_parse(options, &root);
  if (refusal == NULL)
    refusal = hfh_driver_new(root, &driver);
  json_decref(root);
  holdfast_http_free(refusal);
  if (refusal != NULL)
    return refusal == hfh_no_memory ? HOLDFAST_NOMEM : HOLDFAST_INVALID;
  int32_t status = hfh_driver_start(driver, self);
  if (status == HOLDFAST_OK) {
    *token = (holdfast_http *)driver->token;
    hfh_follow_log();
  } else {
    hfh_driver_stop(driver);
  }
  hfh_driver_leave(driver);
  return status;
}

/* ---- on the host's loop ---- */

int32_t holdfast_http_fd(holdfast_http *token) {
  hfh_driver *driver;
  hfh_driver_enter(token, NULL, &driver);
  int32_t descriptor = driver == NULL ? -1 : driver->worker.loop.set;
  hfh_driver_leave(driver);
  return descriptor;
}

int32_t holdfast_http_run(holdfast_http *token, int32_t *timeout_ms) {
  if (timeout_ms != NULL)
    *timeout_ms = -1;
  hfh_driver *driver;
  int32_t status = hfh_driver_enter(token, NULL, &driver);
  if (driver != NULL)
    status =
        driver->worker.options.thread ? HOLDFAST_STATE : hfh_loop_run(&driver->worker, timeout_ms);
  hfh_driver_leave(driver);
  return status;
}

/* ---- stop, free ---- */

/* The thread ends at once, unless it waits for a call on the handle, which may be this thread's. To
 * ask the core at once would wait for every other call. */
static bool waits_for_this_thread(const hfh_driver *driver) {
  for (int naps = 0; naps < 100 && !driver->has_ended; naps++)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  return !driver->has_ended && hfh_worker_is_inside(&driver->worker);
}

void hfh_driver_stop(hfh_driver *driver) {
  pthread_mutex_lock(&list_lock);
  hfh_driver **place = &list;
  while (*place != NULL && *place != driver)
    place = &(*place)->next;
  bool found = *place != NULL;
  if (found)
    *place = driver->next;
  pthread_mutex_unlock(&list_lock);
  if (!found) /* another thread stops it */
    return;
  hfh_follow_log();
  if (driver->box != NULL) /* the worker may wait for a key */
    holdfast_mailbox_close(driver->box);
  if (driver->token != 0 && !driver->worker.options.thread) {
    hfh_loop_stop(&driver->worker);
  } else if (driver->token != 0) {
    hfh_worker_stop(&driver->worker);
    if (pthread_equal(driver->thread, pthread_self()) || waits_for_this_thread(driver))
      pthread_detach(driver->thread);
    else
      pthread_join(driver->thread, NULL);
  }
  hfh_driver_leave(driver);
}

void holdfast_http_stop(holdfast_http *token) {
  hfh_driver *driver;
  hfh_driver_enter(token, NULL, &driver);
  if (driver != NULL)
    hfh_driver_stop(driver);
  hfh_driver_leave(driver);
}

void holdfast_http_free(char *text) {
  if (text != hfh_no_memory && text != hfh_reply_lost)
    hfh_secret_free(text);
}
