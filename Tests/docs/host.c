/* The rest of a host around the loop of docs/hosts.md with an HTTP client of one's own: signs in,
 * registers a visit, and exits when the server has stored it. Usage: host FOLDER URL KEY */
#include <curl/curl.h>
#include <holdfast.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *http_send(const json_t *request);
void show(holdfast *app, const json_t *thing);

static void ask(int32_t (*operation)(holdfast *, const char *, char **), holdfast *app,
                const char *request) {
  char *reply = NULL;
  int32_t status = operation(app, request, &reply);
  if (status != HOLDFAST_OK) {
    fprintf(stderr, "%s\n", reply);
    exit(1);
  }
  holdfast_free(reply);
}

void show(holdfast *app, const json_t *thing) {
  const json_t *screen = json_object_get(thing, "screen");
  const json_t *message = json_object_get(json_object_get(thing, "sync"), "message");
  puts(json_is_object(message) ? json_string_value(json_object_get(message, "code"))
                               : json_object_iter_key(json_object_iter((json_t *)thing)));
  fflush(stdout);
  if (json_is_object(message)) {
    holdfast_close(app);
  } else if (screen && !strcmp(json_string_value(json_object_get(screen, "screen")), "home")) {
    ask(holdfast_queue_add, app,
        "{\"kind\":\"activity\",\"payload\":{\"type\":\"visit\",\"minutes\":45},"
        "\"occurred_at_ms\":1795000000000}");
  }
}

struct text {
  char *start;
  size_t count;
};

static size_t take(char *part, size_t size, size_t count, void *context) {
  struct text *text = context;
  text->start = realloc(text->start, text->count + count + 1);
  memcpy(text->start + text->count, part, size * count);
  text->count += count;
  text->start[text->count] = 0;
  return count;
}

static size_t note(char *line, size_t size, size_t count, void *headers) {
  const char *colon = memchr(line, ':', size * count);
  if (colon && colon + 2 < line + count) {
    json_t *value = json_stringn(colon + 2, (size_t)(line + count - colon) - 4);
    json_object_setn_new(headers, line, (size_t)(colon - line), value);
  }
  return count;
}

json_t *http_send(const json_t *request) {
  CURL *curl = curl_easy_init();
  struct curl_slist *lines = NULL;
  struct text body = {NULL, 0};
  json_t *answer = json_object(), *headers = json_object(), *value;
  const char *name, *text = json_string_value(json_object_get(request, "body"));
  json_object_foreach(json_object_get(request, "headers"), name, value) {
    char line[32768];
    snprintf(line, sizeof line, "%s: %s", name, json_string_value(value));
    lines = curl_slist_append(lines, line);
  }
  curl_easy_setopt(curl, CURLOPT_URL, json_string_value(json_object_get(request, "url")));
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST,
                   json_string_value(json_object_get(request, "method")));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                   (long)json_integer_value(json_object_get(request, "timeout_ms")));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, note);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, headers);
  if (text)
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
  long status = 0;
  if (curl_easy_perform(curl) == CURLE_OK) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    json_object_set_new(answer, "status", json_integer(status));
    json_object_set_new(answer, "headers", json_incref(headers));
    json_object_set_new(answer, "body", json_string(body.start ? body.start : ""));
  } else {
    json_object_set_new(answer, "error", json_string("offline"));
  }
  json_decref(headers);
  curl_slist_free_all(lines);
  curl_easy_cleanup(curl);
  free(body.start);
  return answer;
}

void follow(holdfast *app);

int main(int count, char **words) {
  if (count != 4)
    return 2;
  char config[1024], *reply = NULL;
  snprintf(config, sizeof config,
           "{\"development\":true,\"template\":\"volunteers\",\"data_dir\":\"%s\","
           "\"backend\":{\"url\":\"%s\",\"api_key\":\"%s\"}}",
           words[1], words[2], words[3]);
  holdfast *app = NULL;
  if (holdfast_open(config, NULL, &app, &reply) != HOLDFAST_OK) {
    fprintf(stderr, "%s\n", reply);
    return 1;
  }
  holdfast_free(reply);
  ask(holdfast_sign_in_complete, app,
      "{\"email\":\"solo@example.org\",\"password\":\"holdfast-demo\"}");
  follow(app);
  return (int)holdfast_live_count();
}
