/* The four acts of the tour. Each act runs in a process of its own, like each start of a real app.
 */
#define _GNU_SOURCE
#include "tour.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char uploads[] = "/rest/v1/activities";
static const char org_name[] = "Mentorforeningen Nordlys";

const char *const act_titles[ACT_COUNT] = {
    "Signed in, then no network, then killed",
    "Started again without a network",
    "Back online: an answer is lost, then killed in the middle of an upload",
    "Everything arrives; log out",
};
const bool act_ends_in_sigkill[ACT_COUNT] = {true, false, true, false};

/* ---- shared by several acts ---- */

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int end_of_act(app *app) {
  app_close(app);
  person_told_end();
  return checks_failed() == 0 ? 0 : 1;
}

static void die(void) {
  say("The process kills itself with SIGKILL: no handler runs.");
  person_told_end();
  kill(getpid(), SIGKILL);
}

/* Register an activity. The person writes down what the library reports as stored. */
static char *register_activity(app *app, const char *type, int minutes, const char *contact,
                               const char *follows, const char *text) {
  json_t *payload = json_pack("{s:s,s:i,s:s}", "type", type, "minutes", minutes, "note", text);
  json_t *request = json_pack("{s:s,s:o,s:I}", "kind", "activity", "payload", payload,
                              "occurred_at_ms", (json_int_t)time(NULL) * 1000);
  if (contact != NULL)
    json_object_set_new(payload, "contact_id", json_string(contact));
  if (follows != NULL) {
    json_object_set_new(payload, "follows", json_string(follows));
    json_object_set_new(request, "depends_on", json_pack("[s]", follows));
  }
  json_t *reply = app_call(app, holdfast_queue_add, request);
  char *id = NULL;
  if (check(app->status == HOLDFAST_OK, "stored on disk: %s, %d min (%s)", type, minutes,
            text_at(reply, "state"))) {
    id = strdup(text_at(reply, "id"));
    person_told_registered(id, text);
  } else {
    show_error(reply);
  }
  json_decref(reply);
  return id;
}

static bool session_is(app *app, const char *state) {
  json_t *reply = app_call(app, holdfast_session_status, NULL);
  bool is = is_text(reply, "state", state);
  json_decref(reply);
  return is;
}

static json_t *unlock(app *app) {
  return app_settle(
      app, app_call(app, holdfast_session_unlock, json_pack("{s:s}", "outcome", "success")));
}

/* Start an app that was used before; it shows home, at once or after an unlock. */
static void come_home(app *app, const char *first_screen) {
  json_t *decision = app_settle(app, app_call(app, holdfast_session_resume, NULL));
  show_decision(decision);
  check(is_text(decision, "screen", first_screen), "%s", first_screen);
  if (is_text(decision, "screen", "unlock")) {
    say("The person puts a finger on the reader.");
    json_decref(decision);
    person_asked_for_finger();
    decision = unlock(app);
    show_decision(decision);
    check(is_text(decision, "screen", "home"), "home");
  }
  json_decref(decision);
}

static json_int_t queued(app *app, const char *state) {
  json_t *reply = app_call(app, holdfast_sync_status, NULL);
  json_int_t count = number_at(json_object_get(reply, "counts"), state);
  json_decref(reply);
  return count;
}

/* Count the rows on the server that the tour registered. */
static int rows_on_server(const setting *where) {
  char *text =
      query_value(where, "select count(*) from public.activities where note like 'Tur: %'");
  int count = atoi(text);
  free(text);
  return count;
}

static void expect_sync_completed(app *app, int sent) {
  json_t *event = app_event(app, "sync_completed", 30);
  if (check(event != NULL, "one event sync_completed arrives")) {
    check(number_at(event, "sent") == sent && number_at(event, "parked") == 0,
          "it counts %d sent and none parked", sent);
    check(holdfast_http_ack(app->driver, number_at(event, "seq")) == HOLDFAST_OK,
          "the app acknowledges it: the user has seen it");
  }
  json_decref(event);
}

/* ---- act 1 ---- */

