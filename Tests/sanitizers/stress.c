/* Many threads over every function, for ThreadSanitizer and AddressSanitizer.
 *
 * stress FOLDER ROUNDS. Each round opens some handles and signs in. Threads then call every
 * function on them; one thread plays the network, one takes the news; another closes the handles in
 * the middle. Every call must return, a closed handle must answer CLOSED, and everything must be
 * freed.
 */
#include "../fuzz/server.h"

#include <errno.h>
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLERS = 5, MAX_HANDLES = 4, CALLS = 400 };

typedef int32_t operation(holdfast *, const char *, char **);

static const struct {
  operation *function;
  const char *request;
} calls[] = {
    {holdfast_queue_add, "{\"kind\":\"activity\",\"payload\":{\"type\":\"visit\",\"minutes\":5}}"},
    {holdfast_session_status, NULL},
    {holdfast_session_token, NULL},
    {holdfast_queue_list, "{\"limit\":3}"},
    {holdfast_item_list, "{\"kind\":\"activity\",\"limit\":3}"},
    {holdfast_contact_search, "{\"query\":\"a\"}"},
    {holdfast_session_resume, NULL},
    {holdfast_route_check, "{\"route\":\"/contacts/1\"}"},
    {holdfast_org_list, NULL},
    {holdfast_org_select, "{\"org_id\":\"" ORG "\"}"},
    {holdfast_queue_explain, NULL},
    {holdfast_summary_get, NULL},
    {holdfast_contact_get, "{\"id\":\"" CONTACT "\",\"live\":true}"},
    {holdfast_sync_now, NULL},
    {holdfast_sync_status, NULL},
    {holdfast_network_report, "{\"online\":true}"},
    {holdfast_queue_get, "{\"id\":\"" CONTACT "\"}"},
    {holdfast_queue_edit, "{\"id\":\"" CONTACT "\",\"payload\":{}}"},
    {holdfast_queue_cancel, "{\"id\":\"" CONTACT "\"}"},
    {holdfast_queue_retry, NULL},
    {holdfast_queue_export, NULL},
    {holdfast_session_background, NULL},
    {holdfast_session_foreground, NULL},
    {holdfast_sign_in_begin, "{\"method\":\"bankid\"}"},
    {holdfast_sign_in_complete, "{\"callback_url\":\"app.example://signed-in?code=a\"}"},
    {holdfast_sign_in_cancel, "{}"},
    {holdfast_session_lock, NULL},
    {holdfast_session_unlock, NULL},
    {holdfast_clock_set, "{\"now_ms\":1}"},
    {holdfast_session_adopt, "{\"session\":{}}"},
    {holdfast_complete, "{\"id\":1,\"error\":\"timeout\"}"},
    {holdfast_session_logout, "{\"unsent\":\"keep\"}"}, /* the network's thread signs in again */
    {holdfast_queue_add, "{\"kind\":\"no such kind\"}"},
};
static const size_t call_count = sizeof calls / sizeof *calls;

static holdfast *handles[MAX_HANDLES];
static size_t handle_count;
static atomic_bool over;
static atomic_llong made;

static void fail(const char *what, int32_t status, const char *reply) {
  fprintf(stderr, "%s: %d %s\n", what, status, reply == NULL ? "no reply" : reply);
  abort();
}

/* Call a function. Returns whether the handle is still open; aborts on a defect of the library. */
static bool call(holdfast *handle, operation *function, const char *request, json_t **answer) {
  char *reply = NULL;
  int32_t status = function(handle, request, &reply);
  atomic_fetch_add(&made, 1);
  if (status < HOLDFAST_OK || status >= HOLDFAST_NOMEM || reply == NULL)
    fail("a call", status, reply);
  if (answer != NULL)
    *answer = status == HOLDFAST_OK ? json_loads(reply, 0, NULL) : NULL;
  holdfast_free(reply);
  return status != HOLDFAST_CLOSED;
}

static void *caller(void *number) {
  size_t at = (size_t)number * 7;
  for (int count = 0; count < CALLS && !atomic_load(&over); count++, at++)
    call(handles[at % handle_count], calls[at % call_count].function,
         calls[at % call_count].request, NULL);
  return NULL;
}

static int32_t next_request(holdfast *handle, const char *ignored, char **reply) {
  (void)ignored;
  return holdfast_next(handle, HOLDFAST_NEXT_REQUESTS, 0, reply);
}

/* Answer the requests of a handle. Only the network's thread and the setup do this. */
static void serve(server *it, holdfast *handle) {
  json_t *given = NULL, *request;
  while (call(handle, next_request, NULL, &given) &&
         (request = json_object_get(given, "request")) != NULL) {
    int status = 0;
    json_t *reply = server_answer(it, request, &status);
    char *body = reply == NULL ? NULL : json_dumps(reply, JSON_COMPACT);
    json_t *completion = json_pack("{s:O, s:i, s:{}, s:s?}", "id", json_object_get(request, "id"),
                                   "status", status, "headers", "body", body);
    char *sent = json_dumps(completion, JSON_COMPACT);
    call(handle, holdfast_complete, sent, NULL);
    free(sent);
    json_decref(completion);
    free(body);
    json_decref(reply);
    json_decref(given);
  }
  json_decref(given);
}

