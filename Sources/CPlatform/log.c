/* The log: one function of the host, with a level. It is called outside the lock, so that it may
 * take its time or change the log itself.
 *
 * While a thread is inside the function, it logs nothing: the function may call the library, which
 * would log that it refuses the call, and so on until the stack ends. */
#include "platform.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static platform_log_fn sink = NULL;
static void *sink_context = NULL;
static int32_t sink_level = -1;
static bool was_set = false; /* by the host */

static _Thread_local bool is_inside = false; /* this thread is in the function */

void platform_log_set(int32_t level, platform_log_fn fn, void *context) {
  pthread_mutex_lock(&guard);
  sink = fn;
  sink_context = context;
  sink_level = fn == NULL ? -1 : level;
  was_set = true;
  pthread_mutex_unlock(&guard);
}

static void write_line(void *context, int32_t level, const char *line) {
  (void)context;
  (void)level;
  fprintf(stderr, "holdfast: %s\n", line);
}

void platform_log_to_stderr(void) {
  pthread_mutex_lock(&guard);
  if (!was_set) {
    sink = write_line;
    sink_level = 1;
  }
  pthread_mutex_unlock(&guard);
}

bool platform_log_wants(int32_t level) {
  pthread_mutex_lock(&guard);
  bool wants = sink != NULL && level <= sink_level;
  pthread_mutex_unlock(&guard);
  return wants;
}

void platform_log(int32_t level, const char *line) {
  pthread_mutex_lock(&guard);
  platform_log_fn fn = level <= sink_level && !is_inside ? sink : NULL;
  void *context = sink_context;
  pthread_mutex_unlock(&guard);
  if (fn == NULL)
    return;
  is_inside = true;
  fn(context, level, line);
  is_inside = false;
}

void platform_log_before_fork(void) { pthread_mutex_lock(&guard); }
void platform_log_after_fork(bool in_child) {
  /* A function that forks need not return there. */
  if (in_child)
    is_inside = false;
  pthread_mutex_unlock(&guard);
}
