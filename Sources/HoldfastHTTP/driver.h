/* Declarations that the driver's files share. Nothing here is exported. */
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
  char *pinned_public_key; /* "sha256//..." joined by ';' */
  char *proxy;             /* NULL: from the environment */
  char *user_agent;
  bool thread; /* false: the host calls holdfast_http_run() */
} hfh_options;

/* Read options from JSON text; NULL or "" means the defaults. Nothing to free after an error. */
int32_t hfh_options_read(const char *text, hfh_options *options);
void hfh_options_free(hfh_options *options);

/* ---- events.c: the queue of events from the worker to the host ---- */

typedef struct hfh_event {
  struct hfh_event *next;
  char *text;
  bool progress; /* a sync_progress event, which the next one replaces */
} hfh_event;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  hfh_event *first;
  size_t count;
  bool ended;       /* no more events will come */
  bool dropped;     /* the driver was stopped: discard the events that are left */
  bool missed;      /* the next poll must ask for all events again; only the worker uses it */
  json_int_t *seen; /* the seqs of the last poll, to recognise events that come again */
  size_t seen_count;
} hfh_events;

bool hfh_events_init(hfh_events *events);
void hfh_events_free(hfh_events *events);
/* Add the new events of a poll; true if there was any. */
bool hfh_events_add(hfh_events *events, const json_t *polled);
/* So many events wait for the host that the worker takes no more; so few that it takes more. */
bool hfh_events_are_full(hfh_events *events);
bool hfh_events_have_room(hfh_events *events);
/* End the queue. With `drop`, discard the events that were not taken yet. */
void hfh_events_end(hfh_events *events, bool drop);
/* Take the next event, waiting for it as holdfast_http_next() describes. */
int32_t hfh_events_take(hfh_events *events, int32_t timeout_ms, char **event);

/* ---- transfer.c: one request in flight ---- */

typedef struct hfh_transfer {
  struct hfh_transfer *next;
  CURL *curl;
  json_int_t id;
  struct curl_slist *headers;
  char *body;
  size_t body_length;
  size_t body_sent;
  char *response;
  size_t response_length;
  size_t response_capacity;
  size_t response_limit;
} hfh_transfer;

/* Prepare a request of holdfast_poll(); NULL when it cannot be sent. */
hfh_transfer *hfh_transfer_new(const json_t *request, const hfh_options *options);
void hfh_transfer_free(hfh_transfer *transfer);
/* The request of holdfast_complete() for a finished transfer or, with hfh_failure(), for a failed
 * one. The caller releases the text with hfh_secret_free(). NULL when there is no memory. */
char *hfh_transfer_completion(hfh_transfer *transfer, CURLcode result);
char *hfh_failure(json_int_t id, const char *error);
/* Zero and release a text. */
void hfh_secret_free(char *text);

/* ---- worker.c: what the thread and the host's loop have in common ---- */

/* A completion that the core could not take. */
typedef struct hfh_answer {
  struct hfh_answer *next;
  json_int_t id;
  char *text;
  int tries;
} hfh_answer;

/* The descriptors of a driver without a thread; all -1 with one. */
typedef struct {
  int set;         /* an epoll of all the others: the one that the host watches */
  int bell;        /* an eventfd: another thread wants a call of holdfast_http_run() */
  int timer;       /* a timerfd: readable at the time of the next step */
  int64_t curl_at; /* when libcurl wants to be called */
  bool listening;  /* the handle's descriptor is in the set */
} hfh_loop;

typedef struct {
  holdfast *self;
  hfh_options options;
  hfh_events events;
  CURLM *multi;
  hfh_transfer *transfers; /* in flight */
  hfh_answer *answers;     /* to be passed to the core at `answers_at` */
  int64_t answers_at;
  int wake; /* a duplicate of the handle's descriptor */
  hfh_loop loop;
  int32_t status;       /* of the last poll */
  int64_t poll_at;      /* when to poll again */
  bool completed;       /* a request was completed since the last poll */
  bool called;          /* the handle's descriptor was readable */
  int in_vain;          /* polls in a row for the descriptor that brought nothing new */
  bool paused;          /* the last poll took no events, because the host is slow */
  pthread_mutex_t lock; /* protects the members below */
  bool stopping;
  bool running; /* a thread is in hfh_loop_run() or hfh_loop_stop() */
  bool ended;
  int64_t ack; /* the next acknowledgement to pass on; -1: none */
} hfh_worker;

/* The thread: serve the handle until it is closed or hfh_worker_stop() is called. */
void hfh_worker_run(hfh_worker *worker);
void hfh_worker_stop(hfh_worker *worker);
void hfh_worker_ack(hfh_worker *worker, int64_t seq);
/* The host has taken an event. */
void hfh_worker_resume(hfh_worker *worker);

/* The parts of a step. Only one thread at a time may be in them. */
int64_t hfh_now_ms(void);
/* Poll the core, if there is a reason to. */
void hfh_worker_poll(hfh_worker *worker);
/* Complete the requests that have finished, and note that in `completed`. */
void hfh_worker_collect(hfh_worker *worker);
/* The time of the next step, as far as the core determines it. */
int64_t hfh_worker_due(const hfh_worker *worker);
/* The handle's descriptor calls for a poll. */
bool hfh_worker_listens(const hfh_worker *worker);
/* The handle is closed or belongs to the parent process. */
bool hfh_worker_is_over(const hfh_worker *worker);
/* Complete what is in flight as cancelled, and end the events. */
void hfh_worker_end(hfh_worker *worker);

/* ---- loop.c: without a thread, on the host's event loop ---- */

/* HOLDFAST_INVALID where the system has no epoll. */
int32_t hfh_loop_init(hfh_worker *worker);
void hfh_loop_free(hfh_worker *worker);
/* Make the descriptor readable, so that the host calls holdfast_http_run(). */
void hfh_loop_ring(hfh_worker *worker);
int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms);
void hfh_loop_stop(hfh_worker *worker);

#pragma GCC visibility pop

#endif /* HOLDFAST_DRIVER_H */
