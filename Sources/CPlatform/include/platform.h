/* The core's interface to the operating system: clocks, memory, handles with locks and wake
 * descriptors, the log, files. This module is the only C of the core. The library exports none of
 * it. */
#ifndef HOLDFAST_PLATFORM_H
#define HOLDFAST_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define PLATFORM_HIDDEN __attribute__((visibility("hidden")))
#else
#define PLATFORM_HIDDEN
#endif

/* ---- clocks ---- */

/* Milliseconds since 1970 by the device's clock. */
PLATFORM_HIDDEN int64_t platform_wall_ms(void);
/* Milliseconds on a clock that never jumps and counts sleep. It restarts at every boot. */
PLATFORM_HIDDEN int64_t platform_monotonic_ms(void);
/* The kernel's id of this boot as text of at most 36 bytes, or "" where there is none. */
PLATFORM_HIDDEN void platform_boot_id(char id[37]);

/* ---- the build ---- */

/* The text of holdfast_build_info(): static, made by the first call. */
PLATFORM_HIDDEN const char *platform_build_info(const char *version, int32_t abi,
                                                const char *sqlite, const char *libsodium,
                                                const char *jansson);

/* ---- addresses ---- */

/* The bytes of an IP address, and their number: 4, 16, or 0 for a text that is no address. IPv4 has
 * four decimal numbers: no fewer, and no other base. */
PLATFORM_HIDDEN int platform_address(const uint8_t *text, size_t count, uint8_t bytes[16]);

/* ---- letters ---- */

/* What a character is in a name: a letter or digit; a mark upon a letter; what is not seen, such as
 * joiners and apostrophes; what ends a word. */
enum { PLATFORM_LETTER, PLATFORM_MARK, PLATFORM_UNSEEN, PLATFORM_GAP };
PLATFORM_HIDDEN int platform_letter_kind(uint32_t character);
/* The small letters and the marks of a character, and their number: all spellings of a letter have
 * the same ones (canonical decomposition and case folding of Unicode; digraphs are two letters). */
enum { PLATFORM_LETTER_PARTS = 8 };
PLATFORM_HIDDEN int platform_letter_parts(uint32_t character,
                                          uint32_t parts[PLATFORM_LETTER_PARTS]);
/* A small letter without its stroke, hook or bar; others are returned as they are. */
PLATFORM_HIDDEN uint32_t platform_letter_base(uint32_t letter);

/* ---- memory ---- */

/* Zero memory; the optimiser does not remove the call. */
PLATFORM_HIDDEN void platform_zero(void *bytes, size_t count);
/* Make jansson zero memory when it frees it, and note failed allocations for
 * platform_memory_exhausted(). */
PLATFORM_HIDDEN void platform_install_allocator(void);
/* Whether an allocation of jansson has failed in this thread since platform_memory_begin(). jansson
 * does not always report that: its lexer drops bytes that it has no room for (2.14, `lex_save`). */
PLATFORM_HIDDEN bool platform_memory_exhausted(void);
PLATFORM_HIDDEN void platform_memory_begin(void);
/* json_loadb() for a text whose longest token (string or number, as written, without quotes) has at
 * most so many bytes. Refused memory ends no process then. NULL also if an allocation has failed in
 * this thread since platform_memory_begin(). `problem`: a json_error_t, or NULL. Returns a json_t.
 */
PLATFORM_HIDDEN void *platform_read_json(const char *bytes, size_t count, size_t longest,
                                         size_t flags, void *problem);
/* A copy of a reply of `count` bytes, ended by a NUL; NULL when there is no memory. */
PLATFORM_HIDDEN char *platform_reply(const char *bytes, size_t count);
/* Zero and release a reply. */
PLATFORM_HIDDEN void platform_reply_free(void *reply);
/* A text that grows; its memory is zeroed before it is released. All zeros: empty. */
typedef struct {
  char *start;
  size_t count;
  size_t capacity;
} platform_text;
/* Append to a text. -1: there is no memory. The form of jansson's json_dump_callback_t. */
PLATFORM_HIDDEN int platform_text_append(const char *bytes, size_t count, void *text);
/* Give a text a block of this size, which is not less than its count. -1: there is no memory. */
PLATFORM_HIDDEN int platform_text_reserve(size_t capacity, void *text);
PLATFORM_HIDDEN void platform_text_free(platform_text *text);

