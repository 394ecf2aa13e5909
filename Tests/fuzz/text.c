/* Expands the words of a script, such as @session. */
#include "text.h"

#include "scene.h"
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The expanded line stops growing at the first; @oversized has the second as its length. */
enum { MAX_EXPANDED = 1 << 20, MAX_LONG = 300000 };

void text_add(text *it, const char *bytes, size_t count) {
  if (it->bytes == NULL || it->count + count + 1 > it->capacity) {
    it->capacity = 2 * (it->count + count) + 64;
    it->bytes = realloc(it->bytes, it->capacity);
    if (it->bytes == NULL)
      abort();
  }
  memcpy(it->bytes + it->count, bytes, count);
  it->count += count;
  it->bytes[it->count] = 0;
}

static void add_text(text *it, const char *bytes) { text_add(it, bytes, strlen(bytes)); }

static void add_number(text *it, long long number) {
  char digits[32];
  snprintf(digits, sizeof digits, "%lld", number);
  add_text(it, digits);
}

static void add_json(text *it, json_t *value) {
  char *dumped = json_dumps(value, JSON_COMPACT);
  add_text(it, dumped);
  free(dumped);
  json_decref(value);
}

static void session(text *it) { add_json(it, server_session(&the_scene.server, USER)); }
static void other_session(text *it) { add_json(it, server_session(&the_scene.server, OTHER_USER)); }
static void memberships(text *it) { add_json(it, server_memberships()); }
static void contacts(text *it) { add_json(it, server_contacts()); }
static void stored(text *it) { add_json(it, server_stored(the_scene.last_upload)); }
static void item(text *it) { add_text(it, the_scene.item); }
static void nonce(text *it) { add_text(it, the_scene.nonce); }
static void folder(text *it) { add_text(it, the_scene.folder); }
static void user(text *it) { add_text(it, USER); }
static void org(text *it) { add_text(it, ORG); }
static void other_org(text *it) { add_text(it, OTHER_ORG); }
static void contact(text *it) { add_text(it, CONTACT); }
static void now(text *it) { add_number(it, the_scene.server.now_ms); }
static void request_id(text *it) {
  const json_t *request = json_array_get(the_scene.requests[the_scene.current], 0);
  add_number(it, json_integer_value(json_object_get(request, "id")));
}
static void oversized(text *it) {
  char *letters = malloc(MAX_LONG);
  if (letters == NULL)
    abort();
  memset(letters, 'a', MAX_LONG);
  text_add(it, letters, MAX_LONG);
  free(letters);
}
static void deep(text *it) {
  for (int depth = 0; depth < 70; depth++)
    add_text(it, "[");
}

/* Of two words with the same beginning the longer one comes first. */
static const struct {
  const char *word;
  void (*add)(text *);
} meanings[] = {
    {"@session", session},
    {"@other_session", other_session},
    {"@memberships", memberships},
    {"@contacts", contacts},
    {"@contact", contact},
    {"@stored", stored},
    {"@item", item},
    {"@nonce", nonce},
    {"@folder", folder},
    {"@user", user},
    {"@org", org},
    {"@other_org", other_org},
    {"@now", now},
    {"@request_id", request_id},
    {"@oversized", oversized},
    {"@deep", deep},
};

char *text_expand(const char *source) {
  text result = {0};
  text_add(&result, "", 0);
  while (*source != 0) {
    size_t plain = strcspn(source, "@");
    text_add(&result, source, plain);
    source += plain;
    if (*source == 0)
      break;
    size_t used = 0;
    for (size_t at = 0; at < sizeof meanings / sizeof *meanings && used == 0; at++)
      if (strncmp(source, meanings[at].word, strlen(meanings[at].word)) == 0 &&
          result.count < MAX_EXPANDED) {
        meanings[at].add(&result);
        used = strlen(meanings[at].word);
      }
    if (used == 0)
      text_add(&result, source, used = 1);
    source += used;
  }
  return result.bytes;
}