static json_t *sign_in(app *app) {
  json_t *reply = app_call(app, holdfast_sign_in_begin, json_pack("{s:s}", "method", "bankid"));
  char *callback = browser_sign_in(text_at(reply, "url"), "mentor@example.org");
  json_decref(reply);
  check(callback != NULL, "the browser comes back with a code");
  json_t *forged = json_pack("{s:s}", "callback_url", "app.holdfast.example://signed-in?code=x");
  reply = app_settle(app, app_call(app, holdfast_sign_in_complete, forged));
  check(is_text(reply, "screen", "sign_in"), "a callback with a forged code signs nobody in (%s)",
        text_at(reply, "reason"));
  json_decref(reply);
  reply = app_call(app, holdfast_sign_in_complete,
                   json_pack("{s:s}", "callback_url", callback == NULL ? "" : callback));
  free(callback);
  return app_settle(app, reply);
}

static void choose_organisation(app *app, const json_t *decision) {
  const json_t *choice = find_by(json_object_get(decision, "orgs"), "name", org_name);
  json_t *home = app_settle(app, app_call(app, holdfast_org_select,
                                          json_pack("{s:s}", "org_id", text_at(choice, "org_id"))));
  show_decision(home);
  check(is_text(home, "screen", "home") && is_text(home, "route", "/mentor"),
        "home of the role peer_mentor");
  json_decref(home);
}

static bool is_cached(app *app) {
  json_t *reply = app_call(app, holdfast_sync_status, NULL);
  bool cached = json_is_integer(json_object_get(json_object_get(reply, "contacts"), "as_of_ms")) &&
                json_is_integer(json_object_get(json_object_get(reply, "summary"), "as_of_ms"));
  json_decref(reply);
  return cached;
}

static void pull(app *app) {
  json_decref(app_call(app, holdfast_sync_now, NULL));
  for (int i = 0; i < 200 && !is_cached(app); i++)
    pause_ms(50);
  json_t *reply =
      app_call(app, holdfast_contact_search, json_pack("{s:s,s:i}", "query", "", "limit", 3));
  const json_t *contacts = json_object_get(reply, "contacts");
  for (size_t i = 0; i < json_array_size(contacts); i++)
    note("%s, %s", text_at(json_array_get(contacts, i), "name"),
         text_at(json_array_get(contacts, i), "municipality"));
  check(number_at(reply, "total") == 30, "%d contacts are cached, encrypted",
        (int)number_at(reply, "total"));
  json_decref(reply);
  reply = app_call(app, holdfast_summary_get, NULL);
  const json_t *summary = json_object_get(reply, "summary");
  check(number_at(summary, "activities") == 2 && number_at(summary, "minutes") == 75,
        "the summary of this year: %d activities, %d minutes",
        (int)number_at(summary, "activities"), (int)number_at(summary, "minutes"));
  json_decref(reply);
}

static char *contact_named(app *app, const char *query) {
  json_t *reply = app_call(app, holdfast_contact_search, json_pack("{s:s}", "query", query));
  const json_t *first = json_array_get(json_object_get(reply, "contacts"), 0);
  char *id = strdup(text_at(first, "id"));
  json_decref(reply);
  return id;
}

static int play_online(app *app) {
  say("The app starts for the first time on this phone.");
  json_t *decision = app_call(app, holdfast_session_resume, NULL);
  show_decision(decision);
  check(is_text(decision, "screen", "sign_in"), "the app asks for a sign-in, by BankID or Vipps");
  json_decref(decision);

  say("The person signs in with BankID in the browser (PKCE).");
  decision = sign_in(app);
  show_decision(decision);
  check(is_text(decision, "screen", "select_org"), "a member of several organisations must choose");
  say("The person chooses %s.", org_name);
  choose_organisation(app, decision);
  json_decref(decision);

  say("The app fetches contacts and summary for offline use.");
  pull(app);

  say("The train enters a tunnel: the server drops every connection from now on.");
  add_fault(app->where, "drop_before", NULL, "/auth/", -1, 0);
  add_fault(app->where, "drop_before", NULL, "/rest/", -1, 0);
  app_network(app, false);
  forget_requests(app->where);
  char *contact = contact_named(app, "håkon");
  char *first =
      register_activity(app, "samtale", 45, contact, NULL, "Tur: kaffe og prat på biblioteket");
  free(register_activity(app, "telefon", 20, contact, first, "Tur: ringte dagen etter, går bedre"));
  free(register_activity(app, "gruppe", 90, NULL, NULL, "Tur: gåtur rundt vannet, seks møtte opp"));
  free(first);
  free(contact);
  check(queued(app, "pending") + queued(app, "waiting") == 3, "three items are queued");
  check(rows_on_server(app->where) == 0, "the server has none of them");
  show_files(app->where->data_dir);

  say("The phone goes into the pocket.");
  json_decref(app_call(app, holdfast_session_background, NULL));
  die();
  return 1;
}

