/* The notice file: a handle that changed the data file writes to it, and inotify wakes the other
 * processes that watch it. The data file's log cannot be watched instead: SQLite writes to it
 * before the change can be read.
 *
 * The file holds one byte, which is written again and again, so a full disk does not matter. It is
 * held open for writing: the kernel closes it when a process dies, which wakes the others, too. */
#define _GNU_SOURCE
#include "private.h"

#include <fcntl.h>
#include <unistd.h>

int platform_notice_open(const char *path) {
  int file = private_open(path, O_RDWR | O_CREAT, false);
  if (file < 0)
    return -1;
  platform_notice_give(file);
  return file;
}

void platform_notice_give(int descriptor) {
  if (descriptor < 0)
    return;
  ssize_t written = pwrite(descriptor, "", 1, 0);
  (void)written; /* the others learn of the change later */
}

void platform_notice_close(int descriptor) {
  if (descriptor >= 0)
    close(descriptor);
}
