/* Compares the contents of a folder with the promises. */
#include "disk.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool either(int found, int before, int after) { return found == before || found == after; }

/* Compare only the fields that the test wrote: the library adds `occurred_at`. */
static bool has_content(const json_t *payload, const item *expected) {
  json_t *wanted = item_payload(expected), *value;
  const char *key;
  bool same = true;
  json_object_foreach(wanted, key, value) if (!json_equal(json_object_get(payload, key), value))
      same = false;
  json_decref(wanted);
  return same;
}

/* Check the items of the user who is signed in. */
static void check_items(world *it, int user, const promise *before, const promise *after) {
  json_t *reply = app_call(it, "queue_export", NULL);
  json_t *items = json_object_get(reply, "items"), *found;
  for (int number = 0; number < ITEMS; number++) {
    const item *was = &before->items[number], *is = &after->items[number];
    if (was->user != user && is->user != user)
      continue;
    bool may = was->state == ITEM_QUEUED || is->state == ITEM_QUEUED;
    bool must = was->state == ITEM_QUEUED && is->state == ITEM_QUEUED;
    char id[37];
    item_id(number, id);
    const json_t *one = NULL;
    size_t index;
    json_array_foreach(items, index,
                       found) if (strcmp(json_string_value(json_object_get(found, "id")), id) == 0)
        one = found;
    if (one == NULL && must)
      finding("item %d was acknowledged and is missing", number);
    /* Responses to a search are stored together, after 2 s at the latest: a cut before that brings
     * an item back that the server has. It counts as sent, so it is sent again, which stores
     * nothing. */
    const char *state = json_string_value(json_object_get(one, "state"));
    bool was_sent = json_integer_value(json_object_get(one, "attempts")) > 0 ||
                    (state != NULL && strcmp(state, "sending") == 0);
    bool is_again = it->server.stored[number] && was_sent;
    if (one != NULL && !may && !is_again)
      finding("item %d was sent or cancelled and is back", number);
    if (one == NULL || !may)
      continue;
    const json_t *payload = json_object_get(one, "payload");
    if (!has_content(payload, was) && !has_content(payload, is))
      finding("item %d has the wrong content", number);
  }
  json_decref(reply);
}

static int current_org(world *it) {
  json_t *reply = app_call(it, "org_list", NULL);
  json_t *orgs = json_object_get(reply, "orgs"), *one;
  size_t index;
  int result = NOBODY;
  json_array_foreach(orgs, index, one) for (int org = 0; org < ORGANISATIONS; org++) {
    if (json_is_true(json_object_get(one, "current")) &&
        strcmp(json_string_value(json_object_get(one, "org_id")), org_id(org)) == 0)
      result = org;
  }
  json_decref(reply);
  return result;
}

/* Unlock if needed and return the user who is signed in, or NOBODY. */
static int signed_in(world *it) {
  if (app_shows(it, "unlock"))
    app_do(it, "session_unlock", NULL);
  json_t *status = app_call(it, "session_status", NULL);
  const char *id = json_string_value(json_object_get(status, "user_id"));
  const char *state = json_string_value(json_object_get(status, "state"));
  int result = NOBODY;
  for (int user = 0; user < USERS; user++)
    if (id != NULL && strcmp(id, user_id(user)) == 0)
      result = user;
  if (state != NULL && strcmp(state, "locked") == 0)
    finding("the session cannot be unlocked: %s",
            json_string_value(json_object_get(json_object_get(it->decision, "message"), "code")));
  json_decref(status);
  return result;
}

static bool is_empty(world *it) {
  json_t *reply = app_call(it, "queue_list", NULL);
  json_t *counts = json_object_get(reply, "counts");
  bool empty = json_integer_value(json_object_get(counts, "pending")) == 0 &&
               json_integer_value(json_object_get(counts, "sending")) == 0 &&
               json_integer_value(json_object_get(counts, "waiting")) == 0;
  json_decref(reply);
  return empty;
}

