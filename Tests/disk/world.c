/* The host of the test: findings, the states at every moment, and calls that are repeated after an
 * injected failure. */
#include "disk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

enum { FINDINGS_SHOWN = 400 };

static char attempt[256];
static long failed_attempts;
static bool attempt_failed;

noreturn void die(const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  fprintf(stderr, "defect of the test: ");
  vfprintf(stderr, format, rest);
  fprintf(stderr, " (%s)\n", attempt);
  va_end(rest);
  exit(2);
}

void trying(const char *format, ...) {
  va_list rest;
  attempt_failed = false;
  va_start(rest, format);
  vsnprintf(attempt, sizeof attempt, format, rest);
  va_end(rest);
}

void finding(const char *format, ...) {
  if (attempt_failed)
    return; /* a replay shows the findings that follow from the first */
  attempt_failed = true;
  failed_attempts++;
  va_list rest;
  va_start(rest, format);
  if (failed_attempts <= FINDINGS_SHOWN) {
    printf("FAILED %s: ", attempt);
    vprintf(format, rest);
    printf("\n");
    fflush(stdout);
  }
  va_end(rest);
}

long findings(void) { return failed_attempts; }

/* ---- moments ---- */

enum { MARKS = 2048 };
static struct {
  world at;
  promise after;
} marks[MARKS];
static long mark_count;

const world *world_at(long mark) { return &marks[mark].at; }
const promise *world_after(long mark) { return &marks[mark].after; }

static long begin_mark(const world *it) {
  if (!it->is_recorded)
    return -1;
  if (mark_count == MARKS)
    die("too many calls");
  marks[mark_count].at = *it;
  trace_mark(mark_count, false);
  return mark_count++;
}

static void end_mark(const world *it, long mark) {
  if (mark < 0)
    return;
  marks[mark].after = it->now;
  trace_mark(mark, true);
}

/* ---- calls ---- */

typedef int32_t operation(holdfast *, const char *, char **);

static int32_t next(holdfast *self, const char *request, char **reply) {
  (void)request;
  return holdfast_next(self, HOLDFAST_NEXT_ALL, 0, reply);
}

static operation *operation_of(const char *name) {
#define ENTRY(which)                                                                               \
  { #which, holdfast_##which }
  static const struct {
    const char *name;
    operation *call;
  } table[] = {
      ENTRY(clock_set),
      ENTRY(session_adopt),
      ENTRY(sign_in_begin),
      ENTRY(sign_in_complete),
      ENTRY(sign_in_cancel),
      ENTRY(session_resume),
      ENTRY(session_unlock),
      ENTRY(session_lock),
      ENTRY(session_background),
      ENTRY(session_foreground),
      ENTRY(session_status),
      ENTRY(session_logout),
      ENTRY(org_list),
      ENTRY(org_select),
      ENTRY(route_check),
      ENTRY(queue_add),
      ENTRY(queue_list),
      ENTRY(queue_get),
      ENTRY(queue_edit),
      ENTRY(queue_cancel),
      ENTRY(queue_retry),
      ENTRY(queue_export),
      ENTRY(queue_explain),
      ENTRY(contact_search),
      ENTRY(contact_get),
      ENTRY(summary_get),
      ENTRY(network_report),
      ENTRY(sync_now),
      ENTRY(sync_status),
      ENTRY(complete),
      {"next", next},
  };
  for (size_t index = 0; index < sizeof table / sizeof *table; index++)
    if (strcmp(table[index].name, name) == 0)
      return table[index].call;
  die("no such operation: %s", name);
}

/* Whether a failing disk or a lack of memory may cause this error. */
static bool is_clear(int32_t status, const json_t *reply) {
  if (status == HOLDFAST_NOMEM)
    return true;
  if (status != HOLDFAST_STORAGE && status != HOLDFAST_FULL && status != HOLDFAST_BUSY &&
      status != HOLDFAST_KEYSTORE)
    return false;
  const json_t *error = json_object_get(reply, "error");
  const char *code = json_string_value(json_object_get(error, "code"));
  return code != NULL && strcmp(code, "storage.damaged") != 0 &&
         strcmp(code, "keystore.key_lost") != 0 &&
         json_string_value(json_object_get(error, "message")) != NULL &&
         json_is_true(json_object_get(error, "retryable"));
}

static char *text_of(const json_t *value) {
  char *text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT);
  if (value != NULL && text == NULL)
    die("no memory");
  return text;
}

