/* A host's key store: three callbacks that load, save and erase a key by name.
 *
 * On a phone the platform's keychain holds all keys. Here the keys "device" and "session" are in
 * files outside the library's folder or in the desktop's secret service, and the reader's process
 * holds the biometric key. Return HOLDFAST_KEY_NOT_FOUND only when the key certainly does not
 * exist: the library then treats data that was sealed with it as lost. */
#define _GNU_SOURCE
#include "tour.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

static bool is_biometric(const char *name) { return strcmp(name, "biometric") == 0; }

static void path_of(const setting *where, const char *name, char path[PATH_ROOM]) {
  snprintf(path, PATH_ROOM, "%s/%s", where->key_dir, name);
}

static int32_t load(void *context, const char *name, uint8_t *key, size_t capacity,
                    size_t *length) {
  const setting *where = context;
  if (is_biometric(name))
    return reader_load(where->reader_socket, key, capacity, length);
  if (where->secret_service)
    return secret_service_load(where, name, key, capacity, length);
  char path[PATH_ROOM];
  path_of(where, name, path);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return errno == ENOENT ? HOLDFAST_KEY_NOT_FOUND : HOLDFAST_KEY_FAILED;
  ssize_t got = read(file, key, capacity);
  close(file);
  if (got <= 0)
    return HOLDFAST_KEY_FAILED;
  *length = (size_t)got;
  return HOLDFAST_KEY_OK;
}

static bool sync_folder(const char *folder) {
  int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool fine = descriptor >= 0 && fsync(descriptor) == 0;
  if (descriptor >= 0)
    close(descriptor);
  return fine;
}

/* Write a new file, sync it, then rename it: after a kill there is either the old key or the new
 * one. */
static int32_t save(void *context, const char *name, const uint8_t *key, size_t length,
                    int32_t protection) {
  const setting *where = context;
  if (is_biometric(name) != (protection == HOLDFAST_PROTECT_BIOMETRIC))
    return HOLDFAST_KEY_FAILED;
  if (is_biometric(name))
    return reader_save(where->reader_socket, key, length);
  if (where->secret_service)
    return secret_service_save(where, name, key, length);
  char path[PATH_ROOM], beside[PATH_ROOM + 8];
  path_of(where, name, path);
  snprintf(beside, sizeof beside, "%s.new", path);
  mkdir(where->key_dir, 0700);
  int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return HOLDFAST_KEY_FAILED;
  bool fine = write(file, key, length) == (ssize_t)length && fsync(file) == 0;
  fine = close(file) == 0 && fine;
  fine = fine && rename(beside, path) == 0 && sync_folder(where->key_dir);
  return fine ? HOLDFAST_KEY_OK : HOLDFAST_KEY_FAILED;
}

static int32_t erase(void *context, const char *name) {
  const setting *where = context;
  if (is_biometric(name))
    return reader_erase(where->reader_socket);
  if (where->secret_service)
    return secret_service_erase(where, name);
  char path[PATH_ROOM];
  path_of(where, name, path);
  bool gone = unlink(path) == 0 || errno == ENOENT;
  return gone && sync_folder(where->key_dir) ? HOLDFAST_KEY_OK : HOLDFAST_KEY_FAILED;
}

holdfast_keystore keystore_of(const setting *where) {
  return (holdfast_keystore){
      .size = sizeof(holdfast_keystore),
      .context = (void *)where,
      .load = load,
      .save = save,
      .erase = erase,
  };
}
