/* A whole app on GLib's main loop, without a thread of its own: signs in with a password, registers
 * a visit, and ends when the server has stored it. Usage: visits FOLDER URL KEY EMAIL, with the
 * password in HOLDFAST_PASSWORD. An app with windows differs in show(): it draws the screen. */
#include <glib-unix.h>
#include <holdfast.h>
#include <holdfast_http.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  holdfast *self;
  holdfast_http *network;
  const char *email, *password;
  gboolean visited;
  guint timer;
  int result; /* -1: the app runs */
} app;

static void end(app *app, int result) { app->result = result; }

/* Makes a call. One that is refused ends the program. */
static void call(app *app, const char *operation, json_t *request) {
  char *text = json_dumps(request, JSON_COMPACT), *reply = NULL;
  if (holdfast_call(app->self, operation, text, &reply) != HOLDFAST_OK) {
    g_printerr("%s: %s\n", operation, reply == NULL ? "no memory" : reply);
    end(app, 1);
  }
  holdfast_free(reply);
  json_decref(request);
  free(text);
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text == NULL ? "" : text;
}

static json_t *active_of(const json_t *orgs) {
  size_t index;
  json_t *org;
  json_array_foreach((json_t *)orgs, index, org) {
    if (strcmp(text_of(org, "status"), "active") == 0)
      return json_object_get(org, "org_id");
  }
  return NULL;
}

/* Null: the first screen comes as news. */
static void show(app *app, const json_t *screen) {
  if (!json_is_object(screen))
    return;
  const char *name = text_of(screen, "screen");
  g_print("screen: %s (%s)\n", name, text_of(json_object_get(screen, "message"), "code"));
  json_t *org = active_of(json_object_get(screen, "orgs"));
  if (strcmp(name, "sign_in") == 0 && app->password != NULL) {
    const char *password = app->password;
    app->password = NULL; /* once: a wrong password does not become right */
    call(app, "sign_in_complete",
         json_pack("{s:s, s:s}", "email", app->email, "password", password));
  } else if (strcmp(name, "select_org") == 0 && org != NULL) {
    call(app, "org_select", json_pack("{s:O}", "org_id", org));
  } else if (strcmp(name, "home") == 0 && !app->visited) {
    app->visited = TRUE;
    call(app, "queue_add",
         json_pack("{s:s, s:{s:s, s:i}, s:I}", "kind", "activity", "payload", "type", "visit",
                   "minutes", 45, "occurred_at_ms", (json_int_t)(g_get_real_time() / 1000)));
  } else if (strcmp(name, "wait") != 0 && strcmp(name, "home") != 0) {
    end(app, 1); /* a screen that this app does not have */
  }
}

/* Everything that is not a screen: here, whether the visit is stored. */
static void tell(app *app, const json_t *news) {
  const json_t *notice = json_object_get(news, "notice"), *sync = json_object_get(news, "sync");
  if (notice != NULL)
    g_print("notice: %s\n", text_of(notice, "text"));
  if (strcmp(text_of(notice, "type"), "item_parked") == 0)
    end(app, 1);
  if (app->visited &&
      strcmp(text_of(json_object_get(sync, "message"), "code"), "sync_completed") == 0) {
    g_print("stored on the server\n");
    end(app, 0);
  }
}

static gboolean on_time(gpointer context);

/* Takes all news, and comes back when time alone may bring some. */
static gboolean on_news(gint descriptor, GIOCondition condition, gpointer context) {
  (void)descriptor, (void)condition;
  app *app = context;
  char *text = NULL;
  json_t *news = NULL, *wake = NULL;
  while (wake == NULL && holdfast_next(app->self, HOLDFAST_NEXT_NEWS, 0, &text) == HOLDFAST_OK) {
    json_decref(news);
    news = json_loads(text, 0, NULL);
    holdfast_free(text);
    wake = json_object_get(news, "wake_in_ms");
    if (json_object_get(news, "screen") != NULL)
      show(app, json_object_get(news, "screen"));
    else
      tell(app, news);
  }
  g_clear_handle_id(&app->timer, g_source_remove);
  if (json_is_integer(wake))
    app->timer = g_timeout_add((guint)json_integer_value(wake), on_time, app);
  json_decref(news);
  return G_SOURCE_CONTINUE;
}

static gboolean on_time(gpointer context) {
  ((app *)context)->timer = 0;
  on_news(-1, 0, context);
  return G_SOURCE_REMOVE;
}

static gboolean on_network(gint descriptor, GIOCondition condition, gpointer context) {
  (void)descriptor, (void)condition;
  holdfast_http_run(((app *)context)->network, NULL);
  return G_SOURCE_CONTINUE;
}

static gboolean on_interrupt(gpointer context) {
  end(context, 130);
  return G_SOURCE_CONTINUE;
}

int main(int count, char **words) {
  if (count != 5)
    return 2;
  app app = {.email = words[4], .password = getenv("HOLDFAST_PASSWORD"), .result = -1};
  json_t *config =
      json_pack("{s:s, s:b, s:s, s:{s:s, s:s}}", "data_dir", words[1], "development", 1, "template",
                "volunteers", "backend", "url", words[2], "api_key", words[3]);
  char *text = json_dumps(config, JSON_COMPACT), *reply = NULL;
  if (holdfast_open(text, NULL, &app.self, &reply) != HOLDFAST_OK ||
      holdfast_http_start(app.self, "{\"thread\":false}", &app.network) != HOLDFAST_OK) {
    g_printerr("%s\n", reply == NULL ? "no memory" : reply);
    return 1;
  }
  json_t *opened = json_loads(reply, 0, NULL);
  show(&app, json_object_get(opened, "screen"));
  json_decref(opened);
  holdfast_free(reply);
  free(text);
  json_decref(config);
  guint network = g_unix_fd_add(holdfast_http_fd(app.network), G_IO_IN, on_network, &app);
  guint news =
      g_unix_fd_add(holdfast_wake_fd(app.self, HOLDFAST_NEXT_NEWS), G_IO_IN, on_news, &app);
  g_unix_signal_add(SIGINT, on_interrupt, &app);
  while (app.result < 0)
    g_main_context_iteration(NULL, TRUE);
  g_source_remove(network); /* before the descriptors are closed */
  g_source_remove(news);
  g_clear_handle_id(&app.timer, g_source_remove);
  holdfast_http_stop(app.network);
  holdfast_close(app.self);
  return app.result;
}