static json_t *taken(char *reply) {
  json_t *value = reply == NULL ? NULL : json_loads(reply, 0, NULL);
  holdfast_free(reply);
  return value;
}

/* After one failure the next try must succeed. A disk that stays broken is repaired after the
 * second failure. */
enum { TRIES = 4 };

static bool shows_calls;
void show_calls(void) { shows_calls = true; }

static void show(const char *name, const char *request, int32_t status, const json_t *reply) {
  if (!shows_calls)
    return;
  char *text = text_of(reply);
  printf("%s %.300s\n  %d %.600s\n", name, request == NULL ? "" : request, status,
         text == NULL ? "" : text);
  fflush(stdout);
  free(text);
}

static bool must_try_again(world *it, const char *name, int tries, int32_t status, json_t *reply) {
  if (status == HOLDFAST_OK)
    return false;
  char *said = text_of(reply);
  if (!it->has_faults) {
    finding("%s returns %d %s", name, status, said);
  } else if (!is_clear(status, reply)) {
    finding("%s returns %d %s, which is not a retryable storage error", name, status, said);
  } else if (tries == TRIES) {
    finding("%s still fails after every retry: %d %s", name, status, said);
  } else {
    it->failures++;
    if (tries >= 2)
      fault_lift();
    free(said);
    return true;
  }
  free(said);
  return false;
}

/* A call may be carried out, and lack the memory for its reply: then the item is cancelled already.
 */
static bool was_carried_out(const char *name, int tries, const json_t *reply) {
  const char *code = json_string_value(json_object_get(json_object_get(reply, "error"), "code"));
  return tries > 1 && strcmp(name, "queue_cancel") == 0 && code != NULL &&
         strcmp(code, "queue.not_found") == 0;
}

/* Calls whose screen is the next thing. */
static bool has_screen(const char *name) {
  static const char *const names[] = {"session_adopt",      "sign_in_complete",   "sign_in_cancel",
                                      "session_resume",     "session_unlock",     "session_lock",
                                      "session_background", "session_foreground", "session_logout",
                                      "org_select"};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++)
    if (strcmp(names[index], name) == 0)
      return true;
  return false;
}

static void learn(world *it, const json_t *given) {
  json_t *screen = json_object_get(given, "screen");
  const char *type = json_string_value(json_object_get(json_object_get(given, "notice"), "type"));
  if (screen != NULL) {
    json_decref(it->decision);
    it->decision = json_incref(screen);
  }
  if (type != NULL && strcmp(type, "storage_recovered") == 0 && !it->has_damage)
    finding("files were set aside");
}

json_t *app_call(world *it, const char *name, json_t *request) {
  char *text = text_of(request);
  json_decref(request);
  operation *call = operation_of(name);
  long mark = begin_mark(it);
  json_t *reply = NULL;
  int32_t status = HOLDFAST_OK;
  for (int tries = 1;; tries++) {
    char *answered = NULL;
    fault_enter();
    status = call(it->app, text, &answered);
    fault_leave();
    reply = taken(answered);
    show(name, text, status, reply);
    if (was_carried_out(name, tries, reply))
      status = HOLDFAST_OK;
    if (!must_try_again(it, name, tries, status, reply))
      break;
    json_decref(reply);
  }
  fault_lift();
  free(text);
  if (status == HOLDFAST_OK)
    it->now = it->next;
  it->next = it->now;
  end_mark(it, mark);
  if (status == HOLDFAST_OK && strcmp(name, "next") == 0)
    learn(it, reply);
  else if (status == HOLDFAST_OK && has_screen(name))
    app_do(it, "next", NULL);
  return reply;
}

void app_do(world *it, const char *name, json_t *request) {
  json_decref(app_call(it, name, request));
}

static json_t *clock_of(const world *it) {
  json_t *request = json_pack("{s:I,s:I}", "now_ms", (json_int_t)it->now_ms, "monotonic_ms",
                              (json_int_t)it->monotonic_ms);
  if (it->boot != NULL)
    json_object_set_new(request, "boot_id", json_string(it->boot));
  return request;
}

static void set_clock(world *it) { app_do(it, "clock_set", clock_of(it)); }

static void configure(const world *it, char *config, size_t size) {
  snprintf(config, size,
           "{\"template\":\"volunteers\",\"keystore\":{\"kind\":\"file\"},\"policy\":{"
           "\"biometric\":\"preferred\"},"
           "\"data_dir\":\"%s/data\",\"backend\":{\"url\":\"http://127.0.0.1:9\",\"api_key\":"
           "\"k\"},\"auth_methods\":[{\"id\":\"bankid\",\"provider\":\"bankid\",\"flow\":\"pkce\","
           "\"label\":\"BankID\"}],\"redirect_url\":\"app.example://signed-in\",\"clock\":"
           "\"manual\"}",
           it->folder);
}

