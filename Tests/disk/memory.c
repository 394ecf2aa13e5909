/* Allocators whose n-th allocation fails. */
#define _GNU_SOURCE
#include "disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

static sqlite3_mem_methods plain;

static void *take(int size) { return fault_at(OP_SQLITE_MEMORY) ? NULL : plain.xMalloc(size); }
static void *retake(void *bytes, int size) {
  return fault_at(OP_SQLITE_MEMORY) ? NULL : plain.xRealloc(bytes, size);
}

static void *take_json(size_t size) { return fault_at(OP_JSON_MEMORY) ? NULL : malloc(size); }

void *sodium_malloc(size_t size);
void *sodium_malloc(size_t size) {
  static void *(*next)(size_t);
  if (next == NULL)
    next = (void *(*)(size_t))dlsym(RTLD_NEXT, "sodium_malloc");
  if (!fault_at(OP_SECRET_MEMORY))
    return next(size);
  errno = ENOMEM;
  return NULL;
}

void memory_install(void) {
  /* Without lookaside every allocation of SQLite passes through here. */
  if (sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK ||
      sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK)
    die("SQLite was already initialised");
  sqlite3_mem_methods refusing = plain;
  refusing.xMalloc = take;
  refusing.xRealloc = retake;
  if (sqlite3_config(SQLITE_CONFIG_MALLOC, &refusing) != SQLITE_OK)
    die("SQLite rejected the allocator");
  json_set_alloc_funcs(take_json, free);
}
