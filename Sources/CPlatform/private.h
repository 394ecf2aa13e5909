/* Opening files that nobody else may have put in place or be able to change. */
#ifndef HOLDFAST_PRIVATE_H
#define HOLDFAST_PRIVATE_H

#include "platform.h"

#include <sys/types.h>

/* Open a file without following a link and without waiting for a pipe's other end, and judge the
 * opened file as platform_check_file() does; a secret must be unreadable for others, too. Returns
 * the descriptor, or -errno or -PLATFORM_... */
PLATFORM_HIDDEN int private_open(const char *path, int how, bool is_secret);

#endif
