/* The scripted day: two people, one phone, two organisations; online and offline. */
#include "disk.h"

#include <stdio.h>
#include <string.h>

static const char *reason_of(const world *it) {
  const char *reason =
      json_string_value(json_object_get(json_object_get(it->decision, "message"), "code"));
  return reason == NULL ? "" : reason;
}

/* Start the app; resume again if the key store failed. */
static void start(world *it, const char *screen) {
  app_open(it);
  for (int tries = 0; tries < 3; tries++) {
    app_do(it, "session_resume", NULL);
    if (strncmp(reason_of(it), "keystore_", 9) != 0)
      break;
  }
  if (!app_shows(it, screen))
    finding("the app starts with %s (%s), not with %s",
            json_string_value(json_object_get(it->decision, "screen")), reason_of(it), screen);
}

static void network(world *it, bool online) {
  app_do(it, "network_report", json_pack("{s:b}", "online", online));
}

static void add(world *it, int number, item what, int parent) {
  char id[37], parent_id[37];
  item_id(number, id);
  what.state = ITEM_QUEUED;
  what.user = it->now.user;
  it->next.items[number] = what;
  json_t *request = json_pack("{s:s,s:s,s:o,s:I}", "kind", "activity", "id", id, "payload",
                              item_payload(&what), "occurred_at_ms", (json_int_t)it->now_ms);
  if (parent >= 0) {
    item_id(parent, parent_id);
    json_object_set_new(request, "depends_on", json_pack("[s]", parent_id));
  }
  app_do(it, "queue_add", request);
}

static void edit(world *it, int number, int minutes, size_t note) {
  char id[37];
  item_id(number, id);
  item *what = &it->next.items[number];
  what->minutes = minutes;
  what->note = note;
  app_do(it, "queue_edit", json_pack("{s:s,s:o}", "id", id, "payload", item_payload(what)));
}

/* Another handle writes, so the next call reads the files again. */
static void edit_beside(world *it, int number, int minutes) {
  char id[37];
  item_id(number, id);
  item *what = &it->next.items[number];
  what->minutes = minutes;
  app_beside(it, "queue_edit", json_pack("{s:s,s:o}", "id", id, "payload", item_payload(what)));
}

static void cancel(world *it, int number) {
  char id[37];
  item_id(number, id);
  it->next.items[number].state = ITEM_GONE;
  app_do(it, "queue_cancel", json_pack("{s:s,s:b}", "id", id, "force", 1));
}

static void choose(world *it, int org) {
  it->next.org = org;
  app_do(it, "org_select", json_pack("{s:s}", "org_id", org_id(org)));
}

/* The key store's files may not be readable at once: its user tries again. */
static void unlock(world *it) {
  for (int tries = 0; tries < 4 && !app_shows(it, "home"); tries++) {
    it->next.locked = false;
    app_do(it, app_shows(it, "wait") ? "session_resume" : "session_unlock", NULL);
  }
  if (!app_shows(it, "home"))
    finding("after the unlock the app shows %s (%s)",
            json_string_value(json_object_get(it->decision, "screen")), reason_of(it));
}

static void log_out(world *it, bool discard) {
  int unsent = 0;
  for (int number = 0; number < ITEMS; number++) {
    item *what = &it->next.items[number];
    if (what->user != it->now.user || what->state != ITEM_QUEUED)
      continue;
    unsent++;
    if (discard)
      what->state = ITEM_GONE;
  }
  it->next.user = NOBODY;
  it->next.org = NOBODY;
  it->next.revokes = it->now.revokes + 1;
  app_do(it, "session_logout",
         discard ? json_pack("{s:s,s:i}", "unsent", "discard", "confirm_unsent", unsent)
                 : json_pack("{s:s}", "unsent", "keep"));
}

static void sign_in(world *it, int user) {
  it->next.user = user;
  it->next.locked = false;
  it->next.token = 0;
  it->next.org = NOBODY;
  app_do(it, "session_adopt", json_pack("{s:o}", "session", user_session(it, user)));
}

static bool asks_for_org(world *it) { return app_shows(it, "select_org"); }
/* The key store may not have saved the session's keys: then its user signs in again. */
static bool has_signed_in_or_not(world *it) {
  return asks_for_org(it) || strncmp(reason_of(it), "sign_in_", 8) == 0;
}
static bool is_home(world *it) { return app_shows(it, "home"); }
static bool is_signed_out(world *it) { return it->now.user == NOBODY; }
static bool has_revoked(world *it) { return it->now.revokes == 0; }

/* Every item that the server accepts is sent. */
static bool is_drained(world *it) {
  for (int number = 0; number < ITEMS; number++) {
    const item *what = &it->now.items[number];
    if (what->state == ITEM_QUEUED && what->user == it->now.user && what->minutes <= 1440)
      return false;
  }
  return true;
}

