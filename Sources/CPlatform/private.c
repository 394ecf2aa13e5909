/* Whether a file or folder belongs to this user alone.
 *
 * Another user who owns or may write a file can change what the library believes, a link sends the
 * library's writes to another file, and a second name (a hard link) leaves a copy of what is erased
 * under the first. The files that this module opens are judged by their descriptors. SQLite's files
 * are judged by their names before SQLite opens them: closing a descriptor of one would drop the
 * locks that SQLite holds on it. In between nobody else can exchange them, because
 * nobody else may write the folder. */
#define _GNU_SOURCE
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A group may write if it is the user's private group: it has the user's number. Android gives the
 * group of an app's folder on shared storage to its own services, and its file system there has no
 * modes that could be changed. */
static bool others_may_write(const struct stat *it) {
  if ((it->st_mode & S_IWOTH) != 0)
    return true;
#ifdef __ANDROID__
  return false;
#else
  return (it->st_mode & S_IWGRP) != 0 && (it->st_gid != getegid() || it->st_gid != geteuid());
#endif
}

static int judge(const struct stat *it, uid_t user, bool is_secret) {
  if (S_ISLNK(it->st_mode))
    return PLATFORM_LINK;
  if (it->st_uid != user)
    return PLATFORM_FOREIGN;
  if (others_may_write(it))
    return PLATFORM_WRITABLE;
  if (S_ISDIR(it->st_mode))
    return 0;
  if (!S_ISREG(it->st_mode))
    return PLATFORM_NO_FILE;
  if (it->st_nlink > 1)
    return PLATFORM_SECOND_NAME;
  return is_secret && (it->st_mode & (S_IRGRP | S_IROTH)) != 0 ? PLATFORM_READABLE : 0;
}

static int check(const char *path, uid_t user, bool is_secret) {
  struct stat found;
  if (lstat(path, &found) != 0)
    return errno == ENOENT ? 0 : errno;
  return judge(&found, user, is_secret);
}

int platform_check_file(const char *path) { return check(path, geteuid(), false); }

int platform_check_folder(const char *folder, bool has_keys, const char **name) {
  static const char *const names[] = {
      "holdfast.db",
      "holdfast.db-wal",
      "holdfast.db-journal",
      "holdfast.db-shm",
      "cache.db",
      "cache.db-wal",
      "cache.db-journal",
      "cache.db-shm",
      "holdfast.db.damaged",
      "holdfast.db.keyless",
      "holdfast.handles",
      "holdfast.reserve",
      "keys",
      "keys/device.key",
      "keys/session.key",
      "keys/biometric.key",
  };
  enum { ALL = sizeof names / sizeof *names, KEYS = 4, SECRETS = 3 };
  char path[PATH_MAX];
  uid_t user = geteuid();
  *name = NULL;
  int problem = check(folder, user, false);
  for (int at = 0; problem == 0 && at < (has_keys ? ALL : ALL - KEYS); at++) {
    *name = names[at];
    if (snprintf(path, sizeof path, "%s/%s", folder, names[at]) >= (int)sizeof path)
      return ENAMETOOLONG;
    problem = check(path, user, at >= ALL - SECRETS);
  }
  return problem;
}

int private_open(const char *path, int how, bool is_secret) {
  int file = open(path, how | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0)
    return errno == ELOOP ? -PLATFORM_LINK : -errno;
  struct stat found;
  int problem = fstat(file, &found) == 0 ? judge(&found, geteuid(), is_secret) : errno;
  if (problem == 0)
    return file;
  close(file);
  return -problem;
}
