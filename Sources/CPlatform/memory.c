/* Memory: zeroing, allocation failures, and replies.
 *
 * The library must not leave secrets in freed memory. It is linked with --wrap=free, so that each
 * of its calls of free() goes to __wrap_free(), which zeroes the block first. jansson may be shared
 * with the host; its allocation functions are replaced by ones that zero on release and note a
 * failed allocation. A call of the API clears that note at its start and checks it before it
 * commits or replies. */
#define _GNU_SOURCE
#include "platform.h"

#include <jansson.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void platform_zero(void *bytes, size_t count) { explicit_bzero(bytes, count); }

/* Swift's runtime calls this for hash seeds and random numbers. glibc has it only from 2.36 on;
 * this definition lets the library run with older versions. */
PLATFORM_HIDDEN void arc4random_buf(void *bytes, size_t count) {
  unsigned char *at = bytes;
  while (count > 0) {
    ssize_t got = getrandom(at, count, 0);
    if (got > 0) {
      at += got;
      count -= (size_t)got;
    }
  }
}

/* Weak, because unit tests are linked without --wrap=free. Not hidden, because in the static
 * archive it is the host's free(). */
void __real_free(void *bytes) __attribute__((weak));

static void plain_free(void *bytes) {
  if (__real_free != NULL)
    __real_free(bytes);
  else
    free(bytes);
}

PLATFORM_HIDDEN void __wrap_free(void *bytes) {
  if (bytes == NULL)
    return;
  explicit_bzero(bytes, malloc_usable_size(bytes));
  plain_free(bytes);
}

#ifdef HOLDFAST_EMBEDDED
/* Releases an object whose initialiser has failed. Embedded Swift's own function (6.3, weak)
 * releases the object's members but not its memory. Sufficient here because no class has a
 * superclass. */
PLATFORM_HIDDEN void swift_deallocPartialClassInstance(void *object, void *metadata, size_t size,
                                                       size_t align_mask);

void swift_deallocPartialClassInstance(void *object, void *metadata, size_t size,
                                       size_t align_mask) {
  (void)metadata;
  (void)size;
  (void)align_mask;
  free(object);
}
#endif

static _Thread_local bool exhausted = false;

bool platform_memory_exhausted(void) { return exhausted; }
void platform_memory_begin(void) { exhausted = false; }

/* The allocation function that our hook calls. */
static _Atomic(json_malloc_t) beneath = NULL;

static void *allocate_or_note(size_t size) {
  void *bytes = atomic_load(&beneath)(size);
  if (bytes == NULL && size > 0)
    exhausted = true;
  return bytes;
}

void platform_install_allocator(void) {
  json_malloc_t allocate = NULL;
  json_free_t release = NULL;
  json_free_t plain = __real_free != NULL ? __real_free : free;
  json_get_alloc_funcs(&allocate, &release);
  /* jansson's hook applies to the whole process. Over plain malloc and free it can be installed at
   * any time: __wrap_free also releases blocks that were allocated before, and free those allocated
   * since. A host's own allocator is wrapped only once, so that two copies of this library do not
   * wrap each other. */
  bool is_plain = allocate == malloc;
  json_malloc_t none = NULL;
  if (!is_plain && !atomic_compare_exchange_strong(&beneath, &none, allocate))
    return;
  atomic_store(&beneath, allocate);
  json_set_alloc_funcs(allocate_or_note, is_plain && release == plain ? __wrap_free : release);
}

/* ---- texts ---- */

int platform_text_append(const char *bytes, size_t count, void *of) {
  platform_text *text = of;
  if (text->capacity - text->count < count) {
    size_t capacity = text->capacity == 0 ? 512 : text->capacity * 2;
    if (capacity < text->count + count)
      capacity = text->count + count;
    char *wider = malloc(capacity);
    if (wider == NULL)
      return -1;
    size_t kept = text->count;
    if (kept > 0)
      memcpy(wider, text->start, kept);
    platform_text_free(text);
    *text = (platform_text){.start = wider, .count = kept, .capacity = capacity};
  }
  memcpy(text->start + text->count, bytes, count);
  text->count += count;
  return 0;
}

void platform_text_free(platform_text *text) {
  if (text->start != NULL) {
    explicit_bzero(text->start, text->count);
    free(text->start);
  }
  *text = (platform_text){0};
}

/* ---- replies ---- */

typedef struct {
  size_t count;
  max_align_t bytes[];
} reply_block;

static atomic_llong live = 0;

void platform_live_add(int by) { atomic_fetch_add(&live, by); }

char *platform_reply(const char *bytes, size_t count) {
  reply_block *block = malloc(sizeof *block + count + 1);
  if (block == NULL)
    return NULL;
  block->count = count;
  char *text = (char *)block->bytes;
  memcpy(text, bytes, count);
  text[count] = 0;
  platform_live_add(1);
  return text;
}

void platform_reply_free(void *reply) {
  if (reply == NULL)
    return;
  reply_block *block = (reply_block *)((char *)reply - offsetof(reply_block, bytes));
  explicit_bzero(block, sizeof *block + block->count + 1);
  free(block);
  platform_live_add(-1);
}

int64_t platform_live(void) { return atomic_load(&live); }
