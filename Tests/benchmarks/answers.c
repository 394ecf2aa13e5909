/* Measures the memory that reading an answer of 14 MB takes.
 *
 * answers SHAPE DIR    pull contacts from a server that answers with this shape
 *
 * Prints by how much the process's peak (VmHWM) rises during the call that takes the answer, in
 * bytes; the host's own text of the answer is there before. */
#include "bench.h"

#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 14000000 };

static holdfast *app;

/* What the bodies repeat. "#" becomes a number of twelve digits. */
static const struct {
  const char *name, *begin, *unit, *end;
  long most; /* with more, the answer has more values than are read */
} shapes[] = {
    {"objects", "[", "{},", "0]", SIZE},
    {"few objects", "[", "{},", "0]", 65000},
    {"arrays", "[", "[],", "0]", SIZE},
    {"numbers", "[", "0,", "0]", SIZE},
    {"nested", "[", "[[[[[[[[0]]]]]]]],", "0]", SIZE},
    {"members", "{", "\"#\":0,", "\"\":0}", SIZE},
    {"one text", "[\"", "x", "\"]", SIZE},
    {"one member", "{\"message\":\"", "x", "\"}", SIZE},
    {"escapes", "[\"", "\\u00e5", "\"]", SIZE},
    {"contacts", "[",
     "{\"id\":\"0c000000-0000-4000-8000-#\",\"org_id\":\"" ORG "\",\"name\":\"N\","
     "\"municipality\":\"A municipality with a name that is long enough for an answer of 14 MB: "
     "it fills the whole row with these many, many words and goes on and on, as there must not be "
     "more values than the library reads from a list, and the rows of that list are to be read. "
     "One more line of the same text makes the row as long as it has to be for that. It ends "
     "here, at last, after a few more words.\",\"updated_at\":\"2026-01-01T00:00:00+00:00\"},",
     "0]", 21000},
    {"ids", "[", "{\"id\":\"0c000000-0000-4000-8000-#\"},", "0]", 65000},
};

static char *made(const char *name) {
  for (size_t at = 0; at < sizeof shapes / sizeof *shapes; at++) {
    if (strcmp(shapes[at].name, name) != 0)
      continue;
    const char *mark = strchr(shapes[at].unit, '#');
    size_t unit = strlen(shapes[at].unit), size = unit + (mark != NULL ? 11 : 0);
    char *text = malloc(SIZE + 4096), *end = stpcpy(text, shapes[at].begin);
    for (long number = 0; number < shapes[at].most && end - text + size < SIZE; number++) {
      if (mark == NULL) {
        memcpy(end, shapes[at].unit, unit);
        end += size;
      } else {
        end += sprintf(end, "%.*s%012ld%s", (int)(mark - shapes[at].unit), shapes[at].unit, number,
                       mark + 1);
      }
    }
    strcpy(end, shapes[at].end);
    return text;
  }
  fail("no such shape", name);
}

static void complete(const char *completion) {
  char *reply = NULL;
  if (holdfast_complete(app, completion, &reply) != HOLDFAST_OK)
    fail("holdfast_complete", reply);
  holdfast_free(reply);
}

int main(int count, char **arguments) {
  char config[1024], *reply = NULL;
  if (count != 3)
    return 64;
  write_config(config, sizeof config, arguments[2]);
  if (holdfast_open(config, NULL, &app, &reply) != HOLDFAST_OK)
    fail("open", reply);
  holdfast_free(reply);
  char *body = made(arguments[1]);
  size_t size = strlen(body);
  for (bool is_over = false; !is_over;) {
    if (holdfast_next(app, HOLDFAST_NEXT_REQUESTS, 0, &reply) != HOLDFAST_OK)
      fail("holdfast_next", reply);
    json_t *given = json_loads(reply, 0, NULL), *request = json_object_get(given, "request");
    holdfast_free(reply);
    if (request == NULL)
      fail("no pull was asked for", NULL);
    is_over = strcmp(json_string_value(json_object_get(request, "purpose")), "pull") == 0;
    json_t *pull = json_pack("{s:O,s:i,s:{},s:s}", "id", json_object_get(request, "id"), "status",
                             200, "headers", "body", body);
    char *completion = is_over ? json_dumps(pull, JSON_COMPACT) : answer(request);
    json_decref(pull);
    if (is_over) {
      free(body);
      reset_peak();
    }
    long before = memory("VmRSS");
    complete(completion);
    if (is_over)
      printf("{\"size\":%zu,\"bytes\":%ld}\n", size, memory("VmHWM") - before);
    free(completion);
    json_decref(given);
  }
  return 0;
}
