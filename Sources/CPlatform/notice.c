/* The notice file: a handle that changed the data file writes to it, and inotify wakes the other
 * processes that watch it. The data file's log cannot be watched instead: SQLite writes to it
 * before the change can be read.
 *
 * Setting the file's times tells them that the keys of the session changed: the event cannot be
 * undone, while the file's content could be written back. Nor can the time of the file's last
 * change (st_ctime), which the kernel sets and nobody else: a handle compares it at each call, so
 * it hears of this without inotify, too. It also changes when the file is moved or gets another
 * name.
 *
 * A change of the data must not look like that. So a handle does not write for it, but reads the
 * one byte of the file. The file is held open for writing: the kernel closes it when a process
 * dies, which wakes the others, too. */
#define _GNU_SOURCE
#include "private.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int64_t private_changed(const struct stat *it) {
#ifdef __APPLE__
  struct timespec time = it->st_ctimespec;
#else
  struct timespec time = it->st_ctim;
#endif
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int platform_notice_open(const char *path) {
  int file = private_open(path, O_RDWR | O_CREAT, false);
  if (file < 0)
    return file <= -PLATFORM_LINK ? PLATFORM_UNFIT : PLATFORM_UNOPENED;
  platform_notice_give(file);
  return file;
}

void platform_notice_give(int descriptor) {
  if (descriptor < 0)
    return;
  char byte;
  if (pread(descriptor, &byte, 1, 0) == 1)
    return;
  ssize_t written = pwrite(descriptor, "", 1, 0);
  (void)written; /* the others learn of the change later */
}

void platform_notice_give_keys(int descriptor) {
  struct stat before, after;
  if (descriptor < 0 || fstat(descriptor, &before) != 0)
    return;
  /* The kernel's time may stand still for some milliseconds. Who looked in this time must find
   * another one. */
  for (int tries = 0; tries < 50; tries++) {
    if (futimens(descriptor, NULL) != 0 || fstat(descriptor, &after) != 0 ||
        private_changed(&after) != private_changed(&before))
      return;
    struct timespec pause = {.tv_nsec = 1000 * 1000};
    nanosleep(&pause, NULL);
  }
}

platform_notice_id platform_notice_identify(int descriptor) {
  struct stat it;
  platform_notice_id id = {.is_known = descriptor >= 0 && fstat(descriptor, &it) == 0};
  if (id.is_known) {
    id.device = (uint64_t)it.st_dev;
    id.number = (uint64_t)it.st_ino;
  }
  return id;
}

int64_t platform_notice_mark(const char *path, platform_notice_id opened) {
  struct stat there;
  bool is_there = opened.is_known && lstat(path, &there) == 0 &&
                  (uint64_t)there.st_dev == opened.device &&
                  (uint64_t)there.st_ino == opened.number && (there.st_mode & 0600) == 0600;
  return is_there ? private_changed(&there) : -1;
}

/* A lock of the open file, and not of the process: it lasts while a child has the file open, and
 * closing another descriptor does not end it. Other systems have that of the process. */
#ifdef F_OFD_SETLK
enum { SET = F_OFD_SETLK, GET = F_OFD_GETLK };
#else
enum { SET = F_SETLK, GET = F_GETLK };
#endif

void platform_notice_hold(int descriptor, bool held) {
  /* Shared: nobody can keep it from being taken by holding it. */
  struct flock lock = {.l_type = (short)(held ? F_RDLCK : F_UNLCK), .l_whence = SEEK_SET};
  if (descriptor >= 0)
    fcntl(descriptor, SET, &lock);
}

bool platform_notice_is_held(int descriptor) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return descriptor >= 0 && fcntl(descriptor, GET, &lock) == 0 && lock.l_type != F_UNLCK;
}

uint64_t platform_folder_mark(const char *folder, bool above) {
  char part[PATH_MAX];
  uint64_t mark = 0;
  size_t length = strlen(folder);
  if (length >= sizeof part)
    return 0;
  memcpy(part, folder, length + 1);
  for (size_t end = length; end > 0; end--) {
    if (end < length && folder[end] != '/')
      continue;
    part[end] = 0;
    struct stat found;
    if ((end < length) == above && lstat(part, &found) == 0)
      mark = (mark ^ (uint64_t)private_changed(&found) ^ (uint64_t)found.st_ino) * 0x100000001b3;
  }
  return mark;
}

void platform_notice_close(int descriptor) {
  if (descriptor >= 0)
    close(descriptor);
}
