/* An app in seven steps: sign in, choose an organisation, queue without a network, start again
 * without a sign-in, correct what was sent, search, log out.
 * Usage: visits FOLDER URL KEY EMAIL PASSWORD */
#include <holdfast_http.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t app;
static char screen[32];              /* the one that is shown */
static const char *email, *password; /* NULL: was tried */
static bool has_contacts, is_done, is_leaving;

static const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text == NULL ? "" : text;
}

/* Makes a call. Takes over `request`; the caller releases the reply. A refusal ends the program. */
static json_t *call(const char *operation, json_t *request) {
  char *text = request == NULL ? NULL : json_dumps(request, JSON_COMPACT);
  char *answer = holdfast_http_call(app, operation, text);
  json_t *reply = json_loads(answer, 0, NULL), *error = json_object_get(reply, "error");
  json_decref(request);
  holdfast_http_free(text); /* zeroes it: it may hold a password */
  holdfast_http_free(answer);
  if (error != NULL) {
    fprintf(stderr, "%s: %s: %s\n", operation, text_at(error, "code"), text_at(error, "message"));
    exit(1);
  }
  return reply;
}

static void act(const char *operation, json_t *request) { json_decref(call(operation, request)); }

/* Draws a screen, and does what its user would do. */
static void show(const json_t *decision) {
  snprintf(screen, sizeof screen, "%s", text_at(decision, "screen"));
  printf("screen: %s  %s\n", screen, text_at(json_object_get(decision, "message"), "text"));
  if (strcmp(screen, "sign_in") == 0 && !is_leaving) {
    if (password == NULL)
      exit(1); /* the message says why */
    act("sign_in_complete", json_pack("{s:s, s:s}", "email", email, "password", password));
    password = NULL;
  } else if (strcmp(screen, "select_org") == 0) {
    const json_t *first = json_array_get(json_object_get(decision, "orgs"), 0);
    printf("organisation: %s\n", text_at(first, "name"));
    act("org_select", json_pack("{s:s}", "org_id", text_at(first, "org_id")));
  } else if (strcmp(screen, "unlock") == 0) {
    act("session_unlock", NULL);
  }
}

/* Waits for the next thing, and shows it. An app does this on a thread of its own, until `close`.
 */
static void follow(void) {
  json_t *next = call("next", NULL);
  const json_t *decision = json_object_get(next, "screen");
  const json_t *notice = json_object_get(next, "notice"), *sync = json_object_get(next, "sync");
  const json_t *outcome = json_object_get(sync, "message");
  if (decision != NULL)
    show(decision);
  if (notice != NULL)
    printf("notice: %s\n", text_at(notice, "text"));
  if (json_is_object(outcome))
    printf("sync: %s\n", text_at(outcome, "text"));
  is_done = is_done || json_is_object(outcome);
  has_contacts = has_contacts || json_is_integer(json_object_get(sync, "contacts_ms"));
  json_decref(next);
}

static void wait_for(const char *wanted) {
  while (strcmp(screen, wanted) != 0)
    follow();
}

/* Waits until a sync run has ended: everything is sent, or needs its user. */
static void settle(void) {
  for (is_done = false; !is_done || !has_contacts;)
    follow();
}

static void set_network(bool online) {
  act("network_report", json_pack("{s:b}", "online", online));
}

/* Registers a visit: it is on the disk when this returns. */
static void add(int minutes, char id[37]) {
  json_t *reply = call("queue_add", json_pack("{s:s, s:{s:s, s:i}, s:I}", "kind", "activity",
                                              "payload", "type", "visit", "minutes", minutes,
                                              "occurred_at_ms", (json_int_t)time(NULL) * 1000));
  snprintf(id, 37, "%s", text_at(reply, "id"));
  json_decref(reply);
}

/* Lists the user's newest visits, stored and queued. Returns how many of them others have changed
 * at the same time: the user, who sees both values, lets their own stand. */
static int list(void) {
  json_t *own = call("item_list", json_pack("{s:s, s:i}", "kind", "activity", "limit", 2)), *item;
  int conflicts = 0;
  size_t index, at;
  json_array_foreach(json_object_get(own, "items"), index, item) {
    const json_t *column, *conflict = json_object_get(item, "conflict");
    printf("visit: %s %" JSON_INTEGER_FORMAT " min\n", text_at(item, "state"),
           json_integer_value(json_object_get(json_object_get(item, "payload"), "minutes")));
    json_array_foreach(json_object_get(conflict, "columns"), at, column)
        printf("conflict: others have changed %s, too\n", text_at(column, "name"));
    if (!json_is_object(conflict))
      continue;
    /* queue_cancel would leave the row as it is */
    act("queue_retry", json_pack("{s:s, s:b}", "id", text_at(item, "id"), "overwrite", true));
    conflicts++;
  }
  json_decref(own);
  return conflicts;
}

/* Starts the app: from the disk alone, it shows the first screen. */
static void start(char **words) {
  app = 0;
  json_t *reply =
      call("open", json_pack("{s:s, s:{s:s, s:s, s:{s:{s:s, s:{}, s:{}, s:s}}}, s:s, s:b}",
                             "data_dir", words[1], "backend", "url", words[2], "api_key", words[3],
                             "queue", "activity", "table", "activities", "own", "change", "delete",
                             "deleted_at", "template", "volunteers", "development", 1));
  app = json_integer_value(json_object_get(reply, "app"));
  show(json_object_get(reply, "screen"));
  json_decref(reply);
}

int main(int count, char **words) {
  if (count != 6)
    return 2;
  email = words[4];
  password = words[5];

  start(words); /* signs in, and chooses an organisation */
  wait_for("home");

  char visit[37], mistake[37];
  set_network(false);
  add(45, visit);
  add(20, mistake);
  puts("queued: they are on the disk");
  act("close", NULL);

  start(words); /* the session is on the disk, too */
  wait_for("home");
  settle();

  set_network(false); /* what is stored is corrected without a network, too */
  act("queue_edit", json_pack("{s:s, s:{s:i}}", "id", visit, "payload", "minutes", 60));
  act("queue_cancel", json_pack("{s:s}", "id", mistake));
  list();
  set_network(true);
  settle();
  if (list() > 0)
    settle();

  json_t *found = call("contact_search", json_pack("{s:s, s:i}", "query", "a", "limit", 3)),
         *contact;
  size_t index;
  json_array_foreach(json_object_get(found, "contacts"), index, contact)
      printf("contact: %s, %s\n", text_at(contact, "name"), text_at(contact, "municipality"));
  json_decref(found);

  is_leaving = true;
  act("session_logout", json_pack("{s:s}", "unsent", "keep"));
  wait_for("sign_in");
  act("close", NULL);
  return 0;
}
