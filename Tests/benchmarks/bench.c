#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why == NULL ? "" : why);
  exit(1);
}

/* ---- results ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double *samples;
static size_t count, room;

bool turn_comes(void) {
  if (getenv("BENCH_TURNS") == NULL)
    return true;
  int byte;
  while ((byte = getchar()) != '\n')
    if (byte == EOF)
      return false;
  return true;
}

void sample(double seconds) {
  if (getenv("BENCH_TURNS") != NULL) {
    printf("%.9f\n", seconds);
    fflush(stdout);
    return;
  }
  pthread_mutex_lock(&lock);
  if (count == room) {
    room = room == 0 ? 4096 : 2 * room;
    samples = realloc(samples, room * sizeof *samples);
    if (samples == NULL)
      fail("samples", "no memory");
  }
  samples[count++] = seconds;
  pthread_mutex_unlock(&lock);
}

void report(long items, long requests) {
  printf("{\"samples\":[");
  for (size_t at = 0; at < count; at++)
    printf("%s%.9f", at == 0 ? "" : ",", samples[at]);
  printf("],\"items\":%ld,\"requests\":%ld}\n", items, requests);
}

/* ---- the work ---- */

void write_visit(char room[REQUEST_ROOM], long number, bool is_bad) {
  snprintf(room, REQUEST_ROOM,
           "{\"kind\":\"activity\",\"payload\":{\"type\":\"visit\",\"minutes\":%ld,"
           "\"occurred_at\":\"2026-11-21T10:%02ld:00Z\",\"note\":\"Kaffe og prat på kjøkkenet\"}}",
           is_bad ? 1441 : number % 1440 + 1, number % 60);
}

typedef struct {
  long from, count;
  char *(*add)(const char *request);
  void (*release)(void *);
} share;

static void *add_share(void *argument) {
  const share *mine = argument;
  char request[REQUEST_ROOM];
  for (long number = mine->from; number < mine->from + mine->count && turn_comes(); number++) {
    write_visit(request, number, false);
    double start = now();
    char *reply = mine->add(request);
    sample(now() - start);
    mine->release(reply);
  }
  return NULL;
}

void add_all(long count, long threads, char *(*add)(const char *request), void (*release)(void *)) {
  pthread_t started[64];
  share shares[64];
  char request[REQUEST_ROOM];
  for (long number = 0; number < WARM_UP; number++) {
    write_visit(request, number, false);
    release(add(request));
  }
  for (long at = 0; at < threads; at++) {
    shares[at] = (share){at * (count / threads), count / threads, add, release};
    if (pthread_create(&started[at], NULL, add_share, &shares[at]) != 0)
      fail("pthread_create", NULL);
  }
  for (long at = 0; at < threads; at++)
    pthread_join(started[at], NULL);
}

bool keeps_own = false;

void write_config(char *room, size_t size, const char *folder) {
  const char *queue =
      ",\"queue\":{\"activity\":{\"table\":\"activities\",\"own\":{\"days\":36500},"
      "\"columns\":[\"type\",\"minutes\",\"occurred_at\",\"contact_id\",\"follows\",\"note\"]}}";
  snprintf(room, size,
           "{\"data_dir\":\"%s/data\",\"backend\":{\"url\":\"http://127.0.0.1:9\","
           "\"api_key\":\"public-key\"%s},\"policy\":{\"biometric\":\"off\"},"
           "\"auth_methods\":[],\"template\":\"volunteers\",\"keystore\":{\"kind\":\"file\"}}",
           folder, keeps_own ? queue : "");
}

static const char *const first_names[] = {"Åse",     "Bjørn",    "Cecilie", "Dag",    "Eléa",
                                          "Frøydis", "Gørild",   "Håkon",   "Ærlend", "Jørgen",
                                          "Kåre",    "Lærke",    "Mårten",  "Néa",    "Øystein",
                                          "Pål",     "Ragnhild", "Sølve",   "Tuva",   "Ådne"};
static const char *const last_names[] = {"Prøvesen",   "Eksempelvik",   "Testås", "Øvingsdal",
                                         "Demoløkken", "Mønsterbråten", "Prøvé"};
static const char *const places[] = {"Tromsø", "Bærum", "Ålesund",  "Bø",
                                     "Vadsø",  "Ås",    "Sør-Fron", "Oslo"};
enum { FIRST_NAMES = 20, LAST_NAMES = 7, PLACES = 8 };

const char *query(long number) {
  static const char *const typed[] = {
      "kår",         "ås",     "øystein",     "prøve 12", "bjørn tromsø",
      "mønster",     "n",      "eksempel bo", "4711",     "håkon oslo",
      "finnes ikke", "vik 99", "é",           "demo",     "gør"};
  return typed[(size_t)number % (sizeof typed / sizeof *typed)];
}

/* ---- the null server ---- */

long contacts_there = 0, own_there = 0;

