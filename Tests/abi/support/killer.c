/* LD_PRELOAD library: kills the process by SIGKILL before its n-th call that changes a file.
 *
 * killer_arm(n) starts the count (n = 0 only counts); killer_disarm() ends it and returns it.
 * killer_lock_fails(errno) makes every flock() fail. KILLER_FULL=errno: a full disk gives this
 * error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

static volatile int full = 0;
static volatile long armed = -1;
static volatile long count = 0;

void killer_arm(long n);
void killer_lock_fails(int with);
void killer_disk_full(int on);
long killer_disarm(void);

void killer_arm(long n) {
  count = 0;
  armed = n;
}

/* While `on`, every write fails as on a full disk. */
void killer_disk_full(int on) { full = on; }

static volatile int lock_problem = 0;

void killer_lock_fails(int with) { lock_problem = with; }

long killer_disarm(void) {
  armed = -1;
  return count;
}

static void point(void) {
  if (armed < 0)
    return;
  count = count + 1;
  if (count == armed)
    kill(getpid(), SIGKILL);
}

static int full_error(void) {
  const char *chosen = getenv("KILLER_FULL");
  return chosen == NULL ? ENOSPC : atoi(chosen);
}

static ssize_t no_room(void) {
  errno = full_error();
  return -1;
}

static ssize_t told(ssize_t result) { return result < 0 && errno == ENOSPC ? no_room() : result; }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int descriptor, const void *data, size_t size) {
  point();
  if (full)
    return no_room();
  return told(NEXT(write)(descriptor, data, size));
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
  point();
  if (full)
    return no_room();
  return told(NEXT(pwrite)(descriptor, data, size, offset));
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
  point();
  if (full)
    return no_room();
  return told(NEXT(pwrite64)(descriptor, data, size, offset));
}
int posix_fallocate(int descriptor, off_t from, off_t size) {
  int problem = NEXT(posix_fallocate)(descriptor, from, size);
  return problem == ENOSPC ? full_error() : problem;
}
int fsync(int descriptor) {
  point();
  return NEXT(fsync)(descriptor);
}
int fdatasync(int descriptor) {
  point();
  return NEXT(fdatasync)(descriptor);
}
int ftruncate(int descriptor, off_t length) {
  point();
  return NEXT(ftruncate)(descriptor, length);
}
int ftruncate64(int descriptor, off64_t length) {
  point();
  return NEXT(ftruncate64)(descriptor, length);
}
int unlink(const char *path) {
  point();
  return NEXT(unlink)(path);
}
int rename(const char *from, const char *to);
int rename(const char *from, const char *to) {
  point();
  return NEXT(rename)(from, to);
}
int flock(int descriptor, int operation) {
  if (lock_problem != 0) {
    errno = lock_problem;
    return -1;
  }
  return NEXT(flock)(descriptor, operation);
}
