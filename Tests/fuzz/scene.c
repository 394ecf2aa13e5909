/* The environment of one run: folder, clock, randomness, key store. */
#define _GNU_SOURCE
#include "scene.h"

#include "judge.h"

#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

scene the_scene;

static char place[SCENE_PATH - 64];

/* ---- randomness: a fixed sequence, so that a run is repeatable ---- */

static uint64_t random_state;

static uint32_t next_word(void) {
  random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
  uint64_t word = random_state;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)(word >> 16);
}

static void fill(void *bytes, size_t size) {
  for (size_t at = 0; at < size; at++)
    ((uint8_t *)bytes)[at] = (uint8_t)next_word();
}

static const char *generator_name(void) { return "the fuzzer's"; }

/* Linked with --wrap=getrandom: the source of the seeds of Swift's hash tables. */
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags) {
  (void)flags;
  fill(bytes, size);
  return (ssize_t)size;
}

/* ---- files ---- */

static void each_file(const char *folder, void (*visit)(const char *path, void *context),
                      void *context) {
  DIR *listing = opendir(folder);
  if (listing == NULL)
    return;
  for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    char path[SCENE_PATH + 256];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    visit(path, context);
  }
  closedir(listing);
}

static void remove_all(const char *path, void *context) {
  if (unlink(path) != 0 && (errno == EISDIR || errno == EPERM)) {
    each_file(path, remove_all, context);
    rmdir(path);
  }
}

static void copy_file(const char *path, void *target) {
  struct stat status;
  if (stat(path, &status) != 0)
    return;
  char copy[2 * SCENE_PATH];
  snprintf(copy, sizeof copy, "%s%s", (const char *)target, strrchr(path, '/'));
  if (S_ISDIR(status.st_mode)) {
    mkdir(copy, 0700);
    each_file(path, copy_file, copy);
    return;
  }
  FILE *from = fopen(path, "rb"), *to = fopen(copy, "wb");
  char block[1 << 14];
  for (size_t count; from && to && (count = fread(block, 1, sizeof block, from)) > 0;)
    fwrite(block, 1, count, to);
  if (from != NULL)
    fclose(from);
  if (to != NULL)
    fclose(to);
}

void scene_damage(const char *name, long offset, const char *hex) {
  char path[SCENE_PATH + 32];
  /* Damage only closed files: SQLite maps open ones into memory. */
  for (size_t at = 0; at < SCENE_HANDLES; at++)
    if (the_scene.handles[at] != NULL)
      return;
  static const char *const names[] = {"holdfast.db", "cache.db",     "holdfast.db-wal",
                                      "keys/device", "keys/session", "keys/biometric"};
  const char *found = NULL;
  for (size_t at = 0; at < sizeof names / sizeof *names; at++)
    if (strcmp(name, names[at]) == 0)
      found = names[at];
  if (found == NULL || offset < 0 || offset > 1 << 20)
    return;
  snprintf(path, sizeof path, "%s/%s", the_scene.folder, found);
  the_scene.damaged = true;
  if (hex == NULL) {
    if (truncate(path, offset) != 0 && errno != ENOENT)
      judge_fail("truncate: %s", strerror(errno));
    return;
  }
  FILE *file = fopen(path, "r+b");
  if (file == NULL)
    return;
  fseek(file, offset, SEEK_SET);
  for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += hex[1] == 0 ? 1 : 2)
    fputc((int)byte, file);
  fclose(file);
}

/* ---- key store ---- */

scene_key *scene_find_key(const char *name) {
  if (strcmp(name, "device") == 0)
    return &the_scene.device;
  if (strcmp(name, "session") == 0)
    return &the_scene.session;
  return strcmp(name, "biometric") == 0 ? &the_scene.biometric : NULL;
}

static scene_key *asked(const char *name) {
  scene_key *key = scene_find_key(name);
  if (key == NULL)
    judge_fail("the library asks the key store for the unknown key %s", name);
  else if (key->reenters)
    judge_reentry();
  return key;
}

static int32_t load(void *context, const char *name, uint8_t *bytes, size_t capacity,
                    size_t *length) {
  (void)context;
  scene_key *key = asked(name);
  if (key == NULL || key->answer != HOLDFAST_KEY_OK)
    return key == NULL ? HOLDFAST_KEY_FAILED : key->answer;
  if (!key->present)
    return HOLDFAST_KEY_NOT_FOUND;
  memcpy(bytes, key->bytes, capacity < sizeof key->bytes ? capacity : sizeof key->bytes);
  *length = key->length;
  return HOLDFAST_KEY_OK;
}

