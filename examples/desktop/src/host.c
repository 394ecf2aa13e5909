/* The library on GLib's main loop: open, call, take events. There is no thread.
 *
 * The driver's descriptor is readable when there is work. Then holdfast_http_run() does it, and
 * holdfast_http_next() returns the events. Each decision goes to window_show(), everything else to
 * window_event(). */
#include "app.h"

#include <glib-unix.h>
#include <stdlib.h>
#include <string.h>

static json_t *configuration(const app *app) {
  return json_pack("{s:s, s:{s:s, s:s, s:{s:s}}, "
                   "s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s}], s:s, s:s, s:s,"
                   " s:{s:s}}",
                   "data_dir", app->data_dir,                                                  //
                   "backend", "url", app->url, "api_key", app->key,                            //
                   "summary", "function", "activity_overview",                                 //
                   "auth_methods",                                                             //
                   "id", "bankid", "provider", "bankid", "flow", "pkce", "label", "BankID",    //
                   "id", "vipps", "provider", "vipps", "flow", "pkce", "label", "Vipps",       //
                   "id", "password", "flow", "password", "label", word("E-mail and password"), //
                   "redirect_url", app->redirect_url, "locale", app->locale,                   //
                   "clock", app->stage == NULL ? "system" : "manual",                          //
                   "policy", "biometric", app->stage == NULL ? "off" : "required");
}

static gint64 spent_us; /* in the library, on this thread */

gint64 host_spent_us(void) { return spent_us; }

json_t *host_call(app *app, const char *operation, json_t *request) {
  char *text = request == NULL ? NULL : json_dumps(request, JSON_COMPACT), *answer = NULL;
  json_decref(request);
  stage_tick(app);
  if (strcmp(operation, "session_lock") == 0 || strcmp(operation, "session_logout") == 0)
    reader_cancel(app);
  gint64 from_us = g_get_monotonic_time();
  holdfast_call(app->self, operation, text, &answer);
  if (strcmp(operation, "session_background") == 0)
    secret_ask_again();
  spent_us += g_get_monotonic_time() - from_us;
  holdfast_http_free(text); /* zeroes it: it may hold a password */
  json_t *reply = answer == NULL ? NULL : json_loads(answer, 0, NULL);
  holdfast_free(answer);
  return reply == NULL ? json_pack("{s:{s:s}}", "error", "code", "memory.exhausted") : reply;
}

const char *host_error(const json_t *reply) {
  const json_t *error = json_object_get(reply, "error");
  if (error == NULL)
    return NULL;
  /* Messages of errors are for developers. A user learns what to do. */
  const char *code = text_at(error, "code");
  g_info("refused: %s %s", code, text_at(error, "message"));
  if (strcmp(code, "storage.full") == 0)
    return word("The disk is full. Nothing was changed. Make room and try again.");
  if (strcmp(code, "queue.in_flight") == 0)
    return word("This is being sent right now. Please try again in a moment.");
  if (strcmp(code, "queue.not_found") == 0)
    return word("This is no longer in the outbox.");
  if (g_str_has_prefix(code, "session."))
    return word("Please sign in again.");
  return word("This did not work. Nothing was changed. Please try again.");
}

/* Draws a decision unless a newer one is on the screen. */
void host_show(app *app, json_t *decision) {
  json_int_t number = number_at(decision, "number");
  if (*text_at(decision, "screen") == 0 || (number != 0 && number <= app->shown))
    return;
  app->shown = number;
  json_decref(app->decision);
  app->decision = json_incref(decision);
  window_show(app, decision);
}

void host_decide(app *app, const char *operation, json_t *request) {
  json_t *reply = host_call(app, operation, request);
  const char *error = host_error(reply);
  if (error != NULL)
    look_toast(app, error);
  else
    host_show(app, json_is_object(json_object_get(reply, "decision"))
                       ? json_object_get(reply, "decision")
                       : reply);
  json_decref(reply);
}

void host_seen(app *app) {
  if (app->unacked > 0 && app->network != NULL && app->window != NULL &&
      gtk_widget_get_mapped(GTK_WIDGET(app->window)))
    holdfast_http_ack(app->network, app->unacked);
}

static void take(app *app, const json_t *event) {
  if (is_text(event, "type", "decision"))
    host_show(app, json_object_get(event, "decision"));
  else
    window_event(app, event);
  if (number_at(event, "seq") > app->unacked)
    app->unacked = number_at(event, "seq");
  host_seen(app);
}

/* The descriptor is readable. */
static gboolean turn(gint descriptor, GIOCondition condition, gpointer context) {
  (void)descriptor, (void)condition;
  app *app = context;
  char *text = NULL;
  stage_tick(app);
  gint64 from_us = g_get_monotonic_time();
  int32_t status = holdfast_http_run(app->network, NULL);
  spent_us += g_get_monotonic_time() - from_us;
  if (status == HOLDFAST_CLOSED) {
    app->watch = 0;
    return G_SOURCE_REMOVE;
  }
  holdfast_http *network = app->network;
  while (holdfast_http_next(network, 0, &text) == HOLDFAST_OK) {
    json_t *event = json_loads(text, 0, NULL);
    holdfast_http_free(text);
    take(app, event);
    json_decref(event);
    if (app->watch == 0 || app->network != network) /* the event led to the end of this handle */
      return G_SOURCE_REMOVE;
  }
  return G_SOURCE_CONTINUE;
}

bool host_open(app *app, char **problem) {
  json_t *config = configuration(app);
  char *text = json_dumps(config, JSON_COMPACT), *reply = NULL;
  gint64 from_us = g_get_monotonic_time();
  holdfast_keystore keys = keys_store(app);
  int32_t status = holdfast_open(text, &keys, &app->self, &reply);
  json_t *said = reply == NULL ? NULL : json_loads(reply, 0, NULL);
  if (status == HOLDFAST_OK) {
    g_free(app->prompt);
    app->prompt = g_strdup(text_at(said, "unlock_prompt"));
    stage_tick(app);
    status = holdfast_http_start(app->self, "{\"thread\":false}", &app->network);
  }
  spent_us += g_get_monotonic_time() - from_us;
  free(text);
  json_decref(config);
  if (status != HOLDFAST_OK && app->self != NULL) { /* the folder is open, without a network */
    *problem = g_strdup(word("The connection to the network could not be started."));
    holdfast_close(app->self);
    app->self = NULL;
  } else if (status != HOLDFAST_OK) {
    *problem = g_strdup(text_at(json_object_get(said, "error"), "message"));
  } else {
    app->shown = app->unacked = 0;
    app->watch = g_unix_fd_add(holdfast_http_fd(app->network), G_IO_IN, turn, app);
  }
  json_decref(said);
  holdfast_free(reply);
  return status == HOLDFAST_OK;
}

void host_pause(app *app) {
  if (app->watch != 0)
    g_source_remove(app->watch);
  app->watch = 0;
}

void host_close(app *app) {
  host_pause(app); /* before the driver closes the descriptor */
  reader_cancel(app);
  holdfast_http_stop(app->network);
  holdfast_close(app->self);
  secret_cancel();
  app->network = NULL;
  app->self = NULL;
  json_decref(app->decision);
  app->decision = NULL;
}
