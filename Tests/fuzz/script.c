/* The commands of scripts, and the interpreter of their lines. */
#include "script.h"

#include "judge.h"
#include "scene.h"
#include "server.h"
#include "tables.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 200, MAX_THINGS = 60, MAX_WAIT_MS = 2 };

static const struct {
  const char *name;
  operation *function;
} operations[] = {
#define OPERATION(name) {#name, holdfast_##name},
    OPERATIONS
#undef OPERATION
};
static const size_t operation_count = sizeof operations / sizeof *operations;

/* ---- calls ---- */

/* Take the next thing, and keep it if it is a request. Returns whether there was one. */
static bool next(int32_t what, int32_t timeout_ms) {
  json_t *given = judge_next(scene_handle(), what, timeout_ms);
  json_t *request = json_object_get(given, "request");
  bool is_something = given != NULL && json_object_get(given, "wake_in_ms") == NULL;
  if (request != NULL) {
    json_array_append(the_scene.requests[the_scene.current], request);
    const char *body = json_string_value(json_object_get(request, "body"));
    const char *purpose = json_string_value(json_object_get(request, "purpose"));
    if (body != NULL && purpose != NULL && strcmp(purpose, "upload") == 0) {
      free(the_scene.last_upload);
      the_scene.last_upload = strdup(body);
    }
  }
  json_decref(given);
  return is_something;
}

static void next_one(const char *rest) {
  next(*rest == 0 ? HOLDFAST_NEXT_ALL : (int32_t)strtol(rest, NULL, 10), 0);
}

static void next_all(const char *rest) {
  (void)rest;
  for (int count = 0; count < MAX_THINGS && next(HOLDFAST_NEXT_ALL, 0); count++)
    continue;
}

static void call(size_t index, const char *request) {
  const char *name = operations[index].name;
  json_t *reply = judge_ask(name, operations[index].function, scene_handle(), request);
  const char *nonce = json_string_value(json_object_get(reply, "nonce"));
  if (nonce != NULL)
    snprintf(the_scene.nonce, sizeof the_scene.nonce, "%s", nonce);
  json_decref(reply);
}

static void call_named(const char *name, const char *request) {
  for (size_t index = 0; index < operation_count; index++)
    if (strcmp(operations[index].name, name) == 0)
      return call(index, request);
}

/* ---- answers ---- */

static json_t *next_request(void) {
  json_t *waiting = the_scene.requests[the_scene.current];
  json_t *request = json_incref(json_array_get(waiting, 0));
  if (request != NULL)
    json_array_remove(waiting, 0);
  return request;
}

/* Complete a request. `body` is any bytes, or NULL. */
static void complete(const json_t *request, int status, const char *body) {
  json_t *id = json_object_get(request, "id");
  /* A body that is not UTF-8 becomes null, as holdfast.h demands. */
  json_t *text = body == NULL ? NULL : json_string(body);
  json_t *completion = json_pack("{s:O, s:i, s:O, s:o}", "id", id, "status", status, "headers",
                                 the_scene.headers, "body", text == NULL ? json_null() : text);
  char *sent = json_dumps(completion, JSON_COMPACT);
  if (sent != NULL)
    call_named("complete", sent);
  free(sent);
  json_decref(completion);
  json_object_clear(the_scene.headers);
}

static void answer(const char *rest) {
  char *body = NULL;
  int status = (int)strtol(rest, &body, 10);
  json_t *request = next_request();
  if (request != NULL)
    complete(request, status, *body == ' ' ? body + 1 : body);
  json_decref(request);
}

static void fail(const char *rest) {
  json_t *request = next_request();
  json_t *word = json_string(rest);
  json_t *completion =
      word == NULL || request == NULL
          ? NULL
          : json_pack("{s:O, s:O}", "id", json_object_get(request, "id"), "error", word);
  char *sent = completion == NULL ? NULL : json_dumps(completion, JSON_COMPACT);
  if (sent != NULL)
    call_named("complete", sent);
  free(sent);
  json_decref(completion);
  json_decref(word);
  json_decref(request);
}

static void serve(const char *rest) {
  (void)rest;
  for (int count = 0; count < MAX_THINGS && next(HOLDFAST_NEXT_ALL, 0); count++) {
    for (json_t *request; (request = next_request()) != NULL; json_decref(request)) {
      int status = 0;
      json_t *reply = server_answer(&the_scene.server, request, &status);
      char *body = reply == NULL ? NULL : json_dumps(reply, JSON_COMPACT);
      complete(request, status, body);
      free(body);
      json_decref(reply);
    }
  }
}

static void header(const char *rest) {
  const char *colon = strchr(rest, ':');
  if (colon == NULL)
    return;
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)(colon - rest), rest);
  json_t *value = json_string(colon[1] == ' ' ? colon + 2 : colon + 1);
  if (value != NULL)
    json_object_set_new(the_scene.headers, name, value);
}

/* ---- device and server ---- */

static void move(int64_t *clock, const char *rest) {
  int64_t by = strtoll(rest, NULL, 10);
  if (__builtin_add_overflow(*clock, by, clock))
    *clock = by;
}

