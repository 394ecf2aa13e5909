/* holdfast_http_call(): the library and its driver as one function, for bindings.
 *
 * A handle is a number, and every request and every reply a text. So a binding declares two
 * functions, and no structure, callback or output parameter. */
#define _GNU_SOURCE
#pragma GCC visibility push(default)
#include "holdfast_http.h"
#pragma GCC visibility pop
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- replies ---- */

/* Replies that need no memory; holdfast_http_free() leaves them alone. */
static char no_memory[] = "{\"error\":{\"code\":\"memory.exhausted\",\"message\":\"out of memory\","
                          "\"field\":null,\"retryable\":true,\"detail\":{}}}";
static char reply_lost[] = "{\"error\":{\"code\":\"memory.exhausted\",\"message\":\"the call was "
                           "carried out, but there is no memory for its reply\",\"field\":null,"
                           "\"retryable\":false,\"detail\":{}}}";
static char nothing[] = "{}";
static char taken[] = "{\"accepted\":true}";
static char no_event[] = "{\"event\":null,\"closed\":false}";
static char no_more_events[] = "{\"event\":null,\"closed\":true}";

bool hfh_is_constant(const char *text) {
  return text == no_memory || text == reply_lost || text == nothing || text == taken ||
         text == no_event || text == no_more_events;
}

static char *failure(const char *code, const char *message, const char *field) {
  json_t *error = json_pack("{s:{s:s,s:s,s:s?,s:b,s:{}}}", "error", "code", code, "message",
                            message, "field", field, "retryable", 0, "detail");
  char *text = error == NULL ? NULL : json_dumps(error, JSON_COMPACT);
  json_decref(error);
  return text == NULL ? no_memory : text;
}

/* The failure of a driver that did not start. */
static char *failed_start(int32_t status) {
  switch (status) {
  case HOLDFAST_NOMEM:
    return no_memory;
  case HOLDFAST_CLOSED:
    return failure("handle.closed", "the handle was closed meanwhile", NULL);
  case HOLDFAST_FORKED:
    return failure("handle.forked", "the handle belongs to the parent process", NULL);
  default:
    return failure("internal.defect", "libcurl or a thread would not start", NULL);
  }
}

/* The failure of a field; `path` ends with a slash if `name` is not empty. */
static char *refused(const char *code, const char *message, const char *path, const char *name) {
  char *field = NULL;
  if (asprintf(&field, "%s%s", path, name) < 0)
    return no_memory;
  char *reply = failure(code, message, field);
  free(field);
  return reply;
}

/* Makes an event a reply of event_next, in its own memory. */
static char *in_reply(char *event) {
  static const char before[] = "{\"event\":", after[] = ",\"closed\":false}";
  _Static_assert(sizeof before + sizeof after <= HFH_EVENT_ROOM, "behind the text of an event");
  size_t length = strlen(event);
  memmove(event + sizeof before - 1, event, length);
  memcpy(event, before, sizeof before - 1);
  memcpy(event + sizeof before - 1 + length, after, sizeof after);
  return event;
}

/* The core's reply in the driver's memory. */
static char *passed_on(int32_t status, char *reply) {
  char *text = reply == NULL ? NULL : strdup(reply);
  holdfast_free(reply);
  if (text != NULL)
    return text;
  return status == HOLDFAST_OK ? reply_lost : no_memory;
}

/* The reply of a call that needs a key, with the cause that the secret service gave. Takes over
 * `reply`. */
static char *with_cause(const holdfast *self, char *reply) {
  char cause[256], *said = NULL;
  json_t *root = hfh_secret_cause(self, cause, sizeof cause) ? json_loads(reply, 0, NULL) : NULL;
  json_t *error = json_object_get(root, "error");
  const char *message = json_string_value(json_object_get(error, "message"));
  char *text = NULL;
  if (message != NULL && asprintf(&said, "%s: secret service: %s", message, cause) >= 0) {
    json_object_set_new(error, "message", json_string_nocheck(said));
    text = json_dumps(root, JSON_COMPACT);
    free(said);
  }
  json_decref(root);
  if (text == NULL)
    return reply;
  holdfast_http_free(reply);
  return text;
}

/* ---- the driver's own operations ---- */

/* What a configuration has for the driver. */
typedef struct {
  char *config;  /* the rest, for the core; NULL: the whole request */
  char *options; /* the field `http`; NULL: none */
  char *app;     /* the name of the keys in the secret service; NULL: the core's key store */
  char *folder;  /* with `app`: the data_dir */
} parts;

static void free_parts(parts *it) {
  hfh_secret_free(it->config);
  hfh_secret_free(it->options);
  free(it->app);
  free(it->folder);
}

/* Reads {"kind":"secret_service","name":"..."}; any other key store is the core's. Returns the
 * reply of a wrong one, or NULL. */
