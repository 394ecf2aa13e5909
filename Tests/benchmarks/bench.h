/* Shared by the compared programs: the clock, the samples, the work, and a null server that costs
 * almost nothing. */
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

/* Record a sample in seconds, from any thread. */
void sample(double seconds);
/* Call it before each call of one thread. With BENCH_TURNS in the environment it waits for a line
 * of input, and sample() prints its time at once. So several processes take turns call by call, and
 * the disk's variations affect all of them. false: the input has ended. */
bool turn_comes(void);
/* Print all measurements at the end: {"samples":[...],"items":n,"requests":n}. */
void report(long items, long requests);

/* ---- memory ---- */

/* A figure of this process's memory by its name in /proc/self/status, in bytes. */
long memory(const char *name);
/* Let VmHWM begin anew. */
void reset_peak(void);

/* ---- the work, the same for every contender ---- */

#define USER "0a000000-0000-4000-8000-000000000001"
#define ORG "0f000000-0000-4000-8000-000000000001"
enum {
  REQUEST_ROOM = 512,
  ROWS_IN_PAGE = 500,
  BAD_EVERY = 100,
  /* Items added before the measurement. */
  WARM_UP = 10
};

/* The request that registers visit number `number`. A bad one has more minutes than the server
 * accepts. */
void write_visit(char room[REQUEST_ROOM], long number, bool is_bad);
/* Add visits from several threads; each call after WARM_UP ones is a sample. `add` returns the
 * reply, which `release` frees outside the sample. */
void add_all(long count, long threads, char *(*add)(const char *request), void (*release)(void *));
/* Whether the configuration keeps the user's own stored rows. */
extern bool keeps_own;
/* The configuration of holdfast_open. The floor parses it, too. */
void write_config(char *room, size_t size, const char *folder);
/* The search queries, in turn: names, parts of names, places, and one without results. */
const char *query(long number);

/* ---- the null server ---- */

/* The numbers of the organisation's contacts and of the user's stored rows. */
extern long contacts_there, own_there;

/* Answer a request of holdfast_next() in the form for `complete`; the caller frees it. Uploads are
 * stored unless a row is bad: then the whole batch is rejected, as in PostgreSQL. */
char *answer(const json_t *request);

#endif
