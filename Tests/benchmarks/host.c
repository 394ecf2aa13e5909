/* The work through the library, with the null server as its network.
 *
 * host MODE DIR ...
 *   prepare DIR SESSION    sign in, and let the app become idle
 *   cold DIR               open and resume; prints the decision
 *   add DIR COUNT THREADS  queue_add, each call a sample: online, everything queued before is sent
 *   pile DIR COUNT         the same offline: items stay in the queue
 *   ask DIR COUNT CALL     an operation that the queue's length must not slow down, offline
 *   drain DIR COUNT        send the queue
 *   ingest DIR COUNT       pull COUNT contacts
 *   own DIR COUNT          pull COUNT stored rows of the user
 *   search DIR COUNT       contact_search: the first one, then COUNT more
 *   peak DIR COUNT         pull COUNT contacts; reports the peak of memory over rest, in kB
 *   status DIR COUNT       session_status
 *   next DIR COUNT         holdfast_next, with nothing to do
 *
 * `pile`, `ask` and `own` keep the user's own stored rows. Prints the samples as JSON (bench.h). */
#include "bench.h"

#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t operation(holdfast *, const char *, char **);

static holdfast *app;

/* The library's share: the time of its calls since the last time this was read. */
static double spent;

static char *call(operation *function, const char *request) {
  char *reply = NULL;
  double start = now();
  int32_t status = function(app, request, &reply);
  spent += now() - start;
  if (status != HOLDFAST_OK)
    fail(request == NULL ? "a call" : request, reply);
  return reply;
}

static void done(operation *function, const char *request) {
  holdfast_free(call(function, request));
}

static char *open_app(const char *folder) {
  char config[1024], *reply = NULL;
  write_config(config, sizeof config, folder);
  if (holdfast_open(config, NULL, &app, &reply) != HOLDFAST_OK)
    fail("holdfast_open", reply);
  return reply;
}

/* holdfast_next() without waiting, in the form of an operation. */
static int32_t next(holdfast *self, const char *request, char **reply) {
  (void)request;
  return holdfast_next(self, HOLDFAST_NEXT_ALL, 0, reply);
}

static void set_online(bool online) {
  done(holdfast_network_report, online ? "{\"online\":true}" : "{\"online\":false}");
}

/* A host's loop, until there is nothing to do. Returns the number of requests with this purpose
 * (NULL: any). */
static long work_until_idle(const char *purpose) {
  long found = 0;
  for (bool is_idle = false; !is_idle;) {
    char *text = call(next, NULL);
    json_t *given = json_loads(text, 0, NULL), *request = json_object_get(given, "request");
    holdfast_free(text);
    const json_t *wake = json_object_get(given, "wake_in_ms");
    is_idle = json_is_null(wake) || json_integer_value(wake) > 0;
    if (request != NULL) {
      if (purpose == NULL ||
          strcmp(json_string_value(json_object_get(request, "purpose")), purpose) == 0)
        found += 1;
      char *completion = answer(request);
      done(holdfast_complete, completion);
      free(completion);
    }
    json_decref(given);
  }
  return found;
}

static void prepare(const char *session) {
  done(holdfast_session_adopt, session);
  work_until_idle(NULL);
}

/* Measure until the first screen, and print it. */
static void cold(const char *folder) {
  double start = now();
  char *reply = open_app(folder);
  sample(now() - start);
  puts(reply);
  holdfast_free(reply);
}

static char *add(const char *request) {
  char *reply = NULL;
  if (holdfast_queue_add(app, request, &reply) != HOLDFAST_OK)
    fail(request, reply);
  return reply;
}

/* Work until the queue is empty. One sample: the library's share. */
static void drain(long items) {
  set_online(true);
  spent = 0;
  long uploads = work_until_idle("upload");
  sample(spent);
  report(items, uploads);
}

/* Pull all rows of one kind. One sample: the library's share from the first page to the last. */
static void ingest(long *there, long count) {
  *there = count;
  spent = 0;
  long requests = work_until_idle(NULL);
  sample(spent);
  report(count, requests);
}

