/* Who is signed in. The library knows a user by the id; the name is a claim of the access token.
 * Without a network there may be no token that is still good, so the name is also where the keys
 * are: nobody reads it in a file, and a log-out erases it. */
#include "app.h"

#include <stdlib.h>
#include <string.h>

/* The claims of an access token. It is the server's, and nothing depends on them here. */
static json_t *claims_of(const char *token) {
  char **parts = g_strsplit(token, ".", 0);
  json_t *claims = NULL;
  if (g_strv_length(parts) == 3) {
    gsize length = 0;
    g_strdelimit(g_strdelimit(parts[1], "-", '+'), "_", '/');
    char *padded = g_strconcat(parts[1], "===", NULL);
    padded[(strlen(parts[1]) + 3) / 4 * 4] = 0;
    guchar *bytes = g_base64_decode(padded, &length);
    claims = json_loadb((const char *)bytes, length, 0, NULL);
    g_free(bytes);
    g_free(padded);
  }
  g_strfreev(parts);
  return claims;
}

/* BankID and Vipps know a name; a password has an address. */
static const char *name_in(const json_t *claims) {
  const json_t *user = json_object_get(claims, "user_metadata");
  const char *const names[] = {text_at(user, "full_name"), text_at(user, "name"),
                               text_at(claims, "email"), text_at(claims, "phone")};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (*names[i] != 0)
      return names[i];
  return "";
}

static bool is_of(app *app, const char *id) { return is_text(app->who, "id", id); }

static void load(app *app) {
  char *text = NULL;
  if (keys_load(app, "who", &text) == HOLDFAST_KEY_OK)
    app->who = json_loads(text, 0, NULL);
  g_free(text);
}

static void learn(app *app, const char *id) {
  json_t *reply = host_call(app, "session_token", NULL);
  json_t *claims = claims_of(text_at(reply, "access_token"));
  const char *name = name_in(claims);
  if (*name != 0 && is_text(claims, "sub", id)) {
    json_decref(app->who);
    app->who = json_pack("{s:s, s:s}", "id", id, "name", name);
    char *text = json_dumps(app->who, JSON_COMPACT);
    keys_save(app, "who", text);
    free(text);
  }
  json_decref(claims);
  json_decref(reply);
}

const char *who_name(app *app) {
  json_t *status = host_call(app, "session_status", NULL);
  const char *id = text_at(status, "user_id");
  if (*id != 0 && app->who == NULL)
    load(app);
  if (*id != 0 && !is_of(app, id))
    learn(app, id);
  const char *name = *id != 0 && is_of(app, id) ? text_at(app->who, "name") : "";
  json_decref(status);
  return name;
}

void who_forget(app *app) {
  json_decref(app->who);
  app->who = NULL;
  keys_erase(app, "who");
}