/* ---- act 2 ---- */

static void stay_locked(app *app) {
  json_t *reply = app_call(app, holdfast_contact_search, json_pack("{s:s}", "query", "håkon"));
  check(app->status == HOLDFAST_STATE, "the app is locked and shows no contacts (%s)",
        text_at(json_object_get(reply, "error"), "code"));
  json_decref(reply);

  say("A tampered app claims that the fingerprint matched. There was no finger.");
  reply = unlock(app);
  show_decision(reply);
  check(app->status == HOLDFAST_OK && !is_text(reply, "screen", "home"),
        "that does not unlock: the reader withheld the key");
  check(session_is(app, "locked"), "the session is still locked");
  json_decref(reply);
  reply = app_call(app, holdfast_contact_search, json_pack("{s:s}", "query", "håkon"));
  check(app->status == HOLDFAST_STATE, "the app still shows no contacts");
  json_decref(reply);
}

static void look_up(app *app) {
  json_t *reply = app_call(app, holdfast_contact_search, json_pack("{s:s}", "query", "hakon"));
  const json_t *contact = json_array_get(json_object_get(reply, "contacts"), 0);
  check(strncmp(text_at(contact, "name"), "Håkon", strlen("Håkon")) == 0, "“hakon” finds %s",
        text_at(contact, "name"));
  json_t *card = app_call(app, holdfast_contact_get,
                          json_pack("{s:s,s:b}", "id", text_at(contact, "id"), "live", true));
  check(find_by(json_object_get(card, "banners"), "code", "encrypted_requires_connectivity") !=
                NULL ||
            json_is_object(json_object_get(card, "message")),
        "phone and address are never cached: %zu fields are withheld offline",
        json_array_size(json_object_get(card, "withheld")));
  note("  “%s”", text_at(json_object_get(card, "message"), "text"));
  json_decref(card);
  json_decref(reply);
}

static void explain(app *app) {
  json_t *reply = app_call(app, holdfast_summary_get, NULL);
  const json_t *more = json_object_get(reply, "queued");
  check(number_at(more, "activities") == 5 && number_at(more, "minutes") == 230,
        "the summary also counts unsent items: %d activities, %d minutes",
        (int)number_at(more, "activities"), (int)number_at(more, "minutes"));
  json_decref(reply);
  reply = app_call(app, holdfast_queue_explain, NULL);
  const json_t *reason = find_by(json_object_get(reply, "reasons"), "code", "offline");
  check(reason != NULL, "queue_explain says why nothing is sent: “%s”", text_at(reason, "text"));
  json_decref(reply);
  reply = app_call(app, holdfast_route_check, json_pack("{s:s}", "route", "/admin"));
  check(is_text(reply, "reason", "route_forbidden"), "a mentor may not open /admin: back to %s",
        text_at(reply, "route"));
  json_decref(reply);
}

