/* Helpers to read members of JSON objects. */
#include "tour.h"

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

json_t *find_by(const json_t *array, const char *key, const char *value) {
  for (size_t i = 0; i < json_array_size(array); i++)
    if (is_text(json_array_get(array, i), key, value))
      return json_array_get(array, i);
  return NULL;
}
