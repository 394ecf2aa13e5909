/* The same work through the library, the network played by this process.
 *
 * host prepare DIR | cold DIR | enqueue DIR COUNT | drain DIR; prints "seconds". */
#include <holdfast.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int32_t operation(holdfast *, const char *, char **);

static holdfast *app;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static json_t *call(operation *function, const char *request) {
  char *reply = NULL;
  if (function(app, request, &reply) != HOLDFAST_OK) {
    fprintf(stderr, "%s\n%s\n", request, reply);
    exit(1);
  }
  json_t *value = json_loads(reply, 0, NULL);
  holdfast_free(reply);
  return value;
}

static void done(operation *function, const char *request) { json_decref(call(function, request)); }

static void open_app(const char *folder) {
  char config[1024], *reply = NULL;
  snprintf(
      config, sizeof config,
      "{\"data_dir\":\"%s/data\",\"backend\":{\"url\":\"http://127.0.0.1:9\",\"api_key\":\"k\"},"
      "\"policy\":{\"biometric\":\"off\"}}",
      folder);
  if (holdfast_open(config, NULL, &app, &reply) != HOLDFAST_OK) {
    fprintf(stderr, "%s\n", reply);
    exit(1);
  }
  holdfast_free(reply);
}

/* One round of the host's loop: every upload is stored, the guard finds one membership. */
static int round_of(void) {
  json_t *polled = call(holdfast_poll, "{}");
  json_t *requests = json_object_get(polled, "requests"), *request;
  size_t index;
  int uploads = 0;
  json_array_foreach(requests, index, request) {
    const char *purpose = json_string_value(json_object_get(request, "purpose"));
    const char *body = json_string_value(json_object_get(request, "body"));
    json_t *answer = json_array();
    if (strcmp(purpose, "upload") == 0) {
      json_t *rows = json_loads(body, 0, NULL), *row;
      size_t at;
      json_array_foreach(rows, at, row)
          json_array_append_new(answer, json_pack("{s:O}", "id", json_object_get(row, "id")));
      json_decref(rows);
      uploads += 1;
    } else if (strcmp(purpose, "guard") == 0) {
      json_array_append_new(
          answer, json_loads("{\"org_id\":\"0f000000-0000-4000-8000-000000000001\",\"role\":"
                             "\"peer_mentor\",\"status\":\"active\",\"organizations\":{\"id\":"
                             "\"0f000000-0000-4000-8000-000000000001\",\"name\":\"Nordlys\","
                             "\"status\":\"active\"}}",
                             0, NULL));
    }
    char *text = json_dumps(answer, JSON_COMPACT);
    json_t *completion =
        json_pack("{s:O,s:i,s:{},s:s}", "id", json_object_get(request, "id"), "status",
                  strcmp(purpose, "upload") == 0 ? 201 : 200, "headers", "body", text);
    char *sent = json_dumps(completion, JSON_COMPACT);
    done(holdfast_complete, sent);
    free(sent);
    free(text);
    json_decref(completion);
    json_decref(answer);
  }
  int busy = json_array_size(requests) > 0;
  json_decref(polled);
  return busy;
}

int main(int count, char **arguments) {
  if (count < 3)
    return 64;
  const char *mode = arguments[1], *folder = arguments[2];
  double start = now();
  open_app(folder);
  if (strcmp(mode, "prepare") == 0) {
    done(holdfast_session_start, arguments[3]);
    while (round_of())
      ;
  } else if (strcmp(mode, "cold") == 0) {
    done(holdfast_session_resume, NULL);
  } else {
    done(holdfast_session_resume, NULL);
    if (strcmp(mode, "enqueue") == 0) {
      done(holdfast_network_set, "{\"online\":false}");
      start = now();
      for (int number = 0; number < atoi(arguments[3]); number++) {
        char request[256];
        snprintf(request, sizeof request,
                 "{\"kind\":\"activity\",\"payload\":{\"type\":\"visit\",\"minutes\":%d,"
                 "\"note\":\"kaffe og prat\"}}",
                 number % 1440 + 1);
        done(holdfast_queue_add, request);
      }
    } else {
      start = now();
      while (round_of())
        ;
    }
  }
  printf("%.6f\n", now() - start);
  return 0;
}
