/* The operating system as the core needs it: clocks, locks, the wake descriptor, handles, files,
 * zeroing. The only C of the core. Nothing here is exported from the library. */
#ifndef HOLDFAST_PLATFORM_H
#define HOLDFAST_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PLATFORM_HIDDEN __attribute__((visibility("hidden")))
#else
#define PLATFORM_HIDDEN
#endif

/* ---- clocks ---- */

/* Milliseconds since 1970 by the device's clock. */
PLATFORM_HIDDEN int64_t platform_wall_ms(void);
/* Milliseconds of a clock that never steps and counts sleep; it starts anew at boot. */
PLATFORM_HIDDEN int64_t platform_monotonic_ms(void);
/* The kernel's id of this boot as text (at most 36 bytes), or "" where there is none. */
PLATFORM_HIDDEN void platform_boot_id(char id[37]);

/* ---- memory ---- */

/* Zero in a way that the optimiser keeps. */
PLATFORM_HIDDEN void platform_zero(void *bytes, size_t count);
/* Make jansson zero what it frees, where nobody has installed an allocator of his own, and tell
 * when there was no memory. */
PLATFORM_HIDDEN void platform_install_allocator(void);
/* Whether jansson was refused memory in this thread since platform_memory_begin(). It does not
 * always say so itself: its reader drops what it has no room for (2.14, `lex_save`). */
PLATFORM_HIDDEN bool platform_memory_exhausted(void);
PLATFORM_HIDDEN void platform_memory_begin(void);
/* A reply of `count` bytes, counted in platform_live(); NULL when there is no memory. */
PLATFORM_HIDDEN char *platform_reply(const char *bytes, size_t count);
PLATFORM_HIDDEN void platform_reply_free(void *reply);
PLATFORM_HIDDEN int64_t platform_live(void);

/* Room for a secret, shared with others up to 4 kB, in regions that `make` makes (libsodium's
 * guarded pages). NULL when there is no memory. */
PLATFORM_HIDDEN void *platform_secret_take(size_t count, void *(*make)(size_t));
/* Zero it and give it back; false for one that has a region of its own, which its maker's inverse
 * takes. */
PLATFORM_HIDDEN bool platform_secret_give(void *secret, size_t count);

/* ---- handles ---- */

typedef enum {
  PLATFORM_ENTERED = 0,
  PLATFORM_CLOSED = 1,
  PLATFORM_FORKED = 2,
  PLATFORM_REENTERED = 3,
} platform_entry;

/* Put `object` behind a fresh handle value; 0 when all slots are taken. */
PLATFORM_HIDDEN uintptr_t platform_handle_new(void *object);
/* Enter: the object, pinned and, if `exclusive`, locked, until platform_handle_leave(). */
PLATFORM_HIDDEN platform_entry platform_handle_enter(uintptr_t handle, bool exclusive,
                                                     void **object);
/* Leave. Returns the object when the handle was closed and nobody uses it any more: release it. */
PLATFORM_HIDDEN void *platform_handle_leave(uintptr_t handle, bool exclusive);
/* Close. Returns the object as platform_handle_leave() does, or NULL. */
PLATFORM_HIDDEN void *platform_handle_close(uintptr_t handle);
/* True while a slot of this value is open, without entering it. */
PLATFORM_HIDDEN bool platform_handle_open(uintptr_t handle);
/* The descriptor that is readable while something is to be done; -1 for a bad handle. */
PLATFORM_HIDDEN int platform_handle_descriptor(uintptr_t handle);
/* Raise or lower it. The handle must be entered. */
PLATFORM_HIDDEN void platform_handle_signal(uintptr_t handle, bool raised);
/* Wait until raised, closed, or the time is over. The handle must be entered, not exclusively. */
PLATFORM_HIDDEN platform_entry platform_handle_wait(uintptr_t handle, int timeout_ms);

/* ---- log ---- */

typedef void (*platform_log_fn)(void *context, int32_t level, const char *line);
PLATFORM_HIDDEN void platform_log_set(int32_t level, platform_log_fn fn, void *context);
PLATFORM_HIDDEN bool platform_log_wants(int32_t level);
PLATFORM_HIDDEN void platform_log(int32_t level, const char *line);
/* Around fork(): the child's lock must not be held by a thread that it does not have. */
PLATFORM_HIDDEN void platform_log_before_fork(void);
PLATFORM_HIDDEN void platform_log_after_fork(void);

/* ---- files: 0 or an errno ---- */

/* Create a folder with its parents, 0700; an existing one is left as it is. EPERM: it is another
 * user's, or everybody may write in it. */
PLATFORM_HIDDEN int platform_folder(const char *path);
/* Read at most `capacity` bytes; *length is what was read. */
PLATFORM_HIDDEN int platform_read(const char *path, void *bytes, size_t capacity, size_t *length);
/* Read `count` bytes from `offset`; *length is what there was. */
PLATFORM_HIDDEN int platform_read_at(const char *path, int64_t offset, void *bytes, size_t count,
                                     size_t *length);
/* Write a 0600 file in one step: temporary file, sync, rename, sync of the folder. */
PLATFORM_HIDDEN int platform_write(const char *path, const void *bytes, size_t length);
/* Like platform_write(), but never over an existing file (EEXIST). */
PLATFORM_HIDDEN int platform_write_new(const char *path, const void *bytes, size_t length);
PLATFORM_HIDDEN int platform_remove(const char *path);
PLATFORM_HIDDEN int platform_rename(const char *from, const char *to);
PLATFORM_HIDDEN bool platform_exists(const char *path);
/* -1: there is none; -2: it could not be looked at. */
PLATFORM_HIDDEN int64_t platform_size(const char *path);
/* What identifies the file at this path, whatever its name; 0: there is none. */
PLATFORM_HIDDEN uint64_t platform_file_id(const char *path);
/* Take the advisory lock of a file, creating it; the descriptor, or -errno (-EAGAIN: held). */
PLATFORM_HIDDEN int platform_file_lock(const char *path, bool exclusive, bool wait);
PLATFORM_HIDDEN void platform_file_unlock(int descriptor);
PLATFORM_HIDDEN int platform_process_id(void);
/* When a process of this id started, in clock ticks since boot; 0: there is none. */
PLATFORM_HIDDEN int64_t platform_process_start(int process);

/* errno values that Swift tells apart. */
enum {
  PLATFORM_NO_ENTRY = 2,
  PLATFORM_NOT_OURS = 1, /* EPERM */
  PLATFORM_NO_ACCESS = 13,
  PLATFORM_EXISTS = 17,
  PLATFORM_NO_SPACE = 28,
  PLATFORM_READ_ONLY = 30,
};

#endif
