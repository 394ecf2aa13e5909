/* The queue of events from the worker to the host.
 *
 * The core holds durable events until they are acknowledged. The driver asks for those that it has
 * not got yet, and for none while WAITING_EVENTS wait for the host: so nothing has to be dropped.
 * The first poll asks for all, since an earlier driver may have got them, and so does the poll
 * after one with an event that could not be stored. An event that the last poll held too is not
 * new. A new sync_progress event replaces an older one.
 *
 * Lines of the log never hold up events: they are counted apart, and the oldest gives way. */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAITING_EVENTS = 400, WAITING_LINES = 200 };

#ifdef __APPLE__ /* without pthread_condattr_setclock */
static const clockid_t waiting_clock = CLOCK_REALTIME;
static void set_clock(pthread_condattr_t *attributes) { (void)attributes; }
#else
static const clockid_t waiting_clock = CLOCK_MONOTONIC;
static void set_clock(pthread_condattr_t *attributes) {
  pthread_condattr_setclock(attributes, waiting_clock);
}
#endif

bool hfh_events_init(hfh_events *events) {
  memset(events, 0, sizeof *events);
  events->missed = true;
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0)
    return false;
  set_clock(&attributes);
  bool made = pthread_cond_init(&events->changed, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  if (made && pthread_mutex_init(&events->lock, NULL) != 0) {
    pthread_cond_destroy(&events->changed);
    made = false;
  }
  return made;
}

static void remove_at(hfh_events *events, hfh_event **place) {
  hfh_event *event = *place;
  *place = event->next;
  *(event->line ? &events->lines : &events->count) -= 1;
  hfh_secret_free(event->text);
  free(event);
}

void hfh_events_free(hfh_events *events) {
  while (events->first != NULL)
    remove_at(events, &events->first);
  free(events->seen);
  pthread_mutex_destroy(&events->lock);
  pthread_cond_destroy(&events->changed);
}

/* Takes over `text`. */
static char *with_room(char *text) {
  size_t size = text == NULL ? 0 : strlen(text) + 1;
  char *roomy = text == NULL ? NULL : malloc(size + HFH_EVENT_ROOM);
  if (roomy != NULL)
    memcpy(roomy, text, size);
  hfh_secret_free(text);
  return roomy;
}

static bool append(hfh_events *events, const json_t *polled) {
  const char *type = json_string_value(json_object_get(polled, "type"));
  hfh_event *event = calloc(1, sizeof *event);
  if (event == NULL)
    return false;
  event->text = with_room(json_dumps(polled, JSON_COMPACT));
  event->seq = json_integer_value(json_object_get(polled, "seq"));
  event->progress = type != NULL && strcmp(type, "sync_progress") == 0;
  event->line = type != NULL && strcmp(type, "log") == 0;
  if (event->text == NULL) {
    free(event);
    return false;
  }
  hfh_event **place = &events->first;
  while (*place != NULL) {
    if (event->progress && (*place)->progress)
      remove_at(events, place);
    else
      place = &(*place)->next;
  }
  *place = event;
  *(event->line ? &events->lines : &events->count) += 1;
  return true;
}

static bool was_seen(const hfh_events *events, json_int_t seq) {
  for (size_t i = 0; i < events->seen_count; i++)
    if (events->seen[i] == seq)
      return true;
  return false;
}

/* An event that could not be stored is not marked as seen, and the next poll asks for it again. */
bool hfh_events_add(hfh_events *events, const json_t *polled) {
  size_t count = json_array_size(polled), kept = 0;
  json_int_t *seqs = malloc((count + 1) * sizeof *seqs);
  events->missed = seqs == NULL;
  if (seqs == NULL)
    return false;
  bool any = false;
  pthread_mutex_lock(&events->lock);
  for (size_t i = 0; i < count; i++) {
    const json_t *event = json_array_get(polled, i);
    json_int_t seq = json_integer_value(json_object_get(event, "seq"));
    bool handled = was_seen(events, seq);
    if (!handled && append(events, event))
      handled = any = true;
    if (handled)
      seqs[kept++] = seq;
    else
      events->missed = true;
  }
  free(events->seen);
  events->seen = seqs;
  events->seen_count = kept;
  if (any)
    pthread_cond_broadcast(&events->changed);
  pthread_mutex_unlock(&events->lock);
  return any;
}

void hfh_events_log(hfh_events *events, int32_t level, const char *line) {
  json_t *event =
      json_pack("{s:i,s:s,s:i,s:s}", "seq", 0, "type", "log", "level", level, "line", line);
  if (event == NULL)
    return;
  pthread_mutex_lock(&events->lock);
  if (events->lines >= WAITING_LINES) {
    hfh_event **place = &events->first;
    while (!(*place)->line)
      place = &(*place)->next;
    remove_at(events, place);
  }
  if (!events->ended && append(events, event))
    pthread_cond_broadcast(&events->changed);
  pthread_mutex_unlock(&events->lock);
  json_decref(event);
}

json_int_t hfh_events_shown(hfh_events *events) {
  pthread_mutex_lock(&events->lock);
  json_int_t seq = events->shown;
  events->shown = 0;
  pthread_mutex_unlock(&events->lock);
  return seq;
}

static size_t waiting(hfh_events *events) {
  pthread_mutex_lock(&events->lock);
  size_t count = events->count;
  pthread_mutex_unlock(&events->lock);
  return count;
}

bool hfh_events_are_full(hfh_events *events) { return waiting(events) >= WAITING_EVENTS; }

bool hfh_events_have_room(hfh_events *events) { return waiting(events) < WAITING_EVENTS / 2; }

void hfh_events_end(hfh_events *events, bool drop) {
  pthread_mutex_lock(&events->lock);
  events->ended = true;
  events->dropped = events->dropped || drop;
  pthread_cond_broadcast(&events->changed);
  pthread_mutex_unlock(&events->lock);
}

int64_t hfh_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct timespec after(int32_t ms) {
  struct timespec moment;
  clock_gettime(waiting_clock, &moment);
  moment.tv_sec += ms / 1000;
  moment.tv_nsec += (ms % 1000) * 1000000L;
  if (moment.tv_nsec >= 1000000000L) {
    moment.tv_sec += 1;
    moment.tv_nsec -= 1000000000L;
  }
  return moment;
}

int32_t hfh_events_take(hfh_events *events, int32_t timeout_ms, char **event) {
  struct timespec limit = after(timeout_ms > 0 ? timeout_ms : 0);
  int32_t status = HOLDFAST_NOT_FOUND;
  bool in_time = timeout_ms != 0;
  pthread_mutex_lock(&events->lock);
  while (events->first == NULL && !events->ended && in_time) {
    if (timeout_ms < 0)
      pthread_cond_wait(&events->changed, &events->lock);
    else
      in_time = pthread_cond_timedwait(&events->changed, &events->lock, &limit) != ETIMEDOUT;
  }
  if (events->dropped || (events->ended && events->first == NULL)) {
    status = HOLDFAST_CLOSED;
  } else if (events->first != NULL) {
    *event = events->first->text;
    events->first->text = NULL;
    if (events->first->seq > events->shown)
      events->shown = events->first->seq;
    remove_at(events, &events->first);
    status = HOLDFAST_OK;
  }
  pthread_mutex_unlock(&events->lock);
  return status;
}
