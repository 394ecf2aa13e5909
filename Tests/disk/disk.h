/* A disk that fails: what the parts of this test share, one section per file. */
#ifndef DISK_H
#define DISK_H

#include "holdfast.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

/* Ends the process: the test itself cannot go on. */
noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- fault.c: which operation fails, and how ---- */

typedef enum {
  OP_OPEN,
  OP_LOOK, /* stat, access */
  OP_READ,
  OP_WRITE,
  OP_SYNC,
  OP_TRUNCATE,
  OP_NAME, /* link, rename, unlink, mkdir: what changes a folder */
  OP_LOCK,
  OP_SHM_LOCK,
  OP_SHM_MAP,
  OP_SQLITE_MEMORY,
  OP_JSON_MEMORY,
  OP_SECRET_MEMORY,
  OP_KINDS
} op_kind;

const char *op_name(op_kind kind);

typedef struct {
  op_kind kind;
  long at;    /* the n-th of its kind; 0: none, they are only counted */
  int error;  /* errno */
  bool stays; /* everything of the same sort fails from then on, until fault_lift() */
} fault;

void fault_arm(fault chosen);
/* Faults befall calls of the library alone, not the test's own. */
void fault_enter(void);
void fault_leave(void);
/* A disk that is full, read-only or gone is repaired. */
void fault_lift(void);
/* Counts an operation; the errno it is to fail with, or 0. */
int fault_at(op_kind kind);
/* The fault that was just handed out met no disk operation after all. */
void fault_return(void);
/* How many of a kind there were since fault_arm(). */
long fault_count(op_kind kind);
/* How many failed since fault_arm(). */
long fault_injected(void);

/* ---- calls.c: the system calls beneath SQLite's VFS and beneath the library's own files ---- */

/* Only files below this folder are watched; NULL: none. */
void calls_watch(const char *folder);
/* Within an operation of the VFS: the next system call on a watched file fails with `error`. */
void calls_enter_vfs(int error);
/* Whether the error was used up. */
bool calls_leave_vfs(void);

/* ---- vfs.c: the shim over SQLite's "unix" VFS ---- */

void vfs_register(void);

/* ---- memory.c: allocators that can refuse ---- */

/* Before anything of SQLite, jansson or the library is used. */
void memory_install(void);

/* ---- trace.c: what was written, what was synced, and what a power cut leaves of it ---- */

typedef enum {
  CUT_DROP,    /* nothing that was not synced is there */
  CUT_WHOLE,   /* everything is there */
  CUT_REORDER, /* of the writes not synced, any */
  CUT_TEAR,    /* of their sectors, any */
  CUT_GARBLE,  /* of their sectors some old, some new, some noise */
  CUT_KINDS
} cut_kind;

const char *cut_name(cut_kind kind);

/* Record what happens below the watched folder; what is there already is durable. */
void trace_start(const char *folder);
void trace_stop(void);
/* Note a moment: the host's call number `mark` begins or has ended. */
void trace_mark(long mark, bool ended);

/* By calls.c, after the system call succeeded. */
void trace_opened(int descriptor, const char *path, bool created);
void trace_closed(int descriptor);
void trace_wrote(int descriptor, int64_t offset, const void *bytes, size_t count);
void trace_truncated(int descriptor, int64_t length);
/* A sync that fails loses what it should have written, and says so once. */
void trace_synced(int descriptor, bool done);
void trace_named(const char *path, const char *from, bool moved);
void trace_unnamed(const char *path);
void trace_made_folder(const char *path);

/* Where a power cut can come: before every sync, and at the end. */
long trace_cuts(void);
/* The last mark before the cut, and whether its call had ended. */
long trace_mark_at(long cut, bool *ended);
/* Write what the cut leaves into `folder`, which must be empty. Cuts are taken in growing order. */
void trace_image(long cut, cut_kind kind, uint64_t seed, const char *folder);

/* ---- folder.c ---- */

void folder_make(const char *path);
void folder_remove(const char *path);
void folder_copy(const char *from, const char *to);
/* Calls `visit` with every path below, relative to the folder, parents first. */
void folder_each(const char *path,
                 void (*visit)(const char *relative, bool is_folder, void *context), void *context);
