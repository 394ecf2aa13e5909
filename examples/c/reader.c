/* A simulated fingerprint reader that holds a key, in a process of its own.
 *
 * Apps connect to its socket to store and load the key. It releases the key only once after each
 * touch of a finger. A touch arrives on a separate pair of sockets, the glass. Only the tour's
 * parent holds its other end, so an app cannot present a finger. */
#define _GNU_SOURCE
#include "tour.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEY_ROOM = 64, FINGER_SECONDS = 10, PATIENCE_SECONDS = 5 };

/* A message in either direction: an order or an answer, with the key if one is sent. */
typedef struct {
  uint8_t word; /* 'L' load, 'S' save, 'E' erase; in answers HOLDFAST_KEY_* */
  uint8_t length;
  uint8_t key[KEY_ROOM];
} message;

/* ---- the reader's process ---- */

typedef struct {
  message held; /* word 1: a key is enrolled */
  time_t finger_until;
  const char *memory_file;
} device;

static time_t now(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return moment.tv_sec;
}

static void remember(const device *it) {
  if (it->memory_file == NULL)
    return;
  int file = open(it->memory_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return;
  if (write(file, &it->held, sizeof it->held) == (ssize_t)sizeof it->held)
    fsync(file);
  close(file);
}

static void recall(device *it) {
  int file = it->memory_file == NULL ? -1 : open(it->memory_file, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return;
  if (read(file, &it->held, sizeof it->held) != (ssize_t)sizeof it->held)
    memset(&it->held, 0, sizeof it->held);
  close(file);
}

static message obey(device *it, const message *order) {
  message answer = {.word = HOLDFAST_KEY_OK};
  switch (order->word) {
  case 'S':
    it->held = *order;
    it->held.word = 1;
    remember(it);
    break;
  case 'E':
    explicit_bzero(&it->held, sizeof it->held);
    remember(it);
    break;
  case 'L':
    if (it->held.word == 0) {
      answer.word = HOLDFAST_KEY_NOT_FOUND;
    } else if (now() > it->finger_until) {
      answer.word = HOLDFAST_KEY_FAILED; /* without a finger the reader releases no key */
    } else {
      it->finger_until = 0;
      answer = it->held;
      answer.word = HOLDFAST_KEY_OK;
    }
    break;
  default:
    answer.word = HOLDFAST_KEY_FAILED;
  }
  return answer;
}

static void serve(device *it, int link) {
  message order = {0};
  if (recv(link, &order, sizeof order, MSG_WAITALL) == (ssize_t)sizeof order &&
      order.length <= KEY_ROOM) {
    message answer = obey(it, &order);
    send(link, &answer, sizeof answer, MSG_NOSIGNAL);
    explicit_bzero(&answer, sizeof answer);
  }
  explicit_bzero(&order, sizeof order);
  close(link);
}

/* Serve until the parent closes its end of the glass. */
static void run(int listener, int glass, const char *memory_file) {
  device it = {.memory_file = memory_file};
  recall(&it);
  struct pollfd both[] = {{.fd = listener, .events = POLLIN}, {.fd = glass, .events = POLLIN}};
  for (;;) {
    if (poll(both, 2, -1) < 0 && errno != EINTR)
      return;
    if (both[1].revents != 0) {
      char touch;
      if (read(glass, &touch, 1) != 1)
        return;
      it.finger_until = now() + FINGER_SECONDS;
      if (write(glass, &touch, 1) != 1)
        return;
    }
    if ((both[0].revents & POLLIN) != 0) {
      int link = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
      if (link >= 0)
        serve(&it, link);
    }
  }
}

static struct sockaddr_un address_of(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

/* Remove the socket, and its folder if it is empty: an app that was killed cannot. */
static void clear_up(const char *socket_path) {
  char folder[sizeof((struct sockaddr_un *)0)->sun_path];
  unlink(socket_path);
  strcpy(folder, socket_path);
  *strrchr(folder, '/') = 0;
  rmdir(folder);
}

bool reader_start(const char *socket_path, const char *memory_file, reader *started) {
  struct sockaddr_un address = address_of(socket_path);
  if (strlen(socket_path) >= sizeof address.sun_path)
    return false;
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int glass[2];
  unlink(socket_path);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
      listen(listener, 8) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, glass) != 0)
    return false;
  fflush(stdout);
  started->process = fork();
  if (started->process == 0) {
    signal(SIGINT, SIG_IGN); /* the closed glass ends this process */
    signal(SIGPIPE, SIG_IGN);
    close(glass[0]);
    run(listener, glass[1], memory_file);
    clear_up(socket_path);
    _exit(0);
  }
  close(glass[1]);
  close(listener);
  started->finger = glass[0];
  return started->process > 0;
}

void reader_stop(reader *started) {
  if (started->process <= 0)
    return;
  close(started->finger);
  waitpid(started->process, NULL, 0);
  started->process = 0;
}

bool reader_present_finger(const reader *started) {
  char touch = 'F';
  return write(started->finger, &touch, 1) == 1 && read(started->finger, &touch, 1) == 1;
}

/* ---- the host's side ---- */

static int32_t ask(const char *socket_path, message *order) {
  struct sockaddr_un address = address_of(socket_path);
  struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
  message answer = {.word = HOLDFAST_KEY_UNAVAILABLE};
  int link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (link < 0)
    return HOLDFAST_KEY_UNAVAILABLE;
  setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  bool heard = connect(link, (struct sockaddr *)&address, sizeof address) == 0 &&
               send(link, order, sizeof *order, MSG_NOSIGNAL) == (ssize_t)sizeof *order &&
               recv(link, &answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer;
  close(link);
  int32_t result = heard ? answer.word : HOLDFAST_KEY_UNAVAILABLE;
  *order = answer;
  explicit_bzero(&answer, sizeof answer);
  return result;
}

int32_t reader_load(const char *socket_path, uint8_t *key, size_t capacity, size_t *length) {
  message order = {.word = 'L'};
  int32_t result = ask(socket_path, &order);
  if (result == HOLDFAST_KEY_OK && order.length > capacity)
    result = HOLDFAST_KEY_FAILED;
  if (result == HOLDFAST_KEY_OK) {
    memcpy(key, order.key, order.length);
    *length = order.length;
  }
  explicit_bzero(&order, sizeof order);
  return result;
}

int32_t reader_save(const char *socket_path, const uint8_t *key, size_t length) {
  message order = {.word = 'S', .length = (uint8_t)length};
  if (length > KEY_ROOM)
    return HOLDFAST_KEY_FAILED;
  memcpy(order.key, key, length);
  int32_t result = ask(socket_path, &order);
  explicit_bzero(&order, sizeof order);
  return result;
}

int32_t reader_erase(const char *socket_path) {
  message order = {.word = 'E'};
  return ask(socket_path, &order);
}
