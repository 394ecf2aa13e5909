/* The stage of a demo or a test: whether there is a network, what time it is, and whether the app
 * is on the screen. panel/stage.py is the other side. Each line that it sends is a whole state:
 *
 *   {"online":true,"clock_ms":0,"front":true}
 *
 * Without HOLDFAST_STAGE none of this runs: the network is what the desktop says. */
#include "app.h"

#include <gio/gunixsocketaddress.h>
#include <string.h>

static void apply(app *app, const char *text) {
  json_t *state = json_loads(text, 0, NULL);
  gint64 clock_ms = number_at(state, "clock_ms");
  bool online = json_is_true(json_object_get(state, "online"));
  app->stage_clock_ms = clock_ms;
  app->stage_online = online;
  bool front = !json_is_false(json_object_get(state, "front"));
  json_decref(state);
  if (app->self == NULL)
    return;
  json_decref(host_call(app, "network_report", json_pack("{s:b}", "online", online)));
  if (front)
    host_do(app, "session_foreground", NULL);
  else
    json_decref(host_call(app, "session_background", NULL));
  window_refresh(app);
}

static void on_line(GObject *source, GAsyncResult *result, gpointer context) {
  GDataInputStream *lines = G_DATA_INPUT_STREAM(source);
  char *text = g_data_input_stream_read_line_finish_utf8(lines, result, NULL, NULL);
  if (text == NULL) { /* the stage has ended */
    g_object_unref(lines);
    return;
  }
  apply(context, text);
  g_free(text);
  g_data_input_stream_read_line_async(lines, G_PRIORITY_DEFAULT, NULL, on_line, context);
}

bool stage_open(app *app) {
  if (app->stage == NULL)
    return true;
  GSocketClient *client = g_socket_client_new();
  GSocketAddress *address = g_unix_socket_address_new(app->stage);
  GSocketConnection *link =
      g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, NULL);
  g_object_unref(address);
  g_object_unref(client);
  if (link == NULL)
    return false;
  const char hello[] = "{\"operation\":\"watch\"}\n";
  g_output_stream_write_all(g_io_stream_get_output_stream(G_IO_STREAM(link)), hello,
                            sizeof hello - 1, NULL, NULL, NULL);
  GDataInputStream *lines =
      g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(link)));
  g_object_set_data_full(G_OBJECT(lines), "link", link, g_object_unref);
  char *text = g_data_input_stream_read_line_utf8(lines, NULL, NULL, NULL);
  if (text == NULL) {
    g_object_unref(lines);
    return false;
  }
  apply(app, text);
  g_free(text);
  g_data_input_stream_read_line_async(lines, G_PRIORITY_DEFAULT, NULL, on_line, app);
  return true;
}

void stage_tick(app *app) {
  if (app->stage == NULL)
    return;
  gint64 now = g_get_real_time() / 1000 + app->stage_clock_ms;
  gint64 steady = g_get_monotonic_time() / 1000 + app->stage_clock_ms;
  char text[128];
  g_snprintf(text, sizeof text,
             "{\"now_ms\":%" G_GINT64_FORMAT ",\"monotonic_ms\":%" G_GINT64_FORMAT "}", now,
             steady);
  holdfast_clock_set(app->self, text, NULL);
}
