/* An app in six steps: sign in, choose an organisation, queue without a network, start again
 * without a sign-in, search, log out. Usage: visits FOLDER URL KEY EMAIL PASSWORD */
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
static bool has_contacts, is_sent, is_leaving;

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
  is_sent = is_sent || strcmp(text_at(outcome, "code"), "sync_completed") == 0;
  has_contacts = has_contacts || json_is_integer(json_object_get(sync, "contacts_ms"));
  json_decref(next);
}

static void wait_for(const char *wanted) {
  while (strcmp(screen, wanted) != 0)
    follow();
}

/* Starts the app: from the disk alone, it shows the first screen. */
static void start(char **words) {
  app = 0;
  json_t *reply = call("open", json_pack("{s:s, s:{s:s, s:s}, s:s, s:b}", "data_dir", words[1],
                                         "backend", "url", words[2], "api_key", words[3],
                                         "template", "volunteers", "development", 1));
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

  act("network_report", json_pack("{s:b}", "online", false));
  act("queue_add",
      json_pack("{s:s, s:{s:s, s:i}, s:I}", "kind", "activity", "payload", "type", "visit",
                "minutes", 45, "occurred_at_ms", (json_int_t)time(NULL) * 1000));
  puts("queued: it is on the disk");
  act("close", NULL);

  start(words); /* the session is on the disk, too */
  wait_for("home");
  while (!is_sent || !has_contacts)
    follow();

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
