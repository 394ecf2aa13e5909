/* What the driver does for its handle, on a thread of its own or in holdfast_http_run() (loop.c).
 * It repeats until the driver is stopped or the handle is closed:
 *
 * 1. Poll the core if a request was completed, the handle's descriptor is readable, the time of the
 *    last `wake_in_ms` has come, an acknowledgement waits, or a slow host has taken events again.
 *    Start the new requests, queue the new events.
 * 2. Let libcurl work, and complete the requests that have finished.
 * 3. Wait for the network, the descriptor, another thread, or the time of the next poll.
 *
 * The descriptor can stay readable although a poll brings nothing new. After POLLS_IN_VAIN such
 * polls the worker ignores it for IDLE_PAUSE_MS, so that it does not spin.
 *
 * While another process writes, the core can be too busy to take a completion. It is kept and
 * passed again ANSWER_PAUSE_MS later, since each try can wait in the call. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum {
  LONGEST_WAIT_MS = 30000, /* the longest time between two polls */
  FAILURE_PAUSE_MS = 1000, /* after a failed poll: disk full, key store not available */
  POLLS_IN_VAIN = 3,       /* polls for the descriptor without news, until it is ignored */
  IDLE_PAUSE_MS = 200,     /* how long the descriptor is ignored */
  COMPLETE_TRIES = 60,     /* attempts to pass a completion on that the core cannot take now */
  BUSY_TRIES = 20,         /* as many tries as one counts that waited up to 5 s in the call */
  ANSWER_PAUSE_MS = 1000,  /* between two attempts */
};

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

void hfh_worker_ack(hfh_worker *worker, int64_t seq) {
  pthread_mutex_lock(&worker->lock);
  if (seq > worker->ack)
    worker->ack = seq;
  pthread_mutex_unlock(&worker->lock);
  wake(worker);
}

void hfh_worker_resume(hfh_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  bool paused = worker->paused;
  pthread_mutex_unlock(&worker->lock);
  if (paused && hfh_events_have_room(&worker->events))
    wake(worker);
}

static bool must_resume(hfh_worker *worker) {
  return worker->paused && hfh_events_have_room(&worker->events);
}

static void set_paused(hfh_worker *worker, bool paused) {
  pthread_mutex_lock(&worker->lock);
  worker->paused = paused;
  pthread_mutex_unlock(&worker->lock);
}

static bool is_stopping(hfh_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  bool stopping = worker->stopping;
  pthread_mutex_unlock(&worker->lock);
  return stopping;
}

static int64_t pending_ack(hfh_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  int64_t ack = worker->ack;
  pthread_mutex_unlock(&worker->lock);
  return ack;
}

static void ack_delivered(hfh_worker *worker, int64_t seq) {
  pthread_mutex_lock(&worker->lock);
  if (worker->ack == seq)
    worker->ack = -1;
  pthread_mutex_unlock(&worker->lock);
}

/* ---- completing ---- */

/* The core may take the same answer later: another process writes, the disk is full, or the disk or
 * the key store fails for a moment. */
static bool is_for_now(int32_t status) {
  return status == HOLDFAST_BUSY || status == HOLDFAST_FULL || status == HOLDFAST_STORAGE ||
         status == HOLDFAST_KEYSTORE || status == HOLDFAST_NOMEM;
}

/* Keep an answer that the core could not take. False without memory. */
static bool keep(hfh_worker *worker, hfh_answer given) {
  hfh_answer *answer = malloc(sizeof *answer);
  if (answer == NULL)
    return false;
  *answer = given;
  answer->next = NULL;
  hfh_answer **place = &worker->answers;
  while (*place != NULL)
    place = &(*place)->next;
  *place = answer;
  worker->answers_at = hfh_now_ms() + ANSWER_PAUSE_MS;
  return true;
}

/* Passes an answer to the core, and takes over its text. If the core rejects it, the request is
 * completed as failed, so that the core does not wait for it. */
static void answer(hfh_worker *worker, hfh_answer given) {
  int32_t status = HOLDFAST_INVALID;
  if (given.text != NULL)
    status = holdfast_complete(worker->self, given.text, NULL);
  given.tries += status == HOLDFAST_BUSY ? BUSY_TRIES : 1;
  if (is_for_now(status) && given.tries < COMPLETE_TRIES && keep(worker, given))
    return;
  hfh_secret_free(given.text);
  if (status == HOLDFAST_INVALID) {
    char *failure = hfh_failure(given.id, "refused");
    if (failure != NULL)
      holdfast_complete(worker->self, failure, NULL);
    hfh_secret_free(failure);
  }
}

static void complete(hfh_worker *worker, json_int_t id, char *completion) {
  answer(worker, (hfh_answer){.id = id, .text = completion});
}