static char *take_store(const json_t *root, parts *it) {
  const json_t *store = json_object_get(root, "keystore");
  const char *kind = json_string_value(json_object_get(store, "kind"));
  if (kind == NULL || strcmp(kind, "secret_service") != 0)
    return NULL;
  const json_t *name = json_object_get(store, "name");
  if (name == NULL || json_is_null(name))
    return failure("request.missing_field",
                   "this field is required: a name of the app for its keys, one for each data_dir",
                   "/keystore/name");
  if (!json_is_string(name))
    return failure("request.wrong_type", "a string is expected", "/keystore/name");
  size_t length = json_string_length(name);
  if (length == 0 || length > 256)
    return failure("request.invalid_value", "1 to 256 bytes are expected", "/keystore/name");
  const char *field;
  json_t *value;
  json_object_foreach((json_t *)store, field, value) {
    if (strcmp(field, "kind") != 0 && strcmp(field, "name") != 0)
      return refused("request.unknown_field", "only kind and name are known", "/keystore/", field);
  }
  const json_t *policy = json_object_get(root, "policy");
  const char *presence = json_string_value(json_object_get(policy, "biometric"));
  if (presence == NULL || strcmp(presence, "required") == 0)
    return failure("request.invalid_value",
                   "the secret service asks for no presence: use \"preferred\" or \"off\"",
                   "/policy/biometric");
  const char *folder = json_string_value(json_object_get(root, "data_dir"));
  it->app = strdup(json_string_value(name));
  it->folder = strdup(folder == NULL ? "" : folder);
  return it->app == NULL || it->folder == NULL ? no_memory : NULL;
}

/* The core takes the address of the dashboard for a server's, and every answer then is a page. */
static char *wrong_backend(const json_t *root) {
  const char *url = json_string_value(json_object_get(json_object_get(root, "backend"), "url"));
  hfh_wrong wrong;
  if (url == NULL || !hfh_is_dashboard(url, &wrong))
    return NULL;
  return refused(wrong.code, wrong.message, "/backend/", wrong.name);
}

/* Takes what is the driver's out of a configuration. What cannot be read is left to the core, which
 * says what is wrong. Returns the reply of a wrong key store or backend, or NULL. */
static char *split(const char *request, parts *it) {
  json_t *root = request == NULL ? NULL : json_loads(request, JSON_REJECT_DUPLICATES, NULL);
  const json_t *http = json_object_get(root, "http");
  char *reply = wrong_backend(root);
  if (reply == NULL)
    reply = take_store(root, it);
  if (reply == NULL && http != NULL) {
    it->options = json_dumps(http, JSON_COMPACT | JSON_ENCODE_ANY);
    reply = it->options == NULL ? no_memory : NULL;
  }
  if (reply == NULL && (http != NULL || it->app != NULL)) {
    json_object_del(root, "http");
    if (it->app != NULL)
      json_object_del(root, "keystore");
    it->config = json_dumps(root, JSON_COMPACT);
    reply = it->config == NULL ? no_memory : NULL;
  }
  json_decref(root);
  return reply;
}

/* The options are checked before the core makes files. */
static char *wrong_options(const char *text) {
  hfh_options options = {0};
  hfh_wrong wrong;
  char *reply = NULL;
  int32_t status = hfh_options_read(text, &options, &wrong);
  if (status == HOLDFAST_NOMEM)
    reply = no_memory;
  else if (status != HOLDFAST_OK)
    reply = refused(wrong.code, wrong.message, *wrong.name == 0 ? "/http" : "/http/", wrong.name);
  else if (!options.thread)
    reply = failure("request.invalid_value", "event_next needs the driver's own thread",
                    "/http/thread");
  hfh_options_free(&options);
  return reply;
}

/* The reply of an open handle, with its number. NULL without memory. Takes over `reply`. */
static char *opened(const holdfast *self, bool in_service, char *reply) {
  json_t *root = json_loads(reply, 0, NULL);
  hfh_secret_free(reply);
  json_object_set_new(root, "app", json_integer((json_int_t)(intptr_t)self));
  if (in_service)
    json_object_set_new(root, "keystore", json_string("secret_service"));
  bool whole = json_object_get(root, "app") != NULL;
  char *text = whole ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  return text;
}

/* Makes the key store that keeps the keys in the secret service. Returns the reply of a refusal, or
 * NULL. */
static char *make_service(const parts *it, holdfast_keystore *service) {
  char *full = realpath(it->folder, NULL); /* of a new folder it is not there yet */
  char *other = NULL, *said = NULL, *reply = NULL;
  if (*it->folder != 0) /* else that is what the core refuses */
    other = hfh_secret_other_folder(it->app, full);
  if (other != NULL) {
    bool named = asprintf(&said,
                          "the keys under this name are those of the folder %s: choose another "
                          "name for each data_dir",
                          other) >= 0;
    reply = named ? failure("request.invalid_value", said, "/keystore/name") : no_memory;
    free(named ? said : NULL);
  } else if (!hfh_secret_service(it->app, service)) {
    reply = failure("request.invalid_value", "libsecret-1.so.0 is not installed", "/keystore/kind");
  } else if (service->context == NULL) {
    reply = no_memory;
  }
  free(other);
  free(full);
  return reply;
}

