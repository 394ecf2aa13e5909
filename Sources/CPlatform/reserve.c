/* A file that keeps room on the disk: its blocks are allocated, and given back when they are
 * needed. */
#define _GNU_SOURCE
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static int allocate(int file, int64_t size) {
#ifdef __linux__
  return posix_fallocate(file, 0, (off_t)size);
#else
  static const char zeros[4096];
  for (int64_t at = 0; at < size; at += (int64_t)sizeof zeros)
    if (pwrite(file, zeros, sizeof zeros, (off_t)at) != (ssize_t)sizeof zeros)
      return errno == 0 ? ENOSPC : errno;
  return 0;
#endif
}

int platform_reserve(const char *path, int64_t size) {
  int file = private_open(path, O_RDWR | O_CREAT, false);
  if (file < 0)
    return -file;
  int result;
  off_t before = lseek(file, 0, SEEK_END);
  do
    result = allocate(file, size);
  while (result == EINTR);
  /* A larger part of it would take the room that others need. */
  if (result != 0 && ftruncate(file, before < 0 ? 0 : before) != 0)
    result = errno;
  close(file);
  return result;
}

bool platform_is_full(int problem) {
  return problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
}

int64_t platform_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > INT64_MAX)
    return INT64_MAX;
  return (int64_t)limit.rlim_cur;
}

int platform_shrink(const char *path, int64_t size) {
  int file = private_open(path, O_WRONLY, false);
  if (file < 0)
    return -file;
  int result = ftruncate(file, (off_t)size) == 0 ? 0 : errno;
  close(file);
  return result;
}
