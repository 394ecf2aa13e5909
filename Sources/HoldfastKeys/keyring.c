/* The desktop's keyring (GNOME Keyring, KWallet, KeePassXC) as a key store, over libsecret, which
 * is loaded when the first keyring is made. So no host needs it otherwise.
 *
 * A key is found by the name that the host has given and by its own. It is never "not found"
 * because the keyring is locked, the service does not run or the user dismissed its prompt: the
 * library would take the data for lost. The keyring asks for no presence, so it keeps no key
 * "biometric".
 *
 * Of the key store's functions only a load and a save have the keyring ask the user to unlock it,
 * and none with HOLDFAST_KEYRING_SILENT. Many calls of the library load a key, also without the
 * user's doing. So a load does not ask for QUIET_MS after the user dismissed a prompt, nor for a
 * key that the keyring could not erase in that time, since the library does not want it any more.
 */
#define _GNU_SOURCE
#include "holdfast_keys.h"
#include "libsecret.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- libsecret ---- */

static secret_library lib;
static bool loaded = false;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* It is never unloaded: GLib cannot be. */
static void load_library(void) {
  void *handle = dlopen("libsecret-1.so.0", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL)
    return;
  const struct {
    const char *name;
    void *place;
  } all[] = {
      {"secret_service_get_sync", &lib.service_get},
      {"secret_attributes_build", &lib.attributes},
      {"secret_service_search_sync", &lib.search},
      {"secret_service_store_sync", &lib.store},
      {"secret_service_clear_sync", &lib.clear},
      {"secret_collection_for_alias_sync", &lib.collection},
      {"secret_collection_get_locked", &lib.collection_locked},
      {"secret_item_get_locked", &lib.item_locked},
      {"secret_item_get_secret", &lib.item_secret},
      {"secret_item_get_label", &lib.item_label},
      {"secret_item_set_label_sync", &lib.item_set_label},
      {"secret_value_new", &lib.value_new},
      {"secret_value_get", &lib.value_bytes},
      {"secret_value_unref", &lib.value_free},
      {"secret_error_get_quark", &lib.error_domain},
      {"g_object_unref", &lib.object_free},
      {"g_hash_table_unref", &lib.table_free},
      {"g_list_free_full", &lib.list_free},
      {"g_error_free", &lib.error_free},
      {"g_free", &lib.text_free},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *found = dlsym(handle, all[i].name);
    if (found == NULL)
      return;
    memcpy(all[i].place, &found, sizeof found); /* a function's address, as POSIX wants it */
  }
  loaded = true;
}

/* ---- a keyring ---- */

enum { QUIET_MS = 30000 };

