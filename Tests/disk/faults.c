/* Failures of single operations: play every chapter of the day once for each operation in it, and
 * let that operation fail. */
#define _GNU_SOURCE
#include "disk.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { CHAPTERS = 16, DAMAGED_FROM = 2 };

/* The world at the beginning of each chapter, from a day without faults. */
static world begins[CHAPTERS];
static char live[PATH_MAX];

static void room_of(const plan *how, int index, char path[PATH_MAX]) {
  snprintf(path, PATH_MAX, "%s/begin-%d", how->room, index);
}

/* Behind those of the day one more, whose file is damaged. */
static const chapter *chapter_at(int index) {
  return index < day_chapters ? &day[index] : &day_of_damage;
}

/* Nothing but the header is lost, so every row can be read. */
static void prepare_damaged(const plan *how) {
  char whole[PATH_MAX], begin[PATH_MAX];
  room_of(how, DAMAGED_FROM, whole);
  room_of(how, day_chapters, begin);
  folder_copy(whole, begin);
  folder_damage(begin);
  begins[day_chapters] = begins[DAMAGED_FROM];
  begins[day_chapters].has_damage = true;
}

/* Record the files at the beginning of each chapter. Every other chapter begins with the files of a
 * killed process: a log to recover. */
static void prepare(const plan *how) {
  snprintf(live, sizeof live, "%s/live", how->room);
  folder_make(live);
  world it;
  world_begin(&it, live);
  char begin[PATH_MAX], left[PATH_MAX];
  for (int index = 0; index < day_chapters; index++) {
    room_of(how, index, begin);
    if (index % 2 == 0)
      folder_copy(live, begin);
    room_of(how, index + 1, left);
    it.left = index % 2 == 0 ? left : NULL;
    begins[index] = it;
    begins[index].decision = NULL;
    trying("%s, without faults", day[index].name);
    day[index].play(&it);
  }
  world_end(&it);
  prepare_damaged(how);
}

/* Inject one failure. Returns whether it occurred. */
static bool try(const plan *how, int index, fault chosen) {
  trying("%s, %s %ld fails with %s%s (replay %d %d %ld %d %d)", chapter_at(index)->name,
         op_name(chosen.kind), chosen.at, strerrorname_np(chosen.error),
         chosen.stays ? " and stays" : "", index, (int)chosen.kind, chosen.at, chosen.error,
         chosen.stays);
  char begin[PATH_MAX];
  room_of(how, index, begin);
  folder_remove(live);
  folder_copy(begin, live);
  world it = begins[index];
  it.left = NULL;
  it.has_faults = true;
  calls_watch(live);
  fault_arm(chosen);
  chapter_at(index)->play(&it);
  calls_watch(NULL);
  bool came = fault_injected() > 0;
  fault_arm((fault){0});
  world_end(&it);
  check_folder(live, &it, &it.now, &it.now);
  return came;
}

/* Count the operations of each kind in a chapter. */
static void count(const plan *how, int index, long counts[OP_KINDS]) {
  fault_arm((fault){0});
  trying("%s, counting operations", chapter_at(index)->name);
  char begin[PATH_MAX];
  room_of(how, index, begin);
  folder_remove(live);
  folder_copy(begin, live);
  world it = begins[index];
  it.left = NULL;
  calls_watch(live);
  chapter_at(index)->play(&it);
  calls_watch(NULL);
  world_end(&it);
  for (int kind = 0; kind < OP_KINDS; kind++)
    counts[kind] = fault_count((op_kind)kind);
}

/* The errors that a disk returns for an operation. */
static const int *errors_of(op_kind kind) {
  static const int reading[] = {EIO, 0}, writing[] = {EIO, ENOSPC, EROFS, 0},
                   taking[] = {ENOMEM, 0};
  if (kind >= OP_SQLITE_MEMORY)
    return taking;
  return kind == OP_READ || kind == OP_LOOK ? reading : writing;
}

/* Frequent operations: a sample takes a smaller share of them. */
enum { PLENTY = 8 };
static bool is_plentiful(op_kind kind) {
  return kind == OP_READ || kind == OP_LOOK || kind == OP_LOCK || kind == OP_SHM_LOCK ||
         kind >= OP_SQLITE_MEMORY;
}

static void run(const plan *how, op_kind first, op_kind last, const char *what) {
  long came = 0, counts[OP_KINDS], before = findings();
  prepare(how);
  for (int index = 0; index <= day_chapters; index++) {
    count(how, index, counts);
    for (op_kind kind = first; kind <= last; kind++) {
      int step = how->share > 1 && is_plentiful(kind) ? how->share * PLENTY : how->share;
      int turn = index;
      for (const int *error = errors_of(kind); *error != 0; error++)
        for (int stays = 0; stays < 2; stays++)
          for (long at = 1 + turn++ % step; at <= counts[kind]; at += step)
            came += try(how, index, (fault){kind, at, *error, stays != 0});
    }
  }
  folder_remove(live);
  printf("reliability: %s: %ld tried, %ld survived\n", what, came, came - (findings() - before));
}

void faults_run(const plan *how) {
  run(how, OP_OPEN, OP_SHM_MAP, "failures of single disk operations");
}

void memory_run(const plan *how) {
  run(how, OP_SQLITE_MEMORY, OP_SECRET_MEMORY,
      "refused allocations of SQLite, libsodium, and of jansson and the C code in the library");
}

void replay_run(const plan *how, int chapter, fault chosen) {
  if (chapter < 0 || chapter > day_chapters)
    die("no such chapter");
  prepare(how);
  show_calls();
  try(how, chapter, chosen);
}
