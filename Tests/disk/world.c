#include "disk.h"

#include <errno.h>
#include <sodium.h>
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
  fprintf(stderr, "the test itself fails: ");
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
    return; /* what follows from the first is shown by a replay */
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

/* ---- people and things ---- */

const char *user_id(int user) {
  static const char *const ids[USERS] = {"0a000000-0000-4000-8000-00000000000a",
                                         "0b000000-0000-4000-8000-00000000000b"};
  return ids[user];
}

const char *org_id(int org) {
  static const char *const ids[ORGANISATIONS] = {"0f000000-0000-4000-8000-000000000001",
                                                 "0f000000-0000-4000-8000-000000000002"};
  return ids[org];
}

void item_id(int number, char text[37]) {
  snprintf(text, 37, "01976b36-0000-7000-8000-0000000000%02x", number);
}

static int item_of(const char *id) {
  for (int number = 0; number < ITEMS; number++) {
    char text[37];
    item_id(number, text);
    if (id != NULL && strcmp(id, text) == 0)
      return number;
  }
  return -1;
}

json_t *item_payload(const item *of) {
  json_t *payload = json_pack("{s:s,s:i}", "type", "visit", "minutes", of->minutes);
  if (of->note > 0) {
    char *note = malloc(of->note + 1);
    if (note == NULL)
      die("no memory");
    memset(note, 'n', of->note);
    note[of->note] = 0;
    json_object_set_new(payload, "note", json_string(note));
    free(note);
  }
  return payload;
}

static void base64(const char *text, char *out, size_t room) {
  sodium_bin2base64(out, room, (const unsigned char *)text, strlen(text),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* A session as GoTrue answers every grant: an unsigned token that lives for an hour. */
static json_t *token_reply(const world *it, int user) {
  char claims[256], body[512], access[640], refresh[64];
  snprintf(claims, sizeof claims, "{\"sub\":\"%s\",\"exp\":%lld,\"token\":%d}", user_id(user),
           (long long)(it->now_ms / 1000 + 3600), it->server.token[user]);
  base64(claims, body, sizeof body);
  snprintf(access, sizeof access, "eyJhbGciOiJIUzI1NiJ9.%s.c2lnbmF0dXJl", body);
  snprintf(refresh, sizeof refresh, "refresh-%d-%d-%d", user, it->server.session[user],
           it->server.token[user]);
  return json_pack("{s:s,s:s,s:i,s:s,s:{s:s}}", "access_token", access, "token_type", "bearer",
                   "expires_in", 3600, "refresh_token", refresh, "user", "id", user_id(user));
}

/* A new session of this user. */
json_t *user_session(world *it, int user) {
  it->server.session[user]++;
  it->server.token[user] = 0;
  it->server.ended[user] = false;
  return token_reply(it, user);
}

/* ---- the server ---- */

static json_t *answer(const json_t *request, int status, json_t *body) {
  char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
  json_t *result = json_pack("{s:O,s:i,s:{},s:s?}", "id", json_object_get(request, "id"), "status",
                             status, "headers", "body", text);
  free(text);
  json_decref(body);
  return result;
}

static json_t *refused(const json_t *request, const char *code) {
  return answer(request, 400, json_pack("{s:s,s:s}", "code", code, "message", "refused"));
}

/* GoTrue's rotation: the active token is replaced, its parent gets the active one again, and what
 * is older ends the session. */
static json_t *refresh(world *it, const json_t *request, const char *token) {
  int user, session, number;
  if (token == NULL || sscanf(token, "refresh-%d-%d-%d", &user, &session, &number) != 3)
    return refused(request, "validation_failed");
  if (it->server.ended[user] || session != it->server.session[user])
    return refused(request, "refresh_token_not_found");
  if (number < it->server.token[user] - 1)
    return refused(request, "refresh_token_already_used");
  if (number == it->server.token[user])
    it->server.token[user]++;
  return answer(request, 200, token_reply(it, user));
}

static json_t *memberships(int user) {
  json_t *rows = json_array();
  for (int org = 0; org < (user == 0 ? ORGANISATIONS : 1); org++)
    json_array_append_new(rows,
                          json_pack("{s:s,s:s,s:s,s:{s:s,s:s,s:s}}", "org_id", org_id(org), "role",
                                    "peer_mentor", "status", "active", "organizations", "id",
                                    org_id(org), "name", "Nordlys", "status", "active"));
  return rows;
}

static json_t *contacts(const char *url) {
  int org = strstr(url, org_id(1)) != NULL ? 1 : 0;
  json_t *rows = json_array();
  for (int number = 0; number < CONTACTS; number++) {
    char id[37];
    snprintf(id, sizeof id, "0c000000-0000-4000-8000-0000000%d00%02x", org, number);
    json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:n}", "id", id, "org_id",
                                          org_id(org), "name", "Kari Nordmann", "municipality",
                                          "Bergen", "relation", "peer", "updated_at",
                                          "2026-01-01T10:00:00.000001+00:00", "deleted_at"));
  }
  return rows;
}

