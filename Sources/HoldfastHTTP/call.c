/* holdfast_http_call(): the library and its driver as one function, for bindings.
 *
 * A handle is a number, and every request and every reply a text. So a binding declares two
 * functions, and no structure, callback or output parameter. */
#define _GNU_SOURCE
#pragma GCC visibility push(default)
#include "holdfast_http.h"
#pragma GCC visibility pop
#include "driver.h"

#include <stdlib.h>

/* The core's reply in the driver's memory. */
static char *passed_on(int32_t status, char *reply) {
  char *text = reply == NULL ? NULL : strdup(reply);
  holdfast_free(reply);
  if (text != NULL)
    return text;
  return status == HOLDFAST_OK ? hfh_reply_lost : hfh_no_memory;
}

/* ---- open ---- */

/* Behind the prefix, or NULL. */
static const char *behind(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* The error reply of a URL of Supabase's dashboard, as a browser shows it in place of a project's,
 * or NULL. The core would take it for a server's, and every answer then is a page. */
static char *wrong_backend(const json_t *config) {
  static const char *const hosts[] = {"supabase.com", "www.supabase.com", "app.supabase.com"};
  const char *url = json_string_value(json_object_get(json_object_get(config, "backend"), "url"));
  const char *host = url == NULL ? NULL : behind(url, "https://"), *path = NULL;
  for (size_t i = 0; host != NULL && path == NULL && i < sizeof hosts / sizeof *hosts; i++)
    path = behind(host, hosts[i]);
  if (path == NULL || (*path != 0 && *path != '/'))
    return NULL;
  const char *inner = behind(path, "/dashboard");
  const char *project = behind(inner == NULL ? path : inner, "/project/");
  size_t length = project == NULL ? 0 : strspn(project, "abcdefghijklmnopqrstuvwxyz0123456789");
  if (length == 0 || length > 63) {
    project = "PROJECT";
    length = strlen(project);
  }
  return hfh_error(hfh_wrong_value, "/backend", "url",
                   "this is the address of the dashboard: https://%.*s.supabase.co is expected",
                   (int)length, project);
}

/* The reply of an open handle, with its number. NULL without memory. Takes over the core's. */
static char *opened(const holdfast *self, const hfh_driver *driver, char *reply) {
  json_t *root = json_loads(reply, 0, NULL);
  holdfast_free(reply);
  bool whole = json_object_set_new(root, "app", json_integer((json_int_t)(intptr_t)self)) == 0;
  if (driver->keyring != NULL)
    json_object_set_new(root, "keystore", json_string("secret_service"));
  char *text = whole ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  return text;
}

/* Opens a handle, and starts its driver. */
static char *open_handle(hfh_driver *driver, const char *config) {
  holdfast_keystore store;
  bool has_store = hfh_store_make(driver, &store);
  holdfast *self = NULL;
  char *text = NULL;
  int32_t status = holdfast_open(config, has_store ? &store : NULL, &self, &text);
  if (status != HOLDFAST_OK)
    return passed_on(status, text);
  char *reply = opened(self, driver, text);
  status = reply == NULL ? HOLDFAST_NOMEM : hfh_driver_start(driver, self);
  if (status == HOLDFAST_OK)
    return reply;
  holdfast_http_free(reply);
  holdfast_close(self);
  return hfh_failed(status);
}

/* Takes the key store and the options, which the driver has read, out of a configuration, and opens
 * with the rest. */
static char *open_with(const char *request, json_t *config, hfh_driver *driver) {
  bool is_ours = json_object_del(config, "http") == 0;
  char *refusal = hfh_store_take(config, driver);
  if (refusal != NULL)
    return refusal;
  if (!is_ours && driver->box == NULL && driver->keyring == NULL)
    return open_handle(driver, request);
  char *rest = json_dumps(config, JSON_COMPACT);
  char *reply = rest == NULL ? hfh_no_memory : open_handle(driver, rest);
  hfh_secret_free(rest);
  return reply;
}

/* All that is the driver's is checked before the core makes files. */
static char *open_app(int64_t app, const char *request) {
  if (app != 0)
    return hfh_error(hfh_wrong_value, NULL, NULL,
                     "open takes the handle 0 and returns a new one; this handle is open or was");
  if (!hfh_prepare())
    return hfh_failed(HOLDFAST_INTERNAL);
  /* What cannot be read is left to the core, which says what is wrong. */
  json_t *config = request == NULL ? NULL : json_loads(request, JSON_REJECT_DUPLICATES, NULL);
  hfh_driver *driver = NULL;
  char *reply = wrong_backend(config);
  if (reply == NULL)
    reply = hfh_driver_new(json_object_get(config, "http"), &driver);
  if (reply == NULL && !driver->worker.options.thread)
    reply = hfh_error(hfh_wrong_value, "/http", "thread", "next needs the driver's own thread");
  if (reply == NULL) {
    hfh_follow_log(); /* it has lines about the open */
    reply = open_with(request, config, driver);
  }
  if (driver != NULL && driver->token == 0)
    hfh_driver_stop(driver);
  hfh_driver_leave(driver);
  json_decref(config);
  return reply;
}

/* ---- the other operations of the driver ---- */

enum { RESUME_PAUSE_MS = 1000 }; /* until the first screen is asked for again */

/* The next thing for the host: all but requests, which the driver takes. */
static char *next_thing(holdfast *self, hfh_driver *driver, const char *request) {
  int32_t timeout_ms = -1, status = HOLDFAST_OK;
  char *reply = hfh_read_timeout(request, &timeout_ms);
  if (reply != NULL)
    return reply;
  if (driver != NULL && atomic_exchange(&driver->resumes, false) &&
      holdfast_session_resume(self, NULL, NULL) != HOLDFAST_OK) {
    driver->resumes = true; /* nothing else leads to the first screen */
    if (timeout_ms < 0 || timeout_ms > RESUME_PAUSE_MS)
      timeout_ms = RESUME_PAUSE_MS;
  }
  char *text = driver == NULL ? NULL : atomic_exchange(&driver->kept, NULL);
  if (text == NULL)
    status = holdfast_next(self, HOLDFAST_NEXT_NEWS, timeout_ms, &text);
  reply = text == NULL ? NULL : strdup(text);
  if (reply == NULL && status == HOLDFAST_OK && driver != NULL) /* the core gives it once */
    text = atomic_exchange(&driver->kept, text);
  holdfast_free(text);
  return reply == NULL ? hfh_no_memory : reply;
}

static char *close_app(holdfast *self, hfh_driver *driver, const char *request) {
  const hfh_field known[] = {{0}};
  json_t *root = NULL;
  char *refusal = hfh_parse(request, &root);
  if (refusal == NULL)
    refusal = hfh_read(root, "", known);
  json_decref(root);
  if (refusal != NULL)
    return refusal;
  if (driver != NULL)
    hfh_driver_stop(driver);
  holdfast_close(self);
  return hfh_reply("{}");
}

/* ---- every operation ---- */

static char *call(holdfast *self, hfh_driver *driver, int32_t found, const char *name,
                  const char *request) {
  if (strcmp(name, "key_next") == 0)
    return hfh_store_next(driver, found, request);
  if (strcmp(name, "key_complete") == 0)
    return hfh_store_complete(driver, found, request);
  if (strcmp(name, "close") == 0)
    return close_app(self, driver, request);
  if (strcmp(name, "complete") == 0)
    return hfh_error("request.unknown_operation", NULL, NULL, "the driver calls this by itself");
  if (hfh_store_waits_for_itself(driver))
    return hfh_error("handle.busy", NULL, NULL,
                     "this thread answers the key requests, and the call would wait for it: make "
                     "the call on another thread");
  if (strcmp(name, "next") == 0)
    return next_thing(self, driver, request);
  char *reply = NULL;
  int32_t status = holdfast_call(self, name, request, &reply);
  char *text = passed_on(status, reply);
  return status == HOLDFAST_KEYSTORE ? hfh_store_explained(driver, text) : text;
}

char *holdfast_http_call(int64_t app, const char *operation, const char *request) {
  holdfast *self = (holdfast *)(intptr_t)app;
  const char *name = operation == NULL ? "" : operation;
  if (strcmp(name, "open") == 0)
    return open_app(app, request);
  hfh_driver *driver;
  int32_t found = hfh_driver_enter(NULL, self, &driver);
  char *reply = call(self, driver, found, name, request);
  hfh_driver_leave(driver);
  return reply;
}
