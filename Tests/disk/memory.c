/* Allocators whose n-th allocation fails. */
#define _GNU_SOURCE
#include "disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static sqlite3_mem_methods plain;

static void *take(int size) { return fault_at(OP_SQLITE_MEMORY) ? NULL : plain.xMalloc(size); }
static void *retake(void *bytes, int size) {
  return fault_at(OP_SQLITE_MEMORY) ? NULL : plain.xRealloc(bytes, size);
}

/* Where the library's code is. What it allocates with malloc() is jansson's, a text or a reply. */
static uintptr_t code;
static size_t code_size;

void *__libc_malloc(size_t size);
void *malloc(size_t size) {
  bool is_librarys = (uintptr_t)__builtin_return_address(0) - code < code_size;
  return is_librarys && fault_at(OP_MEMORY) ? NULL : __libc_malloc(size);
}

static int find_code(struct dl_phdr_info *info, size_t size, void *name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL)
    return 0;
  for (int number = 0; number < info->dlpi_phnum; number++) {
    if (info->dlpi_phdr[number].p_type == PT_LOAD &&
        (info->dlpi_phdr[number].p_flags & PF_X) != 0) {
      code = info->dlpi_addr + info->dlpi_phdr[number].p_vaddr;
      code_size = info->dlpi_phdr[number].p_memsz;
    }
  }
  return 1;
}

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
  if (dl_iterate_phdr(find_code, "libholdfast.so") == 0 || code_size == 0)
    die("the library's code was not found");
}
