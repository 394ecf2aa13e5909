/* The library on GLib's main loop: open, call, take news. There is no thread.
 *
 * The driver's descriptor is readable when there is work for holdfast_http_run(), and the library's
 * when holdfast_next() has news. Each decision goes to window_show(), everything else to
 * window_news(). */
#include "app.h"

#include <glib-unix.h>
#include <stdlib.h>
#include <string.h>

/* The user's own activities of about a year are kept, and can be changed and taken back. */
static json_t *activities(void) {
  return json_pack("{s:s, s:{s:[s,s,s,s,s], s:i}, s:{s:[s,s,s,s,s]}, s:s}", "table",
                   "activities",                                                                //
                   "own", "columns", "type", "minutes", "occurred_at", "contact_id", "note",    //
                   "days", 400,                                                                 //
                   "change", "columns", "type", "minutes", "occurred_at", "contact_id", "note", //
                   "delete", "deleted_at");
}

static json_t *configuration(const app *app) {
  return json_pack("{s:s, s:{s:s, s:s, s:{s:s}, s:{s:o}}, "
                   "s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s}], s:s, s:s, s:s,"
                   " s:{s:s}, s:s}",
                   "data_dir", app->data_dir,                                                  //
                   "backend", "url", app->url, "api_key", app->key,                            //
                   "summary", "function", "activity_overview",                                 //
                   "queue", "activity", activities(),                                          //
                   "auth_methods",                                                             //
                   "id", "bankid", "provider", "bankid", "flow", "pkce", "label", "BankID",    //
                   "id", "vipps", "provider", "vipps", "flow", "pkce", "label", "Vipps",       //
                   "id", "password", "flow", "password", "label", word("E-mail and password"), //
                   "redirect_url", app->redirect_url, "locale", app->locale,                   //
                   "clock", app->stage == NULL ? "system" : "manual",                          //
                   "policy", "biometric", app->stage == NULL ? "off" : "required",             //
                   "template", "volunteers");
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
  if (strcmp(code, "session.confirm_unsent") == 0) /* one more was registered, or sent, meanwhile */
    return word("This did not work. Nothing was changed. Please try again.");
  if (strcmp(code, "queue.in_flight") == 0)
    return word("This is being sent right now. Please try again in a moment.");
  if (strcmp(code, "queue.not_found") == 0)
    return word("This is no longer there.");
  if (g_str_has_prefix(code, "session."))
    return word("Please sign in again.");
  return word("This did not work. Nothing was changed. Please try again.");
}

void host_show(app *app, json_t *decision) {
  json_incref(decision);
  json_decref(app->decision);
  app->decision = decision;
  window_show(app, decision);
}

void host_do(app *app, const char *operation, json_t *request) {
  json_t *reply = host_call(app, operation, request);
  if (host_error(reply) != NULL)
    look_toast(app, host_error(reply));
  json_decref(reply);
}

static gboolean on_time(gpointer context);

/* Takes the next news, if there are any, and comes back when time alone may bring some. */
static bool take(app *app) {
  char *text = NULL;
  stage_tick(app);
  gint64 from_us = g_get_monotonic_time();
  int32_t status = holdfast_next(app->self, HOLDFAST_NEXT_NEWS, 0, &text);
  spent_us += g_get_monotonic_time() - from_us;
  json_t *news = text == NULL ? NULL : json_loads(text, 0, NULL);
  json_t *wake = json_object_get(news, "wake_in_ms"), *decision = json_object_get(news, "screen");
  bool is_news = status == HOLDFAST_OK && wake == NULL;
  holdfast_free(text);
  g_clear_handle_id(&app->timer, g_source_remove);
  if (json_is_integer(wake))
    app->timer = g_timeout_add((guint)json_integer_value(wake), on_time, app);
  if (decision != NULL)
    host_show(app, decision);
  else if (is_news)
    window_news(app, news);
  json_decref(news);
  return is_news;
}

static gboolean on_news(gint descriptor, GIOCondition condition, gpointer context) {
  (void)descriptor, (void)condition;
  app *app = context;
  while (take(app) && app->watches[0] != 0) /* 0: the news led to the end */
    continue;
  return G_SOURCE_CONTINUE;
}

static gboolean on_time(gpointer context) {
  ((app *)context)->timer = 0;
  on_news(-1, 0, context);
  return G_SOURCE_REMOVE;
}

static gboolean on_network(gint descriptor, GIOCondition condition, gpointer context) {
  (void)descriptor, (void)condition;
  app *app = context;
  stage_tick(app);
  gint64 from_us = g_get_monotonic_time();
  holdfast_http_run(app->network, NULL);
  spent_us += g_get_monotonic_time() - from_us;
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
    json_decref(app->decision);
    app->decision = json_incref(json_object_get(said, "screen"));
  }
  json_decref(said);
  holdfast_free(reply);
  return status == HOLDFAST_OK;
}

void host_begin(app *app) {
  int news = holdfast_wake_fd(app->self, HOLDFAST_NEXT_NEWS);
  app->watches[0] = g_unix_fd_add(holdfast_http_fd(app->network), G_IO_IN, on_network, app);
  app->watches[1] = g_unix_fd_add(news, G_IO_IN, on_news, app);
  if (json_is_object(app->decision)) {
    host_show(app, app->decision);
  } else { /* the key store or the stage's clock was not ready; the screen is the next thing */
    host_do(app, "session_resume", NULL);
    take(app);
  }
}

void host_pause(app *app) {
  for (size_t i = 0; i < G_N_ELEMENTS(app->watches); i++)
    g_clear_handle_id(&app->watches[i], g_source_remove);
  g_clear_handle_id(&app->timer, g_source_remove);
}

void host_close(app *app) {
  host_pause(app); /* before the descriptors are closed */
  reader_cancel(app);
  holdfast_http_stop(app->network);
  holdfast_close(app->self);
  secret_cancel();
  app->network = NULL;
  app->self = NULL;
  json_decref(app->decision);
  app->decision = NULL;
}