static char *open_with(const char *config, const parts *it) {
  holdfast_keystore service;
  char *refusal = it->app == NULL ? NULL : make_service(it, &service);
  if (refusal != NULL)
    return refusal;
  char *text = NULL;
  holdfast *self = NULL;
  holdfast_http *driver = NULL;
  int32_t status = holdfast_open(config, it->app == NULL ? NULL : &service, &self, &text);
  char *reply = passed_on(status, text);
  if (status != HOLDFAST_OK)
    return reply;
  if (it->app != NULL)
    hfh_secret_belongs(&service, self, it->folder);
  status = reply == reply_lost ? HOLDFAST_NOMEM : holdfast_http_start(self, it->options, &driver);
  if (status == HOLDFAST_OK) {
    reply = opened(self, it->app != NULL, reply);
    if (reply != NULL)
      return reply;
    status = HOLDFAST_NOMEM;
    holdfast_http_stop(driver);
  } else {
    holdfast_http_free(reply);
  }
  holdfast_close(self);
  return failed_start(status);
}

static char *open_app(const char *request) {
  parts it = {0};
  if (!hfh_prepare())
    return failed_start(HOLDFAST_INTERNAL);
  char *reply = split(request, &it);
  if (reply == NULL)
    reply = wrong_options(it.options);
  if (reply == NULL)
    reply = open_with(it.config == NULL ? request : it.config, &it);
  free_parts(&it);
  return reply;
}

/* Reads a request that may have the field timeout_ms, or none where `timeout_ms` is NULL. Returns
 * the reply of a wrong request, or NULL. */
static char *read_request(const char *request, int32_t *timeout_ms) {
  if (request == NULL || *request == 0)
    return NULL;
  json_t *root = json_loads(request, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
  char *reply = NULL;
  const char *name;
  json_t *value;
  if (root == NULL)
    reply = failure("request.not_json", "the request is not JSON, or has a key twice", NULL);
  else if (!json_is_object(root) && !json_is_null(root))
    reply = failure("request.not_an_object", "the request is not a JSON object", NULL);
  json_object_foreach(root, name, value) {
    double number = json_number_value(value);
    if (reply != NULL)
      break;
    if (timeout_ms == NULL)
      reply = refused("request.unknown_field", "close has no fields", "/", name);
    else if (strcmp(name, "timeout_ms") != 0)
      reply = refused("request.unknown_field", "only timeout_ms is known", "/", name);
    else if (json_is_null(value)) /* as if it were absent, as everywhere */
      continue;
    else if (!json_is_number(value) || !hfh_is_integer(number))
      reply = failure("request.wrong_type", "an integer is expected", "/timeout_ms");
    else if (!hfh_is_whole(number))
      reply = failure("request.invalid_value", "-9007199254740992 to 9007199254740992 is expected",
                      "/timeout_ms");
    else
      *timeout_ms = number < 0 ? -1 : number > INT32_MAX ? INT32_MAX : (int32_t)number;
  }
  json_decref(root);
  return reply;
}

static char *close_app(holdfast *self, const char *request) {
  char *reply = read_request(request, NULL);
  if (reply != NULL)
    return reply;
  holdfast_http_stop(hfh_driver_of(self));
  holdfast_close(self);
  return nothing;
}

static char *next_event(holdfast *self, const char *request) {
  int32_t timeout_ms = -1;
  char *event = NULL, *reply = read_request(request, &timeout_ms);
  if (reply != NULL)
    return reply;
  int32_t status = hfh_event_next(self, timeout_ms, &event);
  switch (status) {
  case HOLDFAST_OK:
    return in_reply(event);
  case HOLDFAST_NOT_FOUND:
    return no_event;
  case HOLDFAST_CLOSED:
    return no_more_events;
  default:
    return failed_start(status);
  }
}

/* ---- every operation ---- */

char *holdfast_http_call(int64_t app, const char *operation, const char *request) {
  holdfast *self = (holdfast *)(intptr_t)app;
  const char *name = operation == NULL ? "" : operation;
  if (strcmp(name, "open") == 0 && app != 0)
    return failure("request.invalid_value",
                   "open takes the handle 0 and returns a new one; this handle is open or was",
                   NULL);
  if (strcmp(name, "open") == 0)
    return open_app(request);
  if (strcmp(name, "event_next") == 0)
    return next_event(self, request);
  if (strcmp(name, "close") == 0)
    return close_app(self, request);
  if (strcmp(name, "poll") == 0 || strcmp(name, "complete") == 0)
    return failure("request.unknown_operation",
                   "the driver calls this by itself; event_next returns the events", NULL);
  char *reply = NULL;
  int32_t status = holdfast_call(self, operation, request, &reply);
  /* A key must not be lost because another process writes: the worker passes it again. */
  if (strcmp(name, "key_complete") == 0 && hfh_is_for_now(status) && hfh_keep_key(self, request)) {
    holdfast_free(reply);
    return taken;
  }
  char *text = passed_on(status, reply);
  return status == HOLDFAST_KEYSTORE ? with_cause(self, text) : text;
}
