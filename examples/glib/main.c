/* A whole app on GLib's main loop, without a thread of its own: signs in with a password, registers
 * a visit, and ends when the server has stored it. Usage: visits FOLDER URL KEY EMAIL, with the
 * password in HOLDFAST_PASSWORD. An app with windows differs in show(): it draws the decision. */
#include <glib-unix.h>
#include <holdfast.h>
#include <holdfast_http.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  holdfast *self;
  holdfast_http *network;
  GMainLoop *loop;
  const char *email, *password;
  gboolean visited;
  json_int_t shown; /* the number of the decision on the screen */
  int result;
} app;

typedef int32_t (*operation)(holdfast *, const char *, char **);

static void end(app *app, int result) {
  app->result = result;
  g_main_loop_quit(app->loop);
}

/* Makes a call. Returns its reply, an {"error":...} if it failed; the caller releases it. */
static json_t *call(app *app, operation operation, json_t *request) {
  char *text = json_dumps(request, JSON_COMPACT), *reply = NULL;
  if (operation(app->self, text, &reply) != HOLDFAST_OK)
    g_printerr("%s\n", reply == NULL ? "no memory" : reply);
  json_t *result = reply == NULL ? json_object() : json_loads(reply, 0, NULL);
  holdfast_free(reply);
  json_decref(request);
  free(text);
  return result;
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text == NULL ? "" : text;
}

/* Act on a decision, and release it. An event can be older than a reply that is shown already. */
static void show(app *app, json_t *decision) {
  json_int_t number = json_integer_value(json_object_get(decision, "number"));
  if (number != 0 && number <= app->shown) {
    json_decref(decision);
    return;
  }
  app->shown = number;
  const char *screen = text_of(decision, "screen");
  g_print("screen: %s (%s)\n", screen, text_of(decision, "reason"));
  if (strcmp(screen, "sign_in") == 0 && app->password != NULL) {
    json_t *request = json_pack("{s:s, s:s}", "email", app->email, "password", app->password);
    app->password = NULL; /* once: a wrong password does not become right */
    show(app, call(app, holdfast_sign_in_complete, request));
  } else if (strcmp(screen, "home") == 0 && !app->visited) {
    app->visited = TRUE;
    json_decref(
        call(app, holdfast_queue_add,
             json_pack("{s:s, s:{s:s, s:i}, s:I}", "kind", "activity", "payload", "type", "visit",
                       "minutes", 45, "occurred_at_ms", (json_int_t)(g_get_real_time() / 1000))));
  } else if (strcmp(screen, "wait") != 0 && strcmp(screen, "home") != 0) {
    end(app, 1); /* an error, or a screen that this app does not have */
  }
  json_decref(decision);
}

static void take(app *app, const json_t *event) {
  const char *type = text_of(event, "type");
  g_print("event: %s\n", type);
  if (strcmp(type, "decision") == 0)
    show(app, json_incref(json_object_get(event, "decision")));
  else if (strcmp(type, "sync_completed") == 0 && app->visited)
    end(app, 0);
  else if (strcmp(type, "item_parked") == 0)
    end(app, 1);
}

/* The descriptor is readable. After HOLDFAST_CLOSED it is quiet. */
static gboolean turn(gint descriptor, GIOCondition condition, gpointer context) {
  (void)descriptor;
  (void)condition;
  app *app = context;
  char *text = NULL;
  holdfast_http_run(app->network, NULL);
  while (holdfast_http_next(app->network, 0, &text) == HOLDFAST_OK) {
    json_t *event = json_loads(text, 0, NULL);
    take(app, event);
    holdfast_http_ack(app->network, json_integer_value(json_object_get(event, "seq")));
    json_decref(event);
    holdfast_http_free(text);
  }
  return G_SOURCE_CONTINUE;
}

static gboolean begin(gpointer context) {
  show(context, call(context, holdfast_session_resume, json_object()));
  return G_SOURCE_REMOVE;
}

static gboolean interrupted(gpointer context) {
  end(context, 130);
  return G_SOURCE_CONTINUE;
}

int main(int count, char **words) {
  if (count != 5)
    return 2;
  app app = {.email = words[4], .password = getenv("HOLDFAST_PASSWORD")};
  json_t *config = json_pack("{s:s, s:{s:s}, s:{s:s}, s:{s:s, s:s}, s:[{s:s, s:s}]}", "data_dir",
                             words[1], "keystore", "kind", "file", "policy", "biometric", "off",
                             "backend", "url", words[2], "api_key", words[3], "auth_methods", "id",
                             "password", "flow", "password");
  char *text = json_dumps(config, JSON_COMPACT), *reply = NULL;
  if (holdfast_open(text, NULL, &app.self, &reply) != HOLDFAST_OK ||
      holdfast_http_start(app.self, "{\"thread\":false}", &app.network) != HOLDFAST_OK) {
    g_printerr("%s\n", reply == NULL ? "no memory" : reply);
    return 1;
  }
  holdfast_free(reply);
  free(text);
  json_decref(config);
  app.loop = g_main_loop_new(NULL, FALSE);
  guint watch = g_unix_fd_add(holdfast_http_fd(app.network), G_IO_IN, turn, &app);
  g_unix_signal_add(SIGINT, interrupted, &app);
  g_idle_add(begin, &app);
  g_main_loop_run(app.loop);
  g_source_remove(watch); /* before the descriptor is closed */
  holdfast_http_stop(app.network);
  holdfast_close(app.self);
  g_main_loop_unref(app.loop);
  return app.result;
}
