/* The driver on the host's event loop: libcurl's sockets, the handle's descriptor and a timer in
 * one epoll, whose descriptor the host watches. Each holdfast_http_run() takes one step (worker.c)
 * and never waits.
 *
 * The timer is set to the time of the next step, so that the descriptor is readable then, and the
 * host needs no timer of its own.
 *
 * One thread at a time takes a step: `running`. A step can call functions of the host (key store,
 * log), which may call holdfast_http_stop(). The step that runs then ends the driver. */
#define _GNU_SOURCE
#include "driver.h"

#ifdef __linux__

#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 64 }; /* descriptors per step; those beyond stay readable */

/* ---- the set ---- */

static bool watch(const hfh_loop *loop, int descriptor, uint32_t events) {
  struct epoll_event event = {.events = events, .data.fd = descriptor};
  return epoll_ctl(loop->set, EPOLL_CTL_MOD, descriptor, &event) == 0 ||
         epoll_ctl(loop->set, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static void unwatch(const hfh_loop *loop, int descriptor) {
  epoll_ctl(loop->set, EPOLL_CTL_DEL, descriptor, NULL);
}

static int on_socket(CURL *curl, curl_socket_t socket, int what, void *context, void *own) {
  (void)curl;
  (void)own;
  const hfh_loop *loop = context;
  uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
  if (events == 0)
    unwatch(loop, socket);
  else if (!watch(loop, socket, events))
    return -1; /* libcurl fails its transfers */
  return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *context) {
  (void)multi;
  hfh_loop *loop = context;
  if (timeout_ms < 0)
    loop->curl_at = INT64_MAX;
  else /* our clock is cut off to milliseconds */
    loop->curl_at = timeout_ms == 0 ? 0 : hfh_now_ms() + timeout_ms + 1;
  return 0;
}

/* At once, if that time has passed. */
static void set_timer(const hfh_loop *loop, int64_t at_ms) {
  struct itimerspec moment = {.it_value = {at_ms / 1000, at_ms % 1000 * 1000000L}};
  if (at_ms <= 0)
    moment.it_value = (struct timespec){0, 1}; /* 0 would switch the timer off */
  timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &moment, NULL);
}

int32_t hfh_loop_init(hfh_worker *worker) {
  hfh_loop *loop = &worker->loop;
  loop->curl_at = INT64_MAX;
  loop->set = epoll_create1(EPOLL_CLOEXEC);
  loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (loop->set < 0 || loop->timer < 0 || !watch(loop, loop->timer, EPOLLIN))
    return HOLDFAST_NOMEM;
  curl_multi_setopt(worker->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(worker->multi, CURLMOPT_SOCKETDATA, loop);
  curl_multi_setopt(worker->multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(worker->multi, CURLMOPT_TIMERDATA, loop);
  set_timer(loop, 0);
  return HOLDFAST_OK;
}

/* ---- a step ---- */

/* Let libcurl work, and note what else is readable. */
static void take_ready(hfh_worker *worker) {
  hfh_loop *loop = &worker->loop;
  struct epoll_event ready[MANY];
  int count = epoll_wait(loop->set, ready, MANY, 0), running = 0;
  for (int i = 0; i < count; i++) {
    int descriptor = ready[i].data.fd;
    if (descriptor == worker->wake) {
      worker->called = true;
    } else if (descriptor != loop->timer) { /* setting the timer takes its signal back */
      int what = (ready[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                 (ready[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                 (ready[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(worker->multi, descriptor, what, &running);
    }
  }
}

static void take_time(hfh_worker *worker) {
  int running = 0;
  if (worker->loop.curl_at <= hfh_now_ms()) {
    worker->loop.curl_at = INT64_MAX;
    curl_multi_socket_action(worker->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

static void set_listening(hfh_worker *worker, bool listens) {
  hfh_loop *loop = &worker->loop;
  if (listens == loop->listening)
    return;
  if (listens)
    loop->listening = watch(loop, worker->wake, EPOLLIN);
  else
    unwatch(loop, worker->wake);
  loop->listening = loop->listening && listens;
}

/* Returns the time of the next step. */
static int64_t step(hfh_worker *worker) {
  take_ready(worker);
  hfh_worker_take(worker);
  take_time(worker); /* also begins the requests that were taken */
  hfh_worker_collect(worker);
  int64_t next = hfh_worker_due(worker);
  if (worker->loop.curl_at < next)
    next = worker->loop.curl_at;
  set_listening(worker, hfh_worker_listens(worker));
  set_timer(&worker->loop, next);
  return next;
}

/* ---- the calls ---- */

/* Ends the driver, if it was stopped meanwhile or the handle is closed, and lets the next thread
 * in. True if it has ended. A stop that finds a step running leaves the end to it. */
static bool finish(hfh_worker *worker) {
  hfh_loop *loop = &worker->loop;
  bool ended;
  do {
    if (hfh_worker_is_over(worker) && !loop->ended) {
      loop->ended = true;
      hfh_worker_end(worker);
      set_listening(worker, false);
      unwatch(loop, loop->timer);
    }
    ended = loop->ended;
    loop->running = false;
  } while (!ended && worker->stopping && !atomic_exchange(&loop->running, true));
  return ended;
}

/* Takes a step unless there is no `next`, which receives the time of the following one.
 *
 * A TLS library can write to a connection that the server has closed. Its SIGPIPE would end the
 * host, so it is kept back on this thread meanwhile, and taken. */
static int32_t enter(hfh_worker *worker, int64_t *next) {
  /* The core would refuse the responses, which come once. */
  if (next != NULL && hfh_worker_is_inside(worker))
    return HOLDFAST_BUSY;
  if (atomic_exchange(&worker->loop.running, true))
    return HOLDFAST_BUSY;
  sigset_t pipe_only, pending, before;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  if (next != NULL && !worker->loop.ended)
    *next = step(worker);
  bool ended = finish(worker);
  if (sigismember(&pending, SIGPIPE) == 0)
    sigtimedwait(&pipe_only, NULL, &(struct timespec){0, 0});
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return ended ? HOLDFAST_CLOSED : HOLDFAST_OK;
}

int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms) {
  int64_t next = 0;
  int32_t status = enter(worker, &next);
  int64_t left = next - hfh_now_ms();
  if (status == HOLDFAST_OK && timeout_ms != NULL)
    *timeout_ms = left < 0 ? 0 : (int32_t)left;
  return status;
}

void hfh_loop_stop(hfh_worker *worker) {
  worker->stopping = true;
  enter(worker, NULL);
}

#else

int32_t hfh_loop_init(hfh_worker *worker) {
  (void)worker;
  return HOLDFAST_INVALID;
}
int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms) {
  (void)worker;
  (void)timeout_ms;
  return HOLDFAST_STATE;
}
void hfh_loop_stop(hfh_worker *worker) { (void)worker; }

#endif