static void clock_both(const char *rest) {
  move(&the_scene.server.now_ms, rest);
  move(&the_scene.monotonic_ms, rest);
  scene_tell_time();
}

static void clock_wall(const char *rest) {
  move(&the_scene.server.now_ms, rest);
  scene_tell_time();
}

static void reboot(const char *rest) {
  (void)rest;
  scene_crash();
  the_scene.boots += 1;
  the_scene.monotonic_ms = 30000;
  scene_open(NULL);
}

static void key(const char *rest) {
  char name[16], word[16];
  int number = 0;
  int read = sscanf(rest, "%15s %15s %d", name, word, &number);
  scene_key *it = read < 2 ? NULL : scene_find_key(name);
  if (it == NULL)
    return;
  if (strcmp(word, "lost") == 0)
    it->present = false;
  else if (strcmp(word, "other") == 0)
    it->bytes[0] ^= 1;
  else if (strcmp(word, "length") == 0)
    it->length = (size_t)number;
  else if (strcmp(word, "reenters") == 0)
    it->reenters = true;
  else
    it->answer = (int32_t)strtol(word, NULL, 10);
}

static void use(const char *rest) {
  the_scene.current = (size_t)strtoul(rest, NULL, 10) % SCENE_HANDLES;
}

static void user(const char *rest) {
  the_scene.server.user = atoi(rest) % 2 == 0 ? USER : OTHER_USER;
}

static void open_app(const char *rest) { scene_open(*rest == 0 ? NULL : rest); }

static void close_app(const char *rest) {
  (void)rest;
  scene_close();
}

static void crash(const char *rest) {
  (void)rest;
  scene_crash();
}

static void damage(const char *rest) {
  char name[32], hex[128];
  long offset = 0;
  if (sscanf(rest, "%31s %ld %127s", name, &offset, hex) == 3)
    scene_damage(name, offset, hex);
}

static void cut(const char *rest) {
  char name[32];
  long offset = 0;
  if (sscanf(rest, "%31s %ld", name, &offset) == 2)
    scene_damage(name, offset, NULL);
}

static void wait_for(const char *rest) {
  long wanted = strtol(rest, NULL, 10);
  next(HOLDFAST_NEXT_NEWS, wanted < 0 || wanted > MAX_WAIT_MS ? MAX_WAIT_MS : (int32_t)wanted);
  for (int32_t what = HOLDFAST_NEXT_NEWS; what <= HOLDFAST_NEXT_ALL; what++)
    if ((holdfast_wake_fd(scene_handle(), what) < 0) != (scene_handle() == NULL))
      judge_fail("a closed handle has a wake descriptor, or an open one has none");
}

/* Call a function with a handle that does not exist. */
static void stray(const char *rest) {
  char *end = NULL;
  uintptr_t value = strtoull(rest, &end, 16);
  for (size_t at = 0; at < SCENE_HANDLES; at++)
    if (value == (uintptr_t)the_scene.handles[at])
      return;
  char *reply = NULL;
  int32_t status = operations[value % operation_count].function((holdfast *)value, end, &reply);
  holdfast_free(reply);
  holdfast_close((holdfast *)value);
  if (status != HOLDFAST_CLOSED)
    judge_fail("a call with an invented handle returns %d", status);
}

static const struct {
  const char *name;
  void (*run)(const char *rest);
} commands[] = {
    {"open", open_app},    {"configure", scene_open_raw},
    {"close", close_app},  {"crash", crash},
    {"serve", serve},      {"take", next_all},
    {"next", next_one},    {"answer", answer},
    {"fail", fail},        {"header", header},
    {"clock", clock_both}, {"wall", clock_wall},
    {"reboot", reboot},    {"key", key},
    {"use", use},          {"user", user},
    {"damage", damage},    {"cut", cut},
    {"wait", wait_for},    {"stray", stray},
};
static const size_t command_count = sizeof commands / sizeof *commands;

/* ---- lines ---- */

static void run_line(const char *line) {
  size_t length = strcspn(line, " ");
  const char *rest = line + length + (line[length] == ' ');
  if (length == 0 || *line == '#')
    return;
  for (size_t at = 0; at < command_count; at++)
    if (strlen(commands[at].name) == length && strncmp(commands[at].name, line, length) == 0)
      return commands[at].run(rest);
  for (size_t at = 0; at < operation_count; at++)
    if (strlen(operations[at].name) == length && strncmp(operations[at].name, line, length) == 0)
      return call(at, rest);
  /* An unknown word calls some function, always the same one. */
  size_t sum = 0;
  for (size_t at = 0; at < length; at++)
    sum = sum * 31 + (unsigned char)line[at];
  call(sum % operation_count, rest);
}

void script_run(const uint8_t *bytes, size_t size) {
  text script = {0};
  text_add(&script, (const char *)bytes, size);
  scene_begin();
  char *at = script.bytes, *end = at + script.count;
  for (int count = 0; at < end && count < MAX_LINES; count++) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL)
      stop = end;
    *stop = 0;
    char *line = text_expand(at);
    judge_line = line;
    run_line(line);
    judge_line = "";
    free(line);
    at = stop + 1;
  }
  scene_end();
  judge_nothing_left();
  free(script.bytes);
}
