/* What the driver does for its handle, on a thread of its own or in holdfast_http_run() (loop.c).
 * It repeats until the driver is stopped or the handle is closed:
 *
 * 1. Take the core's requests, if one was completed, the handle's descriptor is readable, or the
 *    time of the last `wake_in_ms` has come, and begin them.
 * 2. Let libcurl work, and complete the requests that have finished.
 * 3. Wait for the network, the descriptor, another thread, or that time.
 *
 * The descriptor can stay readable although the core has no request, as where its folder was
 * removed. After STEPS_IN_VAIN the worker ignores it for IDLE_PAUSE_MS, so that it does not spin.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
  LONGEST_WAIT_MS = 30000, /* the longest time after which the core is asked again */
  FAILURE_PAUSE_MS = 1000, /* after a failure: disk full, key store not available */
  STEPS_IN_VAIN = 3,       /* times that the descriptor brought nothing, until it is ignored */
  IDLE_PAUSE_MS = 200,     /* how long the descriptor is ignored */
};

int64_t hfh_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- completing ---- */

/* Passes an answer to the core, which keeps it, and releases its text. One that it rejects has
 * failed, so that the core does not wait for it. */
static void complete(hfh_worker *worker, const json_t *request, char *completion) {
  int32_t status = HOLDFAST_INVALID;
  if (completion != NULL)
    status = holdfast_complete(worker->self, completion, NULL);
  hfh_secret_free(completion);
  char *failure = status == HOLDFAST_INVALID ? hfh_failure(request, "refused") : NULL;
  if (failure != NULL)
    holdfast_complete(worker->self, failure, NULL);
  hfh_secret_free(failure);
}

static hfh_transfer *unlink_transfer(hfh_worker *worker, hfh_transfer *transfer) {
  hfh_transfer **place = &worker->transfers;
  while (*place != transfer)
    place = &(*place)->next;
  *place = transfer->next;
  curl_multi_remove_handle(worker->multi, transfer->curl);
  return transfer;
}

void hfh_worker_collect(hfh_worker *worker) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(worker->multi, &left)) != NULL) {
    if (message->msg != CURLMSG_DONE)
      continue;
    CURLcode result = message->data.result; /* copied: removing the handle frees the message */
    hfh_transfer *transfer = NULL;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
    complete(worker, transfer->request, hfh_transfer_completion(transfer, result));
    hfh_transfer_free(unlink_transfer(worker, transfer));
    worker->completed = true;
  }
}

/* ---- taking requests ---- */

static void begin(hfh_worker *worker, json_t *request) {
  hfh_transfer *transfer = hfh_transfer_new(request, &worker->options);
  if (transfer != NULL && curl_multi_add_handle(worker->multi, transfer->curl) == CURLM_OK) {
    transfer->next = worker->transfers;
    worker->transfers = transfer;
    return;
  }
  hfh_transfer_free(transfer);
  complete(worker, request, hfh_failure(request, "refused"));
}

/* Takes one request and begins it. False: there is none now, and `wake_ms` is when to ask again. */
static bool take_one(hfh_worker *worker, int64_t *wake_ms) {
  *wake_ms = FAILURE_PAUSE_MS;
  char *reply = NULL;
  worker->status = holdfast_next(worker->self, HOLDFAST_NEXT_REQUESTS, 0, &reply);
  json_t *root = worker->status == HOLDFAST_OK ? json_loads(reply, 0, NULL) : NULL;
  holdfast_free(reply);
  json_t *request = json_object_get(root, "request");
  const json_t *wake = json_object_get(root, "wake_in_ms");
  if (root != NULL)
    *wake_ms = json_is_integer(wake) ? json_integer_value(wake) : LONGEST_WAIT_MS;
  bool taken = request != NULL;
  if (taken)
    begin(worker, request);
  json_decref(root);
  return taken;
}

/* ---- a step ---- */