/* The whole file; NULL when there is none. */
uint8_t *file_read(const char *path, size_t *count);
void file_write(const char *path, const uint8_t *bytes, size_t count);

/* ---- world.c: the host, its server, and what the library has acknowledged ---- */

enum { USERS = 2, ORGANISATIONS = 2, ITEMS = 16, CONTACTS = 12 };
enum { NOBODY = -1 };

typedef enum { ITEM_ABSENT, ITEM_QUEUED, ITEM_GONE } item_state;

typedef struct {
  item_state state;
  int user, minutes;
  size_t note; /* its length */
} item;

/* What holds once a call has answered. */
typedef struct {
  int user; /* or NOBODY */
  bool locked;
  int org;     /* or NOBODY */
  int token;   /* which of the session's refresh tokens is stored */
  int revokes; /* sessions of which the server still has to be told */
  item items[ITEMS];
} promise;

/* The server: GoTrue's rotation of refresh tokens, and the rows that it has. */
typedef struct {
  int session[USERS]; /* the newest */
  int token[USERS];   /* of that session, the active one */
  bool ended[USERS];
  bool stored[ITEMS];
  bool refuses_minutes; /* of more than a day */
} server;

typedef struct {
  holdfast *app;
  const char *folder;
  int64_t now_ms, monotonic_ms;
  const char *boot;  /* or NULL: the machine's own */
  const char *left;  /* or NULL */
  promise now, next; /* `next`: once the call under way has answered */
  server server;
  bool is_recorded; /* every call is a mark in the trace */
  bool has_faults;  /* a call may fail, and is then made again */
  long failures;    /* calls that answered with an error, as they should */
  json_t *decision; /* what the app shows */
  int64_t seen;     /* the last event, acknowledged by the next poll */
} world;

void world_begin(world *it, const char *folder);
void world_end(world *it);
/* The moment at which a recorded call began. `now` was promised then, `next` if it answered well.
 */
const world *world_at(long mark);
/* What was promised when it had ended. */
const promise *world_after(long mark);

void app_open(world *it);
/* With `left`, a copy of the folder as a process that dies now would leave it goes there. */
void app_close(world *it);
/* Call `holdfast_<name>`; the reply, which is ours to release. With faults, an error that storage
 * may give is held against the rules and the call made again; any other error is a finding. */
json_t *app_call(world *it, const char *name, json_t *request);
void app_do(world *it, const char *name, json_t *request);
void app_pass(world *it, int64_t seconds);
/* Poll and answer until nothing is left to do now. */
void app_settle(world *it);
/* Settle, letting time pass as the library asks for, until this holds. */
void app_settle_until(world *it, bool (*holds)(world *it), const char *what);
bool app_shows(world *it, const char *screen);

json_t *user_session(world *it, int user);
const char *user_id(int user);
const char *org_id(int org);
void item_id(int number, char text[37]);
json_t *item_payload(const item *of);

/* A finding: what was expected and what is so. Counted; the test goes on. */
void finding(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many attempts have failed. */
long findings(void);
/* Show every call from now on. */
void show_calls(void);
/* What is being tried, for findings. */
void trying(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- day.c ---- */

typedef struct {
  const char *name;
  void (*play)(world *it);
} chapter;

extern const chapter day[];
extern const int day_chapters;

/* ---- check.c ---- */

/* Open what is in the folder and hold it against what was promised `before` the call that was under
 * way and `after` it. `at` is the world at that moment; its server goes on. */
void check_folder(const char *folder, const world *at, const promise *before, const promise *after);

/* ---- power.c, faults.c ---- */

typedef struct {
  const char *room; /* a folder to work in; emptied first */
  int seeds;        /* how often chance decides anew about a cut */
  int share;        /* of what there is most of, every n-th is tried; 1: all of it */
} plan;

void power_run(const plan *how);
void faults_run(const plan *how);
void memory_run(const plan *how);
/* One fault again, with every call shown. */
void replay_run(const plan *how, int chapter, fault chosen);

#endif
