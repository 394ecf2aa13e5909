/* The app: everything that a host does with Holdfast. Start reading here.
 *
 * 1. app_open() opens a handle with a configuration and a key store, and starts HoldfastHTTP, which
 *    polls the handle and sends its requests on a thread of its own.
 * 2. app_call() calls an operation: JSON goes in, JSON comes out.
 * 3. app_event() takes events, such as a new decision on which screen to show.
 * 4. app_close() stops the driver, then closes the handle. */
#define _GNU_SOURCE
#include "tour.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The configuration: the folder, the backend, the ways to sign in, the routes of each role, and the
 * policy. docs/reference.md lists every setting. */
static json_t *configuration(const setting *where) {
  return json_pack("{s:s, s:{s:s, s:s}, s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s}], s:s,"
                   " s:{s:{s:s,s:[s,s,s]},s:{s:s,s:[s]}}, s:{s:i,s:i}, s:s}",
                   "data_dir", where->data_dir,                                             //
                   "backend", "url", where->backend, "api_key", where->api_key,             //
                   "auth_methods",                                                          //
                   "id", "bankid", "provider", "bankid", "flow", "pkce", "label", "BankID", //
                   "id", "vipps", "provider", "vipps", "flow", "pkce", "label", "Vipps",    //
                   "id", "password", "flow", "password", "label", "E-post",                 //
                   "redirect_url", "app.holdfast.example://signed-in",                      //
                   "routes",                                                                //
                   "peer_mentor", "home", "/mentor", "screens", "/mentor", "/contacts",
                   "/contacts/*",                                                               //
                   "org_admin", "home", "/admin", "screens", "*",                               //
                   "policy", "background_timeout_s", 2, "refresh_margin_s", 2, "locale", "nb"); //
}

bool app_open(app *app, const setting *where) {
  *app = (struct app){.where = where, .keystore = keystore_of(where), .backlog = json_array()};
  json_t *config = configuration(where);
  char *text = json_dumps(config, JSON_COMPACT), *reply = NULL;
  app->status = holdfast_open(text, &app->keystore, &app->self, &reply);
  free(text);
  json_decref(config);
  if (app->status != HOLDFAST_OK)
    note("holdfast_open: %s", reply == NULL ? "no memory" : reply);
  holdfast_free(reply);
  if (app->status == HOLDFAST_OK)
    app->status = holdfast_http_start(app->self, NULL, &app->driver);
  return app->status == HOLDFAST_OK;
}

void app_close(app *app) {
  holdfast_http_stop(app->driver);
  holdfast_close(app->self);
  json_decref(app->backlog);
  *app = (struct app){0};
}

json_t *app_call(app *app, operation operation, json_t *request) {
  char *text = request == NULL ? NULL : json_dumps(request, JSON_COMPACT), *answer = NULL;
  json_decref(request);
  app->status = operation(app->self, text, &answer);
  free(text);
  json_t *reply = answer == NULL ? NULL : json_loads(answer, 0, NULL);
  holdfast_free(answer);
  return reply == NULL ? json_object() : reply;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Take the first event of this type that app_event() has set aside. */
static json_t *take_from_backlog(app *app, const char *type) {
  for (size_t i = 0; i < json_array_size(app->backlog); i++) {
    json_t *event = json_array_get(app->backlog, i);
    if (is_text(event, "type", type)) {
      json_incref(event);
      json_array_remove(app->backlog, i);
      return event;
    }
  }
  return NULL;
}

json_t *app_event(app *app, const char *type, int seconds) {
  json_t *event = take_from_backlog(app, type);
  int64_t until = now_ms() + seconds * 1000;
  while (event == NULL) {
    int64_t left = until - now_ms();
    char *text = NULL;
    if (holdfast_http_next(app->driver, left > 0 ? (int32_t)left : 0, &text) != HOLDFAST_OK)
      return NULL;
    event = json_loads(text, 0, NULL);
    holdfast_http_free(text);
    show_event(event);
    if (!is_text(event, "type", type)) {
      json_array_append_new(app->backlog, event);
      event = NULL;
    }
  }
  return event;
}

json_t *app_settle(app *app, json_t *decision) {
  while (is_text(decision, "screen", "wait")) {
    json_t *event = app_event(app, "decision", 20);
    if (event == NULL)
      return decision;
    json_t *shown = json_object_get(event, "decision");
    if (number_at(shown, "number") > number_at(decision, "number")) { /* not an older event */
      json_decref(decision);
      decision = json_incref(shown);
    }
    json_decref(event);
  }
  return decision;
}

void app_network(app *app, bool online) {
  json_decref(app_call(app, holdfast_network_set, json_pack("{s:b}", "online", online)));
}

bool app_drained(app *app, int seconds) {
  int64_t until = now_ms() + seconds * 1000;
  json_int_t left = 1;
  while (left > 0 && now_ms() < until) {
    json_t *reply = app_call(app, holdfast_sync_status, NULL);
    const json_t *counts = json_object_get(reply, "counts");
    left = number_at(counts, "pending") + number_at(counts, "sending") +
           number_at(counts, "waiting") + number_at(counts, "parked");
    json_decref(reply);
    if (left > 0)
      nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  }
  return left == 0;
}