static void do_beside(holdfast *app, const char *name, json_t *request) {
  char *text = text_of(request), *answered = NULL;
  json_decref(request);
  int32_t status = operation_of(name)(app, text, &answered);
  if (status != HOLDFAST_OK)
    finding("another handle: %s returns %d %s", name, status, answered);
  holdfast_free(answered);
  free(text);
}

void app_beside(world *it, const char *name, json_t *request) {
  char config[2048], *answered = NULL;
  configure(it, config, sizeof config);
  long mark = begin_mark(it);
  holdfast *other = NULL;
  if (holdfast_open(config, NULL, &other, &answered) != HOLDFAST_OK)
    finding("another handle does not open: %s", answered);
  holdfast_free(answered);
  do_beside(other, "clock_set", clock_of(it));
  do_beside(other, "session_resume", NULL);
  do_beside(other, name, request);
  holdfast_close(other);
  it->now = it->next;
  end_mark(it, mark);
}

void app_open(world *it) {
  char config[2048];
  configure(it, config, sizeof config);
  for (int tries = 1;; tries++) {
    char *answered = NULL;
    fault_enter();
    int32_t status = holdfast_open(config, NULL, &it->app, &answered);
    fault_leave();
    json_t *reply = taken(answered);
    show("open", NULL, status, reply);
    if (status == HOLDFAST_OK && json_is_true(json_object_get(reply, "recovered")) &&
        !it->has_damage)
      finding("files were set aside");
    bool again = must_try_again(it, "open", tries, status, reply);
    json_decref(reply);
    if (!again)
      break;
  }
  fault_lift();
  if (it->app != NULL)
    set_clock(it);
}

void app_close(world *it) {
  if (it->left != NULL)
    folder_copy(it->folder, it->left);
  fault_enter();
  holdfast_close(it->app);
  fault_leave();
  fault_lift();
  it->app = NULL;
  if (holdfast_live_count() != 0)
    finding("%lld handles or replies are not freed", (long long)holdfast_live_count());
}

void app_pass(world *it, int64_t seconds) {
  it->now_ms += seconds * 1000;
  it->monotonic_ms += seconds * 1000;
  set_clock(it);
}

bool app_shows(world *it, const char *screen) {
  const char *shown = json_string_value(json_object_get(it->decision, "screen"));
  return shown != NULL && strcmp(shown, screen) == 0;
}

/* One turn of the host's loop: take one thing. False: there is nothing now. */
static bool turn(world *it, json_int_t *wake_ms) {
  json_t *given = app_call(it, "next", NULL);
  const json_t *request = json_object_get(given, "request");
  const json_t *wake = json_object_get(given, "wake_in_ms");
  if (request != NULL)
    app_do(it, "complete", server_answer(it, request));
  *wake_ms = json_is_integer(wake) ? json_integer_value(wake) : -1;
  bool is_something = wake == NULL;
  json_decref(given);
  return is_something;
}

enum { TURNS = 400 };

void app_settle(world *it) {
  json_int_t wake_ms;
  for (int turns = 0; turns < TURNS; turns++)
    if (!turn(it, &wake_ms) && wake_ms != 0)
      return;
  finding("the loop never becomes idle");
}

void app_settle_until(world *it, bool (*holds)(world *), const char *what) {
  /* One turn more: the library keeps a response that it could not store, and stores it then. */
  bool held = false;
  for (int turns = 0; turns < TURNS; turns++) {
    json_int_t wake_ms;
    bool is_something = turn(it, &wake_ms);
    if (held)
      return;
    held = holds(it);
    if (!is_something && wake_ms < 0)
      break;
    if (!is_something)
      app_pass(it, wake_ms / 1000 + 1);
  }
  char *shown = text_of(it->decision);
  finding("this never happens: %s; the app shows %s", what, shown);
  free(shown);
}

void world_begin(world *it, const char *folder) {
  memset(it, 0, sizeof *it);
  it->folder = folder;
  it->now_ms = 1795600000000;
  it->monotonic_ms = 7200000;
  it->now = (promise){.user = NOBODY, .org = NOBODY};
  it->next = it->now;
}

void world_end(world *it) {
  if (it->app != NULL)
    app_close(it);
  json_decref(it->decision);
  it->decision = NULL;
}
