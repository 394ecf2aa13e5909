/* The fingerprint reader: a process of its own, which keeps the key `biometric` and releases it
 * only for a finger. Here the stage plays it (panel/stage.py). A message is a line of JSON:
 *
 *   {"operation":"load|save|erase","value":"base64"?,"prompt":bool} -> {"result":"ok|...","value"?}
 *
 * reader_unlock() asks for the finger, beside the library, and then calls session_unlock, in which
 * the library loads what the finger has released. It never waits for one: without a finger, the
 * reader answers at once. Cancelling closes the connection, so a finger that comes later releases
 * nothing. */
#include "app.h"

#include <gio/gunixsocketaddress.h>
#include <holdfast_keys.h>
#include <string.h>

static char *line_of(const char *operation, const char *value, bool prompts) {
  json_t *order =
      json_pack("{s:s, s:s?, s:b}", "operation", operation, "value", value, "prompt", prompts);
  char *text = json_dumps(order, JSON_COMPACT), *line = g_strconcat(text, "\n", NULL);
  holdfast_http_free(text); /* zeroes it */
  json_decref(order);
  return line;
}

static GDataInputStream *send_line(GSocketConnection *link, const char *line) {
  GIOStream *streams = G_IO_STREAM(link);
  if (link == NULL || !g_output_stream_write_all(g_io_stream_get_output_stream(streams), line,
                                                 strlen(line), NULL, NULL, NULL))
    return NULL;
  return g_data_input_stream_new(g_io_stream_get_input_stream(streams));
}

/* ---- what the library asks for ---- */

static int32_t result_of(const char *word) {
  int32_t result = holdfast_mailbox_result(word);
  return result < 0 ? HOLDFAST_KEY_FAILED : result;
}

static int32_t ask(app *app, const char *operation, const char *value) {
  char *line = line_of(operation, value, false);
  GSocketClient *client = g_socket_client_new();
  GSocketAddress *address = g_unix_socket_address_new(app->stage);
  GSocketConnection *link =
      g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, NULL);
  GDataInputStream *lines = send_line(link, line);
  char *text = lines == NULL ? NULL : g_data_input_stream_read_line_utf8(lines, NULL, NULL, NULL);
  json_t *said = text == NULL ? NULL : json_loads(text, 0, NULL);
  int32_t result = said == NULL ? HOLDFAST_KEY_UNAVAILABLE : result_of(text_at(said, "result"));
  json_decref(said);
  g_free(text);
  g_clear_object(&lines);
  g_clear_object(&link);
  g_object_unref(address);
  g_object_unref(client);
  holdfast_http_free(line);
  return result;
}

int32_t reader_load(app *app, char **value) {
  if (app->refused != HOLDFAST_KEY_OK)
    return app->refused;
  if (app->stage == NULL) /* this computer has no reader */
    return HOLDFAST_KEY_NOT_FOUND;
  if (app->released == NULL)
    return ask(app, "load", NULL);
  *value = g_strdup(app->released);
  return HOLDFAST_KEY_OK;
}

int32_t reader_save(app *app, const char *value) {
  return app->stage == NULL ? HOLDFAST_KEY_UNAVAILABLE : ask(app, "save", value);
}

int32_t reader_erase(app *app) {
  return app->stage == NULL ? HOLDFAST_KEY_OK : ask(app, "erase", NULL);
}

/* ---- the prompt ---- */

/* A question to the reader. */
typedef struct {
  app *app;
  GSocketConnection *link;
  GCancellable *cancelled;
} talk;

static talk *asking; /* the one whose prompt is on the screen */

void reader_tell(app *app, int32_t result, const char *key) {
  app->released = key;
  app->refused = result;
  host_do(app, "session_unlock", NULL);
  app->released = NULL;
  app->refused = HOLDFAST_KEY_OK;
}

static void end(talk *talk, int32_t result, const char *key) {
  app *app = talk->app;
  bool is_wanted = talk == asking;
  g_clear_object(&talk->link);
  g_clear_object(&talk->cancelled);
  g_free(talk);
  if (!is_wanted)
    return;
  asking = NULL;
  reader_cancel(app);
  reader_tell(app, result, key);
}

static void on_line(GObject *source, GAsyncResult *result, gpointer context) {
  GDataInputStream *lines = G_DATA_INPUT_STREAM(source);
  char *text = g_data_input_stream_read_line_finish_utf8(lines, result, NULL, NULL);
  json_t *said = text == NULL ? NULL : json_loads(text, 0, NULL);
  int32_t outcome = said == NULL ? HOLDFAST_KEY_UNAVAILABLE : result_of(text_at(said, "result"));
  end(context, outcome, outcome == HOLDFAST_KEY_OK ? text_at(said, "value") : NULL);
  json_decref(said);
  holdfast_http_free(text);
}

static void on_connected(GObject *source, GAsyncResult *result, gpointer context) {
  talk *talk = context;
  talk->link = g_socket_client_connect_finish(G_SOCKET_CLIENT(source), result, NULL);
  char *line = line_of("load", NULL, true);
  GDataInputStream *lines = send_line(talk->link, line);
  holdfast_http_free(line);
  if (lines == NULL) {
    end(talk, HOLDFAST_KEY_UNAVAILABLE, NULL);
    return;
  }
  g_data_input_stream_read_line_async(lines, G_PRIORITY_DEFAULT, talk->cancelled, on_line, talk);
  g_object_unref(lines);
}

void reader_cancel(app *app) {
  if (asking != NULL)
    g_cancellable_cancel(asking->cancelled); /* it ends on a later turn of the loop */
  asking = NULL;
  if (app->finger != NULL)
    gtk_window_destroy(GTK_WINDOW(app->finger));
}

static void on_dismissed(AdwMessageDialog *dialog, const char *response, gpointer context) {
  (void)dialog, (void)response;
  app *app = context;
  if (asking == NULL)
    return;
  g_clear_weak_pointer(&app->finger); /* it closes by itself */
  reader_cancel(app);
  reader_tell(app, HOLDFAST_KEY_CANCELLED, NULL);
}

void reader_unlock(app *app) {
  reader_cancel(app);
  if (app->stage == NULL) {
    reader_tell(app, HOLDFAST_KEY_UNAVAILABLE, NULL);
    return;
  }
  g_set_weak_pointer(&app->finger,
                     look_question(app, app->prompt, word("Put your finger on the reader.")));
  g_clear_weak_pointer(&app->question); /* a lock has its own way to end it */
  adw_message_dialog_add_response(app->finger, "cancel", word("Cancel"));
  g_signal_connect(app->finger, "response", G_CALLBACK(on_dismissed), app);
  gtk_window_present(GTK_WINDOW(app->finger));
  asking = g_new0(talk, 1);
  asking->app = app;
  asking->cancelled = g_cancellable_new();
  GSocketClient *client = g_socket_client_new();
  GSocketAddress *address = g_unix_socket_address_new(app->stage);
  g_socket_client_connect_async(client, G_SOCKET_CONNECTABLE(address), asking->cancelled,
                                on_connected, asking);
  g_object_unref(address);
  g_object_unref(client);
}
