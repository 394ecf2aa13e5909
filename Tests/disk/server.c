/* The canned server: people, organisations, items, and the answers of GoTrue and PostgREST. An
 * answer also sets `next`, the state that holds once the library has processed it. */
#include "disk.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ids and payloads ---- */

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
    /* With quotes: jansson must not lose what follows their backslashes. */
    for (size_t at = 0; at < of->note; at++)
      note[at] = at % 7 == 6 ? '"' : 'n';
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

/* The answer of GoTrue to a grant: tokens that are valid for an hour, with a dummy signature. */
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

/* GoTrue's rotation: the active token is replaced, its parent returns the active token again, and
 * an older token ends the session. */
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

/* The memberships after the id that the request names. */
static json_t *memberships(int user, const char *url) {
  static const char filter[] = "&org_id=gt.";
  const char *after = strstr(url, filter);
  json_t *rows = json_array();
  for (int org = 0; org < (user == 0 ? ORGANISATIONS : 1); org++)
    if (after == NULL || strncmp(org_id(org), after + strlen(filter), 36) > 0)
      json_array_append_new(rows,
                            json_pack("{s:s,s:s,s:s,s:{s:s,s:s,s:s}}", "org_id", org_id(org),
                                      "role", "peer_mentor", "status", "active", "organizations",
                                      "id", org_id(org), "name", "Nordlys", "status", "active"));
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

/* PostgREST with ignore-duplicates: answers with the ids of the new rows. These leave the queue
 * once the library has processed the answer. */
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
      die("a row was uploaded that nobody registered");
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

json_t *server_answer(world *it, const json_t *request) {
  const char *purpose = json_string_value(json_object_get(request, "purpose"));
  const char *url = json_string_value(json_object_get(request, "url"));
  const char *body = json_string_value(json_object_get(request, "body"));
  it->next = it->now;
  if (strstr(url, "/auth/") != NULL)
    return auth(it, request, url, body);
  if (strcmp(purpose, "guard") == 0) {
    /* Without a count only an empty page ends the list. */
    json_t *rows = memberships(it->now.user, url);
    if (json_array_size(rows) == 0 && it->now.user == 1)
      it->next.org = 0; /* the only membership: the library selects it */
    return answer(request, 200, rows);
  }
  if (strcmp(purpose, "upload") == 0)
    return body != NULL ? upload(it, request, body) : read_back(it, request, url);
  if (strcmp(purpose, "pull") == 0)
    return answer(request, 200, contacts(url));
  if (strcmp(purpose, "summary") == 0)
    return answer(request, 200, json_pack("[{s:i,s:i}]", "activities", 3, "minutes", 90));
  return answer(request, 200, json_array());
}