static void first_start(world *it) {
  start(it, "sign_in");
  for (int tries = 0; tries < 3 && !asks_for_org(it); tries++) {
    app_do(it, "sign_in_begin", json_pack("{s:s}", "method", "bankid"));
    app_do(it, "sign_in_complete",
           json_pack("{s:s}", "callback_url", "app.example://signed-in?code=c0de"));
    app_settle_until(it, has_signed_in_or_not, "the end of the sign-in");
  }
  app_settle_until(it, asks_for_org, "the choice of an organisation");
  choose(it, 0);
  app_settle(it);
  app_close(it);
}

static void offline_work(world *it) {
  start(it, "home");
  network(it, false);
  add(it, 0, (item){.minutes = 10}, -1);
  add(it, 1, (item){.minutes = 11, .note = 9000}, -1);
  add(it, 2, (item){.minutes = 12}, 0);
  add(it, 3, (item){.minutes = 2000}, -1); /* the server rejects it */
  add(it, 4, (item){.minutes = 14}, -1);
  edit(it, 1, 21, 5000);
  cancel(it, 4);
  it->next.locked = true;
  app_do(it, "session_lock", NULL);
  unlock(it);
  app_do(it, "session_background", NULL);
  app_pass(it, 20);
  app_do(it, "session_foreground", NULL);
  add(it, 5, (item){.minutes = 15}, -1);
  edit_beside(it, 5, 16);
  app_do(it, "queue_list", NULL);
  edit_beside(it, 5, 17);
  add(it, 13, (item){.minutes = 41}, -1);
  app_do(it, "contact_search", json_pack("{s:s}", "query", "nord"));
  app_do(it, "summary_get", NULL);
  app_close(it);
}

static void a_long_diary(world *it) {
  start(it, "home");
  network(it, false);
  add(it, 6, (item){.minutes = 16, .note = 200000}, -1);
  for (int times = 0; times < 9; times++) /* often enough for a checkpoint of the log */
    edit(it, 6, 30 + times, 200000);
  edit(it, 6, 17, 100);
  app_close(it);
}

static void online_again(world *it) {
  start(it, "home");
  app_settle_until(it, is_drained, "everything is sent");
  edit(it, 3, 600, 0);
  app_settle_until(it, is_drained, "the corrected item is sent");
  app_pass(it, 3600); /* the access token expires */
  add(it, 7, (item){.minutes = 18}, -1);
  app_settle_until(it, is_drained, "everything is sent after a refresh");
  app_close(it);
}

static void other_organisation(world *it) {
  start(it, "home");
  choose(it, 1);
  app_settle(it);
  add(it, 8, (item){.minutes = 19}, -1);
  app_do(it, "contact_search", json_pack("{s:s}", "query", "kari"));
  app_settle_until(it, is_drained, "everything is sent");
  choose(it, 0);
  app_settle(it);
  app_close(it);
}

static void log_out_with_work(world *it) {
  start(it, "home");
  network(it, false);
  add(it, 9, (item){.minutes = 20}, -1);
  log_out(it, false);
  network(it, true);
  app_settle_until(it, has_revoked, "the session is revoked");
  app_close(it);
}

static void next_user(world *it) {
  start(it, "sign_in");
  sign_in(it, 1);
  app_settle_until(it, is_home, "home");
  add(it, 10, (item){.minutes = 31}, -1);
  app_settle_until(it, is_drained, "everything is sent");
  network(it, false);
  add(it, 11, (item){.minutes = 32}, -1);
  network(it, true);
  it->server.ended[1] = true; /* by a logout elsewhere */
  app_pass(it, 3600);
  app_settle_until(it, is_signed_out, "the end of the session");
  app_close(it);
}

static void back_again(world *it) {
  start(it, "sign_in");
  sign_in(it, 0);
  app_settle_until(it, asks_for_org, "the choice of an organisation");
  choose(it, 1);
  app_settle_until(it, is_drained, "the remaining items are sent");
  network(it, false);
  add(it, 12, (item){.minutes = 40}, -1);
  log_out(it, true);
  app_close(it);
}

static void a_damaged_file(world *it) {
  start(it, "home");
  network(it, false);
  add(it, 6, (item){.minutes = 16}, -1);
  app_close(it);
}

const chapter day_of_damage = {"a damaged file", a_damaged_file};

const chapter day[] = {
    {"the first start", first_start},
    {"work without a network", offline_work},
    {"a long diary", a_long_diary},
    {"online again", online_again},
    {"the other organisation", other_organisation},
    {"logout with unsent work", log_out_with_work},
    {"the next user", next_user},
    {"back again", back_again},
};
const int day_chapters = sizeof day / sizeof *day;
