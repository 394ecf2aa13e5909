/* What the driver's files share. Nothing here is exported. */
#ifndef HOLDFAST_DRIVER_H
#define HOLDFAST_DRIVER_H

#include "holdfast_http.h"

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* ---- options.c ---- */

typedef struct {
  long connections;
  long connect_timeout_ms;
  size_t body_limit;
  char *ca_file;
  char *ca_path;
  char *proxy; /* NULL: what the environment says */
  char *user_agent;
} hfh_options;

/* Fill from JSON text; NULL or "" means the defaults. On any error nothing is left to free. */
int32_t hfh_options_read(const char *text, hfh_options *options);
void hfh_options_free(hfh_options *options);

/* ---- events.c: events on their way from the worker to the host ---- */

typedef struct hfh_event {
  struct hfh_event *next;
  char *text;
  bool progress; /* a sync_progress: the next one replaces it */
} hfh_event;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  hfh_event *first;
  size_t count;
  bool ended;       /* nothing more will come */
  bool dropped;     /* stopped: what is there is not handed out either */
  json_int_t *seen; /* the seqs of the poll before, to know an unacknowledged event again */
  size_t seen_count;
} hfh_events;

bool hfh_events_init(hfh_events *events);
void hfh_events_free(hfh_events *events);
/* Take the new ones among what a poll returned; true if there was any. */
bool hfh_events_add(hfh_events *events, const json_t *polled);
/* No more will come. With `drop`, those not taken yet are not handed out either. */
void hfh_events_end(hfh_events *events, bool drop);
int32_t hfh_events_take(hfh_events *events, int32_t timeout_ms, char **event);

/* ---- transfer.c: one request under way ---- */

typedef struct hfh_transfer {
  struct hfh_transfer *next;
  CURL *curl;
  json_int_t id;
  struct curl_slist *headers;
  char *body;
  size_t body_length;
  size_t body_sent;
  char *answer;
  size_t answer_length;
  size_t answer_capacity;
  size_t answer_limit;
} hfh_transfer;

/* From a request of holdfast_poll(); NULL when it cannot be sent. */
hfh_transfer *hfh_transfer_new(const json_t *request, const hfh_options *options);
void hfh_transfer_free(hfh_transfer *transfer);
/* What holdfast_complete() is told, as text to be released with hfh_secret_free(); NULL: no memory.
 */
char *hfh_transfer_answer(hfh_transfer *transfer, CURLcode result);
char *hfh_failure(json_int_t id, const char *error);
/* Zero and release. */
void hfh_secret_free(char *text);

/* ---- worker.c ---- */

typedef struct {
  holdfast *self;
  hfh_options options;
  hfh_events events;
  CURLM *multi;
  hfh_transfer *transfers; /* under way */
  int wake;                /* our own duplicate of the handle's descriptor */
  pthread_mutex_t lock;    /* of the two below */
  bool stopping;
  int64_t ack; /* -1: none to hand on */
} hfh_worker;

/* Serve the handle until it is closed or hfh_worker_stop() was called. */
void hfh_worker_run(hfh_worker *worker);
void hfh_worker_stop(hfh_worker *worker);
void hfh_worker_ack(hfh_worker *worker, int64_t seq);

#pragma GCC visibility pop

#endif /* HOLDFAST_DRIVER_H */
