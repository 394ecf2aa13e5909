/* A heap that marks its pointers, as Android's does from version 11 on. Preload it on arm64.
 *
 * Every pointer that it gives has 0xb4 in its top byte. The processor ignores that byte, and the
 * kernel does once it is asked to. A pointer that comes back without it ends the process, as on
 * Android: "Pointer tag was truncated". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TOP ((uintptr_t)0xff << 56)
#define MARK ((uintptr_t)0xb4 << 56)

/* The C library's own, under the names that it exports for this. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

__attribute__((constructor)) static void prepare(void) {
  if (prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0) != 0)
    _exit(97);
}

static void *marked(void *bytes) {
  return bytes == NULL ? NULL : (void *)((uintptr_t)bytes | MARK);
}

static void *unmarked(void *bytes) {
  static const char problem[] = "heap.c: a pointer came back without its mark\n";
  if (bytes != NULL && ((uintptr_t)bytes & TOP) != MARK) {
    ssize_t written = write(2, problem, sizeof problem - 1);
    (void)written;
    abort();
  }
  return (void *)((uintptr_t)bytes & ~TOP);
}

void *malloc(size_t size) { return marked(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return marked(__libc_calloc(count, size)); }
void *realloc(void *bytes, size_t size) { return marked(__libc_realloc(unmarked(bytes), size)); }
void free(void *bytes) { __libc_free(unmarked(bytes)); }
void *memalign(size_t alignment, size_t size) { return marked(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
  void *made = memalign(alignment, size);
  if (made == NULL)
    return ENOMEM;
  *block = made;
  return 0;
}

size_t malloc_usable_size(void *bytes) {
  static size_t (*real)(void *);
  if (real == NULL)
    *(void **)&real = dlsym(RTLD_NEXT, "malloc_usable_size");
  return real(unmarked(bytes));
}
