/* Fault injection: counts operations by kind and decides which one fails. */
#include "disk.h"

#include <errno.h>
#include <stdatomic.h>

static fault armed;
static long counts[OP_KINDS];
static long injected;
static int depth;
static bool broken;

const char *op_name(op_kind kind) {
  static const char *const names[OP_KINDS] = {
      "open", "look",     "read",    "write",  "sync",   "truncate",      "name",
      "lock", "shm lock", "shm map", "sqlite", "malloc", "sodium_malloc",
  };
  return names[kind];
}

void fault_arm(fault chosen) {
  armed = chosen;
  broken = false;
  injected = 0;
  for (int kind = 0; kind < OP_KINDS; kind++)
    counts[kind] = 0;
}

void fault_enter(void) { depth++; }
void fault_leave(void) { depth--; }
void fault_lift(void) {
  if (broken)
    armed.at = 0;
  broken = false;
}
void fault_return(void) { injected--; }
long fault_count(op_kind kind) { return counts[kind]; }
long fault_injected(void) { return injected; }

/* Whether an operation of this kind also fails on a disk on which `armed` failed and stays. */
static bool shares(op_kind kind) {
  if (kind >= OP_SQLITE_MEMORY)
    return kind == armed.kind;
  if (armed.error == EIO)
    return true;
  return kind == OP_WRITE || kind == OP_TRUNCATE || kind == OP_NAME || kind == OP_SHM_MAP ||
         kind == armed.kind;
}

int fault_at(op_kind kind) {
  if (depth == 0)
    return 0;
  counts[kind]++;
  bool hit = armed.at > 0 && kind == armed.kind && counts[kind] == armed.at;
  if (hit && armed.stays)
    broken = true;
  if (!hit && !(broken && shares(kind)))
    return 0;
  injected++;
  return armed.error;
}
