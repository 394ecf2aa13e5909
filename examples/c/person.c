/* The person who uses the app, played by the tour's parent. The person presents a finger when the
 * app asks for one, and writes down every item that the app reports as stored. An act sends its
 * messages over a pair of sockets, so they survive when the act is killed. */
#define _GNU_SOURCE
#include "tour.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- called by an act ---- */

static int person = -1;

static void tell(const char *line) {
  if (person >= 0 && write(person, line, strlen(line)) < 0)
    person = -1;
}

void person_join(int descriptor) {
  person = descriptor;
  on_cross(person_told_cross);
}

bool person_asked_for_finger(void) {
  char answer = 0;
  tell("finger\n");
  return person >= 0 && read(person, &answer, 1) == 1 && answer == 'F';
}

void person_told_registered(const char *id, const char *text) {
  char *line = NULL;
  if (asprintf(&line, "stored %s %s\n", id, text) > 0)
    tell(line);
  free(line);
}

void person_told_end(void) { tell("end\n"); }
void person_told_cross(void) { tell("cross\n"); }

/* ---- called by the parent ---- */

static void write_down(ledger *ledger, const char *line) {
  const char *space = strchr(line, ' ');
  if (space == NULL)
    return;
  size_t room = (ledger->count + 1) * sizeof(char *);
  char **ids = realloc(ledger->ids, room);
  if (ids != NULL)
    ledger->ids = ids;
  char **notes = realloc(ledger->notes, room);
  if (notes != NULL)
    ledger->notes = notes;
  if (ids == NULL || notes == NULL)
    abort();
  ids[ledger->count] = strndup(line, (size_t)(space - line));
  notes[ledger->count] = strdup(space + 1);
  ledger->count += 1;
}

void ledger_free(ledger *ledger) {
  for (size_t i = 0; i < ledger->count; i++) {
    free(ledger->ids[i]);
    free(ledger->notes[i]);
  }
  free(ledger->ids);
  free(ledger->notes);
  *ledger = (struct ledger){0};
}

static void hear(int descriptor, const char *line, const reader *finger, performance *seen,
                 ledger *ledger) {
  if (strcmp(line, "finger") == 0) {
    char answer = finger != NULL && reader_present_finger(finger) ? 'F' : '-';
    if (write(descriptor, &answer, 1) != 1)
      seen->crosses += 1;
  } else if (strncmp(line, "stored ", 7) == 0) {
    write_down(ledger, line + 7);
  } else if (strcmp(line, "end") == 0) {
    seen->ended = true;
  } else if (strcmp(line, "cross") == 0) {
    seen->crosses += 1;
  }
}

performance person_watch(int descriptor, const reader *finger, ledger *ledger, int seconds) {
  performance seen = {0};
  char text[4096];
  size_t length = 0;
  time_t until = time(NULL) + seconds;
  struct pollfd item = {.fd = descriptor, .events = POLLIN};
  while (time(NULL) < until) {
    if (poll(&item, 1, 500) <= 0)
      continue;
    ssize_t got = read(descriptor, text + length, sizeof text - length - 1);
    if (got <= 0)
      break;
    length += (size_t)got;
    text[length] = 0;
    char *line = text, *end;
    while ((end = strchr(line, '\n')) != NULL) {
      *end = 0;
      hear(descriptor, line, finger, &seen, ledger);
      line = end + 1;
    }
    length = strlen(line);
    memmove(text, line, length + 1);
  }
  return seen;
}