/* Pass the kept answers again. */
static void answer_again(hfh_worker *worker) {
  hfh_answer *kept = worker->answers;
  worker->answers = NULL;
  while (kept != NULL) {
    hfh_answer *next = kept->next;
    answer(worker, *kept);
    free(kept);
    kept = next;
    worker->completed = true;
  }
}

static void free_answers(hfh_answer *answers) {
  while (answers != NULL) {
    hfh_answer *answer = answers;
    answers = answer->next;
    hfh_secret_free(answer->text);
    free(answer);
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

/* ---- polling ---- */

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

typedef struct {
  int32_t status;
  bool has_news;      /* it brought a request or a new event */
  int64_t wake_in_ms; /* when to poll again */
} polled;

static polled poll_core(hfh_worker *worker) {
  polled outcome = {HOLDFAST_NOMEM, false, FAILURE_PAUSE_MS};
  int64_t ack = pending_ack(worker);
  char request[128], acked[32] = "";
  if (ack >= 0)
    snprintf(acked, sizeof acked, ",\"ack\":%lld", (long long)ack);
  set_paused(worker, hfh_events_are_full(&worker->events));
  bool again = worker->events.missed && !worker->paused;
  snprintf(request, sizeof request, "{\"only_new\":true%s%s%s}", acked,
           worker->paused ? ",\"max_events\":0" : "", again ? ",\"from_oldest\":true" : "");
  char *reply = NULL;
  outcome.status = holdfast_poll(worker->self, request, &reply);
  if (outcome.status == HOLDFAST_OK || outcome.status == HOLDFAST_INVALID)
    ack_delivered(worker, ack); /* a rejected ack would be rejected again */
  json_t *root = outcome.status == HOLDFAST_OK ? json_loads(reply, 0, NULL) : NULL;
  holdfast_free(reply);
  if (root == NULL) {
    /* Without memory to read the reply, its events are missed. */
    worker->events.missed = worker->events.missed || outcome.status == HOLDFAST_OK;
    return outcome;
  }
  const json_t *requests = json_object_get(root, "requests");
  for (size_t i = 0; i < json_array_size(requests); i++)
    begin(worker, json_array_get(requests, i));
  bool missed = worker->events.missed && !again;
  bool new_events = hfh_events_add(&worker->events, json_object_get(root, "events"));
  worker->events.missed = worker->events.missed || missed;
  outcome.has_news = new_events || json_array_size(requests) > 0;
  const json_t *wake = json_object_get(root, "wake_in_ms");
  outcome.wake_in_ms = json_is_integer(wake) ? json_integer_value(wake) : LONGEST_WAIT_MS;
  json_decref(root);
  return outcome;
}

/* ---- a step ---- */

void hfh_worker_poll(hfh_worker *worker) {
  if (worker->answers != NULL && hfh_now_ms() >= worker->answers_at)
    answer_again(worker);
  bool called = worker->called;
  if (!worker->completed && !called && hfh_now_ms() < worker->poll_at && pending_ack(worker) < 0 &&
      !must_resume(worker))
    return;
  worker->completed = worker->called = false;
  polled outcome = poll_core(worker);
  worker->status = outcome.status;
  worker->in_vain = called && !outcome.has_news ? worker->in_vain + 1 : 0;
  int64_t pause = outcome.wake_in_ms;
  if (worker->in_vain >= POLLS_IN_VAIN && pause > IDLE_PAUSE_MS)
    pause = IDLE_PAUSE_MS;
  if (pause > LONGEST_WAIT_MS)
    pause = LONGEST_WAIT_MS;
  worker->poll_at = hfh_now_ms() + (pause < 0 ? 0 : pause);
}

int64_t hfh_worker_due(const hfh_worker *worker) {
  if (worker->completed)
    return 0;
  if (worker->answers != NULL && worker->answers_at < worker->poll_at)
    return worker->answers_at;
  return worker->poll_at;
}

bool hfh_worker_listens(const hfh_worker *worker) {
  return worker->status == HOLDFAST_OK && worker->in_vain < POLLS_IN_VAIN;
}

bool hfh_worker_is_over(const hfh_worker *worker) {
  return worker->status == HOLDFAST_CLOSED || worker->status == HOLDFAST_FORKED;
}

void hfh_worker_end(hfh_worker *worker) {
  bool lives = !hfh_worker_is_over(worker);
  cancel_all(worker, lives);
  if (lives && pending_ack(worker) >= 0) {
    poll_core(worker);
    cancel_all(worker, true);
  }
  answer_again(worker);
  free_answers(worker->answers);
  worker->answers = NULL;
  hfh_events_end(&worker->events, false);
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
  while (!hfh_worker_is_over(worker) && !is_stopping(worker)) {
    hfh_worker_poll(worker);
    int running = 0;
    curl_multi_perform(worker->multi, &running);
    hfh_worker_collect(worker);
    if (!worker->completed)
      wait_for_anything(worker);
  }
  hfh_worker_end(worker);
}
