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

PLATFORM_HIDDEN bool private_wake_make(private_wake *wake);
PLATFORM_HIDDEN void private_wake_raise(private_wake *wake);
PLATFORM_HIDDEN void private_wake_lower(private_wake *wake);
/* A duplicate of the descriptor that the host holds stays as it is; that of a pipe is raised. */
PLATFORM_HIDDEN void private_wake_close(const private_wake *wake);

#endif
