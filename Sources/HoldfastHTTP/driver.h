/* Declarations that the driver's files share: a file calls only what stands above its own part.
 * call.c stands above all. Nothing here is exported. */
#ifndef HOLDFAST_DRIVER_H
#define HOLDFAST_DRIVER_H

#include "holdfast_http.h"
#include "holdfast_keys.h"

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#pragma GCC visibility push(hidden)

/* ---- request.c: reading requests, and the replies that refuse them ---- */

void hfh_zero(void *bytes, size_t count);
/* Zero and release a text. NULL is ignored. */
void hfh_secret_free(char *text);

/* Replies that need no memory: nothing was done, or all. holdfast_http_free() leaves them alone. */
extern char hfh_no_memory[], hfh_reply_lost[];

static const char hfh_wrong_type[] = "request.wrong_type";
static const char hfh_wrong_value[] = "request.invalid_value";

/* A reply of this text. */
char *hfh_reply(const char *text);
/* An error reply for the field `path`/`name`, for `path` itself, or for no field. */
__attribute__((format(printf, 4, 5))) char *hfh_error(const char *code, const char *path,
                                                      const char *name, const char *format, ...);
/* The error reply of a driver that did not start, or of a handle that has none. */
char *hfh_failed(int32_t status);

/* A field of a request, and the place of its value: a number, a text or a flag. A place keeps what
 * it holds while the field is absent. */
typedef struct {
  const char *name;
  int64_t *number, least, most;
  const char **text; /* lives as long as the object */
  bool *flag;
  bool required;
} hfh_field;

#define HFH_LARGEST 9007199254740992 /* of the integers of JSON, as in holdfast.h: 2^53 */

/* Read an object by its fields; the list ends with one without a name. Returns the error reply of
 * the first field that is wrong, or NULL. `object` may be NULL: all fields are absent. */
char *hfh_read(const json_t *object, const char *path, const hfh_field *known);
/* Parse a request; NULL and "" are {}. The caller frees `root`, also after an error. */
char *hfh_parse(const char *request, json_t **root);

/* ---- options.c ---- */

typedef struct {
  json_t *given; /* has the texts */
  int64_t connections, connect_timeout_ms, body_limit;
  int64_t log_level; /* lines of the log up to this level go to stderr; -1: none */
  const char *ca_file, *ca_path;
  const char *pinned_public_key; /* "sha256//..." joined by ';' */
  const char *proxy;             /* NULL: from the environment */
  const char *user_agent;        /* NULL: holdfast/VERSION */
  bool thread;                   /* false: the host calls holdfast_http_run() */
} hfh_options;

/* Returns the error reply of a wrong option, or NULL. `given` is kept in both cases. */
char *hfh_options_read(json_t *given, hfh_options *options);

/* ---- transfer.c: one request in flight ---- */

typedef struct hfh_transfer {
  struct hfh_transfer *next;
  CURL *curl;
  json_t *request;
  struct curl_slist *headers;
  size_t sent; /* bytes of the body */
  char *response;
  size_t length, capacity, limit; /* of the response */
  bool has_headers;               /* the response has all of them */
} hfh_transfer;

/* Prepare a request of holdfast_next(); NULL when it cannot be sent. */
hfh_transfer *hfh_transfer_new(json_t *request, const hfh_options *options);
void hfh_transfer_free(hfh_transfer *transfer);
/* The request of holdfast_complete() for a transfer that has finished, or for a request that has
 * failed. The caller releases it with hfh_secret_free(). NULL when there is no memory. */
char *hfh_transfer_completion(const hfh_transfer *transfer, CURLcode result);
char *hfh_failure(const json_t *request, const char *error);

/* ---- worker.c: what the driver does for its handle, and its thread ---- */

/* Of a driver without a thread (loop.c); the descriptors are -1 with one. */
typedef struct {
  int set;             /* an epoll of all the others: the one that the host watches */
  int timer;           /* a timerfd: readable at the time of the next step */
  int64_t curl_at;     /* when libcurl wants to be called */
  bool listening;      /* the handle's descriptor is in the set */
  atomic_bool running; /* a thread is in hfh_loop_run() or hfh_loop_stop(); it alone may use: */
  bool ended;
} hfh_loop;

