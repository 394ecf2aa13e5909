/* Members of JSON objects. */
#include "app.h"

#include <string.h>

const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text == NULL ? "" : text;
}

json_int_t number_at(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

bool is_text(const json_t *object, const char *key, const char *expected) {
  return strcmp(text_at(object, key), expected) == 0;
}
