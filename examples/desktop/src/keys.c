/* The key store of the library, as functions. None of them waits for a person.
 *
 * device, session   in the desktop's secret service (secret.c). Where none runs, in files that only
 *                   this user can read.
 * biometric         in the fingerprint reader (reader.c), which releases it for a finger only.
 *
 * Which of the two holds the keys is decided once, at the first start. If the service does not run
 * later, the answer is `failed`, never `not_found`: the library would take the data for lost. */
#include "app.h"

#include <glib/gstdio.h>
#include <string.h>

enum { KEY_LENGTH = 32 };

void keys_open(app *app) {
  secret_open(app);
  GKeyFile *settings = g_key_file_new();
  g_key_file_load_from_file(settings, app->settings_file, G_KEY_FILE_NONE, NULL);
  char *chosen = g_key_file_get_string(settings, "keys", "in", NULL);
  if (chosen == NULL) {
    app->keys_in_service = secret_available();
    g_key_file_set_string(settings, "keys", "in", app->keys_in_service ? "service" : "files");
    g_key_file_save_to_file(settings, app->settings_file, NULL);
  } else {
    app->keys_in_service = strcmp(chosen, "service") == 0;
  }
  g_free(chosen);
  g_key_file_unref(settings);
}

/* ---- files ---- */

static int32_t file_load(const char *path, char **value) {
  GError *error = NULL;
  bool found = g_file_get_contents(path, value, NULL, &error);
  bool absent = g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_clear_error(&error);
  return found ? HOLDFAST_KEY_OK : absent ? HOLDFAST_KEY_NOT_FOUND : HOLDFAST_KEY_FAILED;
}

static int32_t file_save(const app *app, const char *path, const char *value) {
  g_mkdir_with_parents(app->keys_dir, 0700);
  /* Durable, and never half a file: written beside it, synced, renamed. */
  return g_file_set_contents_full(path, value, -1,
                                  G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                  0600, NULL)
             ? HOLDFAST_KEY_OK
             : HOLDFAST_KEY_FAILED;
}

static int32_t file_erase(const char *path) {
  g_unlink(path);
  return g_file_test(path, G_FILE_TEST_EXISTS) ? HOLDFAST_KEY_FAILED : HOLDFAST_KEY_OK;
}

/* ---- where this computer keeps them ---- */

int32_t keys_load(app *app, const char *name, char **value) {
  char *path = g_build_filename(app->keys_dir, name, NULL);
  int32_t result = app->keys_in_service ? secret_load(app, name, value) : file_load(path, value);
  g_free(path);
  return result;
}

int32_t keys_save(app *app, const char *name, const char *value) {
  char *path = g_build_filename(app->keys_dir, name, NULL);
  int32_t result =
      app->keys_in_service ? secret_save(app, name, value) : file_save(app, path, value);
  g_free(path);
  return result;
}

int32_t keys_erase(app *app, const char *name) {
  char *path = g_build_filename(app->keys_dir, name, NULL);
  int32_t result = app->keys_in_service ? secret_erase(app, name) : file_erase(path);
  g_free(path);
  return result;
}

/* ---- the functions ---- */

static bool is_biometric(const char *name) { return strcmp(name, "biometric") == 0; }

static int32_t load(void *context, const char *name, uint8_t *key, size_t capacity,
                    size_t *length) {
  app *app = context;
  char *value = NULL;
  int32_t result = is_biometric(name) ? reader_load(app, &value) : keys_load(app, name, &value);
  gsize count = 0;
  guchar *bytes = value == NULL ? NULL : g_base64_decode(value, &count);
  if (result == HOLDFAST_KEY_OK && count == KEY_LENGTH && capacity >= count)
    memcpy(key, bytes, *length = count);
  else if (result == HOLDFAST_KEY_OK)
    result = HOLDFAST_KEY_FAILED;
  if (bytes != NULL)
    explicit_bzero(bytes, count);
  g_free(bytes);
  holdfast_http_free(value); /* zeroes it */
  return result;
}

static int32_t save(void *context, const char *name, const uint8_t *key, size_t length,
                    int32_t protection) {
  (void)protection; /* the name says it */
  app *app = context;
  char *value = g_base64_encode(key, length);
  int32_t result = is_biometric(name) ? reader_save(app, value) : keys_save(app, name, value);
  holdfast_http_free(value);
  return result;
}

static int32_t erase(void *context, const char *name) {
  app *app = context;
  return is_biometric(name) ? reader_erase(app) : keys_erase(app, name);
}

holdfast_keystore keys_store(app *app) {
  return (holdfast_keystore){
      .size = sizeof(holdfast_keystore),
      .context = app,
      .load = load,
      .save = save,
      .erase = erase,
  };
}
