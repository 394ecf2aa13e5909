/* The log: one function of the host, with a level. It is called outside the lock, so that it may
 * take its time or change the log itself. */
#include "platform.h"

#include <pthread.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static platform_log_fn sink = NULL;
static void *sink_context = NULL;
static int32_t sink_level = -1;

void platform_log_set(int32_t level, platform_log_fn fn, void *context) {
  pthread_mutex_lock(&guard);
  sink = fn;
  sink_context = context;
  sink_level = fn == NULL ? -1 : level;
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
  platform_log_fn fn = level <= sink_level ? sink : NULL;
  void *context = sink_context;
  pthread_mutex_unlock(&guard);
  if (fn != NULL)
    fn(context, level, line);
}

void platform_log_before_fork(void) { pthread_mutex_lock(&guard); }
void platform_log_after_fork(void) { pthread_mutex_unlock(&guard); }
