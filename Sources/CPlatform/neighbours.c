/* Which folders are open in more than one process: each handle keeps a shared lock on a file of the
 * folder. Only then does a handle on the screen look once a second whether another process has
 * changed the data; the handles of one process tell each other at once (handles.c).
 *
 * The lock is the process's, so that a process does not see its own. When one of its handles closes
 * the file, the kernel takes it from the others, too; they take it again when they next look. */
#define _GNU_SOURCE
#include "private.h"

#include <fcntl.h>
#include <unistd.h>

static bool set(int descriptor, int how, struct flock *lock) {
  lock->l_whence = SEEK_SET;
  return descriptor >= 0 && fcntl(descriptor, how, lock) == 0;
}

static void take(int descriptor) {
  /* Shared: nobody can keep it from being taken by holding it. */
  struct flock lock = {.l_type = F_RDLCK};
  set(descriptor, F_SETLK, &lock);
}

int platform_neighbours_open(const char *path) {
  int descriptor = private_open(path, O_RDWR | O_CREAT, false);
  take(descriptor);
  return descriptor < 0 ? -1 : descriptor;
}

bool platform_neighbours_exist(int descriptor) {
  take(descriptor);
  struct flock lock = {.l_type = F_WRLCK};
  return set(descriptor, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

void platform_neighbours_close(int descriptor) {
  if (descriptor >= 0)
    close(descriptor);
}
