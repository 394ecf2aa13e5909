/* The log: one function of the host, with a level. It is called outside the lock, so that it may
 * take its time or change the log itself.
 *
 * While a thread is inside the function, it logs nothing: the function may call the library, which
 * would log that it refuses the call, and so on until the stack ends. */
#include "platform.h"

#include <pthread.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static platform_log_fn sink = NULL;
static void *sink_context = NULL;
static int32_t sink_level = -1;

enum { MOST_INSIDE = 64 };
static pthread_t inside[MOST_INSIDE]; /* the threads that are in the function */
static int inside_count = 0;

/* The place of this thread among those inside, or -1. The lock must be held. */
static int own_place(void) {
  for (int at = 0; at < inside_count; at++) {
    if (pthread_equal(inside[at], pthread_self()))
      return at;
  }
  return -1;
}

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
  bool is_free = own_place() < 0 && inside_count < MOST_INSIDE;
  platform_log_fn fn = level <= sink_level && is_free ? sink : NULL;
  void *context = sink_context;
  if (fn != NULL)
    inside[inside_count++] = pthread_self();
  pthread_mutex_unlock(&guard);
  if (fn == NULL)
    return;
  fn(context, level, line);
  pthread_mutex_lock(&guard);
  int at = own_place();
  if (at >= 0)
    inside[at] = inside[--inside_count];
  pthread_mutex_unlock(&guard);
}

void platform_log_before_fork(void) { pthread_mutex_lock(&guard); }
void platform_log_after_fork(bool in_child) {
  /* The other threads do not exist there. */
  if (in_child)
    inside_count = 0;
  pthread_mutex_unlock(&guard);
}
