/* The canned answers of a healthy server. */
#include "server.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *server_session(server *it, const char *user) {
  char claims[256], middle[400], signature[32], last[64], access[512], refresh[64];
  it->tokens += 1;
  long long end = it->now_ms / 1000 + 3600;
  snprintf(claims, sizeof claims, "{\"sub\":\"%s\",\"exp\":%lld,\"session_id\":\"%s\"}", user, end,
           user);
  sodium_bin2base64(middle, sizeof middle, (unsigned char *)claims, strlen(claims),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  snprintf(signature, sizeof signature, "signature %d", it->tokens);
  sodium_bin2base64(last, sizeof last, (unsigned char *)signature, strlen(signature),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  snprintf(access, sizeof access, "eyJhbGciOiJIUzI1NiJ9.%s.%s", middle, last);
  snprintf(refresh, sizeof refresh, "secret-refresh-%d", it->tokens);
  return json_pack("{s:s, s:s, s:i, s:I, s:s, s:{s:s}}", "access_token", access, "token_type",
                   "bearer", "expires_in", 3600, "expires_at", (json_int_t)end, "refresh_token",
                   refresh, "user", "id", user);
}

json_t *server_memberships(void) {
  return json_pack("[{s:s, s:s, s:s, s:{s:s, s:s, s:s}}, {s:s, s:s, s:s, s:{s:s, s:s, s:s}}]",
                   "org_id", ORG, "role", "peer_mentor", "status", "active", "organizations", "id",
                   ORG, "name", "Nordlys", "status", "active", "org_id", OTHER_ORG, "role",
                   "coordinator", "status", "active", "organizations", "id", OTHER_ORG, "name",
                   "Fjell", "status", "active");
}

json_t *server_contacts(void) {
  return json_pack("[{s:s, s:s, s:s, s:s, s:s, s:s, s:n}, {s:s, s:s, s:s, s:s}]", "id", CONTACT,
                   "org_id", ORG, "name", "Åse Prøvesen", "municipality", "Bodø", "relation",
                   "friend", "updated_at", "2026-11-01T10:00:00.123456+00:00", "deleted_at", "id",
                   "c0000000-0000-4000-8000-000000000002", "updated_at",
                   "2026-11-01T10:00:00.2+00:00", "deleted_at", "2026-11-01T10:00:00.2+00:00",
                   "name", "");
}

json_t *server_stored(const char *body) {
  json_t *sent = body == NULL ? NULL : json_loads(body, 0, NULL);
  json_t *items = json_object_get(sent, "items"), *rows = json_array(), *row;
  size_t index;
  json_array_foreach(items != NULL ? items : sent, index, row) {
    json_t *stored = json_object();
    json_object_set(stored, "id", json_object_get(row, "id"));
    if (items != NULL)
      json_object_set_new(stored, "status", json_string("stored"));
    json_array_append_new(rows, stored);
  }
  json_decref(sent);
  return rows;
}

/* Answer a read-back with every id in id=in.(...): all are stored. */
static json_t *read_back(const char *url) {
  json_t *rows = json_array();
  const char *at = strstr(url, "in.(");
  for (at = at == NULL ? "" : at + 3; *at != 0 && *at != ')' && strlen(at) > 36; at += 37)
    json_array_append_new(rows, json_pack("{s:s%}", "id", at + 1, (size_t)36));
  return rows;
}

json_t *server_answer(server *it, const json_t *request, int *status) {
  const char *purpose = json_string_value(json_object_get(request, "purpose"));
  const char *url = json_string_value(json_object_get(request, "url"));
  const char *body = json_string_value(json_object_get(request, "body"));
  *status = 200;
  if (purpose == NULL || url == NULL)
    return NULL;
  if (strcmp(purpose, "sign_in") == 0 || strcmp(purpose, "refresh") == 0 ||
      strstr(url, "/token?") != NULL)
    return server_session(it, it->user);
  if (strcmp(purpose, "validate") == 0)
    return json_pack("{s:s}", "id", it->user);
  if (strcmp(purpose, "guard") == 0)
    return strstr(url, "&org_id=gt.") != NULL ? json_array() : server_memberships();
  if (strcmp(purpose, "summary") == 0)
    return json_pack("{s:i, s:i}", "activities", 3, "minutes", 90);
  if (strcmp(purpose, "pull") == 0 && strstr(url, "select=id&") != NULL)
    return json_pack("[{s:s}]", "id", CONTACT);
  if (strcmp(purpose, "pull") == 0)
    return strstr(url, "updated_at=gte.") != NULL ? json_array() : server_contacts();
  if (strcmp(purpose, "live") == 0)
    return json_pack("[{s:s, s:s, s:s}]", "id", CONTACT, "name", "Åse", "phone", "+47 22 22 22 22");
  if (strcmp(purpose, "upload") == 0 && body == NULL)
    return read_back(url);
  if (strcmp(purpose, "upload") == 0) {
    *status = 201;
    return server_stored(body);
  }
  *status = 204;
  return NULL;
}
