/* The tour's output: headings, details, ticks and crosses, decisions and events in short. */
#define _GNU_SOURCE
#include "tour.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char bold[] = "1", dim[] = "2", red[] = "31", green[] = "32", cyan[] = "36";

static int crosses = 0;
static void (*cross_call)(void) = NULL;

static bool coloured(void) {
  static int known = -1;
  if (known < 0)
    known = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
  return known == 1;
}

static void paint(const char *colour) {
  if (coloured())
    printf("\033[%sm", colour);
}

static void plain(void) {
  if (coloured())
    fputs("\033[0m", stdout);
}

/* Flush every line: an act may kill its process at any moment. */
static void end_line(void) {
  plain();
  putchar('\n');
  fflush(stdout);
}

void stage_title(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  putchar('\n');
  paint(bold);
  vprintf(format, arguments);
  end_line();
  va_end(arguments);
}

void stage_act(int number, const char *title) {
  putchar('\n');
  paint(bold);
  printf("%d  %s ", number, title);
  plain();
  paint(dim);
  for (size_t column = strlen(title) + 4; column < 96; column++)
    fputs("─", stdout);
  end_line();
}

void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("\n   ", stdout);
  vprintf(format, arguments);
  end_line();
  va_end(arguments);
}

void note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  paint(dim);
  fputs("     ", stdout);
  vprintf(format, arguments);
  end_line();
  va_end(arguments);
}

bool check(bool ok, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  paint(ok ? green : red);
  fputs(ok ? "   ✓ " : "   ✗ ", stdout);
  plain();
  vprintf(format, arguments);
  end_line();
  va_end(arguments);
  if (!ok) {
    crosses += 1;
    if (cross_call != NULL)
      cross_call();
  }
  return ok;
}

int checks_failed(void) { return crosses; }

void on_cross(void (*call)(void)) { cross_call = call; }

/* ---- JSON in short ---- */

static void list(const char *label, const json_t *array, const char *key) {
  for (size_t i = 0; i < json_array_size(array); i++)
    printf("%s%s", i == 0 ? label : " · ", text_at(json_array_get(array, i), key));
}

void show_decision(const json_t *decision) {
  const json_t *org = json_object_get(decision, "org");
  const json_t *message = json_object_get(decision, "message");
  paint(cyan);
  printf("     → %s", text_at(decision, "screen"));
  plain();
  printf(" (%s)", text_at(decision, "reason"));
  if (*text_at(decision, "route") != 0)
    printf("  %s", text_at(decision, "route"));
  if (json_is_object(org))
    printf("  %s, %s", text_at(org, "name"), text_at(org, "role"));
  list("  ", json_object_get(decision, "methods"), "label");
  list("  ", json_object_get(decision, "orgs"), "name");
  end_line();
  if (json_is_object(message))
    note("  “%s”", text_at(message, "text"));
  const json_t *banners = json_object_get(decision, "banners");
  for (size_t i = 0; i < json_array_size(banners); i++) {
    const json_t *banner = json_array_get(banners, i);
    note("  [%s] %s", text_at(banner, "code"), text_at(banner, "text"));
  }
}

void show_event(const json_t *event) {
  const char *type = text_at(event, "type");
  if (strcmp(type, "decision") == 0) {
    const json_t *decision = json_object_get(event, "decision");
    note("event: decision → %s (%s)", text_at(decision, "screen"), text_at(decision, "reason"));
    return;
  }
  json_t *rest = json_copy((json_t *)event);
  json_object_del(rest, "type");
  char *text = json_dumps(rest, JSON_COMPACT);
  note("event: %s %s", type, text == NULL ? "" : text);
  free(text);
  json_decref(rest);
}

void show_error(const json_t *reply) {
  const json_t *error = json_object_get(reply, "error");
  note("refused: %s: %s", text_at(error, "code"), text_at(error, "message"));
}

static int visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

void show_files(const char *folder) {
  struct dirent **entries;
  int count = scandir(folder, &entries, visible, alphasort);
  for (int i = 0; i < count; i++) {
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
      note("%-18s %7lld bytes  %03o", entries[i]->d_name, (long long)status.st_size,
           (unsigned)status.st_mode & 0777);
    free(entries[i]);
  }
  if (count >= 0)
    free(entries);
}
