/* The declarations that the files of this test share, one section per file. */
#ifndef DISK_H
#define DISK_H

#include "holdfast.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

/* End the process: the test itself has a defect. */
noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- fault.c: which operation fails, and how ---- */

typedef enum {
  OP_OPEN,
  OP_LOOK, /* stat, access */
  OP_READ,
  OP_WRITE,
  OP_SYNC,
  OP_TRUNCATE,
  OP_NAME, /* link, rename, unlink, mkdir: changes of a folder */
  OP_LOCK,
  OP_SHM_LOCK,
  OP_SHM_MAP,
  OP_SQLITE_MEMORY,
  OP_MEMORY,
  OP_SECRET_MEMORY,
  OP_KINDS
} op_kind;

const char *op_name(op_kind kind);

typedef struct {
  op_kind kind;
  long at;    /* the n-th operation of the kind fails; 0: none fails, they are only counted */
  int error;  /* errno */
  bool stays; /* related operations fail from then on, until fault_lift() */
} fault;

void fault_arm(fault chosen);
/* Faults are injected only between these two calls: into the library, not into the test. */
void fault_enter(void);
void fault_leave(void);
/* Repair a disk that stays full, read-only or broken. */
void fault_lift(void);
/* Count an operation. Returns the errno to fail with, or 0. */
int fault_at(op_kind kind);
/* Uncount the last fault: no system call used it. */
void fault_return(void);
/* The number of operations of a kind since fault_arm(). */
long fault_count(op_kind kind);
/* The number of faults injected since fault_arm(). */
long fault_injected(void);

/* ---- calls.c: the system calls beneath SQLite's VFS and beneath the library's own files ---- */

/* Watch the files below this folder; NULL: none. */
void calls_watch(const char *folder);
/* Begin a VFS operation: with `error` not 0, its next system call on a watched file fails. */
void calls_enter_vfs(int error);
/* End it. Returns whether a system call failed with the error, or there was none to inject. */
bool calls_leave_vfs(void);

/* ---- vfs.c: the shim over SQLite's "unix" VFS ---- */

void vfs_register(void);

/* ---- memory.c: allocators that can refuse ---- */

/* Call it before any function of SQLite or the library. */
void memory_install(void);

/* ---- trace.c: records writes and syncs; computes the files that a power cut leaves ---- */

typedef enum {
  CUT_DROP,    /* every unsynced write is lost */
  CUT_WHOLE,   /* no write is lost */
  CUT_REORDER, /* any of the unsynced writes are lost */
  CUT_TEAR,    /* any sectors of the unsynced writes are lost */
  CUT_GARBLE,  /* sectors of the unsynced writes are old, new or noise */
  CUT_KINDS
} cut_kind;

const char *cut_name(cut_kind kind);

/* Start to record changes below the watched folder. Its present contents count as durable. */
void trace_start(const char *folder);
void trace_stop(void);
/* Record that the host's call number `mark` begins or has ended. */
void trace_mark(long mark, bool ended);

/* Called by calls.c after the system call succeeded. */
void trace_opened(int descriptor, const char *path, bool created);
void trace_closed(int descriptor);
void trace_wrote(int descriptor, int64_t offset, const void *bytes, size_t count);
void trace_truncated(int descriptor, int64_t length);
/* A failed sync loses the writes that it covers; only this one call reports it. */
void trace_synced(int descriptor, bool done);
void trace_named(const char *path, const char *from, bool moved);
void trace_unnamed(const char *path);
void trace_made_folder(const char *path);

/* The number of possible power cuts: before every sync, and at the end. */
long trace_cuts(void);
/* The last mark before the cut, and whether its call had ended. */
long trace_mark_at(long cut, bool *ended);
/* Write the files that the cut leaves into `folder`, which must be empty. Callers pass cuts in
 * ascending order. */
void trace_image(long cut, cut_kind kind, uint64_t seed, const char *folder);

/* ---- folder.c ---- */

void folder_make(const char *path);
void folder_remove(const char *path);
void folder_copy(const char *from, const char *to);
/* Overwrite the header of the main file. */
void folder_damage(const char *folder);
/* Calls `visit` with every path below, relative to the folder, parents first. */
void folder_each(const char *path,
                 void (*visit)(const char *relative, bool is_folder, void *context), void *context);
