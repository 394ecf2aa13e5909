/* The SQLite files that this process has open.
 *
 * POSIX drops all locks that a process holds on a file as soon as the process closes any descriptor
 * of it. So the index of a log ("-shm"), on which SQLite holds locks, may be opened here only while
 * this process does not use it. */
#define _GNU_SOURCE
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum {
  ROOM = 64,
  USERS_BYTE = 128 /* every process that uses an index holds a shared lock on this byte */
};

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uint64_t file;
  int connections;
} opened[ROOM];
static int unlisted; /* connections to files that did not fit */

static void before_fork(void) { pthread_mutex_lock(&table); }
static void in_parent(void) { pthread_mutex_unlock(&table); }
static void in_child(void) {
  /* A child inherits no locks. */
  for (int at = 0; at < ROOM; at++)
    opened[at].connections = 0;
  unlisted = 0;
  pthread_mutex_unlock(&table);
}

static pthread_once_t fork_hooks = PTHREAD_ONCE_INIT;
static void install_fork_hooks(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* The place of a file with connections, or -1. The table must be locked. */
static int place_of(uint64_t file) {
  for (int at = 0; at < ROOM; at++)
    if (opened[at].connections > 0 && opened[at].file == file)
      return at;
  return -1;
}

/* A place without connections, or -1. The table must be locked. */
static int free_place(void) {
  for (int at = 0; at < ROOM; at++)
    if (opened[at].connections == 0)
      return at;
  return -1;
}

void platform_opened(uint64_t file) {
  pthread_once(&fork_hooks, install_fork_hooks);
  pthread_mutex_lock(&table);
  int found = place_of(file);
  if (found < 0)
    found = free_place();
  if (found < 0) {
    unlisted += 1;
  } else {
    opened[found].file = file;
    opened[found].connections += 1;
  }
  pthread_mutex_unlock(&table);
}

void platform_closed(uint64_t file) {
  pthread_mutex_lock(&table);
  int found = place_of(file);
  if (found >= 0)
    opened[found].connections -= 1;
  else if (unlisted > 0)
    unlisted -= 1;
  pthread_mutex_unlock(&table);
}

/* Opens the index if no process uses it. Returns the descriptor or -errno. */
static int open_unused(const char *database, uint64_t file, int how) {
  char path[4096];
  if (place_of(file) >= 0 || unlisted > 0)
    return -EBUSY;
  if (snprintf(path, sizeof path, "%s-shm", database) >= (int)sizeof path)
    return -ENAMETOOLONG;
  int index = private_open(path, how, false);
  if (index < 0)
    return index;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = USERS_BYTE, .l_len = 1};
  if (fcntl(index, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) {
    close(index);
    return -EBUSY;
  }
  return index;
}

bool platform_read_unused_index(const char *database, uint64_t file, void *bytes, size_t count) {
  pthread_mutex_lock(&table);
  int index = open_unused(database, file, O_RDWR);
  bool whole = index >= 0 && pread(index, bytes, count, 0) == (ssize_t)count;
  if (index >= 0)
    close(index);
  pthread_mutex_unlock(&table);
  return whole;
}

bool platform_write_unused_index(const char *database, uint64_t file, const void *bytes,
                                 size_t count) {
  pthread_mutex_lock(&table);
  int index = open_unused(database, file, O_RDWR);
  bool whole = index >= 0 && pwrite(index, bytes, count, 0) == (ssize_t)count;
  if (index >= 0)
    close(index);
  pthread_mutex_unlock(&table);
  return whole;
}
