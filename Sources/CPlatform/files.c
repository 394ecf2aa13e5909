/* Files and folders, written so that they survive a crash: a file is complete or absent, and every
 * change of a folder is synced. */
#define _GNU_SOURCE
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Write a file or folder to the disk itself: fsync(), where that is enough. Returns 0 or -1. */
static int sync_file(int descriptor) {
#ifdef F_FULLFSYNC
  /* fsync() of Apple's systems leaves the bytes in the disk's own memory. Some file systems know
   * nothing better. */
  if (fcntl(descriptor, F_FULLFSYNC) == 0)
    return 0;
#endif
  return fsync(descriptor);
}

static int sync_folder_of(const char *path) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash == NULL ? 0 : (size_t)(slash - path);
  if (length >= sizeof folder)
    return ENAMETOOLONG;
  if (length == 0)
    strcpy(folder, slash == NULL ? "." : "/");
  else
    memcpy(folder, path, length), folder[length] = 0;
  int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return errno;
  int result = sync_file(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return result;
}

/* The name of a folder is durable once its parent folder is synced. */
static int make_folder(const char *path) {
  struct stat status;
  if (mkdir(path, 0700) != 0) {
    int problem = errno; /* a read-only disk reports EROFS also for an existing folder */
    return problem == EEXIST || stat(path, &status) == 0 ? 0 : problem;
  }
  int result = sync_folder_of(path);
  if (result == EACCES)
    return 0; /* the parent cannot be read, so it cannot be synced */
  if (result != 0)
    rmdir(path); /* the next call makes it again and syncs */
  return result;
}

int platform_folder(const char *path) {
  char partial[PATH_MAX];
  struct stat status;
  if (stat(path, &status) == 0)
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
  size_t length = strlen(path);
  if (length == 0)
    return ENOENT;
  if (length >= sizeof partial)
    return ENAMETOOLONG;
  memcpy(partial, path, length + 1);
  for (size_t at = 1; at <= length; at++) {
    if (partial[at] != '/' && partial[at] != 0)
      continue;
    char kept = partial[at];
    partial[at] = 0;
    int result = make_folder(partial);
    if (result != 0)
      return result;
    partial[at] = kept;
  }
  if (stat(path, &status) != 0)
    return errno;
  return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

static int read_from(int file, int64_t offset, void *bytes, size_t count, size_t *length) {
  *length = 0;
  if (file < 0)
    return -file;
  int result = 0;
  while (*length < count) {
    ssize_t got = pread(file, (char *)bytes + *length, count - *length, offset + (off_t)*length);
    if (got == 0)
      break;
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0) {
      result = errno;
      break;
    }
    *length += (size_t)got;
  }
  close(file);
  return result;
}

int platform_read_at(const char *path, int64_t offset, void *bytes, size_t count, size_t *length) {
  return read_from(private_open(path, O_RDONLY, false), offset, bytes, count, length);
}

int platform_read_secret(const char *path, void *bytes, size_t capacity, size_t *length) {
  return read_from(private_open(path, O_RDONLY, true), 0, bytes, capacity, length);
}

bool platform_syncs_fully(void) {
#ifdef F_FULLFSYNC
  return true;
#else
  return false;
#endif
}

static int write_all(int file, const void *bytes, size_t length) {
  size_t done = 0;
  while (done < length) {
    ssize_t put = write(file, (const char *)bytes + done, length - done);
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return errno;
    done += (size_t)put;
  }
  return sync_file(file) == 0 ? 0 : errno;
}

static int put_at(int file, int64_t offset, const void *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    ssize_t put = pwrite(file, (const char *)bytes + done, count - done, (off_t)offset + done);
    if (put < 0 && errno != EINTR)
      return errno;
    done += put > 0 ? (size_t)put : 0;
  }
  return 0;
}

int platform_copy_pages(const char *from, const char *to, size_t size, const bool *kept,
                        size_t count) {
  int source = private_open(from, O_RDONLY, false);
  int target = private_open(to, O_WRONLY | O_CREAT, false);
  char *page = malloc(size);
  int result = source < 0 ? -source : target < 0 ? -target : page == NULL ? ENOMEM : 0;
  bool is_over = false;
  for (size_t at = 0; result == 0 && (!is_over || at < count); at++) {
    size_t length = 0;
    off_t start = (off_t)at * (off_t)size;
    while (!is_over && length < size && result == 0) {
      ssize_t got = pread(source, page + length, size - length, start + (off_t)length);
      if (got < 0 && errno != EINTR)
        result = errno;
      is_over = got == 0;
      length += got > 0 ? (size_t)got : 0;
    }
    memset(page + length, 0, size - length);
    if (result == 0 && (at >= count || !kept[at]))
      result = put_at(target, start, page, at < count ? size : length);
  }
  if (result == 0 && count > 0)
    result = put_at(target, 28, "\0\0\0", 4);
  free(page);
  if (source >= 0)
    close(source);
  if (target >= 0)
    close(target);
  return result;
}