void hfh_worker_take(hfh_worker *worker) {
  bool called = worker->called, taken = false;
  if (!worker->completed && !called && hfh_now_ms() < worker->next_at)
    return;
  worker->completed = worker->called = false;
  int64_t pause = 0;
  while (!worker->stopping && take_one(worker, &pause))
    taken = true;
  worker->in_vain = called && !taken ? worker->in_vain + 1 : 0;
  if (worker->in_vain >= STEPS_IN_VAIN && pause > IDLE_PAUSE_MS)
    pause = IDLE_PAUSE_MS;
  if (pause > LONGEST_WAIT_MS)
    pause = LONGEST_WAIT_MS;
  worker->next_at = hfh_now_ms() + (pause < 0 ? 0 : pause);
}

int64_t hfh_worker_due(const hfh_worker *worker) { return worker->completed ? 0 : worker->next_at; }

bool hfh_worker_listens(const hfh_worker *worker) {
  return worker->status == HOLDFAST_OK && worker->in_vain < STEPS_IN_VAIN;
}

static bool is_closed(const hfh_worker *worker) {
  return worker->status == HOLDFAST_CLOSED || worker->status == HOLDFAST_FORKED;
}

bool hfh_worker_is_over(const hfh_worker *worker) { return worker->stopping || is_closed(worker); }

void hfh_worker_end(hfh_worker *worker) {
  while (worker->transfers != NULL) {
    hfh_transfer *transfer = unlink_transfer(worker, worker->transfers);
    if (!is_closed(worker))
      complete(worker, transfer->request, hfh_failure(transfer->request, "cancelled"));
    hfh_transfer_free(transfer);
  }
}

/* ---- the thread ---- */

/* Waits for the network, the handle's descriptor, another thread or the time. Notes whether the
 * descriptor is readable. */
static void wait_for_anything(hfh_worker *worker) {
  int64_t left = hfh_worker_due(worker) - hfh_now_ms();
  if (left < 0)
    left = 0;
  struct curl_waitfd handle = {.fd = worker->wake, .events = CURL_WAIT_POLLIN};
  curl_multi_poll(worker->multi, &handle, hfh_worker_listens(worker) ? 1 : 0, (int)left, NULL);
  worker->called = handle.revents != 0;
}

void hfh_worker_run(hfh_worker *worker) {
  while (!hfh_worker_is_over(worker)) {
    hfh_worker_take(worker);
    int running = 0;
    curl_multi_perform(worker->multi, &running);
    hfh_worker_collect(worker);
    if (!worker->completed)
      wait_for_anything(worker);
  }
  hfh_worker_end(worker);
}

void hfh_worker_stop(hfh_worker *worker) {
  worker->stopping = true;
  curl_multi_wakeup(worker->multi);
}

/* ---- life ---- */

int32_t hfh_worker_init(hfh_worker *worker, holdfast *self) {
  worker->self = self;
  /* The original is closed with the handle, and its number may then be used for another file. */
  int descriptor = holdfast_wake_fd(self, HOLDFAST_NEXT_REQUESTS);
  worker->wake = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (worker->wake < 0) {
    int32_t status = holdfast_session_status(self, NULL, NULL);
    return status == HOLDFAST_CLOSED || status == HOLDFAST_FORKED ? status : HOLDFAST_NOMEM;
  }
  worker->multi = curl_multi_init();
  if (worker->multi == NULL)
    return HOLDFAST_NOMEM;
  curl_multi_setopt(worker->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                    (long)worker->options.connections);
  return HOLDFAST_OK;
}

bool hfh_worker_is_inside(const hfh_worker *worker) {
  return holdfast_wake_fd(worker->self, HOLDFAST_NEXT_REQUESTS) < 0 &&
         holdfast_session_status(worker->self, NULL, NULL) == HOLDFAST_BUSY;
}

void hfh_worker_free(hfh_worker *worker) {
  if (worker->multi != NULL)
    curl_multi_cleanup(worker->multi);
  const int descriptors[] = {worker->wake, worker->loop.timer, worker->loop.set};
  for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++)
    if (descriptors[i] >= 0)
      close(descriptors[i]);
  json_decref(worker->options.given);
}
