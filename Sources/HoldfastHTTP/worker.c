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

#include <stdlib.h>
#include <time.h>

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

/* ---- calls of other threads ---- */

static void wake(hfh_worker *worker) {
  if (worker->options.thread)
    curl_multi_wakeup(worker->multi);
  else
    hfh_loop_ring(worker);
}

void hfh_worker_stop(hfh_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  worker->stopping = true;
  pthread_mutex_unlock(&worker->lock);
  wake(worker);
}

static bool is_stopping(hfh_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  bool stopping = worker->stopping;
  pthread_mutex_unlock(&worker->lock);
  return stopping;
}

/* ---- completing ---- */

/* Passes an answer to the core, which keeps it, and releases its text. One that it rejects has
 * failed, so that the core does not wait for it. */
static void complete(hfh_worker *worker, json_int_t id, char *completion) {
  int32_t status = HOLDFAST_INVALID;
  if (completion != NULL)
    status = holdfast_complete(worker->self, completion, NULL);
  hfh_secret_free(completion);
  if (status == HOLDFAST_INVALID) {
    char *failure = hfh_failure(id, "refused");
    if (failure != NULL)
      holdfast_complete(worker->self, failure, NULL);
    hfh_secret_free(failure);
  }
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
    char *completion = hfh_transfer_completion(transfer, result);
    complete(worker, transfer->id, completion);
    hfh_transfer_free(unlink_transfer(worker, transfer));
    worker->completed = true;
  }
}

static void cancel_all(hfh_worker *worker, bool tell) {
  while (worker->transfers != NULL) {
    hfh_transfer *transfer = unlink_transfer(worker, worker->transfers);
    if (tell)
      complete(worker, transfer->id, hfh_failure(transfer->id, "cancelled"));
    hfh_transfer_free(transfer);
  }
}

/* ---- taking requests ---- */

static void begin(hfh_worker *worker, const json_t *request) {
  hfh_transfer *transfer = hfh_transfer_new(request, &worker->options);
  if (transfer != NULL && curl_multi_add_handle(worker->multi, transfer->curl) == CURLM_OK) {
    transfer->next = worker->transfers;
    worker->transfers = transfer;
    return;
  }
  if (transfer != NULL)
    hfh_transfer_free(transfer);
  json_int_t id = json_integer_value(json_object_get(request, "id"));
  complete(worker, id, hfh_failure(id, "refused"));
}

/* Takes one request and begins it. False: there is none now, and `wake_ms` is when to ask again. */
static bool take_one(hfh_worker *worker, int64_t *wake_ms) {
  *wake_ms = FAILURE_PAUSE_MS;
  char *reply = NULL;
  worker->status = holdfast_next(worker->self, HOLDFAST_NEXT_REQUESTS, 0, &reply);
  json_t *root = worker->status == HOLDFAST_OK ? json_loads(reply, 0, NULL) : NULL;
  holdfast_free(reply);
  const json_t *request = json_object_get(root, "request");
  if (request != NULL) {
    begin(worker, request);
  } else if (root != NULL) {
    const json_t *wake = json_object_get(root, "wake_in_ms");
    *wake_ms = json_is_integer(wake) ? json_integer_value(wake) : LONGEST_WAIT_MS;
  }
  bool taken = request != NULL;
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
  while (!is_stopping(worker) && take_one(worker, &pause))
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

bool hfh_worker_is_over(const hfh_worker *worker) {
  return worker->status == HOLDFAST_CLOSED || worker->status == HOLDFAST_FORKED;
}

void hfh_worker_end(hfh_worker *worker) { cancel_all(worker, !hfh_worker_is_over(worker)); }

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
  while (!hfh_worker_is_over(worker) && !is_stopping(worker)) {
    hfh_worker_take(worker);
    int running = 0;
    curl_multi_perform(worker->multi, &running);
    hfh_worker_collect(worker);
    if (!worker->completed)
      wait_for_anything(worker);
  }
  hfh_worker_end(worker);
}