/* Read the whole file; NULL when there is none. */
uint8_t *file_read(const char *path, size_t *count);
void file_write(const char *path, const uint8_t *bytes, size_t count);

/* ---- world.c, server.c: the host, its server, and the state that the library acknowledged ---- */

enum { USERS = 2, ORGANISATIONS = 2, ITEMS = 16, CONTACTS = 12 };
enum { NOBODY = -1 };

typedef enum { ITEM_ABSENT, ITEM_QUEUED, ITEM_GONE } item_state;

typedef struct {
  item_state state;
  int user, minutes;
  size_t note; /* the length of the note */
} item;

/* The state that must hold after a call has returned. */
typedef struct {
  int user; /* or NOBODY */
  bool locked;
  int org;     /* or NOBODY */
  int token;   /* the number of the stored refresh token in its session */
  int revokes; /* sessions that the library still has to revoke */
  item items[ITEMS];
} promise;

/* The server: GoTrue's rotation of refresh tokens, and the stored rows. */
typedef struct {
  int session[USERS]; /* the newest session */
  int token[USERS];   /* the active token of that session */
  bool ended[USERS];
  bool stored[ITEMS];
  bool refuses_minutes; /* refuses more minutes than a day has */
} server;

typedef struct {
  holdfast *app;
  const char *folder;
  int64_t now_ms, monotonic_ms;
  const char *boot;  /* or NULL: the machine's own */
  const char *left;  /* see app_close(); or NULL */
  promise now, next; /* `next` holds once the call in progress has returned */
  server server;
  bool is_recorded; /* every call is a mark in the trace */
  bool has_faults;  /* a call may fail; the host then repeats it */
  bool has_damage;  /* a file may be set aside */
  long failures;    /* calls that failed with an expected error */
  json_t *decision; /* the present screen */
} world;

void world_begin(world *it, const char *folder);
void world_end(world *it);
/* The world when a recorded call began: `now` held then, `next` holds if the call succeeded. */
const world *world_at(long mark);
/* The promise after that call had ended. */
const promise *world_after(long mark);

void app_open(world *it);
/* Close the app. First copy the folder to `left`, if set, as a killed process would leave it. */
void app_close(world *it);
/* Call `holdfast_<name>`; the caller releases the reply. With faults, a failure must follow the
 * rules for storage errors, and the call is repeated; any other error is a finding. */
json_t *app_call(world *it, const char *name, json_t *request);
void app_do(world *it, const char *name, json_t *request);
/* Call through another handle of this process, which is opened for it, and does not fail. */
void app_beside(world *it, const char *name, json_t *request);
void app_pass(world *it, int64_t seconds);
/* Take and answer until no work is due. */
void app_settle(world *it);
/* Take and answer until the condition holds; let time pass as `wake_in_ms` asks. */
void app_settle_until(world *it, bool (*holds)(world *it), const char *what);
bool app_shows(world *it, const char *screen);

/* Start a new session at the server, in the form of GoTrue's answer. */
json_t *user_session(world *it, int user);
const char *user_id(int user);
const char *org_id(int org);
void item_id(int number, char text[37]);
json_t *item_payload(const item *of);
/* Answer a request, and set `next` to the state after the library has processed the answer. */
json_t *server_answer(world *it, const json_t *request);

/* Report a failed check. It is counted, and the test goes on. */
void finding(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The number of failed attempts. */
long findings(void);
/* Print every call from now on. */
void show_calls(void);
/* Describe the present attempt, for findings. */
void trying(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- day.c ---- */

typedef struct {
  const char *name;
  void (*play)(world *it);
} chapter;

extern const chapter day[];
/* Its files are damaged at the beginning. */
extern const chapter day_of_damage;
extern const int day_chapters;

/* ---- check.c ---- */

/* Open the folder and compare it with the promises `before` and `after` the call in progress. `at`
 * is the world at that moment; its server goes on. */
void check_folder(const char *folder, const world *at, const promise *before, const promise *after);

/* ---- power.c, faults.c ---- */

typedef struct {
  const char *room; /* a folder to work in; emptied first */
  int seeds;        /* repetitions of each random cut */
  int share;        /* try every n-th failure; 1: all of them */
} plan;

void power_run(const plan *how);
void faults_run(const plan *how);
void memory_run(const plan *how);
/* Replay one fault and print every call. */
void replay_run(const plan *how, int chapter, fault chosen);

#endif
