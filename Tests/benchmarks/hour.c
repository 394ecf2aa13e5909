/* Counts what an hour of an app asks of the device: wake-ups, requests, and syncs to the disk.
 *
 * hour open|background|ten DIR
 *   open        the app is on the screen, online, with nothing to send
 *   background  the same after the app left the screen
 *   ten         as open, and the user registers ten visits, one every six minutes
 *
 * The clock is manual, so the hour takes seconds: where a host would sleep for `wake_in_ms`, this
 * one moves the clock. The null server answers in the process. Its answers take no time, so a
 * request and its answer are one wake-up. A sync is counted instead of being made: this program's
 * fsync() and fdatasync() take the place of the C library's, for SQLite too. Prints the counts as
 * JSON. */
#define _GNU_SOURCE
#include "bench.h"

#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int32_t operation(holdfast *, const char *, char **);

enum { HOUR_MS = 3600 * 1000, SPREAD_MS = HOUR_MS / 10 };

static holdfast *app;
static long wakes, requests, syncs, cache_syncs;
/* What the clock shows, in milliseconds since 1970 and since the hour began. */
static long long began_ms, passed_ms;

/* With HOUR_TELLS in the environment: say on standard error what happens when. */
static void tell(const char *kind, const char *what) {
  if (getenv("HOUR_TELLS") != NULL)
    fprintf(stderr, "%8.1f s  %s %s\n", (double)passed_ms / 1000, kind, what);
}

static int count_sync(int file) {
  char link[64], path[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  path[size > 0 ? size : 0] = 0;
  if (strstr(path, "cache") != NULL)
    cache_syncs += 1;
  else
    syncs += 1;
  tell("sync", path);
  return 0;
}

__attribute__((visibility("default"))) int fsync(int file) { return count_sync(file); }
__attribute__((visibility("default"))) int fdatasync(int file) { return count_sync(file); }

static char *call(operation *function, const char *request) {
  char *reply = NULL;
  if (function(app, request, &reply) != HOLDFAST_OK)
    fail(request == NULL ? "a call" : request, reply);
  return reply;
}

static void done(operation *function, const char *request) {
  holdfast_free(call(function, request));
}

static void set_clock(void) {
  char request[128];
  snprintf(request, sizeof request, "{\"now_ms\":%lld,\"monotonic_ms\":%lld}", began_ms + passed_ms,
           1000000 + passed_ms);
  done(holdfast_clock_set, request);
}

/* Take and answer until there is nothing to do; returns how long the host may sleep. */
static long long work(void) {
  for (long long sleep_ms = 0;;) {
    char *text = NULL;
    if (holdfast_next(app, HOLDFAST_NEXT_ALL, 0, &text) != HOLDFAST_OK)
      fail("holdfast_next", text);
    json_t *given = json_loads(text, 0, NULL), *request = json_object_get(given, "request");
    holdfast_free(text);
    const char *kind = json_object_iter_key(json_object_iter(given));
    const json_t *wake = json_object_get(given, kind);
    if (request != NULL) {
      tell("request", json_string_value(json_object_get(request, "purpose")));
      char *completion = answer(request);
      done(holdfast_complete, completion);
      free(completion);
      requests += 1;
    } else if (strcmp(kind, "wake_in_ms") == 0) {
      sleep_ms = json_is_integer(wake) ? json_integer_value(wake) : HOUR_MS;
    } else {
      tell("news", kind);
    }
    json_decref(given);
    if (sleep_ms > 0)
      return sleep_ms;
  }
}

static void open_app(const char *folder) {
  char config[1024], manual[1100], *reply = NULL;
  write_config(config, sizeof config, folder);
  snprintf(manual, sizeof manual, "{\"clock\":\"manual\",%s", config + 1);
  if (holdfast_open(manual, NULL, &app, &reply) != HOLDFAST_OK)
    fail("holdfast_open", reply);
  holdfast_free(reply);
}

int main(int count, char **arguments) {
  if (count != 3)
    return 64;
  bool adds = strcmp(arguments[1], "ten") == 0;
  began_ms = (long long)time(NULL) * 1000;
  open_app(arguments[2]);
  set_clock();
  done(holdfast_session_resume, NULL);
  done(holdfast_network_report, "{\"online\":true}");
  work();
  /* Whatever is due soon after the start is over when the hour begins. */
  passed_ms += 120 * 1000;
  set_clock();
  work();
  if (strcmp(arguments[1], "background") == 0) {
    done(holdfast_session_background, NULL);
    work();
  }
  began_ms += passed_ms;
  passed_ms = wakes = requests = syncs = cache_syncs = 0;
  set_clock();
  long long sleep_ms = work();
  long number = 0;
  while (passed_ms < HOUR_MS) {
    long long next_ms = adds ? (number + 1) * (long long)SPREAD_MS : HOUR_MS;
    bool is_woken = passed_ms + sleep_ms < next_ms;
    passed_ms = is_woken ? passed_ms + sleep_ms : next_ms;
    set_clock();
    wakes += is_woken;
    if (!is_woken && adds) {
      char visit[REQUEST_ROOM];
      write_visit(visit, number++, false);
      done(holdfast_queue_add, visit);
    }
    if (is_woken || adds)
      sleep_ms = work();
  }
  printf(
      "{\"wake-ups\":%ld,\"requests\":%ld,\"syncs of the queue\":%ld,\"syncs of the cache\":%ld}\n",
      wakes, requests, syncs, cache_syncs);
  return 0;
}
