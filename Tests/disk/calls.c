/* Interposed system calls of SQLite's "unix" VFS and of the library's own file code: the dynamic
 * linker prefers a program's symbols to those of its libraries. Each call on a watched file is
 * recorded, or fails when a fault is due. */
#define _GNU_SOURCE
#include "disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT(name)                                                                                 \
  ({                                                                                               \
    static __typeof__(&name) next;                                                                 \
    if (next == NULL)                                                                              \
      next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                           \
    next;                                                                                          \
  })

enum { DESCRIPTORS = 4096 };
static char watched[PATH_MAX];
static bool is_watched[DESCRIPTORS];
static int vfs_depth;
static int due_error; /* the errno for the next system call of a VFS operation; 0: none */

void calls_watch(const char *folder) {
  watched[0] = 0;
  if (folder != NULL)
    strncpy(watched, folder, sizeof watched - 1);
}

void calls_enter_vfs(int error) {
  vfs_depth++;
  due_error = error;
}

bool calls_leave_vfs(void) {
  bool used = due_error == 0;
  due_error = 0;
  vfs_depth--;
  return used;
}

static bool below(const char *path) {
  size_t length = strlen(watched);
  return length > 0 && strncmp(path, watched, length) == 0 &&
         (path[length] == '/' || path[length] == 0);
}

static bool mine(int descriptor) {
  return descriptor >= 0 && descriptor < DESCRIPTORS && is_watched[descriptor];
}

/* Whether this call fails; sets errno. Inside the VFS the shim has already counted the operation.
 */
static bool fails(op_kind kind) {
  int error = due_error;
  due_error = 0;
  if (vfs_depth == 0)
    error = fault_at(kind);
  if (error != 0)
    errno = error;
  return error != 0;
}

static int opened(int descriptor, const char *path, bool created) {
  if (descriptor >= DESCRIPTORS)
    die("too many descriptors");
  if (descriptor >= 0) {
    is_watched[descriptor] = true;
    trace_opened(descriptor, path, created);
  }
  return descriptor;
}

static int open_watched(const char *path, int flags, mode_t mode) {
  if (fails(OP_OPEN))
    return -1;
  bool absent = (flags & O_CREAT) != 0 && faccessat(AT_FDCWD, path, F_OK, 0) != 0;
  return opened(NEXT(open64)(path, flags, mode), path, absent);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return below(path) ? open_watched(path, flags, mode) : NEXT(open64)(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return below(path) ? open_watched(path, flags, mode) : NEXT(open64)(path, flags, mode);
}

int mkostemp(char *path, int flags) {
  if (!below(path))
    return NEXT(mkostemp)(path, flags);
  if (fails(OP_OPEN))
    return -1;
  int descriptor = NEXT(mkostemp)(path, flags);
  return opened(descriptor, path, true);
}

int close(int descriptor) {
  if (mine(descriptor)) {
    is_watched[descriptor] = false;
    trace_closed(descriptor);
  }
  return NEXT(close)(descriptor);
}

ssize_t pread64(int descriptor, void *bytes, size_t count, off64_t offset) {
  if (mine(descriptor) && fails(OP_READ))
    return -1;
  return NEXT(pread64)(descriptor, bytes, count, offset);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
  return pread64(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
  if (mine(descriptor) && fails(OP_WRITE))
    return -1;
  ssize_t put = NEXT(pwrite64)(descriptor, bytes, count, offset);
  if (put > 0 && mine(descriptor))
    trace_wrote(descriptor, offset, bytes, (size_t)put);
  return put;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  if (!mine(descriptor))
    return NEXT(write)(descriptor, bytes, count);
  if (fails(OP_WRITE))
    return -1;
  off_t at = lseek(descriptor, 0, SEEK_CUR);
  ssize_t put = NEXT(write)(descriptor, bytes, count);
  if (put > 0)
    trace_wrote(descriptor, at, bytes, (size_t)put);
  return put;
}

int ftruncate64(int descriptor, off64_t length) {
  if (mine(descriptor) && fails(OP_TRUNCATE))
    return -1;
  int result = NEXT(ftruncate64)(descriptor, length);
  if (result == 0 && mine(descriptor))
    trace_truncated(descriptor, length);
  return result;
}

static int sync_watched(int descriptor) {
  bool done = !fails(OP_SYNC);
  trace_synced(descriptor, done); /* the test's files need no real sync */
  return done ? 0 : -1;
}

int fsync(int descriptor) {
  return mine(descriptor) ? sync_watched(descriptor) : NEXT(fsync)(descriptor);
}

int fdatasync(int descriptor) {
  return mine(descriptor) ? sync_watched(descriptor) : NEXT(fdatasync)(descriptor);
}

int fcntl64(int descriptor, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (mine(descriptor) && (command == F_SETLK || command == F_SETLKW || command == F_GETLK)) {
    const struct flock *lock = argument;
    if (lock->l_type != F_UNLCK && fails(OP_LOCK))
      return -1;
  }
  return NEXT(fcntl64)(descriptor, command, argument);
}

void *mmap64(void *at, size_t length, int protection, int flags, int descriptor, off64_t offset) {
  if (mine(descriptor) && fails(OP_SHM_MAP))
    return MAP_FAILED;
  return NEXT(mmap64)(at, length, protection, flags, descriptor, offset);
}

int stat(const char *restrict path, struct stat *restrict status) {
  if (below(path) && fails(OP_LOOK))
    return -1;
  return NEXT(stat)(path, status);
}

int stat64(const char *restrict path, struct stat64 *restrict status) {
  if (below(path) && fails(OP_LOOK))
    return -1;
  return NEXT(stat64)(path, status);
}

int lstat(const char *restrict path, struct stat *restrict status) {
  if (below(path) && fails(OP_LOOK))
    return -1;
  return NEXT(lstat)(path, status);
}

int lstat64(const char *restrict path, struct stat64 *restrict status) {
  if (below(path) && fails(OP_LOOK))
    return -1;
  return NEXT(lstat64)(path, status);
}

int flock(int descriptor, int how) {
  if (mine(descriptor) && fails(OP_LOCK))
    return -1;
  return NEXT(flock)(descriptor, how);
}

int access(const char *path, int mode) {
  if (below(path) && fails(OP_LOOK))
    return -1;
  return NEXT(access)(path, mode);
}

int mkdir(const char *path, mode_t mode) {
  if (below(path) && fails(OP_NAME))
    return -1;
  int result = NEXT(mkdir)(path, mode);
  if (result == 0 && below(path))
    trace_made_folder(path);
  return result;
}

int link(const char *from, const char *to) {
  if (below(to) && fails(OP_NAME))
    return -1;
  int result = NEXT(link)(from, to);
  if (result == 0 && below(to))
    trace_named(to, from, false);
  return result;
}

int rename(const char *from, const char *to) {
  if (below(to) && fails(OP_NAME))
    return -1;
  int result = NEXT(rename)(from, to);
  if (result == 0 && below(to))
    trace_named(to, from, true);
  return result;
}

int unlink(const char *path) {
  if (below(path) && fails(OP_NAME))
    return -1;
  int result = NEXT(unlink)(path);
  if (result == 0 && below(path))
    trace_unnamed(path);
  return result;
}