/* The number of replies and handles that the host has not released yet. */
PLATFORM_HIDDEN int64_t platform_live(void);
/* Change that number. */
PLATFORM_HIDDEN void platform_live_add(int by);

/* Memory for a secret. Up to 4 kB it shares a region with others. `make` allocates a region, in
 * libsodium's guarded pages. NULL when there is no memory. */
PLATFORM_HIDDEN void *platform_secret_take(size_t count, void *(*make)(size_t));
/* Zero a secret and release its memory. False for a secret of more than 4 kB, which has its own
 * region: the caller releases it with the inverse of `make`. */
PLATFORM_HIDDEN bool platform_secret_give(void *secret, size_t count);

/* The system refused to lock a region of secrets in memory. */
PLATFORM_HIDDEN void platform_secret_not_locked(void);
/* Whether to warn of that now: once per process, as soon as somebody listens to the log. */
PLATFORM_HIDDEN bool platform_secret_warns(void);

/* ---- handles ---- */

typedef enum {
  PLATFORM_ENTERED = 0,
  PLATFORM_CLOSED = 1,
  PLATFORM_FORKED = 2,
  PLATFORM_REENTERED = 3,
} platform_entry;

/* Make a new handle for `object`, which works on the data of `folder`. Returns 0 when all slots are
 * taken. */
PLATFORM_HIDDEN uintptr_t platform_handle_new(void *object, const char *folder);
/* In a process that was made by fork(): call `disown` for each handle of the parent, once. It must
 * call nothing of this file. False: a thread was inside a call on one of them at the fork. */
PLATFORM_HIDDEN bool platform_handles_disown(void (*disown)(void *object));
/* Begin a call on a handle: sets the object, which stays alive until platform_handle_leave(). With
 * `exclusive`, waits for the handle's lock and takes it. */
PLATFORM_HIDDEN platform_entry platform_handle_enter(uintptr_t handle, bool exclusive,
                                                     void **object);
/* Around a function of a host's key store: until it ends, this thread enters no handle. */
PLATFORM_HIDDEN void platform_callback(bool begins);
PLATFORM_HIDDEN bool platform_callback_runs(void);
/* End a call. Returns the object when the handle is closed and this was its last call: the caller
 * releases it. */
PLATFORM_HIDDEN void *platform_handle_leave(uintptr_t handle, bool exclusive);
/* Close a handle. Returns the object if no call is inside, for the caller to release; else NULL. */
PLATFORM_HIDDEN void *platform_handle_close(uintptr_t handle);
/* Who waits on a handle: bit 0 of the number takes news, bit 1 requests. */
enum { PLATFORM_READERS = 4 };
/* The descriptor that is readable while this reader should ask; -1 for an invalid handle, or where
 * none could be made. */
PLATFORM_HIDDEN int platform_handle_descriptor(uintptr_t handle, int reader);
/* Tell the other handles of this process on the folder that this one changed the data: their
 * descriptors become readable. The caller must have entered the handle, as for the one below. */
PLATFORM_HIDDEN void platform_handle_tell(uintptr_t handle);
/* Make the descriptors of these readers readable, as bits, and those of the others not. All stay
 * readable if another handle has told of a change since the caller entered: what it found out may
 * be older. */
PLATFORM_HIDDEN void platform_handle_signal(uintptr_t handle, uint32_t readers);
/* Wait until the reader's descriptor is readable, the handle is closed, or the time is over. The
 * caller must have entered the handle, but not exclusively. */