static int play_offline(app *app) {
  app_network(app, false);
  say("The app starts. It was in the background for longer than the policy allows.");
  json_t *decision = app_settle(app, app_call(app, holdfast_session_resume, NULL));
  show_decision(decision);
  check(is_text(decision, "screen", "unlock"), "the app asks for a finger");
  json_decref(decision);
  stay_locked(app);

  say("Now the person puts a finger on the reader.");
  check(person_asked_for_finger(), "the reader has seen a finger");
  decision = unlock(app);
  show_decision(decision);
  check(is_text(decision, "screen", "home"), "the app shows home, from the cache alone");
  const json_t *banners = json_object_get(decision, "banners");
  check(find_by(banners, "code", "offline") != NULL, "a banner says that there is no network");
  const json_t *stale = find_by(banners, "code", "stale_data");
  check(number_at(stale, "as_of_ms") > 0, "a banner says how old the data is");
  json_decref(decision);
  look_up(app);

  say("The person registers two more.");
  free(register_activity(app, "samtale", 30, NULL, NULL, "Tur: møtte en ny deltaker i Bø"));
  free(register_activity(app, "hjemmebesøk", 45, NULL, NULL,
                         "Tur: så på søknaden sammen, ærlig prat"));
  explain(app);
  check(requests_seen(app->where, NULL, "/") == 0, "the app sent no request while offline");
  return end_of_act(app);
}

/* ---- act 3 ---- */

static int play_upload(app *app) {
  say("The train leaves the tunnel; the access token has expired. The server will store the first"
      " upload, but its answer will be lost.");
  clear_faults(app->where);
  add_fault(app->where, "drop_after", "POST", uploads, 1, 0);
  forget_requests(app->where);
  come_home(app, "unlock");
  check(app_drained(app, 60), "the queue is empty");
  check(requests_seen(app->where, "POST", "/auth/v1/token") == 1, "the session was refreshed once");
  check(fault_hits(app->where) == 1, "an answer was lost after the server had stored the rows");
  check(requests_seen(app->where, "POST", uploads) >= 2, "so the upload was sent again");
  check(rows_on_server(app->where) == 5, "the server has five rows, each once");
  expect_sync_completed(app, 5);

  say("The person registers two more online. The server stores them but answers late.");
  clear_faults(app->where);
  add_fault(app->where, "delay", "POST", uploads, 1, 8000);
  free(register_activity(app, "kurs", 120, NULL, NULL, "Tur: kveldskurs for nye likepersoner"));
  free(register_activity(app, "telefon", 10, NULL, NULL, "Tur: avtalte tid på mandag"));
  for (int i = 0; i < 200 && rows_on_server(app->where) < 6; i++)
    pause_ms(50);
  note("on the server: %d rows; in the app: %d being sent, %d to be sent",
       rows_on_server(app->where), (int)queued(app, "sending"), (int)queued(app, "pending"));
  check(queued(app, "sending") >= 1,
        "the upload is in flight: stored there, not yet confirmed here");
  die();
  return 1;
}

/* ---- act 4 ---- */

static int sessions_on_server(const setting *where) {
  char *text = query_value(where, "select count(*) from auth.sessions s join auth.users u"
                                  " on u.id = s.user_id where u.email = 'mentor@example.org'");
  int count = atoi(text);
  free(text);
  return count;
}

static int play_goodbye(app *app) {
  clear_faults(app->where);
  say("The app starts for the last time.");
  come_home(app, "home");
  check(app_drained(app, 60), "the items that were in flight are confirmed as stored");
  expect_sync_completed(app, 2);
  check(rows_on_server(app->where) == 7, "the server has seven rows");

  say("The person logs out.");
  json_t *reply = app_call(app, holdfast_session_logout, NULL);
  show_decision(json_object_get(reply, "decision"));
  check(json_is_integer(json_object_get(reply, "unsent")) && number_at(reply, "unsent") == 0,
        "no item was left unsent");
  check(is_text(json_object_get(reply, "decision"), "screen", "sign_in"), "the app is signed out");
  json_decref(reply);
  for (int i = 0; i < 100 && sessions_on_server(app->where) > 0; i++)
    pause_ms(100);
  check(sessions_on_server(app->where) == 0, "the session has ended on the server, too");
  reply = app_call(app, holdfast_session_resume, NULL);
  check(is_text(reply, "screen", "sign_in"), "the next start asks for a sign-in");
  json_decref(reply);
  return end_of_act(app);
}

/* ---- all acts ---- */

int act_play(int number, const setting *where) {
  static int (*const plays[ACT_COUNT])(app *) = {play_online, play_offline, play_upload,
                                                 play_goodbye};
  app app;
  if (!check(app_open(&app, where), "the library is open on its folder")) {
    app_close(&app);
    return 1;
  }
  return plays[number - 1](&app);
}