/* Check that the session works: its token is refreshed, contacts arrive, and the queue is sent. */
static void check_session(world *it, int user, const promise *before, const promise *after) {
  int org = current_org(it);
  if (!either(org, before->org, after->org))
    finding("organisation %d is chosen, not %d or %d", org, before->org, after->org);
  it->now.org = it->next.org = org;
  app_pass(it, 3600);
  app_settle(it);
  if (signed_in(it) == NOBODY) {
    if (!it->server.ended[user])
      finding("the session was lost when its token was refreshed: %s",
              json_string_value(json_object_get(json_object_get(it->decision, "message"), "code")));
    return;
  }
  if (org == NOBODY)
    return;
  app_settle_until(it, is_empty, "the queue is sent");
  json_t *reply = app_call(it, "contact_search", json_pack("{s:s}", "query", "kari"));
  if (json_integer_value(json_object_get(reply, "total")) != CONTACTS)
    finding("%lld contacts are cached after a pull",
            (long long)json_integer_value(json_object_get(reply, "total")));
  json_decref(reply);
}

static int report(void *context, int count, char **values, char **names) {
  (void)names;
  if (count != 1 || strcmp(values[0], "ok") != 0)
    finding("%s: integrity_check says %s", (const char *)context, values[0]);
  return 0;
}

static void check_file(const char *folder, const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/data/%s", folder, name);
  struct stat status;
  if (stat(path, &status) != 0)
    return; /* the library creates the cache on first use */
  sqlite3 *database = NULL;
  char *error = NULL;
  if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
      sqlite3_exec(database, "PRAGMA integrity_check", report, (void *)name, &error) != SQLITE_OK)
    finding("%s: %s", name, sqlite3_errmsg(database));
  sqlite3_free(error);
  sqlite3_close(database);
}

static void check_name(const char *path, bool is_folder, void *context) {
  (void)is_folder;
  (void)context;
  if (strstr(path, ".damaged-") != NULL || strstr(path, ".keyless-") != NULL)
    finding("%s was set aside", path);
}

static bool has_items(int user, const promise *before, const promise *after) {
  for (int number = 0; number < ITEMS; number++)
    if ((before->items[number].user == user && before->items[number].state == ITEM_QUEUED) ||
        (after->items[number].user == user && after->items[number].state == ITEM_QUEUED))
      return true;
  return false;
}

/* Items survive their owner's logout: they are queued when the owner signs in again. */
static void check_other_users(world *it, int user, const promise *before, const promise *after) {
  for (int other = 0; other < USERS; other++) {
    if (other == user || !has_items(other, before, after))
      continue;
    app_do(it, "session_logout", json_pack("{s:s}", "unsent", "keep"));
    app_do(it, "session_adopt", json_pack("{s:o}", "session", user_session(it, other)));
    check_items(it, other, before, after);
  }
}

void check_folder(const char *folder, const world *at, const promise *before,
                  const promise *after) {
  world it;
  world_begin(&it, folder);
  it.has_damage = at->has_damage;
  it.server = at->server;
  it.now_ms = at->now_ms + 60000;
  it.monotonic_ms = 30000;
  it.boot = "after-the-power-cut";
  app_open(&it);
  if (it.app == NULL)
    return;
  app_do(&it, "session_resume", NULL);
  int user = signed_in(&it);
  if (!either(user, before->user, after->user))
    finding("user %d is signed in, not %d or %d: %s (%s)", user, before->user, after->user,
            json_string_value(json_object_get(it.decision, "screen")),
            json_string_value(json_object_get(json_object_get(it.decision, "message"), "code")));
  it.now.user = it.next.user = user;
  if (user != NOBODY) {
    check_items(&it, user, before, after);
    check_session(&it, user, before, after);
  }
  json_t *status = app_call(&it, "session_status", NULL);
  json_decref(status);
  check_other_users(&it, user, before, after);
  world_end(&it);
  check_file(folder, "holdfast.db");
  check_file(folder, "cache.db");
  if (!it.has_damage)
    folder_each(folder, check_name, NULL);
}