PLATFORM_HIDDEN void platform_handle_wait(uintptr_t handle, int reader, int timeout_ms);

/* ---- handles of other processes on a folder ---- */

/* Note in the file at `path`, which is made if needed (mode 0600), that this process has a handle.
 * Returns a descriptor for platform_neighbours_close(); -1: others do not see it, nor it them. */
PLATFORM_HIDDEN int platform_neighbours_open(const char *path);
/* Whether another process has a handle on the folder. */
PLATFORM_HIDDEN bool platform_neighbours_exist(int descriptor);
PLATFORM_HIDDEN void platform_neighbours_close(int descriptor);

/* ---- log ---- */

typedef void (*platform_log_fn)(void *context, int32_t level, const char *line);
/* Set the function that receives log lines up to `level`; NULL for none. */
PLATFORM_HIDDEN void platform_log_set(int32_t level, platform_log_fn fn, void *context);
PLATFORM_HIDDEN void platform_log_to_stderr(void);
PLATFORM_HIDDEN bool platform_log_wants(int32_t level);
PLATFORM_HIDDEN void platform_log(int32_t level, const char *line);
/* Take and release the log's lock around fork(), so that it is free in the child, which has none of
 * the parent's other threads. */
PLATFORM_HIDDEN void platform_log_before_fork(void);
PLATFORM_HIDDEN void platform_log_after_fork(bool in_child);

/* ---- files: functions that return int return 0 or an errno ---- */

/* Create a folder (mode 0700) with its parents. An existing folder stays as it is. */
PLATFORM_HIDDEN int platform_folder(const char *path);
/* Whether this user alone can change the file or folder of this name: 0, also when there is none;
 * an errno; or one of PLATFORM_LINK and the following. The functions below that open a file judge
 * it, too, except those that write a new one. */
PLATFORM_HIDDEN int platform_check_file(const char *path);
/* The same for a data folder and the files in it. *name: the one that is not in order; NULL: the
 * folder itself. */
PLATFORM_HIDDEN int platform_check_folder(const char *folder, bool has_keys, const char **name);
/* Read at most `capacity` bytes; sets *length to the number read. A secret must be readable by
 * this user alone. */
PLATFORM_HIDDEN int platform_read_secret(const char *path, void *bytes, size_t capacity,
                                         size_t *length);
/* Read at most `count` bytes from `offset`; sets *length to the number read. */
PLATFORM_HIDDEN int platform_read_at(const char *path, int64_t offset, void *bytes, size_t count,
                                     size_t *length);
/* Write a file (mode 0600) atomically: temporary file, sync, rename, sync of the folder. */
PLATFORM_HIDDEN int platform_write(const char *path, const void *bytes, size_t length);
/* As platform_write(), but the old file is overwritten with zeros before the new one takes its
 * place. While the new one cannot be written, the old one stays as it is. */
PLATFORM_HIDDEN int platform_write_secret(const char *path, const void *bytes, size_t length);
/* Make an empty file (mode 0600), durably; EEXIST when there is one. */
PLATFORM_HIDDEN int platform_create(const char *path);
/* Copy a file over another one, in pages of `size` bytes. `count` above 0: both are databases, and
 * the other one has so many pages, of which those that `kept` names stay; where the copied file
 * ends before them, zeros follow. It no longer says how many pages it has, so SQLite asks for its
 * size. */
PLATFORM_HIDDEN int platform_copy_pages(const char *from, const char *to, size_t size,
                                        const bool *kept, size_t count);
