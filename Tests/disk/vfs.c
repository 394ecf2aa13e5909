/* A shim over SQLite's "unix" VFS: it counts SQLite's operations and lets the system call beneath
 * the n-th one fail, so that SQLite's own code translates the errno. */
#include "disk.h"

#include <sqlite3.h>
#include <string.h>

typedef struct {
  sqlite3_file base;
  sqlite3_file *real;
} shim_file;

static sqlite3_vfs *unix_vfs;

static sqlite3_file *real_of(sqlite3_file *file) { return ((shim_file *)file)->real; }

static void enter(op_kind kind) { calls_enter_vfs(fault_at(kind)); }

static void leave(void) {
  if (!calls_leave_vfs())
    fault_return();
}

#define AROUND(kind, call)                                                                         \
  enter(kind);                                                                                     \
  int result = (call);                                                                             \
  leave();                                                                                         \
  return result
#define IO(name) real_of(file)->pMethods->name

static int shim_close(sqlite3_file *file) { return IO(xClose)(real_of(file)); }
static int shim_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  AROUND(OP_READ, IO(xRead)(real_of(file), bytes, count, offset));
}
static int shim_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  AROUND(OP_WRITE, IO(xWrite)(real_of(file), bytes, count, offset));
}
static int shim_truncate(sqlite3_file *file, sqlite3_int64 size) {
  AROUND(OP_TRUNCATE, IO(xTruncate)(real_of(file), size));
}
static int shim_sync(sqlite3_file *file, int flags) {
  AROUND(OP_SYNC, IO(xSync)(real_of(file), flags));
}
static int shim_size(sqlite3_file *file, sqlite3_int64 *size) {
  AROUND(OP_LOOK, IO(xFileSize)(real_of(file), size));
}
static int shim_lock(sqlite3_file *file, int level) {
  AROUND(OP_LOCK, IO(xLock)(real_of(file), level));
}
static int shim_unlock(sqlite3_file *file, int level) { return IO(xUnlock)(real_of(file), level); }
static int shim_reserved(sqlite3_file *file, int *taken) {
  AROUND(OP_LOCK, IO(xCheckReservedLock)(real_of(file), taken));
}
static int shim_control(sqlite3_file *file, int op, void *argument) {
  return IO(xFileControl)(real_of(file), op, argument);
}
static int shim_sector(sqlite3_file *file) { return IO(xSectorSize)(real_of(file)); }
static int shim_traits(sqlite3_file *file) { return IO(xDeviceCharacteristics)(real_of(file)); }
static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at) {
  AROUND(OP_SHM_MAP, IO(xShmMap)(real_of(file), page, size, extend, at));
}
static int shim_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  if (flags & SQLITE_SHM_UNLOCK)
    return IO(xShmLock)(real_of(file), offset, count, flags);
  AROUND(OP_SHM_LOCK, IO(xShmLock)(real_of(file), offset, count, flags));
}
static void shim_shm_barrier(sqlite3_file *file) { IO(xShmBarrier)(real_of(file)); }
static int shim_shm_unmap(sqlite3_file *file, int erase) {
  return IO(xShmUnmap)(real_of(file), erase);
}
static int shim_fetch(sqlite3_file *file, sqlite3_int64 offset, int count, void **at) {
  return IO(xFetch)(real_of(file), offset, count, at);
}
static int shim_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *at) {
  return IO(xUnfetch)(real_of(file), offset, at);
}

static const sqlite3_io_methods methods = {
    3,
    shim_close,
    shim_read,
    shim_write,
    shim_truncate,
    shim_sync,
    shim_size,
    shim_lock,
    shim_unlock,
    shim_reserved,
    shim_control,
    shim_sector,
    shim_traits,
    shim_shm_map,
    shim_shm_lock,
    shim_shm_barrier,
    shim_shm_unmap,
    shim_fetch,
    shim_unfetch,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
  (void)vfs;
  shim_file *it = (shim_file *)file;
  it->real = (sqlite3_file *)(it + 1);
  memset(it->real, 0, (size_t)unix_vfs->szOsFile);
  enter(OP_OPEN);
  int result = unix_vfs->xOpen(unix_vfs, name, it->real, flags, out);
  leave();
  it->base.pMethods = it->real->pMethods != NULL ? &methods : NULL;
  return result;
}
static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
  (void)vfs;
  AROUND(OP_NAME, unix_vfs->xDelete(unix_vfs, name, sync_folder));
}
static int shim_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
  (void)vfs;
  AROUND(OP_LOOK, unix_vfs->xAccess(unix_vfs, name, flags, out));
}
/* Do not sleep: waiting for a lock that a fault refuses only costs time. */
static int shim_sleep(sqlite3_vfs *vfs, int microseconds) {
  (void)vfs;
  return microseconds;
}
static int shim_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out) {
  (void)vfs;
  return unix_vfs->xFullPathname(unix_vfs, name, size, out);
}

void vfs_register(void) {
  static sqlite3_vfs shim;
  unix_vfs = sqlite3_vfs_find("unix");
  if (unix_vfs == NULL)
    die("SQLite has no \"unix\" VFS");
  shim = *unix_vfs; /* keeps its randomness and time */
  shim.zName = "holdfast-disk";
  shim.szOsFile = (int)sizeof(shim_file) + unix_vfs->szOsFile;
  shim.xOpen = shim_open;
  shim.xDelete = shim_delete;
  shim.xAccess = shim_access;
  shim.xFullPathname = shim_full_path;
  shim.xSleep = shim_sleep;
  if (sqlite3_vfs_register(&shim, 1) != SQLITE_OK)
    die("the shim VFS could not be registered");
}
