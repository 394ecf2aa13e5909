/* The rest of a host around the loop of docs/hosts.md: signs in, registers a visit, and exits when
 * the server has stored it. Usage: host FOLDER URL KEY */
#include <holdfast.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

json_t *call(int64_t app, const char *operation, json_t *request);
void show(int64_t app, const json_t *thing);
void follow(int64_t app);

void show(int64_t app, const json_t *thing) {
  const json_t *screen = json_object_get(thing, "screen");
  const json_t *message = json_object_get(json_object_get(thing, "sync"), "message");
  puts(json_is_object(message) ? json_string_value(json_object_get(message, "code"))
                               : json_object_iter_key(json_object_iter((json_t *)thing)));
  fflush(stdout);
  if (json_is_object(message))
    json_decref(call(app, "close", NULL));
  else if (screen && !strcmp(json_string_value(json_object_get(screen, "screen")), "home"))
    json_decref(call(app, "queue_add",
                     json_pack("{s:s,s:{s:s,s:i},s:I}", "kind", "activity", "payload", "type",
                               "visit", "minutes", 45, "occurred_at_ms", 1795000000000)));
}

static json_t *config_of(char **words) {
  return json_pack("{s:s,s:{s:s,s:s},s:b,s:s}", "data_dir", words[1], "backend", "url", words[2],
                   "api_key", words[3], "development", 1, "template", "volunteers");
}

int main(int count, char **words) {
  if (count != 4)
    return 2;
  /* A refusal is told before anything is opened */
  json_t *reply = call(0, "open", json_pack("{s:s}", "data_dir", words[1]));
  if (json_object_get(reply, "error") == NULL)
    return 3;
  json_decref(reply);
  reply = call(0, "open", config_of(words));
  int64_t app = json_integer_value(json_object_get(reply, "app"));
  json_decref(reply);
  json_decref(
      call(app, "sign_in_complete",
           json_pack("{s:s,s:s}", "email", "solo@example.org", "password", "holdfast-demo")));
  follow(app);
  return (int)holdfast_live_count();
}