PLATFORM_HIDDEN int platform_remove(const char *path);
/* Overwrite a file with zeros, sync it, and remove it. */
PLATFORM_HIDDEN int platform_erase(const char *path);
PLATFORM_HIDDEN int platform_rename(const char *from, const char *to);
PLATFORM_HIDDEN bool platform_exists(const char *path);
/* Whether the path names a folder. */
PLATFORM_HIDDEN bool platform_is_folder(const char *path);
/* platform_exists() for a folder and a name that begins with a slash. */
PLATFORM_HIDDEN bool platform_exists_in(const char *folder, const char *name);
/* The absolute path without links, with a NUL, in `capacity` bytes. */
PLATFORM_HIDDEN int platform_real_path(const char *path, char *real, size_t capacity);
/* The size of a file; -1: there is none; -2: it cannot be examined. */
PLATFORM_HIDDEN int64_t platform_size(const char *path);
/* The same, with the file's id as platform_file_id() gives it. */
PLATFORM_HIDDEN int64_t platform_size_and_id(const char *path, uint64_t *file);
/* The inode number of the file at this path, which stays when it is renamed; 0: there is none. */
PLATFORM_HIDDEN uint64_t platform_file_id(const char *path);
/* Take the advisory lock of a folder. Returns the descriptor or -errno (-EBUSY: somebody holds the
 * lock, and the call has waited long enough). */
PLATFORM_HIDDEN int platform_folder_lock(const char *path, bool exclusive);
/* How long a call waits for locks that others hold: for all that it meets together. */
enum { PLATFORM_PATIENCE_MS = 5000 };
/* A call begins on this thread. */
PLATFORM_HIDDEN void platform_patience_begin(void);
/* Wait a moment for a lock after `tries` moments. False: the call has waited long enough. */
PLATFORM_HIDDEN bool platform_patience_wait(int tries);
/* Wait half as long as others do between two looks at a lock. A thread that takes one lock after
 * another has to, or nobody else would ever find it free. */
PLATFORM_HIDDEN void platform_patience_give(void);
PLATFORM_HIDDEN void platform_folder_unlock(int descriptor);
/* Make a file at least of this size (mode 0600) whose blocks are allocated; it stays as it is when
 * there is no room. */
PLATFORM_HIDDEN int platform_reserve(const char *path, int64_t size);
/* Whether this errno says that there is no room for more: on the disk, in a quota, in the file. */
PLATFORM_HIDDEN bool platform_is_full(int problem);
/* How large a file of this process may be (RLIMIT_FSIZE). */
PLATFORM_HIDDEN int64_t platform_file_limit(void);
/* Give the blocks of a file back, but for its first `size` bytes. */
PLATFORM_HIDDEN int platform_shrink(const char *path, int64_t size);
PLATFORM_HIDDEN int platform_process_id(void);
/* A number of a process's start that no later process of the same id has, within a boot;
 * PLATFORM_START_UNKNOWN: it runs, but the system does not tell since when; 0: there is no such
 * process. */
PLATFORM_HIDDEN int64_t platform_process_start(int process);
enum { PLATFORM_START_UNKNOWN = -1 };
/* Whether a sync that reaches the disk must be asked of SQLite, too (PRAGMA fullfsync). */
PLATFORM_HIDDEN bool platform_syncs_fully(void);

/* errno values that Swift tells apart. */
enum {
  PLATFORM_NO_ENTRY = 2,
  PLATFORM_NO_ACCESS = 13,
  PLATFORM_BUSY = 16,
  PLATFORM_EXISTS = 17,
  PLATFORM_SYSTEM_FILES = 23,  /* no descriptor is left on the system */
  PLATFORM_PROCESS_FILES = 24, /* none in the process */
  PLATFORM_NO_FOLDER = 20,
  PLATFORM_IS_FOLDER = 21,
  PLATFORM_NO_SPACE = 28,
  PLATFORM_READ_ONLY = 30,
};

/* Why a file is not private; beyond every errno. */
enum {
  PLATFORM_LINK = 10001,
  PLATFORM_FOREIGN = 10002,     /* another user owns it */
  PLATFORM_WRITABLE = 10003,    /* others may write it */
  PLATFORM_NO_FILE = 10004,     /* a pipe, a device */
  PLATFORM_SECOND_NAME = 10005, /* a hard link */
  PLATFORM_READABLE = 10006,    /* others may read it */
};

#endif
