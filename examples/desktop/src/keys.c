/* The key store, of kind "host": the library asks for key operations as events and never waits.
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

void keys_answer(app *app, json_int_t id, const char *result, const char *value) {
  json_t *answer = json_pack("{s:I, s:s}", "id", id, "result", result);
  if (value != NULL)
    json_object_set_new(answer, "value", json_string(value));
  if (app->self != NULL)
    json_decref(host_call(app, "key_complete", answer));
  else
    json_decref(answer);
}

void keys_open(app *app) {
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

static void file_load(app *app, json_int_t id, const char *path) {
  char *value = NULL;
  GError *error = NULL;
  if (g_file_get_contents(path, &value, NULL, &error))
    keys_answer(app, id, "ok", value);
  else
    keys_answer(app, id,
                g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT) ? "not_found" : "failed",
                NULL);
  g_clear_error(&error);
  holdfast_http_free(value);
}

static void file_save(app *app, json_int_t id, const char *path, const char *value) {
  g_mkdir_with_parents(app->keys_dir, 0700);
  /* Durable, and never half a file: written beside it, synced, renamed. */
  bool fine = g_file_set_contents_full(
      path, value, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0600, NULL);
  keys_answer(app, id, fine ? "ok" : "failed", NULL);
}

static void file_erase(app *app, json_int_t id, const char *path) {
  g_unlink(path);
  keys_answer(app, id, g_file_test(path, G_FILE_TEST_EXISTS) ? "failed" : "ok", NULL);
}

void keys_serve(app *app, const json_t *request) {
  const char *name = text_at(request, "name"), *operation = text_at(request, "operation");
  json_int_t id = number_at(request, "id");
  if (strcmp(name, "biometric") == 0) {
    reader_serve(app, request);
    return;
  }
  if (app->keys_in_service) {
    secret_serve(app, id, operation, name, json_string_value(json_object_get(request, "value")));
    return;
  }
  char *path = g_build_filename(app->keys_dir, name, NULL);
  if (strcmp(operation, "load") == 0)
    file_load(app, id, path);
  else if (strcmp(operation, "save") == 0)
    file_save(app, id, path, text_at(request, "value"));
  else
    file_erase(app, id, path);
  g_free(path);
}