/* When row `number` was changed: a second after the one before it. */
static void write_time(char room[64], long number) {
  snprintf(room, 64, "2026-01-%02ldT%02ld:%02ld:%02ld.%06ld+00:00", 1 + number / 86400 % 28,
           number / 3600 % 24, number / 60 % 60, number % 60, number % 1000000);
}

static json_t *contact(long number) {
  char id[64], name[128], updated[64];
  snprintf(id, sizeof id, "0c000000-0000-4000-8000-%012ld", number);
  snprintf(name, sizeof name, "%s %s %ld", first_names[number % FIRST_NAMES],
           last_names[number % LAST_NAMES], number);
  write_time(updated, number);
  return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:n}", "id", id, "org_id", ORG, "name", name,
                   "municipality", places[number % PLACES], "relation", "pårørende", "updated_at",
                   updated, "deleted_at");
}

static json_t *own_row(long number) {
  char id[64], updated[64];
  snprintf(id, sizeof id, "0d000000-0000-4000-8000-%012ld", number);
  write_time(updated, number);
  return json_pack("{s:s,s:s,s:s,s:i,s:s,s:s,s:n}", "id", id, "org_id", ORG, "type", "visit",
                   "minutes", (int)(number % 1440) + 1, "occurred_at", updated, "updated_at",
                   updated, "deleted_at");
}

/* The next page of contacts or of the user's stored rows; a pull begins without a mark. */
static json_t *page(const char *url) {
  static long read = 0;
  bool is_own = strstr(url, "/activities?") != NULL;
  long there = is_own ? own_there : contacts_there;
  if (strstr(url, "updated_at=gte.") == NULL && strstr(url, "&id=gt.") == NULL)
    read = 0;
  json_t *rows = json_array();
  for (int row = 0; row < ROWS_IN_PAGE && read < there; row++, read++)
    json_array_append_new(rows, is_own ? own_row(read) : contact(read));
  return rows;
}

static json_t *memberships(void) {
  return json_pack("[{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s}}]", "org_id", ORG, "role", "peer_mentor",
                   "status", "active", "updated_at", "2026-01-01T00:00:00+00:00", "organizations",
                   "id", ORG, "name", "Mentorforeningen Nordlys", "status", "active");
}

/* Answer with the ids of the rows, or with the error of the first bad one. */
static json_t *stored(const char *body, int *status) {
  json_t *rows = json_loads(body, 0, NULL), *row, *ids = json_array();
  size_t at;
  *status = 201;
  json_array_foreach(rows, at, row) {
    if (json_integer_value(json_object_get(row, "minutes")) > 1440) {
      *status = 400;
      json_decref(ids);
      ids = json_pack("{s:s,s:s,s:n,s:n}", "code", "23514", "message",
                      "new row for relation \"activities\" violates check constraint "
                      "\"activities_minutes_check\"",
                      "details", "hint"); /* PostgREST hides the row under policies */
      break;
    }
    json_array_append_new(ids, json_pack("{s:O}", "id", json_object_get(row, "id")));
  }
  json_decref(rows);
  return ids;
}

char *answer(const json_t *request) {
  const char *purpose = json_string_value(json_object_get(request, "purpose"));
  const char *url = json_string_value(json_object_get(request, "url"));
  int status = 200;
  json_t *value;
  if (strcmp(purpose, "upload") == 0)
    value = stored(json_string_value(json_object_get(request, "body")), &status);
  else if (strcmp(purpose, "guard") == 0)
    value = memberships();
  else if (strcmp(purpose, "pull") == 0)
    value = page(url);
  else if (strcmp(purpose, "validate") == 0)
    value = json_pack("{s:s}", "id", USER);
  else
    value = json_pack("{s:i,s:i}", "activities", 0, "minutes", 0);
  char *body = json_dumps(value, JSON_COMPACT);
  json_t *completion =
      json_pack("{s:O,s:i,s:{s:s,s:s},s:s}", "id", json_object_get(request, "id"), "status", status,
                "headers", "content-type", "application/json; charset=utf-8", "content-range",
                strcmp(purpose, "guard") == 0 ? "0-0/1" : "*/*", "body", body);
  char *text = json_dumps(completion, JSON_COMPACT);
  if (text == NULL)
    fail("null server", "no answer");
  json_decref(completion);
  json_decref(value);
  free(body);
  return text;
}

long memory(const char *name) {
  char line[256];
  long found = 0;
  FILE *file = fopen("/proc/self/status", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0)
      found = atol(line + strlen(name) + 1);
  if (file == NULL || fclose(file) != 0 || found == 0)
    fail(name, "not in /proc/self/status");
  return found * 1024;
}

void reset_peak(void) {
  FILE *file = fopen("/proc/self/clear_refs", "we");
  if (file == NULL || fputs("5", file) < 0 || fclose(file) != 0)
    fail("/proc/self/clear_refs", "cannot be written");
}