struct holdfast_keyring {
  atomic_int shares;
  char *app, *folder;
  bool asks; /* a load and a save have the keyring ask the user to unlock it */
  holdfast_log_fn log;
  /* When a load may have the keyring ask again: for any key, and for the "session". */
  _Atomic(int64_t) asks_at, session_asks_at;
  pthread_mutex_t lock; /* protects the next two */
  char *label;     /* of its entries: the app and its folder; NULL: the folder is not there yet */
  char cause[256]; /* why the last operation failed; empty: it did not */
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Drop what is left of a character of UTF-8 at the end of a text that was cut. */
static void drop_half_character(char *text) {
  size_t length = strlen(text), first = length;
  while (first > 0 && ((unsigned char)text[first - 1] & 0xC0) == 0x80)
    first -= 1;
  if (first == 0 || (unsigned char)text[first - 1] < 0xC0)
    return;
  unsigned char lead = (unsigned char)text[first - 1];
  size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (length - (first - 1) < whole)
    text[first - 1] = 0;
}

/* Remember why an operation failed; a new cause is a line of the log. */
__attribute__((format(printf, 2, 3))) static void explain(holdfast_keyring *it, const char *format,
                                                          ...) {
  char cause[sizeof it->cause], line[sizeof cause + 32];
  va_list given;
  va_start(given, format);
  vsnprintf(cause, sizeof cause, format, given);
  va_end(given);
  drop_half_character(cause);
  pthread_mutex_lock(&it->lock);
  bool is_new = strcmp(cause, it->cause) != 0;
  memcpy(it->cause, cause, sizeof cause);
  pthread_mutex_unlock(&it->lock);
  snprintf(line, sizeof line, "secret service: %s", cause);
  if (is_new && *cause != 0 && it->log != NULL)
    it->log(NULL, 1, line);
}

void holdfast_keyring_cause(holdfast_keyring *it, char *cause, size_t capacity) {
  pthread_mutex_lock(&it->lock);
  snprintf(cause, capacity, "%s", it->cause);
  pthread_mutex_unlock(&it->lock);
}

/* ---- the folder of a name ---- */

/* The folder of the data stands in the label of each entry, so that a name that two folders use is
 * noticed: each would take the other's keys for its own, and overwrite them. */
static const char between[] = " in ";

/* Whether a label names a folder with data that is not ours. A folder that was moved is not there
 * any more. */
static const char *other_folder(const char *label, const char *app, const char *folder) {
  size_t length = strlen(app);
  struct stat theirs, ours;
  char data[4096];
  if (label == NULL || strncmp(label, app, length) != 0 ||
      strncmp(label + length, between, sizeof between - 1) != 0)
    return NULL;
  const char *named = label + length + sizeof between - 1;
  if (snprintf(data, sizeof data, "%s/holdfast.db", named) >= (int)sizeof data ||
      stat(data, &theirs) != 0 || stat(named, &theirs) != 0)
    return NULL;
  bool same = folder != NULL && stat(folder, &ours) == 0 && ours.st_dev == theirs.st_dev &&
              ours.st_ino == theirs.st_ino;
  return same ? NULL : named;
}

/* ---- the store ---- */

static const secret_schema schema = {
    .name = "org.holdfast.Key", .attributes = {{"app", 0}, {"name", 0}}, /* 0: strings */
};

static void *attributes_of(const char *app, const char *name) {
  return lib.attributes(&schema, "app", app, "name", name, NULL);
}

static bool is_session(const char *name) { return strcmp(name, "session") == 0; }
static bool is_biometric(const char *name) { return strcmp(name, "biometric") == 0; }

static int32_t locked(holdfast_keyring *it) {
  explain(it, "the keyring is locked, or its prompt was dismissed");
  return HOLDFAST_KEY_LOCKED;
}

static int32_t failed(holdfast_keyring *it, g_error *error) {
  bool is_locked = error != NULL && error->domain == lib.error_domain() && error->code == IS_LOCKED;
  bool is_its_own = error != NULL && error->domain == lib.error_domain();
  const char *said = error == NULL || error->message == NULL ? "" : error->message;
  if (is_its_own && !is_locked)
    explain(it, "it failed: %s", said);
  else if (!is_locked)
    explain(it, "none answers: %s%s", said,
            getenv("DBUS_SESSION_BUS_ADDRESS") == NULL
                ? " (DBUS_SESSION_BUS_ADDRESS is not set: there is no session bus)"
                : "");
  if (error != NULL)
    lib.error_free(error);
  return is_locked ? locked(it) : HOLDFAST_KEY_FAILED;
}

static int32_t done(holdfast_keyring *it) {
  explain(it, "%s", "");
  return HOLDFAST_KEY_OK;
}

/* The answer `otherwise`, unless the keyring where new keys go is locked. A search that found
 * nothing does not tell: a locked keyring need not say what is in it. */
static int32_t unless_locked(holdfast_keyring *it, void *service, int32_t otherwise) {
  g_error *error = NULL;
  void *collection = lib.collection(service, "default", 0, NULL, &error);
  if (error != NULL)
    return failed(it, error);
  bool is_locked = collection != NULL && lib.collection_locked(collection);
  if (collection != NULL)
    lib.object_free(collection);
  if (is_locked)
    return locked(it);
  done(it);
  return otherwise;
}

/* holdfast_open() makes the folder before it uses a key. */
static const char *label_of(holdfast_keyring *it) {
  pthread_mutex_lock(&it->lock);
  char *full = it->label == NULL ? realpath(it->folder, NULL) : NULL;
  if (full != NULL && asprintf(&it->label, "%s%s%s", it->app, between, full) < 0)
    it->label = NULL;
  free(full);
  const char *label = it->label == NULL ? it->app : it->label;
  pthread_mutex_unlock(&it->lock);
  return label;
}

/* Whether nothing that a save touches is locked. The service would ask the user. */
static int32_t unless_entry_locked(holdfast_keyring *it, void *service, void *attributes) {
  g_error *error = NULL;
  g_list *items = lib.search(service, &schema, attributes, 0, NULL, &error);
  if (error != NULL)
    return failed(it, error);
  bool is_locked = items != NULL && lib.item_locked(items->data);
  lib.list_free(items, lib.object_free);
  return is_locked ? locked(it) : unless_locked(it, service, HOLDFAST_KEY_OK);
}

/* The entry of a folder that was moved names the new one from now on. */
static void follow_folder(holdfast_keyring *it, void *item) {
  g_error *error = NULL;
  char *label = lib.item_label(item);
  const char *ours = label_of(it);
  if (label == NULL || strcmp(label, ours) != 0)
    lib.item_set_label(item, ours, NULL, &error);
  if (error != NULL) /* the next load tries again */
    lib.error_free(error);
  lib.text_free(label);
}

static int32_t copy_key(holdfast_keyring *it, void *item, uint8_t *key, size_t capacity,
                        size_t *length) {
  void *value = lib.item_secret(item);
  if (value == NULL)
    return locked(it);
  size_t size = 0;
  const char *bytes = lib.value_bytes(value, &size);
  bool fits = bytes != NULL && size > 0 && size <= capacity;
  if (fits) {
    memcpy(key, bytes, size);
    *length = size;
  }
  lib.value_free(value); /* libsecret wipes its copy */
  if (fits) {
    follow_folder(it, item);
    return done(it);
  }
  explain(it, "the entry has %zu bytes, which are no key", size);
  return HOLDFAST_KEY_FAILED;
}

static int32_t load(void *context, const char *name, uint8_t *key, size_t capacity,
                    size_t *length) {
  holdfast_keyring *it = context;
  if (is_biometric(name))
    return HOLDFAST_KEY_NOT_FOUND;
  g_error *error = NULL;
  void *service = lib.service_get(OPEN_SESSION, NULL, &error);
  if (service == NULL)
    return failed(it, error);
  /* Not secret_password_lookup(): after a dismissed prompt it reports that there is no key. */
  int64_t now = now_ms();
  bool asks = it->asks && now >= it->asks_at && (!is_session(name) || now >= it->session_asks_at);
  void *attributes = attributes_of(it->app, name);
  g_list *items = lib.search(service, &schema, attributes,
                             SEARCH_LOAD_SECRETS | (asks ? SEARCH_UNLOCK : 0), NULL, &error);
  lib.table_free(attributes);
  int32_t answer;
  if (error != NULL)
    answer = failed(it, error);
  else if (items == NULL)
    answer = unless_locked(it, service, HOLDFAST_KEY_NOT_FOUND);
  else if (lib.item_locked(items->data))
    answer = locked(it);
  else
    answer = copy_key(it, items->data, key, capacity, length);
  if (asks && answer == HOLDFAST_KEY_LOCKED)
    it->asks_at = now_ms() + QUIET_MS;
  lib.list_free(items, lib.object_free);
  lib.object_free(service);
  return answer;
}

static int32_t save(void *context, const char *name, const uint8_t *key, size_t length,
                    int32_t protection) {
  holdfast_keyring *it = context;
  if (is_biometric(name) || protection != HOLDFAST_PROTECT_DEVICE)
    return HOLDFAST_KEY_UNAVAILABLE;
  g_error *error = NULL;
  void *service = lib.service_get(OPEN_SESSION, NULL, &error);
  if (service == NULL)
    return failed(it, error);
  void *attributes = attributes_of(it->app, name);
  int32_t answer = it->asks ? HOLDFAST_KEY_OK : unless_entry_locked(it, service, attributes);
  if (answer == HOLDFAST_KEY_OK) {
    void *value = lib.value_new((const char *)key, (long)length, "application/octet-stream");
    if (!lib.store(service, &schema, attributes, "default", label_of(it), value, NULL, &error))
      answer = failed(it, error);
    lib.value_free(value);
  }
  lib.table_free(attributes);
  lib.object_free(service);
  if (answer != HOLDFAST_KEY_OK)
    return answer;
  it->asks_at = it->session_asks_at = 0;
  return done(it);
}

static int32_t erase(void *context, const char *name) {
  holdfast_keyring *it = context;
  if (is_biometric(name))
    return HOLDFAST_KEY_NOT_FOUND;
  g_error *error = NULL;
  void *service = lib.service_get(0, NULL, &error);
  if (service == NULL)
    return failed(it, error);
  /* It leaves out what is locked, and returns false without an error, as if there were no key. */
  void *attributes = attributes_of(it->app, name);
  g_list *left = NULL;
  bool cleared = lib.clear(service, &schema, attributes, NULL, &error);
  if (error == NULL)
    left = lib.search(service, &schema, attributes, 0, NULL, &error);
  lib.table_free(attributes);
  int32_t answer = HOLDFAST_KEY_FAILED;
  if (error != NULL)
    answer = failed(it, error);
  else if (left == NULL)
    answer = cleared ? done(it) : unless_locked(it, service, HOLDFAST_KEY_NOT_FOUND);
  else if (lib.item_locked(left->data))
    answer = locked(it);
  else
    explain(it, "the entry is still there");
  if (is_session(name))
    it->session_asks_at = answer == HOLDFAST_KEY_LOCKED ? now_ms() + QUIET_MS : 0;
  lib.list_free(left, lib.object_free);
  lib.object_free(service);
  return answer;
}

/* ---- another folder ---- */

char *holdfast_keyring_other_folder(holdfast_keyring *it) {
  if (*it->folder == 0) /* holdfast_open() refuses that */
    return NULL;
  g_error *error = NULL;
  void *service = lib.service_get(0, NULL, &error);
  if (service == NULL) { /* the first load says why */
    if (error != NULL)
      lib.error_free(error);
    return NULL;
  }
  void *attributes = attributes_of(it->app, "device");
  g_list *items = lib.search(service, &schema, attributes, 0, NULL, &error);
  lib.table_free(attributes);
  if (error != NULL)
    lib.error_free(error);
  char *full = realpath(it->folder, NULL); /* of a new folder it is not there yet */
  char *label = items == NULL ? NULL : lib.item_label(items->data);
  const char *other = other_folder(label, it->app, full);
  char *found = other == NULL ? NULL : strdup(other);
  free(full);
  lib.text_free(label);
  lib.list_free(items, lib.object_free);
  lib.object_free(service);
  return found;
}

/* ---- life ---- */

void holdfast_keyring_free(holdfast_keyring *it) {
  if (it == NULL || atomic_fetch_sub(&it->shares, 1) > 1)
    return;
  pthread_mutex_destroy(&it->lock);
  free(it->app);
  free(it->folder);
  free(it->label);
  free(it);
}

static void destroy(void *context) { holdfast_keyring_free(context); }

holdfast_keystore holdfast_keyring_keystore(holdfast_keyring *it) {
  atomic_fetch_add(&it->shares, 1);
  return (holdfast_keystore){
      .size = sizeof(holdfast_keystore),
      .context = it,
      .load = load,
      .save = save,
      .erase = erase,
      .destroy = destroy,
  };
}

int32_t holdfast_keyring_new(const char *name, const char *data_dir, int32_t locked,
                             holdfast_log_fn log, holdfast_keyring **keyring) {
  *keyring = NULL;
  pthread_once(&once, load_library);
  if (!loaded)
    return HOLDFAST_NOT_FOUND;
  holdfast_keyring *it = calloc(1, sizeof *it);
  if (it == NULL)
    return HOLDFAST_NOMEM;
  *it = (holdfast_keyring){.shares = 1,
                           .app = strdup(name),
                           .folder = strdup(data_dir),
                           .asks = locked == HOLDFAST_KEYRING_ASKS,
                           .log = log};
  pthread_mutex_init(&it->lock, NULL);
  if (it->app == NULL || it->folder == NULL) {
    holdfast_keyring_free(it);
    return HOLDFAST_NOMEM;
  }
  *keyring = it;
  return HOLDFAST_OK;
}
