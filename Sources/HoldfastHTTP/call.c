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
static char accepted_answer[] = "{\"accepted\":true}";
static char late_answer[] = "{\"accepted\":false}";
static char no_key[] = "{\"key_request\":null,\"closed\":false}";
static char no_more_keys[] = "{\"key_request\":null,\"closed\":true}";

bool hfh_is_constant(const char *text) {
  return text == no_memory || text == reply_lost || text == nothing || text == accepted_answer ||
         text == late_answer || text == no_key || text == no_more_keys;
}

static char *failure(const char *code, const char *message, const char *field) {
  json_t *error = json_pack("{s:{s:s,s:s,s:s?,s:b,s:{}}}", "error", "code", code, "message",
                            message, "field", field, "retryable", 0, "detail");
  char *text = error == NULL ? NULL : json_dumps(error, JSON_COMPACT);
  json_decref(error);
  return text == NULL ? no_memory : text;
}

/* The failure of a driver that did not start, or of a handle that has none. */
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
  json_t *root = hfh_keyring_cause(self, cause, sizeof cause) ? json_loads(reply, 0, NULL) : NULL;
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
  char *config;              /* the rest, for the core; NULL: the whole request */
  char *options;             /* the field `http`; NULL: none */
  holdfast_keyring *keyring; /* of the key store "secret_service" */
  holdfast_mailbox *box;     /* of the key store "host" */
  bool resumes; /* the first screen comes later, because the host answers key requests then */
} parts;

static void free_parts(parts *it) {
  hfh_secret_free(it->config);
  hfh_secret_free(it->options);
  holdfast_keyring_free(it->keyring);
  holdfast_mailbox_free(it->box);
}

/* Reads {"kind":"secret_service","name":"..."}. Returns the reply of a wrong one, or NULL. */
static char *take_service(const json_t *root, const json_t *store, parts *it) {
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
  const json_t *policy = json_object_get(root, "policy");
  const char *presence = json_string_value(json_object_get(policy, "biometric"));
  if (presence == NULL || strcmp(presence, "required") == 0)
    return failure("request.invalid_value",
                   "the secret service asks for no presence: use \"preferred\" or \"off\"",
                   "/policy/biometric");
  const char *folder = json_string_value(json_object_get(root, "data_dir"));
  int32_t status = holdfast_keyring_new(json_string_value(name), folder == NULL ? "" : folder,
                                        HOLDFAST_KEYRING_ASKS, hfh_log_line, &it->keyring);
  if (status == HOLDFAST_NOT_FOUND)
    return failure("request.invalid_value", "libsecret-1.so.0 is not installed", "/keystore/kind");
  return status == HOLDFAST_OK ? NULL : no_memory;
}

/* Takes a key store of the driver; any other is the core's. Returns the reply of a wrong one, or
 * NULL. */
static char *take_store(const json_t *root, parts *it) {
  json_t *store = json_object_get(root, "keystore");
  const char *kind = json_string_value(json_object_get(store, "kind"));
  bool in_service = kind != NULL && strcmp(kind, "secret_service") == 0;
  if (kind == NULL || (!in_service && strcmp(kind, "host") != 0))
    return NULL;
  const char *field;
  json_t *value;
  json_object_foreach(store, field, value) {
    if (strcmp(field, "kind") != 0 && !(in_service && strcmp(field, "name") == 0))
      return refused("request.unknown_field",
                     in_service ? "only kind and name are known" : "only kind is known",
                     "/keystore/", field);
  }
  if (in_service)
    return take_service(root, store, it);
  it->box = holdfast_mailbox_new(hfh_key_wait_ms);
  return it->box == NULL ? no_memory : NULL;
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
  bool has_store = it->keyring != NULL || it->box != NULL;
  if (reply == NULL && (http != NULL || has_store)) {
    json_object_del(root, "http");
    if (has_store)
      json_object_del(root, "keystore");
    /* Nobody answers key requests before the handle is there. */
    const char *role = json_string_value(json_object_get(root, "role"));
    if (it->box != NULL && (role == NULL || strcmp(role, "app") == 0)) {
      it->resumes = true;
      json_object_set_new(root, "role", json_string("worker"));
    }
    it->config = json_dumps(root, JSON_COMPACT);
    reply = it->config == NULL ? no_memory : NULL;
  }
  json_decref(root);
  return reply;
}