typedef struct {
  holdfast *self;
  hfh_options options;
  CURLM *multi;
  hfh_transfer *transfers; /* in flight */
  int wake;                /* a duplicate of the handle's descriptor for requests */
  int32_t status;          /* of the last holdfast_next() */
  int64_t next_at;         /* when to ask again */
  bool completed;          /* a request was completed since the core was last asked */
  bool called;             /* the handle's descriptor was readable */
  int in_vain;             /* times in a row that the descriptor was, and brought nothing */
  atomic_bool stopping;
  hfh_loop loop;
} hfh_worker;

/* By the monotonic clock. */
int64_t hfh_now_ms(void);
/* HOLDFAST_CLOSED and HOLDFAST_FORKED: of the handle. hfh_worker_free() is due in all cases. */
int32_t hfh_worker_init(hfh_worker *worker, holdfast *self);
void hfh_worker_free(hfh_worker *worker);
/* This thread is in a function that a call on the handle has called, of a key store or the log: the
 * core takes no other call here, and every other thread's waits for that one. */
bool hfh_worker_is_inside(const hfh_worker *worker);
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
/* It was stopped, or the handle is closed or belongs to the parent process. */
bool hfh_worker_is_over(const hfh_worker *worker);
/* Complete what is in flight as cancelled. */
void hfh_worker_end(hfh_worker *worker);

/* ---- loop.c: without a thread, on the host's event loop ---- */

/* HOLDFAST_INVALID where the system has no epoll. */
int32_t hfh_loop_init(hfh_worker *worker);
int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms);
void hfh_loop_stop(hfh_worker *worker);

/* ---- driver.c: the list of drivers, and the log ---- */

typedef struct hfh_driver {
  struct hfh_driver *next;
  uintptr_t token; /* 0 until it has started */
  hfh_worker worker;
  pthread_t thread;
  int users;   /* the list, its maker, its thread, and calls; protected by the list's lock */
  bool forked; /* the driver belongs to the parent process */
  atomic_bool has_ended; /* the thread */
  /* Of a handle that holdfast_http_call() has opened: */
  holdfast_mailbox *box;     /* NULL: the key store is not "host" */
  holdfast_keyring *keyring; /* NULL: it is not "secret_service" */
  atomic_bool resumes;       /* the next holdfast_next() begins with holdfast_session_resume() */
  _Atomic(char *) kept;      /* a reply of holdfast_next() that there was no memory to pass on */
} hfh_driver;

/* Write a line of the library's log, if a driver wants lines of this level. */
void hfh_log_line(void *context, int32_t level, const char *line);
/* Let the log follow the options of the drivers that there are. */
void hfh_follow_log(void);
/* Make a driver with these options. Returns the error reply of wrong ones, or NULL; then the maker
 * must call hfh_driver_leave() in the end. */
char *hfh_driver_new(json_t *options, hfh_driver **made);
/* Let it serve this handle. It is to be stopped also after a failure. */
int32_t hfh_driver_start(hfh_driver *driver, holdfast *self);
/* End a driver, started or not. */
void hfh_driver_stop(hfh_driver *driver);
/* The driver of a token or, without one, of a handle. After HOLDFAST_OK the caller must call
 * hfh_driver_leave(), until when the driver is there. */
int32_t hfh_driver_enter(const holdfast_http *token, const holdfast *self, hfh_driver **found);
void hfh_driver_leave(hfh_driver *driver);
/* Prepare libcurl and jansson, once per process. False: libcurl would not start. */
bool hfh_prepare(void);

/* ---- stores.c: key stores by name, from holdfast_keys.h ---- */

/* Take a key store of the driver out of a configuration, which may be NULL; any other is the
 * core's. Returns the error reply of a wrong one, or NULL. */
char *hfh_store_take(json_t *config, hfh_driver *driver);
/* Make its functions, for holdfast_open(). False: the key store is the core's. */
bool hfh_store_make(const hfh_driver *driver, holdfast_keystore *store);
/* The operations key_next and key_complete. `status`: of the search for the driver. */
char *hfh_store_next(hfh_driver *driver, int32_t status, const char *request);
char *hfh_store_complete(hfh_driver *driver, int32_t status, const char *request);
/* A call that needs a key would wait for this thread, which answers the requests. */
bool hfh_store_waits_for_itself(const hfh_driver *driver);
/* The reply of a call that got no key, with the cause that the keyring gave. Takes it over. */
char *hfh_store_explained(const hfh_driver *driver, char *reply);
/* Read a request that may have the field timeout_ms: in milliseconds, -1 for no limit. */
char *hfh_read_timeout(const char *request, int32_t *timeout_ms);

#pragma GCC visibility pop

#endif /* HOLDFAST_DRIVER_H */