static int overwrite(const char *path);

static int write_and(const char *path, const void *bytes, size_t length, bool overwrites) {
  char temporary[PATH_MAX];
  if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
    return ENAMETOOLONG;
  int file = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
  if (file < 0)
    return errno;
  int result = write_all(file, bytes, length);
  close(file);
  if (result == 0 && overwrites) {
    result = overwrite(path);
    if (result == ENOENT || result == ELOOP)
      result = 0;
  }
  if (result == 0 && rename(temporary, path) != 0)
    result = errno;
  if (result == 0)
    return sync_folder_of(path);
  unlink(temporary);
  return result;
}

int platform_write(const char *path, const void *bytes, size_t length) {
  return write_and(path, bytes, length, false);
}

int platform_write_secret(const char *path, const void *bytes, size_t length) {
  return write_and(path, bytes, length, true);
}

int platform_create(const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  int result = file < 0 || sync_file(file) != 0 ? errno : 0;
  if (file >= 0)
    close(file);
  if (result != 0 && result != EEXIST)
    return result;
  /* Sync also when the file existed: its creator may have stopped before the sync. */
  int synced = sync_folder_of(path);
  return synced != 0 ? synced : result;
}

int platform_remove(const char *path) {
  if (unlink(path) != 0)
    return errno;
  return sync_folder_of(path);
}

/* With zeros, also under all its other names. ELOOP: it is a link. */
static int overwrite(const char *path) {
  int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return errno;
  static const char zeros[256];
  struct stat status;
  int result = fstat(file, &status) == 0 ? 0 : errno;
  for (off_t left = result == 0 ? status.st_size : 0; left > 0 && result == 0;) {
    ssize_t put = write(file, zeros, left < (off_t)sizeof zeros ? (size_t)left : sizeof zeros);
    if (put < 0 && errno != EINTR)
      result = errno;
    left -= put > 0 ? put : 0;
  }
  if (result == 0 && sync_file(file) != 0)
    result = errno;
  close(file);
  return result;
}

int platform_erase(const char *path) {
  int result = overwrite(path);
  if (result == ENOENT)
    return result;
  int removed = platform_remove(path);
  return removed != 0 || result == ELOOP ? removed : result;
}

int platform_real_path(const char *path, char *real, size_t capacity) {
  char found[PATH_MAX];
  if (realpath(path, found) == NULL)
    return errno;
  return snprintf(real, capacity, "%s", found) < (int)capacity ? 0 : ENAMETOOLONG;
}

int platform_rename(const char *from, const char *to) {
  if (rename(from, to) != 0)
    return errno;
  return sync_folder_of(to);
}

bool platform_exists(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0;
}

bool platform_is_folder(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool platform_exists_in(const char *folder, const char *name) {
  char path[PATH_MAX];
  int length = snprintf(path, sizeof path, "%s%s", folder, name);
  return length > 0 && (size_t)length < sizeof path && platform_exists(path);
}

int64_t platform_size_and_id(const char *path, uint64_t *file) {
  struct stat status;
  bool is_there = lstat(path, &status) == 0;
  *file = is_there ? (uint64_t)status.st_ino : 0;
  if (is_there)
    return (int64_t)status.st_size;
  return errno == ENOENT ? -1 : -2;
}

int64_t platform_size(const char *path) {
  uint64_t file;
  return platform_size_and_id(path, &file);
}

uint64_t platform_file_id(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* How long the call on this thread has waited for locks of other processes. */
static _Thread_local int64_t waited_ms = 0;

void platform_patience_begin(void) { waited_ms = 0; }

bool platform_patience_wait(int tries) {
  if (waited_ms >= PLATFORM_PATIENCE_MS)
    return false;
  int64_t start = platform_monotonic_ms();
  struct timespec pause = {.tv_nsec = (tries < 5 ? 1L << tries : 32L) * 1000000};
  nanosleep(&pause, NULL);
  waited_ms += platform_monotonic_ms() - start;
  return true;
}

void platform_patience_give(void) {
  struct timespec pause = {.tv_nsec = 16 * 1000000};
  nanosleep(&pause, NULL);
}

int platform_folder_lock(const char *path, bool exclusive) {
  int file = private_open(path, O_RDONLY | O_DIRECTORY, false);
  if (file < 0)
    return file;
  /* flock() cannot wait with a limit. */
  for (int tries = 0;; tries++) {
    if (flock(file, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
      return file;
    int problem = errno;
    if (problem == EINTR)
      continue;
    if (problem != EWOULDBLOCK || !platform_patience_wait(tries)) {
      close(file);
      return problem == EWOULDBLOCK ? -EBUSY : -problem;
    }
  }
}

void platform_folder_unlock(int descriptor) {
  if (descriptor < 0)
    return;
  flock(descriptor, LOCK_UN); /* to close it is not enough: a child of a fork has it, too */
  close(descriptor);
}
