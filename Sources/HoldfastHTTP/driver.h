/* Declarations that the driver's files share. Nothing here is exported. */
#ifndef HOLDFAST_DRIVER_H
#define HOLDFAST_DRIVER_H

#include "holdfast_http.h"
#include "holdfast_keys.h"

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#pragma GCC visibility push(hidden)

/* Integers of JSON, as in holdfast.h: up to 2^53, also as 12.0. */
static inline bool hfh_is_whole(double number) {
  const double largest = 9007199254740992.0;
  return number >= -largest && number <= largest && number == (double)(int64_t)number;
}

/* Whether it is an integer at all: then it is the range that is wrong, not the type. */
static inline bool hfh_is_integer(double number) {
  const double end = 9223372036854775808.0;
  return number >= -end && number < end && number == (double)(int64_t)number;
}

/* Drop what is left of a character of UTF-8 at the end of a text that was cut: jansson refuses the
 * whole text else. */
static inline void hfh_drop_half_character(char *text) {
  size_t length = strlen(text), first = length;
  while (first > 0 && ((unsigned char)text[first - 1] & 0xC0) == 0x80)
    first -= 1;
  if (first == 0 || (unsigned char)text[first - 1] < 0xC0)
    return;
  unsigned char lead = (unsigned char)text[first - 1];
  size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (length - (first - 1) < whole)
    text[first - 1] = 0;
}

/* By the monotonic clock; in worker.c. */
int64_t hfh_now_ms(void);

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
  bool thread;    /* false: the host calls holdfast_http_run() */
  long log_level; /* lines of the log up to this level go to stderr; -1: none */
} hfh_options;

/* What is wrong with options: the name of the one that is (empty: with all of them), the code of an
 * error reply, and a sentence. */
typedef struct {
  char name[64];
  const char *code;
  char message[256];
} hfh_wrong;

/* Read options from JSON text; NULL or "" means the defaults, and so does null as a value. Nothing
 * to free after an error. `wrong` is set with HOLDFAST_INVALID. */
int32_t hfh_options_read(const char *text, hfh_options *options, hfh_wrong *wrong);
void hfh_options_free(hfh_options *options);
/* The URL is one of Supabase's dashboard, as a browser shows it, in place of a project's. */
bool hfh_is_dashboard(const char *url, hfh_wrong *wrong);

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
  bool has_headers; /* the response has all of them */
} hfh_transfer;

/* Prepare a request of holdfast_next(); NULL when it cannot be sent. */
hfh_transfer *hfh_transfer_new(const json_t *request, const hfh_options *options);
void hfh_transfer_free(hfh_transfer *transfer);
/* The request of holdfast_complete() for a finished transfer or, with hfh_failure(), for a failed
 * one. The caller releases the text with hfh_secret_free(). NULL when there is no memory. */
char *hfh_transfer_completion(hfh_transfer *transfer, CURLcode result);
char *hfh_failure(json_int_t id, const char *error);
/* Zero and release a text. */
void hfh_secret_free(char *text);

/* ---- worker.c: what the thread and the host's loop have in common ---- */

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
  CURLM *multi;
  hfh_transfer *transfers; /* in flight */
  int wake;                /* a duplicate of the handle's descriptor for requests */
  hfh_loop loop;
  int32_t status;       /* of the last holdfast_next() */
  int64_t next_at;      /* when to ask again */
  bool completed;       /* a request was completed since the core was last asked */
  bool called;          /* the handle's descriptor was readable */
  int in_vain;          /* times in a row that the descriptor was, and brought nothing */
  pthread_mutex_t lock; /* protects the members below */
  bool stopping;
  bool running; /* a thread is in hfh_loop_run() or hfh_loop_stop() */
  bool ended;
} hfh_worker;

/* The thread: serve the handle until it is closed or hfh_worker_stop() is called. */
void hfh_worker_run(hfh_worker *worker);
void hfh_worker_stop(hfh_worker *worker);

/* The parts of a step. Only one thread at a time may be in them. */
/* Take the requests of the core, if there is a reason to ask, and begin them. */
void hfh_worker_take(hfh_worker *worker);
/* Complete the requests that have finished, and note that in `completed`. */
void hfh_worker_collect(hfh_worker *worker);
/* The time of the next step, as far as the core determines it. */
int64_t hfh_worker_due(const hfh_worker *worker);
/* The handle's descriptor calls for a step. */
bool hfh_worker_listens(const hfh_worker *worker);
/* The handle is closed or belongs to the parent process. */
bool hfh_worker_is_over(const hfh_worker *worker);
/* Complete what is in flight as cancelled. */
void hfh_worker_end(hfh_worker *worker);

/* ---- loop.c: without a thread, on the host's event loop ---- */

/* HOLDFAST_INVALID where the system has no epoll. */
int32_t hfh_loop_init(hfh_worker *worker);
void hfh_loop_free(hfh_worker *worker);
/* Make the descriptor readable, so that the host calls holdfast_http_run(). */
void hfh_loop_ring(hfh_worker *worker);
int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms);
void hfh_loop_stop(hfh_worker *worker);

/* ---- driver.c and call.c: what they need of each other ---- */

/* Write a line of the log, if a driver wants lines of this level. `context` is not used. */
void hfh_log_line(void *context, int32_t level, const char *line);
/* A handle is being opened (1), or no longer (-1), that wants lines up to this level: from its
 * first use of a key on. */
void hfh_log_opening(long level, int change);
/* Prepare libcurl and jansson, once per process. */
bool hfh_prepare(void);
/* The driver of a handle; NULL if it has none. */
holdfast_http *hfh_driver_of(const holdfast *self);
/* The first holdfast_next() of this handle begins with holdfast_session_resume(). And whether it
 * does: true once. */
void hfh_owe_resume(const holdfast *self);
bool hfh_take_resume(const holdfast *self);
/* Keep what could not be passed on for want of memory; takes over `text`. And what was kept: NULL,
 * or a text that the caller frees with holdfast_free(). */
void hfh_keep(const holdfast *self, char *text);
char *hfh_kept(const holdfast *self);
/* How long a request of the key store "host" waits for its answer; a test shortens it. */
extern int32_t hfh_key_wait_ms;
/* As holdfast_http_start(), for a handle whose key store is this mailbox or this keyring; NULL:
 * another. The driver takes over a share in it, also when it does not start, and closes the mailbox
 * when it is stopped. */
int32_t hfh_start(holdfast *self, const char *options, holdfast_mailbox *box,
                  holdfast_keyring *keyring, holdfast_http **driver);
/* As holdfast_mailbox_next() and holdfast_mailbox_complete(), for the handle's mailbox.
 * HOLDFAST_STATE: it has none. */
int32_t hfh_key_next(const holdfast *self, int32_t timeout_ms, holdfast_key_request *request);
int32_t hfh_key_complete(const holdfast *self, int64_t id, const char *result, const char *value,
                         const char **wrong);
/* Why the handle's keyring gave no key; false if it did, or if the handle has none. */
bool hfh_keyring_cause(const holdfast *self, char *cause, size_t capacity);
/* A call on this thread would wait for the thread itself (holdfast_mailbox_is_answered_here()). */
bool hfh_answers_keys(const holdfast *self);
/* The text is not from malloc(). */
bool hfh_is_constant(const char *text);

#pragma GCC visibility pop

#endif /* HOLDFAST_DRIVER_H */
