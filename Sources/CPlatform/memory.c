/* Memory: zeroing, allocation failures, and replies.
 *
 * The library must not leave secrets in freed memory. It is linked with --wrap=free, so that each
 * of its calls of free() goes to __wrap_free(), which zeroes the block first. jansson is inside the
 * library, hidden; its allocation functions are replaced by ones that zero on release and note a
 * failed allocation. A call of the API clears that note at its start and checks it before it
 * commits or replies. */
#define _GNU_SOURCE
#include "platform.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __APPLE__
#include <malloc/malloc.h>
static size_t block_size(const void *bytes) { return malloc_size(bytes); }
#else
#include <malloc.h>
static size_t block_size(void *bytes) { return malloc_usable_size(bytes); }
#endif

/* Not platform_zero(), which neither Android nor Apple has. The empty statement might read the
 * bytes, so the compiler cannot leave the zeros out. */
void platform_zero(void *bytes, size_t count) {
  if (count > 0)
    memset(bytes, 0, count);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

#if !defined(__BIONIC__) && !defined(__APPLE__)
#include <sys/random.h>

/* Swift's runtime calls this for hash seeds and random numbers. glibc has it only from 2.36 on;
 * this definition lets the library run with older versions. Android and Apple have always had it.
 */
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
#endif

#if defined(HOLDFAST_EMBEDDED) && defined(__aarch64__) && defined(__linux__)
/* From Android 11 on the heap marks its pointers: their top byte is 0xb4, which the processor
 * ignores and free() checks. Embedded Swift for bare arm64 keeps bits of its own in the upper half
 * of that byte, for example in String. So its blocks, which all come from posix_memalign(), are
 * handed to it without that half, and get it back before they go back to the heap. The lower half
 * stays as it is: the processor's memory tagging lives there. Where the heap marks nothing, as on
 * every other Linux, the mark is 0. */
enum { MARK_BIT = 60 };
#define MARK_MASK ((uintptr_t)15 << MARK_BIT)

/* One for all blocks: the heap has one mark, or none. */
static _Atomic(uintptr_t) heap_mark = 0;

/* Weak, like __real_free below. */
int __real_posix_memalign(void **block, size_t alignment, size_t size) __attribute__((weak));

PLATFORM_HIDDEN int __wrap_posix_memalign(void **block, size_t alignment, size_t size) {
  int result = __real_posix_memalign(block, alignment, size);
  uintptr_t address = result == 0 ? (uintptr_t)*block : 0;
  if ((address & MARK_MASK) != 0) {
    atomic_store_explicit(&heap_mark, address & MARK_MASK, memory_order_relaxed);
    *block = (void *)(address & ~MARK_MASK);
  }
  return result;
}

/* The pointer as the heap knows it: also for blocks of malloc(), which still have their mark. */
static void *with_mark(void *bytes) {
  return (void *)((uintptr_t)bytes | atomic_load_explicit(&heap_mark, memory_order_relaxed));
}
#else
static void *with_mark(void *bytes) { return bytes; }
#endif

#ifdef __APPLE__
static void plain_free(void *bytes) { malloc_zone_free(malloc_zone_from_ptr(bytes), bytes); }
#else
/* Weak, because unit tests are linked without --wrap=free. Not hidden, because in the static
 * archive it is the host's free(). */
void __real_free(void *bytes) __attribute__((weak));

/* Not inlined: in the archive this is the one place that calls the host's free() directly. */
__attribute__((noinline)) static void plain_free(void *bytes) {
  if (__real_free != NULL)
    __real_free(bytes);
  else
    free(bytes);
}
#endif

PLATFORM_HIDDEN void __wrap_free(void *bytes) {
  if (bytes == NULL)
    return;
  void *block = with_mark(bytes);
  platform_zero(block, block_size(block));
  plain_free(block);
}

#if defined(__APPLE__) && defined(HOLDFAST_EMBEDDED)
/* Apple's linker has no --wrap. It takes a function of this library before that of the system, for
 * this library's calls alone. */
PLATFORM_HIDDEN void free(void *bytes);
void free(void *bytes) { __wrap_free(bytes); }
#endif

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

/* What jansson's lexer gets from while the heap refuses it memory. The lexer does not check whether
 * it could save a character: one that is missing behind a backslash, or of a long number, ends the
 * process, and a missing quote lets it read on behind the text. It saves a token in a buffer that
 * doubles, so the room for all steps to the longest token is there before it begins. */
static _Thread_local struct {
  char *start, *next, *end;
  size_t largest;
} reserve;
enum { LEAST_BUFFER = 32, SLACK = 1024, ON_STACK = 4096 };

/* Only the lexer's buffer has such sizes again and again. What else has one may have it, too: the
 * caller looks at the note before it uses anything. */
static void *from_reserve(size_t size) {
  bool may_be_buffer = size >= LEAST_BUFFER && size <= reserve.largest && (size & (size - 1)) == 0;
  if (!may_be_buffer || size > (size_t)(reserve.end - reserve.next))
    return NULL;
  void *bytes = reserve.next;
  reserve.next += size;
  return bytes;
}

static void *allocate_or_note(size_t size) {
  void *bytes = malloc(size);
  if (bytes != NULL || size == 0)
    return bytes;
  exhausted = true;
  return from_reserve(size);
}

static void release(void *bytes) {
  uintptr_t address = (uintptr_t)bytes;
  if (address - (uintptr_t)reserve.start >= (uintptr_t)(reserve.end - reserve.start))
    __wrap_free(bytes);
}

static json_t *read_with(char *room, size_t size, size_t largest, const char *bytes, size_t count,
                         size_t flags, json_error_t *problem) {
  reserve.start = reserve.next = room;
  reserve.end = room + size;
  reserve.largest = largest;
  json_t *json = json_loadb(bytes, count, flags, problem);
  if (exhausted) {
    json_decref(json);
    json = NULL;
  }
  platform_zero(room, (size_t)(reserve.next - room));
  reserve.start = reserve.next = reserve.end = NULL;
  return json;
}

void *platform_read_json(const char *bytes, size_t count, size_t longest, size_t flags,
                         void *problem) {
  size_t largest = LEAST_BUFFER;
  while (largest <= longest + 2)
    largest *= 2;
  size_t size = 2 * largest + SLACK;
  if (size <= ON_STACK) {
    max_align_t room[ON_STACK / sizeof(max_align_t)];
    return read_with((char *)room, sizeof room, largest, bytes, count, flags, problem);
  }
  char *room = malloc(size);
  if (room == NULL) {
    exhausted = true;
    return NULL;
  }
  json_t *json = read_with(room, size, largest, bytes, count, flags, problem);
  plain_free(room);
  return json;
}

/* Not over another allocator: a SwiftPM build shares jansson with its host. */
void platform_install_allocator(void) {
  json_malloc_t allocate = NULL;
  json_free_t free_function = NULL;
  json_get_alloc_funcs(&allocate, &free_function);
  if (allocate == malloc)
    json_set_alloc_funcs(allocate_or_note, release);
}

/* Debian's archive of jansson is position-independent but for json_loadf(), which nothing calls and
 * which reads stdin. The linker gives it this instead (mk/library.mk). */
PLATFORM_HIDDEN void *platform_no_stdin = NULL;

/* ---- texts ---- */

int platform_text_reserve(size_t capacity, void *of) {
  platform_text *text = of;
  char *wider = malloc(capacity);
  if (wider == NULL)
    return -1;
  size_t kept = text->count;
  if (kept > 0)
    memcpy(wider, text->start, kept);
  platform_text_free(text);
  *text = (platform_text){.start = wider, .count = kept, .capacity = capacity};
  return 0;
}

/* Not inlined: a short piece then saves no registers. */
__attribute__((noinline)) static int widen(platform_text *text, size_t count) {
  size_t capacity = text->capacity == 0 ? 512 : text->capacity * 2;
  if (capacity < text->count + count)
    capacity = text->count + count;
  return platform_text_reserve(capacity, text);
}

int platform_text_append(const char *bytes, size_t count, void *of) {
  platform_text *text = of;
  if (text->capacity - text->count < count && widen(text, count) != 0)
    return -1;
  /* jansson writes each quote, colon and comma by itself. */
  if (count == 1)
    text->start[text->count] = *bytes;
  else if (count > 0)
    memcpy(text->start + text->count, bytes, count);
  text->count += count;
  return 0;
}

void platform_text_free(platform_text *text) {
  if (text->start != NULL) {
    platform_zero(text->start, text->count);
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
  platform_zero(block, sizeof *block + block->count + 1);
  free(block);
  platform_live_add(-1);
}

int64_t platform_live(void) { return atomic_load(&live); }