/* PostgREST with ignore-duplicates: the ids of the rows that are new. What is stored is promised to
 * leave the queue once the answer was taken. */
static json_t *upload(world *it, const json_t *request, const char *body) {
  json_t *rows = json_loads(body, 0, NULL), *row;
  size_t index;
  json_t *stored = json_array();
  json_array_foreach(rows, index, row) {
    if (json_integer_value(json_object_get(row, "minutes")) > 1440) {
      json_decref(rows);
      json_decref(stored);
      return answer(request, 400,
                    json_pack("{s:s,s:s,s:n,s:n}", "code", "23514", "message",
                              "new row violates check constraint \"activities_minutes_check\"",
                              "details", "hint"));
    }
  }
  json_array_foreach(rows, index, row) {
    int number = item_of(json_string_value(json_object_get(row, "id")));
    if (number < 0)
      die("a row that nobody registered is uploaded");
    if (it->server.stored[number])
      continue;
    it->server.stored[number] = true;
    it->next.items[number].state = ITEM_GONE;
    json_array_append_new(stored, json_pack("{s:O}", "id", json_object_get(row, "id")));
  }
  json_decref(rows);
  return answer(request, 201, stored);
}

static json_t *read_back(world *it, const json_t *request, const char *url) {
  json_t *rows = json_array();
  for (int number = 0; number < ITEMS; number++) {
    char id[37];
    item_id(number, id);
    if (it->server.stored[number] && strstr(url, id) != NULL) {
      it->next.items[number].state = ITEM_GONE;
      json_array_append_new(rows, json_pack("{s:s}", "id", id));
    }
  }
  return answer(request, 200, rows);
}

static json_t *auth(world *it, const json_t *request, const char *url, const char *body) {
  bool revokes = strcmp(json_string_value(json_object_get(request, "purpose")), "revoke") == 0;
  if (strstr(url, "/logout") != NULL) {
    it->next.revokes = it->now.revokes - 1;
    return answer(request, 204, NULL);
  }
  if (strstr(url, "/user") != NULL)
    return answer(request, 200, json_pack("{s:s}", "id", user_id(it->now.user)));
  json_t *fields = json_loads(body, 0, NULL);
  json_t *result;
  const char *token = json_string_value(json_object_get(fields, "refresh_token"));
  if (token != NULL) {
    result = refresh(it, request, token);
    bool ended = json_integer_value(json_object_get(result, "status")) != 200;
    if (!revokes && ended)
      it->next.user = NOBODY;
    else if (!revokes)
      it->next.token = it->server.token[it->now.user];
  } else {
    it->next = it->now;
    it->next.user = 0;
    it->next.locked = false;
    it->next.org = NOBODY;
    it->next.token = 0;
    result = answer(request, 200, user_session(it, 0));
  }
  json_decref(fields);
  return result;
}

/* The answer to a request, and in `next` what is promised once the library has taken it. */
static json_t *serve(world *it, const json_t *request) {
  const char *purpose = json_string_value(json_object_get(request, "purpose"));
  const char *url = json_string_value(json_object_get(request, "url"));
  const char *body = json_string_value(json_object_get(request, "body"));
  it->next = it->now;
  if (strstr(url, "/auth/") != NULL)
    return auth(it, request, url, body);
  if (strcmp(purpose, "guard") == 0 && it->now.user == 1)
    it->next.org = 0; /* the only one: chosen for him */
  if (strcmp(purpose, "guard") == 0)
    return answer(request, 200, memberships(it->now.user));
  if (strcmp(purpose, "upload") == 0)
    return body != NULL ? upload(it, request, body) : read_back(it, request, url);
  if (strcmp(purpose, "pull") == 0)
    return answer(request, 200, contacts(url));
  if (strcmp(purpose, "summary") == 0)
    return answer(request, 200, json_pack("[{s:i,s:i}]", "activities", 3, "minutes", 90));
  return answer(request, 200, json_array());
}

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

