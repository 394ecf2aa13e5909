/* A host whose user is a person at a terminal or a script. Every operation of holdfast.h is a
 * command with a JSON argument. Each reply is a line, with its status; so is everything that
 * holdfast_next() gives, with its kind. Usage: holdfast-shell FOLDER URL KEY */
#define _GNU_SOURCE
#include "keychain.h"

#include <errno.h>
#include <holdfast_http.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const statuses[] = {"OK",       "INVALID", "STATE",   "NOT_FOUND", "CONFLICT",
                                       "KEYSTORE", "STORAGE", "FULL",    "BUSY",      "CLOSED",
                                       "FORKED",   "NOMEM",   "INTERNAL"};
/* HOLDFAST_KEY_*, by its number: what a prompt can bring. */
static const char *const outcomes[] = {
    "ok",      "not_found",         "locked",       "cancelled",   "failed",
    "lockout", "lockout_permanent", "not_enrolled", "invalidated", "unavailable"};

static const char help[] =
    "Operations, each with an optional JSON object: see holdfast.h. Other commands:\n"
    "  finger [OUTCOME]    the prompt of the next session_unlock: ok, cancelled, failed, lockout "
    "...\n"
    "  wait WHAT [SECONDS] wait (10 s) until this screen is shown; or for this notice, an answer,\n"
    "                      contacts (they are here), or sync (a run has ended), once for each\n"
    "  sleep SECONDS\n"
    "  quit\n";

typedef struct {
  holdfast *self;
  keychain keys;
  int32_t finger;
  pthread_mutex_t lock;
  pthread_cond_t came;
  char screen[32];
  json_t *seen; /* the names of what came, and no `wait` has taken yet */
} shell;

/* A whole line at a time: two threads print. */
static void print(const char *first, const char *second) {
  flockfile(stdout);
  printf("%s %s\n", first, second == NULL ? "" : second);
  fflush(stdout);
  funlockfile(stdout);
}

/* ---- what the library gives ---- */

static void learn(shell *it, const char *kind, const json_t *given) {
  const char *screen = json_string_value(json_object_get(given, "screen"));
  const char *type = json_string_value(json_object_get(given, "type"));
  pthread_mutex_lock(&it->lock);
  if (screen != NULL)
    snprintf(it->screen, sizeof it->screen, "%s", screen);
  if (json_is_integer(json_object_get(given, "contacts_ms")))
    json_object_set_new(it->seen, "contacts", json_true());
  if (strcmp(kind, "sync") != 0 || json_is_object(json_object_get(given, "message")))
    json_object_set_new(it->seen, type != NULL ? type : kind, json_true());
  pthread_cond_broadcast(&it->came);
  pthread_mutex_unlock(&it->lock);
}

static void *read_news(void *context) {
  shell *it = context;
  char *text = NULL;
  int32_t status;
  while ((status = holdfast_next(it->self, HOLDFAST_NEXT_NEWS, -1, &text)) != HOLDFAST_CLOSED) {
    json_t *news = status == HOLDFAST_OK ? json_loads(text, 0, NULL) : NULL, *given;
    const char *kind;
    if (status != HOLDFAST_OK)
      print("error", text);
    json_object_foreach(news, kind, given) {
      char *line = json_dumps(given, JSON_COMPACT | JSON_ENCODE_ANY);
      print(kind, line);
      free(line);
      learn(it, kind, given);
    }
    json_decref(news);
    holdfast_free(text);
  }
  holdfast_free(text);
  return NULL;
}

static void wait_for(shell *it, const char *what, int seconds) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += seconds > 0 ? seconds : 10;
  pthread_mutex_lock(&it->lock);
  bool came = false;
  for (int result = 0; !came && result != ETIMEDOUT;) {
    came = strcmp(it->screen, what) == 0 || json_object_del(it->seen, what) == 0;
    if (!came)
      result = pthread_cond_timedwait(&it->came, &it->lock, &limit);
  }
  pthread_mutex_unlock(&it->lock);
  print(came ? "came" : "late", what);
}

/* ---- commands ---- */

/* The user's finger comes before the call: none waits for a person. */
static void call(shell *it, const char *operation, const char *request) {
  bool unlocks = strcmp(operation, "session_unlock") == 0;
  char *reply = NULL;
  if (unlocks)
    it->keys.prompt = it->finger;
  int32_t status = holdfast_call(it->self, operation, request, &reply);
  if (unlocks)
    it->keys.prompt = it->finger = HOLDFAST_KEY_CANCELLED;
  print(statuses[status], reply);
  holdfast_free(reply);
}

