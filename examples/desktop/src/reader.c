/* The fingerprint reader: a process of its own, which keeps the key `biometric` and releases it
 * only for a finger. Here the stage plays it (panel/stage.py). A message is a line of JSON:
 *
 *   {"operation":"load|save|erase","value":"base64"?,"prompt":bool} -> {"result":"ok|...","value"?}
 *
 * While the answer to a load is out, the window asks for the finger. Cancelling closes the
 * connection, so a finger that comes later releases nothing. */
#include "app.h"

#include <gio/gunixsocketaddress.h>
#include <string.h>

typedef struct {
  app *app;
  holdfast *self;
  json_int_t id;
  char *line;
  GSocketConnection *link;
  GCancellable *cancelled;
  bool prompted;
  gulong watched; /* the signal of the prompt */
} talk;

static GList *talks; /* those that are not answered */

static void end(talk *talk, const char *result, const char *value) {
  app *app = talk->app;
  if (talk->watched != 0 && app->finger != NULL) {
    g_signal_handler_disconnect(app->finger, talk->watched);
    gtk_window_destroy(GTK_WINDOW(app->finger));
    app->finger = NULL;
  }
  if (app->self == talk->self) {
    keys_answer(app, talk->id, result, value);
    /* The key alone does not say whether the finger was wrong or the reader broke. */
    if (talk->prompted && strcmp(result, "failed") == 0)
      host_decide(app, "session_unlock", json_pack("{s:s}", "outcome", "failed"));
  }
  talks = g_list_remove(talks, talk);
  g_clear_object(&talk->link);
  g_clear_object(&talk->cancelled);
  g_free(talk->line);
  g_free(talk);
}

static void on_line(GObject *source, GAsyncResult *result, gpointer context) {
  talk *talk = context;
  GError *error = NULL;
  char *text =
      g_data_input_stream_read_line_finish_utf8(G_DATA_INPUT_STREAM(source), result, NULL, &error);
  json_t *said = text == NULL ? NULL : json_loads(text, 0, NULL);
  if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    end(talk, "cancelled", NULL);
  else if (said == NULL)
    end(talk, "unavailable", NULL);
  else
    end(talk, text_at(said, "result"), json_string_value(json_object_get(said, "value")));
  json_decref(said);
  holdfast_http_free(text);
  g_clear_error(&error);
}

static void on_connected(GObject *source, GAsyncResult *result, gpointer context) {
  talk *talk = context;
  talk->link = g_socket_client_connect_finish(G_SOCKET_CLIENT(source), result, NULL);
  if (talk->link == NULL ||
      !g_output_stream_write_all(g_io_stream_get_output_stream(G_IO_STREAM(talk->link)), talk->line,
                                 strlen(talk->line), NULL, NULL, NULL)) {
    end(talk, g_cancellable_is_cancelled(talk->cancelled) ? "cancelled" : "unavailable", NULL);
    return;
  }
  GDataInputStream *lines =
      g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(talk->link)));
  g_data_input_stream_read_line_async(lines, G_PRIORITY_DEFAULT, talk->cancelled, on_line, talk);
  g_object_unref(lines);
}

static void on_dismissed(AdwMessageDialog *dialog, const char *response, gpointer context) {
  (void)dialog, (void)response;
  talk *talk = context;
  talk->app->finger = NULL; /* it closes by itself */
  g_cancellable_cancel(talk->cancelled);
}

static void prompt(app *app, talk *talk, const char *text) {
  app->finger = look_question(app, text, word("Put your finger on the reader."));
  g_clear_weak_pointer(&app->question); /* it ends with the reader's answer, not with a lock */
  adw_message_dialog_add_response(app->finger, "cancel", word("Cancel"));
  talk->watched = g_signal_connect(app->finger, "response", G_CALLBACK(on_dismissed), talk);
  gtk_window_present(GTK_WINDOW(app->finger));
}

void reader_serve(app *app, const json_t *request) {
  const char *text = json_string_value(json_object_get(request, "prompt"));
  if (app->stage == NULL) { /* this computer has no reader */
    keys_answer(app, number_at(request, "id"),
                is_text(request, "operation", "save") ? "unavailable" : "not_found", NULL);
    return;
  }
  json_t *order = json_pack("{s:O, s:O, s:b}", "operation", json_object_get(request, "operation"),
                            "value", json_object_get(request, "value"), "prompt", text != NULL);
  char *line = json_dumps(order, JSON_COMPACT);
  talk *talk = g_malloc(sizeof *talk);
  memset(talk, 0, sizeof *talk);
  talk->app = app;
  talk->self = app->self;
  talk->id = number_at(request, "id");
  talk->line = g_strconcat(line, "\n", NULL);
  talk->prompted = text != NULL;
  talk->cancelled = g_cancellable_new();
  talks = g_list_prepend(talks, talk);
  holdfast_http_free(line);
  json_decref(order);
  if (text != NULL)
    prompt(app, talk, text);
  GSocketClient *client = g_socket_client_new();
  GSocketAddress *address = g_unix_socket_address_new(app->stage);
  g_socket_client_connect_async(client, G_SOCKET_CONNECTABLE(address), talk->cancelled,
                                on_connected, talk);
  g_object_unref(address);
  g_object_unref(client);
}

void reader_cancel(app *app, json_int_t id) {
  for (GList *each = talks; each != NULL; each = each->next) {
    talk *talk = each->data;
    if (talk->self == app->self && talk->id == id) {
      g_cancellable_cancel(talk->cancelled); /* it is answered on a later turn of the loop */
      return;
    }
  }
}
