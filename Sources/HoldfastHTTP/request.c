/* Reading requests, and the replies that refuse them: an object of JSON is read by a table of its
 * fields. Null is as if a field were absent, as everywhere. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- texts ---- */

void hfh_zero(void *bytes, size_t count) {
#ifdef __APPLE__
  memset_s(bytes, count, 0, count);
#else
  explicit_bzero(bytes, count);
#endif
}

void hfh_secret_free(char *text) {
  if (text == NULL)
    return;
  hfh_zero(text, strlen(text));
  free(text);
}

/* ---- replies ---- */

char hfh_no_memory[] = "{\"error\":{\"code\":\"memory.exhausted\",\"message\":\"out of memory\","
                       "\"field\":null,\"retryable\":true,\"detail\":{}}}";
char hfh_reply_lost[] = "{\"error\":{\"code\":\"memory.exhausted\",\"message\":\"the call was "
                        "carried out, but there is no memory for its reply\",\"field\":null,"
                        "\"retryable\":false,\"detail\":{}}}";

char *hfh_reply(const char *text) {
  char *copy = strdup(text);
  return copy == NULL ? hfh_reply_lost : copy;
}

char *hfh_error(const char *code, const char *path, const char *name, const char *format, ...) {
  va_list given;
  va_start(given, format);
  json_t *message = json_vsprintf(format, given);
  va_end(given);
  json_t *field = name != NULL ? json_sprintf("%s/%s", path, name) : NULL;
  if (field == NULL)
    field = path != NULL ? json_string(path) : json_null();
  json_t *error = json_pack("{s:{s:s,s:o,s:o,s:b,s:{}}}", "error", "code", code, "message", message,
                            "field", field, "retryable", 0, "detail");
  char *text = error == NULL ? NULL : json_dumps(error, JSON_COMPACT);
  json_decref(error);
  return text == NULL ? hfh_no_memory : text;
}

char *hfh_failed(int32_t status) {
  switch (status) {
  case HOLDFAST_NOMEM:
    return hfh_no_memory;
  case HOLDFAST_CLOSED:
    return hfh_error("handle.closed", NULL, NULL, "the handle was closed meanwhile");
  case HOLDFAST_FORKED:
    return hfh_error("handle.forked", NULL, NULL, "the handle belongs to the parent process");
  default:
    return hfh_error("internal.defect", NULL, NULL, "libcurl or a thread would not start");
  }
}

/* ---- fields ---- */

/* An integer of JSON may be written as 12.0. One that is out of range has the right type. */
static char *read_number(const hfh_field *it, const char *path, const json_t *value) {
  const double end = 9223372036854775808.0;
  double number = json_number_value(value);
  if (!json_is_number(value) || number < -end || number >= end || number != (double)(int64_t)number)
    return hfh_error(hfh_wrong_type, path, it->name, "an integer is expected");
  if (number < (double)it->least || number > (double)it->most)
    return hfh_error(hfh_wrong_value, path, it->name, "%lld to %lld is expected",
                     (long long)it->least, (long long)it->most);
  *it->number = (int64_t)number;
  return NULL;
}

static char *read_value(const hfh_field *it, const char *path, const json_t *value) {
  if (it->number != NULL)
    return read_number(it, path, value);
  if (it->text != NULL && !json_is_string(value))
    return hfh_error(hfh_wrong_type, path, it->name, "a string is expected");
  if (it->flag != NULL && !json_is_boolean(value))
    return hfh_error(hfh_wrong_type, path, it->name, "true or false is expected");
  if (it->text != NULL)
    *it->text = json_string_value(value);
  else
    *it->flag = json_is_true(value);
  return NULL;
}

static char *unknown_field(const hfh_field *known, const char *path, const char *name) {
  char all[192] = "";
  for (const hfh_field *it = known; it->name != NULL; it++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", it == known ? "one of " : ", ",
             it->name);
  return hfh_error("request.unknown_field", path, name, "there is no such field: %s is expected",
                   *all == 0 ? "none" : all);
}

char *hfh_read(const json_t *object, const char *path, const hfh_field *known) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)object, name, value) {
    const hfh_field *it = known;
    while (it->name != NULL && strcmp(it->name, name) != 0)
      it++;
    char *refusal = NULL;
    if (it->name == NULL)
      refusal = unknown_field(known, path, name);
    else if (!json_is_null(value))
      refusal = read_value(it, path, value);
    if (refusal != NULL)
      return refusal;
  }
  for (const hfh_field *it = known; it->name != NULL; it++) {
    value = json_object_get(object, it->name);
    if (it->required && (value == NULL || json_is_null(value)))
      return hfh_error("request.missing_field", path, it->name, "this field is required");
  }
  return NULL;
}

char *hfh_parse(const char *request, json_t **root) {
  bool is_absent = request == NULL || *request == 0;
  int flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL;
  *root = is_absent ? json_object() : json_loads(request, flags, NULL);
  if (json_is_object(*root) || json_is_null(*root))
    return NULL;
  if (*root != NULL)
    return hfh_error("request.not_an_object", NULL, NULL, "the request is not a JSON object");
  if (is_absent)
    return hfh_no_memory;
  return hfh_error("request.not_json", NULL, NULL, "the request is not JSON, or has a key twice");
}