static void sign_in(server *it, holdfast *handle) {
  json_t *session = json_pack("{s:o}", "session", server_session(it, it->user));
  char *request = json_dumps(session, JSON_COMPACT);
  call(handle, holdfast_session_adopt, request, NULL);
  free(request);
  json_decref(session);
  serve(it, handle);
  call(handle, holdfast_org_select, "{\"org_id\":\"" ORG "\"}", NULL);
}

static void *network(void *context) {
  while (!atomic_load(&over))
    for (size_t at = 0; at < handle_count; at++) {
      json_t *status = NULL;
      serve(context, handles[at]);
      call(handles[at], holdfast_session_status, NULL, &status);
      const char *state = json_string_value(json_object_get(status, "state"));
      if (state != NULL && strcmp(state, "signed_out") == 0)
        sign_in(context, handles[at]);
      json_decref(status);
    }
  return NULL;
}

static int32_t next_news(holdfast *handle, const char *ignored, char **reply) {
  (void)ignored;
  return holdfast_next(handle, HOLDFAST_NEXT_NEWS, 5, reply);
}

static void *reader(void *context) {
  (void)context;
  for (size_t at = 0; !atomic_load(&over); at++)
    call(handles[at % handle_count], next_news, NULL, NULL);
  return NULL;
}

static void *watcher(void *context) {
  (void)context;
  for (size_t at = 0; !atomic_load(&over); at++) {
    int32_t what = at / handle_count % HOLDFAST_NEXT_ALL + HOLDFAST_NEXT_NEWS;
    struct pollfd item = {.fd = holdfast_wake_fd(handles[at % handle_count], what),
                          .events = POLLIN};
    poll(&item, item.fd < 0 ? 0 : 1, 2);
    int64_t live = holdfast_live_count();
    if (live < 0)
      fail("live", (int32_t)live, NULL);
  }
  return NULL;
}

/* Close every handle twice in the middle of the round. */
static void *closer(void *round) {
  struct timespec pause = {0, (long)(30 + 60 * ((size_t)round % 6)) * 1000000};
  nanosleep(&pause, NULL);
  for (size_t at = 0; at < 2 * handle_count; at++)
    holdfast_close(handles[at % handle_count]);
  return NULL;
}

static void log_line(void *context, int32_t level, const char *line) {
  (void)level;
  atomic_fetch_add((atomic_llong *)context, (long long)strlen(line));
}

/* Open all handles: `shared` of them on one folder, each other one on its own. */
static void open_all(server *it, const char *folder, size_t shared) {
  for (size_t at = 0; at < handle_count; at++) {
    char config[1024], *reply = NULL;
    snprintf(config, sizeof config,
             "{\"template\":\"volunteers\",\"keystore\":{\"kind\":\"file\"},\"policy\":{"
             "\"biometric\":\"preferred\"},"
             "\"data_dir\":\"%s/%zu\",\"backend\":{\"url\":\"https://example.org\",\"api_key\":"
             "\"k\"},\"auth_methods\":[{\"id\":\"bankid\",\"provider\":\"bankid\",\"flow\":"
             "\"pkce\"}],\"redirect_url\":\"app.example://signed-in\"}",
             folder, at < shared ? 0 : at);
    int32_t status = holdfast_open(config, NULL, &handles[at], &reply);
    if (status != HOLDFAST_OK)
      fail("open", status, reply);
    holdfast_free(reply);
    sign_in(it, handles[at]);
  }
}

static void run_round(server *it, const char *folder, size_t round, size_t count, size_t shared) {
  handle_count = count;
  atomic_store(&over, false);
  open_all(it, folder, shared);
  pthread_t callers[CALLERS], others[4];
  pthread_create(&others[0], NULL, network, it);
  pthread_create(&others[1], NULL, reader, NULL);
  pthread_create(&others[2], NULL, watcher, NULL);
  for (size_t at = 0; at < CALLERS; at++)
    pthread_create(&callers[at], NULL, caller, (void *)at);
  pthread_create(&others[3], NULL, closer, (void *)round);
  for (size_t at = 0; at < CALLERS; at++)
    pthread_join(callers[at], NULL);
  atomic_store(&over, true);
  for (size_t at = 0; at < 4; at++)
    pthread_join(others[at], NULL);
  for (size_t at = 0; at < handle_count; at++)
    if (call(handles[at], holdfast_session_status, NULL, NULL))
      fail("a closed handle still works", HOLDFAST_OK, NULL);
  if (holdfast_live_count() != 0)
    fail("handles or replies are not freed", (int32_t)holdfast_live_count(), NULL);
}

int main(int count, char **arguments) {
  if (count != 3)
    return 64;
  static atomic_llong logged;
  holdfast_log(3, log_line, &logged);
  server it = {.user = USER};
  int rounds = atoi(arguments[2]);
  for (int round = 0; round < rounds; round++) {
    char folder[512];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    it.now_ms = (int64_t)now.tv_sec * 1000;
    snprintf(folder, sizeof folder, "%.400s/%d", arguments[1], round);
    /* One handle; several on one folder; two on one folder and two alone. */
    run_round(&it, folder, (size_t)round, round % 3 == 0 ? 1 : MAX_HANDLES,
              round % 3 == 1 ? MAX_HANDLES : MAX_HANDLES / 2);
  }
  printf("stress: %d rounds, %lld calls, %d threads\n", rounds, (long long)made, CALLERS + 4);
  return 0;
}
