/* A descriptor that is readable while it is raised: an eventfd on Linux, a pipe elsewhere. */
#define _GNU_SOURCE
#include "private.h"

#include <fcntl.h>
#include <unistd.h>

#ifdef PLATFORM_LINUX
#include <sys/eventfd.h>

bool private_wake_make(private_wake *wake) {
  wake->readable = wake->writable = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  wake->raised = false;
  return wake->readable >= 0;
}

static void lower(const private_wake *wake) {
  uint64_t count;
  ssize_t done = read(wake->readable, &count, sizeof count);
  (void)done; /* EAGAIN: it was not raised */
}

void private_wake_close(const private_wake *wake) { close(wake->readable); }

#else

bool private_wake_make(private_wake *wake) {
  int ends[2];
  if (pipe(ends) != 0)
    return false;
  *wake = (private_wake){.readable = ends[0], .writable = ends[1]};
  for (int at = 0; at < 2; at++) {
    if (fcntl(ends[at], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[at], F_SETFL, O_NONBLOCK) == 0)
      continue;
    private_wake_close(wake);
    return false;
  }
  return true;
}

static void lower(const private_wake *wake) {
  char bytes[512];
  while (read(wake->readable, bytes, sizeof bytes) > 0)
    ;
}

void private_wake_close(const private_wake *wake) {
  close(wake->readable);
  close(wake->writable);
}
#endif

void private_wake_lower(private_wake *wake) {
  if (wake->raised)
    lower(wake);
  wake->raised = false;
}

void private_wake_raise(private_wake *wake) {
  uint64_t one = 1;
  wake->raised = true;
  ssize_t written = write(wake->writable, &one, sizeof one);
  (void)written; /* EAGAIN: it is full, so it is readable */
}