static int32_t save(void *context, const char *name, const uint8_t *bytes, size_t length,
                    int32_t protection) {
  (void)context;
  (void)protection;
  scene_key *key = asked(name);
  if (key == NULL || key->answer != HOLDFAST_KEY_OK)
    return key == NULL ? HOLDFAST_KEY_FAILED : key->answer;
  if (length != sizeof key->bytes)
    judge_fail("the library saves a key of %zu bytes", length);
  memcpy(key->bytes, bytes, sizeof key->bytes);
  key->present = true;
  return HOLDFAST_KEY_OK;
}

static int32_t erase(void *context, const char *name) {
  (void)context;
  scene_key *key = asked(name);
  if (key == NULL || key->answer != HOLDFAST_KEY_OK)
    return key == NULL ? HOLDFAST_KEY_FAILED : key->answer;
  key->present = false;
  return HOLDFAST_KEY_OK;
}

/* ---- life ---- */

void scene_prepare(void) {
  const char *chosen = getenv("HOLDFAST_FUZZ_DIR");
  if (chosen == NULL)
    chosen = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
  snprintf(place, sizeof place, "%.300s/holdfast-fuzz-%d", chosen == NULL ? "/tmp" : chosen,
           (int)getpid());
  static randombytes_implementation generator = {
      .implementation_name = generator_name, .random = next_word, .buf = fill};
  if (randombytes_set_implementation(&generator) != 0)
    judge_fail("libsodium rejected the generator");
}

void scene_begin(void) {
  random_state = 1;
  memset(&the_scene, 0, sizeof the_scene);
  scene *it = &the_scene;
  snprintf(it->folder, sizeof it->folder, "%s", place);
  it->server.now_ms = 1795000000000;
  it->monotonic_ms = 7200000;
  it->server.user = USER;
  it->device.length = it->session.length = it->biometric.length = sizeof it->device.bytes;
  it->headers = json_object();
  for (size_t at = 0; at < SCENE_HANDLES; at++)
    it->requests[at] = json_array();
}

void scene_end(void) {
  for (the_scene.current = 0; the_scene.current < SCENE_HANDLES; the_scene.current++) {
    scene_close();
    json_decref(the_scene.requests[the_scene.current]);
  }
  json_decref(the_scene.headers);
  free(the_scene.last_upload);
  remove_all(the_scene.folder, NULL);
}

holdfast *scene_handle(void) { return the_scene.handles[the_scene.current]; }

void scene_tell_time(void) {
  char request[256];
  snprintf(request, sizeof request,
           "{\"now_ms\":%lld,\"monotonic_ms\":%lld,\"boot_id\":\"boot %d\"}",
           (long long)the_scene.server.now_ms, (long long)the_scene.monotonic_ms, the_scene.boots);
  judge_call("clock_set", holdfast_clock_set, scene_handle(), request);
}

/* Open with the built-in key store if the configuration names one; else with the scene's. */
static void open_with(const char *config, bool builtin) {
  static const holdfast_keystore store = {sizeof store, NULL, load, save, erase, NULL};
  scene_close();
  judge_open(config, builtin ? NULL : &store, &the_scene.handles[the_scene.current]);
  if (scene_handle() != NULL)
    scene_tell_time();
}

void scene_open_raw(const char *config) {
  open_with(config, strstr(config, "\"keystore\"") != NULL);
}

void scene_open(const char *changes) {
  json_t *config =
      json_pack("{s:s, s:{s:s, s:s}, s:[{s:s, s:s, s:s}, {s:s, s:s}, {s:s, s:s}], s:s, s:s, s:s}",
                "data_dir", the_scene.folder, "backend", "url", "https://example.org", "api_key",
                "k", "auth_methods", "id", "bankid", "provider", "bankid", "flow", "pkce", "id",
                "email", "flow", "password", "id", "apple", "flow", "id_token", "redirect_url",
                "app.example://signed-in", "clock", "manual", "template", "volunteers");
  json_t *wanted = changes == NULL ? NULL : json_loads(changes, 0, NULL);
  /* Files in another folder would never be removed. */
  json_object_del(wanted, "data_dir");
  json_object_update(config, wanted);
  char *text = json_dumps(config, JSON_COMPACT);
  open_with(text, json_object_get(config, "keystore") != NULL);
  free(text);
  json_decref(wanted);
  json_decref(config);
}

void scene_close(void) {
  holdfast_close(scene_handle());
  the_scene.handles[the_scene.current] = NULL;
  json_array_clear(the_scene.requests[the_scene.current]);
}

void scene_crash(void) {
  char copy[SCENE_PATH + 8];
  snprintf(copy, sizeof copy, "%s.copy", the_scene.folder);
  if (mkdir(copy, 0700) != 0)
    return;
  each_file(the_scene.folder, copy_file, copy);
  size_t kept = the_scene.current;
  for (the_scene.current = 0; the_scene.current < SCENE_HANDLES; the_scene.current++)
    scene_close();
  the_scene.current = kept;
  remove_all(the_scene.folder, NULL);
  if (rename(copy, the_scene.folder) != 0)
    judge_fail("rename: %s", strerror(errno));
}
