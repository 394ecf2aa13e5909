/* What the programs that are compared have in common: the clock, the samples, the work, and a
 * server that costs next to nothing. */
#ifndef BENCH_H
#define BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Seconds of the monotonic clock. */
double now(void);

/* Print a message and end the process. */
_Noreturn void fail(const char *what, const char *why);

/* ---- results ---- */

/* Take a sample, in seconds; from any thread. */
void sample(double seconds);
/* Before each call of one thread. With BENCH_TURNS in the environment it waits for a line of input,
 * and sample() tells at once what it took: so several processes take turns call by call, and
 * whatever the disk does meets all of them. false: the input has ended. */
bool turn_comes(void);
/* {"samples":[...],"items":n,"requests":n}: of everything that was measured, at the end. */
void report(long items, long requests);

/* ---- the work: the same for everybody ---- */

#define USER "0a000000-0000-4000-8000-000000000001"
#define ORG "0f000000-0000-4000-8000-000000000001"
enum {
  REQUEST_ROOM = 512,
  CONTACTS_IN_PAGE = 500,
  BAD_EVERY = 100,
  /* Added before anything is measured. */
  WARM_UP = 10
};

/* What a host asks when a visit is registered: number `number`. A bad one breaks a rule of the
 * server's: one minute too many. */
void write_visit(char room[REQUEST_ROOM], long number, bool is_bad);
/* Visits added by so many threads, each a sample, behind WARM_UP that are none. `add` returns the
 * reply, which `release` takes outside the sample. */
void add_all(long count, long threads, char *(*add)(const char *request), void (*release)(void *));
/* The config of holdfast_open. The floor reads it too. */
void write_config(char *room, size_t size, const char *folder);
/* What somebody types into the search field, in turn: names, parts of names, places, nothing found.
 */
const char *query(long number);

/* ---- the null server ---- */

/* How many contacts the organisation has. */
extern long contacts_there;

/* The answer to a request, both as the library's poll and complete write them. Uploads are stored
 * unless a row is bad: then the whole batch is refused, as PostgreSQL does. Free it. */
char *answer(const json_t *request);

#endif
