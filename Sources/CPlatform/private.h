/* Opening files that nobody else may have put in place or be able to change. */
#ifndef HOLDFAST_PRIVATE_H
#define HOLDFAST_PRIVATE_H

#include "platform.h"

#include <sys/stat.h>
#include <sys/types.h>

/* Open a file without following a link and without waiting for a pipe's other end, and judge the
 * opened file as platform_check_file() does; a secret must be unreadable for others, too. Returns
 * the descriptor, or -errno or -PLATFORM_... */
PLATFORM_HIDDEN int private_open(const char *path, int how, bool is_secret);

/* Write a file or folder to the disk itself: fsync(), where that is enough. Returns 0 or -1. */
PLATFORM_HIDDEN int private_sync(int descriptor);

/* Tests build with PLATFORM_PORTABLE what other systems than Linux use. */
#if defined(__linux__) && !defined(PLATFORM_PORTABLE)
#define PLATFORM_LINUX
#endif

/* A descriptor that is readable while it is raised. */
typedef struct {
  int readable;
  int writable; /* the same one, or the other end of a pipe */
  bool raised;  /* the library has raised it since it last lowered it */
} private_wake;

PLATFORM_HIDDEN bool private_wake_make(private_wake *wake, bool raised);
PLATFORM_HIDDEN void private_wake_raise(private_wake *wake);
PLATFORM_HIDDEN void private_wake_lower(private_wake *wake);
/* A duplicate of the descriptor that the host holds stays as it is; that of a pipe is raised. */
PLATFORM_HIDDEN void private_wake_close(const private_wake *wake);

/* When the file was changed last, in nanoseconds. */
PLATFORM_HIDDEN int64_t private_changed(const struct stat *it);

/* ---- the process's watch for notices: the table of handles must be locked in all of this ---- */

/* Watch the file at this path. Returns the number by which the watch calls it, the same one for the
 * same file; -1: the system gives no watch. */
PLATFORM_HIDDEN int private_watch_add(const char *notice);

/* What is watched for moves: folders and links. */
enum { PRIVATE_PLACES = 48 };
typedef struct {
  int count;
  bool is_whole; /* everything that somebody with this user's rights could move is watched */
  int numbers[PRIVATE_PLACES];
} private_places;
/* Add every folder and link on the path of this length. */
PLATFORM_HIDDEN void private_watch_path(const char *path, size_t length, private_places *places);
/* End a watch by its number. */
PLATFORM_HIDDEN void private_watch_end(int number);

/* What the watch tells of a file or folder. */
typedef enum {
  PRIVATE_CHANGED,
  PRIVATE_KEYS,
  PRIVATE_MOVED,
  PRIVATE_LOST,
  PRIVATE_FILES, /* a file took the main file's name, or gave it up */
} private_news;
/* Hears it of the one that the watch calls `number`; -1: of any, with PRIVATE_LOST. */
typedef void private_hearer(int number, private_news news);
/* Pass on what the watch has, except what this process has just told by the file `own`: a change,
 * and one of the keys, if `keys`. */
PLATFORM_HIDDEN void private_watch_read(private_hearer *hear, int own, bool keys);

/* A descriptor that is readable while `raised` is, or while the watch has something; or -1. */
PLATFORM_HIDDEN int private_watch_join(const private_wake *raised);
/* Close it. A duplicate that the host holds stays readable. */
PLATFORM_HIDDEN void private_watch_leave(int joined);
/* After fork(): the child must not read its parent's watch. */
PLATFORM_HIDDEN void private_watch_close(void);

#endif