/* The options are checked before the core makes files. */
static char *wrong_options(const char *text, long *log_level) {
  hfh_options options = {0};
  hfh_wrong wrong;
  char *reply = NULL;
  int32_t status = hfh_options_read(text, &options, &wrong);
  if (status == HOLDFAST_NOMEM)
    reply = no_memory;
  else if (status != HOLDFAST_OK)
    reply = refused(wrong.code, wrong.message, *wrong.name == 0 ? "/http" : "/http/", wrong.name);
  else if (!options.thread)
    reply = failure("request.invalid_value", "next needs the driver's own thread", "/http/thread");
  *log_level = options.log_level;
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

/* The reply of a name whose keys belong to another folder, or NULL. */
static char *taken_name(const parts *it) {
  char *other = holdfast_keyring_other_folder(it->keyring), *said = NULL;
  if (other == NULL)
    return NULL;
  bool named = asprintf(&said,
                        "the keys under this name are those of the folder %s: choose another name "
                        "for each data_dir",
                        other) >= 0;
  char *reply = named ? failure("request.invalid_value", said, "/keystore/name") : no_memory;
  free(named ? said : NULL);
  free(other);
  return reply;
}

static char *open_with(const char *config, parts *it) {
  holdfast_keystore store;
  char *refusal = it->keyring == NULL ? NULL : taken_name(it);
  if (refusal != NULL)
    return refusal;
  if (it->keyring != NULL)
    store = holdfast_keyring_keystore(it->keyring);
  if (it->box != NULL)
    store = holdfast_mailbox_keystore(it->box);
  char *text = NULL;
  holdfast *self = NULL;
  holdfast_http *driver = NULL;
  int32_t status =
      holdfast_open(config, it->keyring != NULL || it->box != NULL ? &store : NULL, &self, &text);
  char *reply = passed_on(status, text);
  if (status != HOLDFAST_OK)
    return reply;
  bool in_service = it->keyring != NULL;
  status = HOLDFAST_NOMEM;
  if (reply != reply_lost) {
    status = hfh_start(self, it->options, it->box, it->keyring, &driver);
    it->box = NULL;
    it->keyring = NULL;
  }
  if (status == HOLDFAST_OK) {
    if (it->resumes)
      hfh_owe_resume(self);
    reply = opened(self, in_service, reply);
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
  long log_level = -1;
  if (!hfh_prepare())
    return failed_start(HOLDFAST_INTERNAL);
  char *reply = split(request, &it);
  if (reply == NULL)
    reply = wrong_options(it.options, &log_level);
  if (reply == NULL) {
    hfh_log_opening(log_level, 1); /* holdfast_open() uses keys */
    reply = open_with(it.config == NULL ? request : it.config, &it);
    hfh_log_opening(log_level, -1);
  }
  free_parts(&it);
  return reply;
}

/* ---- requests of the driver's own operations ---- */

/* Reads a request as an object; a NULL or empty text is {}. Returns the reply of a wrong one, or
 * NULL. */
static char *read_object(const char *request, json_t **root) {
  bool is_absent = request == NULL || *request == 0;
  *root = is_absent ? json_object()
                    : json_loads(request,
                                 JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL,
                                 NULL);
  if (*root == NULL)
    return is_absent
               ? no_memory
               : failure("request.not_json", "the request is not JSON, or has a key twice", NULL);
  if (json_is_object(*root) || json_is_null(*root))
    return NULL;
  return failure("request.not_an_object", "the request is not a JSON object", NULL);
}

/* Refuses every field but these; the list ends with NULL. */
static char *only(json_t *root, const char *const known[], const char *message) {
  const char *name;
  json_t *value;
  json_object_foreach(root, name, value) {
    size_t i = 0;
    while (known[i] != NULL && strcmp(known[i], name) != 0)
      i++;
    if (known[i] == NULL)
      return refused("request.unknown_field", message, "/", name);
  }
  return NULL;
}

/* Null is as if it were absent, as everywhere. */
static bool is_absent(const json_t *root, const char *name) {
  const json_t *value = json_object_get(root, name);
  return value == NULL || json_is_null(value);
}

/* Reads an integer; leaves `number` where it is absent. */
static char *read_integer(const json_t *root, const char *name, int64_t *number) {
  const json_t *value = json_object_get(root, name);
  if (is_absent(root, name))
    return NULL;
  double real = json_number_value(value);
  if (!json_is_number(value) || !hfh_is_integer(real))
    return refused("request.wrong_type", "an integer is expected", "/", name);
  if (!hfh_is_whole(real))
    return refused("request.invalid_value", "-9007199254740992 to 9007199254740992 is expected",
                   "/", name);
  *number = (int64_t)real;
  return NULL;
}

/* Reads a request that may have the field timeout_ms, or none where `timeout_ms` is NULL. Returns
 * the reply of a wrong request, or NULL. */
static char *read_request(const char *request, int32_t *timeout_ms) {
  static const char *const wait[] = {"timeout_ms", NULL};
  int64_t number = -1;
  json_t *root = NULL;
  char *reply = read_object(request, &root);
  if (reply == NULL && timeout_ms == NULL)
    reply = only(root, wait + 1, "close has no fields");
  else if (reply == NULL)
    reply = only(root, wait, "only timeout_ms is known");
  if (reply == NULL)
    reply = read_integer(root, "timeout_ms", &number);
  if (timeout_ms != NULL)
    *timeout_ms = number < 0 ? -1 : number > INT32_MAX ? INT32_MAX : (int32_t)number;
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

/* The next thing for the host: all but requests, which the driver takes. */
static char *next_thing(holdfast *self, const char *request) {
  int32_t timeout_ms = -1, status = HOLDFAST_OK;
  char *reply = read_request(request, &timeout_ms);
  if (reply != NULL)
    return reply;
  if (hfh_take_resume(self))
    holdfast_session_resume(self, NULL, NULL);
  char *text = hfh_kept(self);
  if (text == NULL)
    status = holdfast_next(self, HOLDFAST_NEXT_NEWS, timeout_ms, &text);
  reply = text == NULL ? NULL : strdup(text);
  if (reply == NULL && status == HOLDFAST_OK) {
    hfh_keep(self, text); /* the core gives it once */
    return no_memory;
  }
  holdfast_free(text);
  return reply == NULL ? no_memory : reply;
}

/* ---- the key store "host" ---- */

static char *key_failure(int32_t status) {
  if (status == HOLDFAST_STATE)
    return failure("config.not_configured",
                   "the handle was not opened with \"keystore\":{\"kind\":\"host\"}", NULL);
  return failed_start(status);
}

static char *next_key(holdfast *self, const char *request) {
  enum { ROOM = 256 };
  int32_t timeout_ms = -1;
  char *reply = read_request(request, &timeout_ms);
  if (reply != NULL)
    return reply;
  reply = malloc(ROOM); /* before a request is taken: it could not be returned without */
  if (reply == NULL)
    return no_memory;
  holdfast_key_request asked;
  int32_t status = hfh_key_next(self, timeout_ms, &asked);
  if (status == HOLDFAST_OK) {
    bool saves = asked.protection != NULL;
    const char *quote = saves ? "\"" : "";
    snprintf(reply, ROOM,
             "{\"key_request\":{\"id\":%lld,\"operation\":\"%s\",\"name\":\"%s\","
             "\"protection\":%s%s%s,\"value\":%s%s%s},\"closed\":false}",
             (long long)asked.id, asked.operation, asked.name, quote,
             saves ? asked.protection : "null", quote, quote, saves ? asked.value : "null", quote);
    holdfast_mailbox_zero(&asked);
    return reply;
  }
  free(reply);
  switch (status) {
  case HOLDFAST_NOT_FOUND:
    return no_key;
  case HOLDFAST_CLOSED:
    return no_more_keys;
  default:
    return key_failure(status);
  }
}

/* The text of a field; null is as if it were absent. Returns the reply of a wrong one, or NULL. */
static char *read_text(const json_t *root, const char *name, const char **text) {
  const json_t *value = json_object_get(root, name);
  *text = json_string_value(value);
  if (value == NULL || json_is_null(value) || *text != NULL)
    return NULL;
  return refused("request.wrong_type", "a string is expected", "/", name);
}

static char *complete_key(holdfast *self, const char *request) {
  static const char *const known[] = {"id", "result", "value", NULL};
  const char *result = NULL, *value = NULL, *wrong = NULL;
  int64_t id = -1;
  json_t *root = NULL;
  char *reply = read_object(request, &root);
  if (reply == NULL)
    reply = only(root, known, "only id, result and value are known");
  if (reply == NULL)
    reply = read_integer(root, "id", &id);
  if (reply == NULL && id < 0 && !is_absent(root, "id"))
    reply = failure("request.invalid_value", "the id of a key_request is expected", "/id");
  if (reply == NULL)
    reply = read_text(root, "result", &result);
  if (reply == NULL)
    reply = read_text(root, "value", &value);
  if (reply == NULL && (id < 0 || result == NULL))
    reply = failure("request.missing_field", "this field is required", id < 0 ? "/id" : "/result");
  if (reply == NULL) {
    int32_t status = hfh_key_complete(self, id, result, value, &wrong);
    if (status == HOLDFAST_OK)
      reply = accepted_answer;
    else if (status == HOLDFAST_NOT_FOUND ||
             status == HOLDFAST_CLOSED) /* it ended with the handle */
      reply = late_answer;
    else if (status == HOLDFAST_INVALID)
      reply =
          failure("request.invalid_value",
                  strcmp(wrong, "/value") == 0 ? "the 32 bytes of the key in base64 are expected"
                                               : "ok, not_found, locked, cancelled, failed, ... "
                                                 "is expected",
                  wrong);
    else
      reply = key_failure(status);
  }
  json_decref(root);
  return reply;
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
  if (strcmp(name, "key_next") == 0)
    return next_key(self, request);
  if (strcmp(name, "key_complete") == 0)
    return complete_key(self, request);
  if (strcmp(name, "close") == 0)
    return close_app(self, request);
  if (strcmp(name, "complete") == 0)
    return failure("request.unknown_operation", "the driver calls this by itself", NULL);
  if (hfh_answers_keys(self))
    return failure("handle.busy",
                   "this thread answers the key requests, and the call would wait for it: make the "
                   "call on another thread",
                   NULL);
  if (strcmp(name, "next") == 0)
    return next_thing(self, request);
  char *reply = NULL;
  int32_t status = holdfast_call(self, operation, request, &reply);
  char *text = passed_on(status, reply);
  return status == HOLDFAST_KEYSTORE ? with_cause(self, text) : text;
}