/* The first search after an unlock builds the index; `count` more samples follow. */
static void search(long count) {
  char request[256];
  for (long number = 0; number <= count; number++) {
    snprintf(request, sizeof request, "{\"query\":\"%s\"}", query(number));
    spent = 0;
    char *reply = call(holdfast_contact_search, request);
    sample(spent);
    holdfast_free(reply);
  }
}

static void peak(long count) {
  reset_peak();
  long rest = memory("VmRSS");
  contacts_there = count;
  done(holdfast_sync_now, NULL);
  long requests = work_until_idle(NULL);
  report((memory("VmHWM") - rest) / 1024, requests);
}

static void repeat(operation *function, const char *request, long count) {
  for (long number = 0; number < count; number++) {
    spent = 0;
    char *reply = call(function, request);
    sample(spent);
    holdfast_free(reply);
  }
}

/* What the call is, and its request. */
static const struct {
  const char *name;
  operation *function;
  const char *request;
} asked[] = {
    {"queue_list", holdfast_queue_list, "{\"limit\":1}"},
    {"queue_list parked", holdfast_queue_list, "{\"limit\":1,\"state\":\"parked\"}"},
    {"queue_explain", holdfast_queue_explain, NULL},
    {"item_list", holdfast_item_list, "{\"kind\":\"activity\",\"limit\":50}"},
    {"summary_get", holdfast_summary_get, NULL},
    {"sync_status", holdfast_sync_status, NULL},
    {"session_status", holdfast_session_status, NULL},
    {"next", next, NULL},
    {"queue_cancel", holdfast_queue_cancel, NULL},
};

static char *cancel_request(void) {
  char request[REQUEST_ROOM], *added;
  write_visit(request, 1, false);
  added = add(request);
  json_t *reply = json_loads(added, 0, NULL);
  snprintf(request, sizeof request, "{\"id\":\"%s\"}",
           json_string_value(json_object_get(reply, "id")));
  holdfast_free(added);
  json_decref(reply);
  return strdup(request);
}

static void ask(long count, const char *name) {
  size_t at = 0;
  while (strcmp(asked[at].name, name) != 0)
    if (++at == sizeof asked / sizeof *asked)
      fail(name, "no such call");
  for (long number = -WARM_UP; number < count; number++) {
    char *made = asked[at].function == holdfast_queue_cancel ? cancel_request() : NULL;
    if (number >= 0 && !turn_comes())
      return;
    spent = 0;
    done(asked[at].function, made == NULL ? asked[at].request : made);
    if (number >= 0)
      sample(spent);
    free(made);
  }
}

int main(int count, char **arguments) {
  if (count < 3)
    return 64;
  const char *mode = arguments[1], *folder = arguments[2];
  long number = count > 3 ? atol(arguments[3]) : 0, other = count > 4 ? atol(arguments[4]) : 0;
  if (strcmp(mode, "cold") == 0) {
    cold(folder);
    report(1, 0);
    return 0;
  }
  bool is_pile = strcmp(mode, "pile") == 0, is_ask = strcmp(mode, "ask") == 0;
  bool is_own = strcmp(mode, "own") == 0;
  keeps_own = is_pile || is_ask || is_own;
  holdfast_free(open_app(folder));
  if (strcmp(mode, "prepare") == 0) {
    prepare(arguments[3]);
    return 0;
  }
  if (strcmp(mode, "drain") == 0) {
    drain(number);
    return 0;
  }
  if (is_own || strcmp(mode, "ingest") == 0) {
    ingest(is_own ? &own_there : &contacts_there, number);
    return 0;
  }
  /* Online and idle, like an app in use. The host's loop would send the added items; it does not
   * run here. */
  if (is_pile || is_ask)
    set_online(false);
  else
    work_until_idle(NULL);
  if (strcmp(mode, "peak") == 0) {
    peak(number);
    return 0;
  }
  if (strcmp(mode, "add") == 0)
    add_all(number, other, add, holdfast_free);
  else if (is_pile)
    add_all(number, 1, add, holdfast_free);
  else if (is_ask)
    ask(number, arguments[4]);
  else if (strcmp(mode, "search") == 0)
    search(number);
  else if (strcmp(mode, "status") == 0)
    repeat(holdfast_session_status, NULL, number);
  else if (strcmp(mode, "next") == 0)
    repeat(next, NULL, number);
  else
    return 64;
  report(number, 0);
  return 0;
}
