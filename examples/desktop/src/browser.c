/* BankID and Vipps: the browser opens the provider's page, and returns to an address on this
 * machine. The app listens there while the sign-in is on the screen, and passes the URL on
 * unchanged. The library takes its code only for a sign-in that was begun here. */
#include "app.h"

#include <string.h>

static void reply(GOutputStream *out, const char *status, const char *text) {
  char *page =
      g_strdup_printf("HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\n"
                      "Connection: close\r\n\r\n<!doctype html><meta name=viewport "
                      "content='width=device-width'><title>Holdfast</title>"
                      "<body style='font:1.2em sans-serif;margin:3em;color-scheme:light dark'>%s\n",
                      status, text);
  g_output_stream_write_all(out, page, strlen(page), NULL, NULL, NULL);
  g_free(page);
}

typedef struct {
  app *app;
  GSocketConnection *link;
} visit;

/* The first line of the browser's request: "GET /signed-in?code=… HTTP/1.1". */
static void on_request(GObject *source, GAsyncResult *result, gpointer context) {
  visit *visit = context;
  app *app = visit->app;
  char *line =
      g_data_input_stream_read_line_finish(G_DATA_INPUT_STREAM(source), result, NULL, NULL);
  char **words = g_strsplit(line == NULL ? "" : line, " ", 3);
  GOutputStream *out = g_io_stream_get_output_stream(G_IO_STREAM(visit->link));
  GUri *expected = g_uri_parse(app->redirect_url, G_URI_FLAGS_NONE, NULL);
  const char *path = g_uri_get_path(expected);
  bool ours = g_strv_length(words) == 3 && strcmp(words[0], "GET") == 0 &&
              g_str_has_prefix(words[1], path) && words[1][strlen(path)] == '?';
  if (ours) {
    char *url = g_strconcat(app->redirect_url, words[1] + strlen(path), NULL);
    reply(out, "200 OK", word("You can close this page and return to the app."));
    g_io_stream_close(G_IO_STREAM(visit->link), NULL, NULL);
    host_do(app, "sign_in_complete", json_pack("{s:s}", "callback_url", url));
    gtk_window_present(app->window);
    g_free(url);
  } else {
    reply(out, "404 Not Found", "");
  }
  g_uri_unref(expected);
  g_strfreev(words);
  g_free(line);
  g_object_unref(visit->link);
  g_free(visit);
}

static gboolean on_visit(GSocketService *service, GSocketConnection *link, GObject *source,
                         gpointer context) {
  (void)service, (void)source;
  visit *visit = g_malloc(sizeof *visit);
  visit->app = context;
  visit->link = g_object_ref(link);
  GDataInputStream *lines =
      g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(link)));
  g_data_input_stream_set_newline_type(lines, G_DATA_STREAM_NEWLINE_TYPE_CR_LF);
  g_data_input_stream_read_line_async(lines, G_PRIORITY_DEFAULT, NULL, on_request, visit);
  g_object_unref(lines);
  return TRUE;
}

void browser_listen(app *app, bool wanted) {
  if (wanted == (app->redirect != NULL))
    return;
  if (!wanted) {
    g_socket_service_stop(app->redirect);
    g_socket_listener_close(G_SOCKET_LISTENER(app->redirect));
    g_clear_object(&app->redirect);
    return;
  }
  GUri *url = g_uri_parse(app->redirect_url, G_URI_FLAGS_NONE, NULL);
  GInetAddress *here = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
  GSocketAddress *address =
      url == NULL ? NULL : g_inet_socket_address_new(here, (guint16)g_uri_get_port(url));
  app->redirect = g_socket_service_new();
  GError *error = NULL;
  if (address == NULL || !g_socket_listener_add_address(G_SOCKET_LISTENER(app->redirect), address,
                                                        G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                                                        NULL, NULL, &error)) {
    g_info("nobody listens for the browser: %s", error == NULL ? "no address" : error->message);
    g_clear_error(&error);
    g_clear_object(&app->redirect);
  } else {
    g_signal_connect(app->redirect, "incoming", G_CALLBACK(on_visit), app);
  }
  g_clear_object(&address);
  g_object_unref(here);
  if (url != NULL)
    g_uri_unref(url);
}

bool browser_open(app *app, const char *url) {
  GError *error = NULL;
  bool opened = g_app_info_launch_default_for_uri(url, NULL, &error);
  if (!opened)
    look_toast(app, word("No browser could be opened."));
  g_clear_error(&error);
  return opened;
}

void browser_sign_in(app *app, const char *url) {
  if (app->redirect == NULL)
    look_toast(app, word("Another program uses the address to which the browser returns."));
  else
    browser_open(app, url);
}
