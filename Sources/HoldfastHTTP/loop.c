/* The driver on the host's event loop: libcurl's sockets, the handle's descriptor, a timer and a
 * bell in one epoll, whose descriptor the host watches. Each holdfast_http_run() takes one step
 * (worker.c) and never waits.
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
#include <sys/eventfd.h>
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
  uint32_t events = what == CURL_POLL_IN      ? EPOLLIN
                    : what == CURL_POLL_OUT   ? EPOLLOUT
                    : what == CURL_POLL_INOUT ? EPOLLIN | EPOLLOUT
                                              : 0;
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

int32_t hfh_loop_init(hfh_worker *worker) {
  hfh_loop *loop = &worker->loop;
  loop->curl_at = INT64_MAX;
  loop->set = epoll_create1(EPOLL_CLOEXEC);
  loop->bell = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC); /* the first step is due at once */
  loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (loop->set < 0 || loop->bell < 0 || loop->timer < 0)
    return HOLDFAST_NOMEM;
  curl_multi_setopt(worker->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(worker->multi, CURLMOPT_SOCKETDATA, loop);
  curl_multi_setopt(worker->multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(worker->multi, CURLMOPT_TIMERDATA, loop);
  bool fine = watch(loop, loop->bell, EPOLLIN) && watch(loop, loop->timer, EPOLLIN);
  return fine ? HOLDFAST_OK : HOLDFAST_NOMEM;
}

void hfh_loop_free(hfh_worker *worker) {
  const int all[] = {worker->loop.timer, worker->loop.bell, worker->loop.set};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i] >= 0)
      close(all[i]);
}

void hfh_loop_ring(hfh_worker *worker) {
  uint64_t one = 1;
  ssize_t done = write(worker->loop.bell, &one, sizeof one);
  (void)done; /* a bell that cannot be raised further rings already */
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
    } else if (descriptor == loop->bell) {
      uint64_t rung;
      ssize_t done = read(loop->bell, &rung, sizeof rung);
      (void)done;
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

static void set_timer(const hfh_loop *loop, int64_t at_ms) {
  struct itimerspec moment = {.it_value = {at_ms / 1000, at_ms % 1000 * 1000000L}};
  if (at_ms <= 0)
    moment.it_value = (struct timespec){0, 1}; /* at once; 0 would switch the timer off */
  timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &moment, NULL);
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
  take_time(worker);
  hfh_worker_collect(worker);
  hfh_worker_take(worker);
  take_time(worker); /* begins the requests that were taken */
  hfh_worker_collect(worker);
  int64_t next = hfh_worker_due(worker);
  if (worker->loop.curl_at < next)
    next = worker->loop.curl_at;
  set_listening(worker, hfh_worker_listens(worker));
  set_timer(&worker->loop, next);
  return next;
}

/* ---- the calls ---- */

/* A TLS library can write to a connection that the server has closed. Its SIGPIPE would end the
 * host, so it is kept back on this thread during a step, and taken. */
typedef struct {
  sigset_t before;
  bool pending;
} kept_pipe;

static kept_pipe keep_pipe(void) {
  kept_pipe kept;
  sigset_t pipe_only, pending;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigpending(&pending);
  kept.pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_only, &kept.before);
  return kept;
}

static void restore_pipe(const kept_pipe *kept) {
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  if (!kept->pending)
    sigtimedwait(&pipe_only, NULL, &(struct timespec){0, 0});
  pthread_sigmask(SIG_SETMASK, &kept->before, NULL);
}

static bool begin(hfh_worker *worker, bool stop) {
  pthread_mutex_lock(&worker->lock);
  bool mine = !worker->running;
  worker->running = true;
  worker->stopping = worker->stopping || stop;
  pthread_mutex_unlock(&worker->lock);
  return mine;
}

/* Ends the driver, if it was stopped meanwhile or the handle is closed. True if it has ended. */
static bool finish(hfh_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  while ((worker->stopping || hfh_worker_is_over(worker)) && !worker->ended) {
    worker->ended = true;
    pthread_mutex_unlock(&worker->lock);
    hfh_worker_end(worker);
    set_listening(worker, false);
    unwatch(&worker->loop, worker->loop.bell);
    unwatch(&worker->loop, worker->loop.timer);
    pthread_mutex_lock(&worker->lock);
  }
  bool ended = worker->ended;
  worker->running = false;
  pthread_mutex_unlock(&worker->lock);
  return ended;
}

int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms) {
  if (!begin(worker, false))
    return HOLDFAST_BUSY;
  kept_pipe kept = keep_pipe();
  int64_t next = worker->ended ? 0 : step(worker);
  bool ended = finish(worker);
  restore_pipe(&kept);
  if (ended)
    return HOLDFAST_CLOSED;
  int64_t left = next - hfh_now_ms();
  if (timeout_ms != NULL)
    *timeout_ms = left < 0 ? 0 : (int32_t)left;
  return HOLDFAST_OK;
}

void hfh_loop_stop(hfh_worker *worker) {
  if (!begin(worker, true))
    return; /* the step that runs ends the driver */
  kept_pipe kept = keep_pipe();
  finish(worker);
  restore_pipe(&kept);
}

#else

int32_t hfh_loop_init(hfh_worker *worker) {
  (void)worker;
  return HOLDFAST_INVALID;
}
void hfh_loop_free(hfh_worker *worker) { (void)worker; }
void hfh_loop_ring(hfh_worker *worker) { (void)worker; }
int32_t hfh_loop_run(hfh_worker *worker, int32_t *timeout_ms) {
  (void)worker;
  (void)timeout_ms;
  return HOLDFAST_STATE;
}
void hfh_loop_stop(hfh_worker *worker) { (void)worker; }

#endif