static void present(shell *it, const char *outcome) {
  for (int32_t number = 0; number < (int32_t)(sizeof outcomes / sizeof *outcomes); number++)
    if (strcmp(outcomes[number], *outcome == 0 ? "ok" : outcome) == 0) {
      it->finger = number;
      return print("finger", outcomes[number]);
    }
  print("error", "no such outcome; try help");
}

/* Run a command line. Returns false when the shell must end. */
static bool obey(shell *it, char *line) {
  char *name = line + strspn(line, " \t"), *rest = name + strcspn(name, " \t\n"), what[64] = "home";
  if (*rest != 0)
    *rest++ = 0;
  rest[strcspn(rest, "\n")] = 0;
  int seconds = 0;
  if (strcmp(name, "quit") == 0)
    return false;
  if (*name == 0 || *name == '#')
    return true;
  if (strcmp(name, "help") == 0) {
    fputs(help, stdout);
  } else if (strcmp(name, "finger") == 0) {
    present(it, rest);
  } else if (strcmp(name, "wait") == 0) {
    sscanf(rest, "%63s %d", what, &seconds);
    wait_for(it, what, seconds);
  } else if (strcmp(name, "sleep") == 0) {
    usleep((useconds_t)(atof(rest) * 1e6));
  } else {
    call(it, name, rest);
  }
  return true;
}

static void read_commands(shell *it) {
  char *line = NULL;
  size_t room = 0;
  do {
    if (isatty(STDIN_FILENO))
      fputs("holdfast> ", stdout);
    fflush(stdout);
  } while (getline(&line, &room, stdin) >= 0 && obey(it, line));
  free(line);
}

/* ---- start and end ---- */

/* docs/reference.md has every setting. */
static char *configuration(char **words) {
  json_t *config = json_pack(
      "{s:s, s:{s:s, s:s, s:{s:{s:s,s:{},s:{},s:s}}},"
      " s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s}], s:s,"
      " s:{s:{s:s,s:[s,s,s]},s:{s:s,s:[s]}}, s:{s:i,s:i}, s:s, s:s}",
      "data_dir", words[1], "backend", "url", words[2], "api_key", words[3], "queue", "activity",
      "table", "activities", "own", "change", "delete", "deleted_at", "auth_methods",     //
      "id", "bankid", "provider", "bankid", "flow", "pkce", "label", "BankID",            //
      "id", "vipps", "provider", "vipps", "flow", "pkce", "label", "Vipps",               //
      "id", "password", "flow", "password", "label", "E-post",                            //
      "redirect_url", "app.holdfast.example://signed-in", "routes",                       //
      "peer_mentor", "home", "/mentor", "screens", "/mentor", "/contacts", "/contacts/*", //
      "org_admin", "home", "/admin", "screens", "*",                                      //
      "policy", "background_timeout_s", 2, "refresh_margin_s", 2, "locale", "nb", "template",
      "volunteers");
  char *text = json_dumps(config, JSON_COMPACT);
  json_decref(config);
  return text;
}

int main(int count, char **words) {
  if (count != 4) {
    fputs("usage: holdfast-shell FOLDER URL KEY; then help\n", stderr);
    return 2;
  }
  shell it = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .came = PTHREAD_COND_INITIALIZER,
              .seen = json_object(),
              .finger = HOLDFAST_KEY_CANCELLED,
              .keys = {.prompt = HOLDFAST_KEY_CANCELLED}};
  snprintf(it.keys.folder, sizeof it.keys.folder, "%s.keys", words[1]);
  holdfast_keystore store = keychain_store(&it.keys);
  holdfast_http *network = NULL;
  char *config = configuration(words), *reply = NULL;
  int32_t status = holdfast_open(config, &store, &it.self, &reply);
  print(statuses[status], reply);
  json_t *opened = reply == NULL ? NULL : json_loads(reply, 0, NULL);
  learn(&it, "open", json_object_get(opened, "screen"));
  json_decref(opened);
  holdfast_free(reply);
  free(config);
  pthread_t reader;
  if (status == HOLDFAST_OK && holdfast_http_start(it.self, NULL, &network) == HOLDFAST_OK &&
      pthread_create(&reader, NULL, read_news, &it) == 0) {
    read_commands(&it);
    holdfast_http_stop(network);
    holdfast_close(it.self); /* ends the reader */
    pthread_join(reader, NULL);
  }
  json_decref(it.seen);
  return network == NULL;
}