static operation *operation_of(const char *name) {
#define ENTRY(which)                                                                               \
  { #which, holdfast_##which }
  static const struct {
    const char *name;
    operation *call;
  } table[] = {
      ENTRY(clock_set),
      ENTRY(session_start),
      ENTRY(sign_in_begin),
      ENTRY(sign_in_complete),
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
      ENTRY(network_set),
      ENTRY(sync_now),
      ENTRY(sync_status),
      ENTRY(poll),
      ENTRY(complete),
  };
  for (size_t index = 0; index < sizeof table / sizeof *table; index++)
    if (strcmp(table[index].name, name) == 0)
      return table[index].call;
  die("no such operation: %s", name);
}

/* An error that a failing disk, or a lack of memory, may be answered with. */
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

/* One failure is answered, and the next try succeeds; a disk that stays full is repaired after the
 * second refusal. */
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
    finding("%s answers %d %s", name, status, said);
  } else if (!is_clear(status, reply)) {
    finding("%s answers %d %s, which is no clear error of storage", name, status, said);
  } else if (tries == TRIES) {
    finding("%s never succeeds again: %d %s", name, status, said);
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
  if (json_object_get(reply, "screen") != NULL && strcmp(name, "route_check") != 0) {
    json_decref(it->decision);
    it->decision = json_incref(reply);
  }
  return reply;
}

void app_do(world *it, const char *name, json_t *request) {
  json_decref(app_call(it, name, request));
}

static void set_clock(world *it) {
  json_t *request = json_pack("{s:I,s:I}", "now_ms", (json_int_t)it->now_ms, "monotonic_ms",
                              (json_int_t)it->monotonic_ms);
  if (it->boot != NULL)
    json_object_set_new(request, "boot_id", json_string(it->boot));
  app_do(it, "clock_set", request);
}

void app_open(world *it) {
  char config[2048];
  snprintf(config, sizeof config,
           "{\"data_dir\":\"%s/data\",\"backend\":{\"url\":\"http://127.0.0.1:9\",\"api_key\":"
           "\"k\"},\"auth_methods\":[{\"id\":\"bankid\",\"provider\":\"bankid\",\"flow\":\"pkce\","
           "\"label\":\"BankID\"}],\"redirect_url\":\"app.example://signed-in\",\"clock\":"
           "\"manual\"}",
           it->folder);
  for (int tries = 1;; tries++) {
    char *answered = NULL;
    fault_enter();
    int32_t status = holdfast_open(config, NULL, &it->app, &answered);
    fault_leave();
    json_t *reply = taken(answered);
    show("open", NULL, status, reply);
    if (status == HOLDFAST_OK && json_is_true(json_object_get(reply, "recovered")))
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
    finding("%lld handles or replies are left", (long long)holdfast_live_count());
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

/* One round of a host's loop; how many requests there were. */
static size_t round_of(world *it, json_int_t *wake_ms) {
  json_t *polled =
      app_call(it, "poll", it->seen > 0 ? json_pack("{s:I}", "ack", (json_int_t)it->seen) : NULL);
  json_t *requests = json_object_get(polled, "requests"), *one;
  json_t *events = json_object_get(polled, "events");
  size_t index;
  json_array_foreach(events, index, one) {
    const char *type = json_string_value(json_object_get(one, "type"));
    it->seen = json_integer_value(json_object_get(one, "seq"));
    if (type != NULL && strcmp(type, "decision") == 0) {
      json_decref(it->decision);
      it->decision = json_incref(json_object_get(one, "decision"));
    }
    if (type != NULL && strcmp(type, "storage_recovered") == 0)
      finding("files were set aside");
  }
  json_array_foreach(requests, index, one) app_do(it, "complete", serve(it, one));
  size_t count = json_array_size(requests);
  const json_t *wake = json_object_get(polled, "wake_in_ms");
  *wake_ms = json_is_integer(wake) ? json_integer_value(wake) : -1;
  json_decref(polled);
  return count;
}

void app_settle(world *it) {
  json_int_t wake_ms;
  for (int rounds = 0; rounds < 100; rounds++)
    if (round_of(it, &wake_ms) == 0 && wake_ms != 0)
      return;
  finding("the loop never comes to rest");
}

void app_settle_until(world *it, bool (*holds)(world *), const char *what) {
  for (int rounds = 0; rounds < 100; rounds++) {
    json_int_t wake_ms;
    size_t count = round_of(it, &wake_ms);
    if (holds(it))
      return;
    if (count == 0 && wake_ms < 0)
      break;
    if (count == 0)
      app_pass(it, wake_ms / 1000 + 1);
  }
  char *shown = text_of(it->decision);
  finding("never: %s; shown is %s", what, shown);
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
