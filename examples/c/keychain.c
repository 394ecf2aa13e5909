/* Keys in files. A phone's keychain has the same three functions, and asks for the finger itself;
 * here `prompt` says what the user did.
 *
 * Answer HOLDFAST_KEY_NOT_FOUND only when the key certainly does not exist: the library then treats
 * what was sealed with it as lost. */
#define _GNU_SOURCE
#include "keychain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4200 };

static void path_of(const keychain *keys, const char *name, char path[PATH_ROOM]) {
  snprintf(path, PATH_ROOM, "%s/%s", keys->folder, name);
}

static int32_t load(void *context, const char *name, uint8_t *key, size_t capacity,
                    size_t *length) {
  keychain *keys = context;
  char path[PATH_ROOM];
  path_of(keys, name, path);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return errno == ENOENT ? HOLDFAST_KEY_NOT_FOUND : HOLDFAST_KEY_FAILED;
  int32_t result = strcmp(name, "biometric") == 0 ? keys->prompt : HOLDFAST_KEY_OK;
  ssize_t count = result == HOLDFAST_KEY_OK ? read(file, key, capacity) : 0;
  close(file);
  *length = count > 0 ? (size_t)count : 0;
  return result == HOLDFAST_KEY_OK && count <= 0 ? HOLDFAST_KEY_FAILED : result;
}

static bool sync_folder(const keychain *keys) {
  int folder = open(keys->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool is_done = folder >= 0 && fsync(folder) == 0;
  if (folder >= 0)
    close(folder);
  return is_done;
}

/* Writes beside the file, syncs, renames: after a kill there is either the old key or the new one.
 */
static int32_t save(void *context, const char *name, const uint8_t *key, size_t length,
                    int32_t protection) {
  (void)protection; /* the name says it */
  const keychain *keys = context;
  char path[PATH_ROOM], beside[PATH_ROOM + 8];
  path_of(keys, name, path);
  snprintf(beside, sizeof beside, "%s.new", path);
  mkdir(keys->folder, 0700);
  int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return HOLDFAST_KEY_FAILED;
  bool is_written = write(file, key, length) == (ssize_t)length && fsync(file) == 0;
  is_written = close(file) == 0 && is_written;
  return is_written && rename(beside, path) == 0 && sync_folder(keys) ? HOLDFAST_KEY_OK
                                                                      : HOLDFAST_KEY_FAILED;
}

static int32_t erase(void *context, const char *name) {
  const keychain *keys = context;
  char path[PATH_ROOM];
  path_of(keys, name, path);
  if (unlink(path) != 0)
    return errno == ENOENT ? HOLDFAST_KEY_NOT_FOUND : HOLDFAST_KEY_FAILED;
  return sync_folder(keys) ? HOLDFAST_KEY_OK : HOLDFAST_KEY_FAILED;
}

holdfast_keystore keychain_store(keychain *keys) {
  return (holdfast_keystore){.size = sizeof(holdfast_keystore),
                             .context = keys,
                             .load = load,
                             .save = save,
                             .erase = erase};
}
