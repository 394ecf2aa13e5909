/* The entry points of libFuzzer, and a mutator that works on lines. */
#include "judge.h"
#include "scene.h"
#include "script.h"

#include <string.h>

const char *__asan_default_options(void);
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second,
                                 size_t second_size, uint8_t *result, size_t max_size,
                                 unsigned seed);

/* Short allocation stacks and a small quarantine allow 50 % more runs. */
const char *__asan_default_options(void) { return "malloc_context_size=6:quarantine_size_mb=32"; }

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count;
  (void)arguments;
  scene_prepare();
  holdfast_log(3, judge_log, NULL);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  script_run(bytes, size);
  return 0;
}

static unsigned draw(unsigned *seed, size_t below) {
  *seed = *seed * 1103515245u + 12345u;
  return below == 0 ? 0 : (*seed >> 8) % (unsigned)below;
}

/* Return the n-th line with its newline. */
static const uint8_t *line_at(const uint8_t *bytes, size_t size, size_t number, size_t *length) {
  const uint8_t *at = bytes, *end = bytes + size;
  for (;; number--) {
    const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
    const uint8_t *next = stop == NULL ? end : stop + 1;
    if (number == 0 || next == end) {
      *length = (size_t)(next - at);
      return at;
    }
    at = next;
  }
}

static size_t count_lines(const uint8_t *bytes, size_t size) {
  size_t lines = 0;
  for (size_t at = 0; at < size; at++)
    lines += bytes[at] == '\n';
  return lines + (size > 0 && bytes[size - 1] != '\n');
}

/* Remove or copy a line, or mutate the bytes of one line or of the whole script. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
  size_t lines = count_lines(bytes, size), length = 0;
  if (lines == 0)
    return LLVMFuzzerMutate(bytes, size, max_size);
  size_t start =
      (size_t)(line_at(bytes, size, draw(&seed, lines), &length) - (const uint8_t *)bytes);
  uint8_t line[1 << 13];
  size_t after = start + length;
  switch (draw(&seed, 8)) {
  case 0:
    memmove(bytes + start, bytes + after, size - after);
    return size - length;
  case 1:
  case 2: {
    size_t ignored = 0, to = (size_t)(line_at(bytes, size, draw(&seed, lines), &ignored) - bytes);
    if (length > sizeof line || size + length > max_size)
      return LLVMFuzzerMutate(bytes, size, max_size);
    memcpy(line, bytes + start, length);
    memmove(bytes + to + length, bytes + to, size - to);
    memcpy(bytes + to, line, length);
    return size + length;
  }
  case 3:
    return LLVMFuzzerMutate(bytes, size, max_size);
  default: {
    if (length > sizeof line / 2)
      return LLVMFuzzerMutate(bytes, size, max_size);
    memcpy(line, bytes + start, length);
    size_t room = max_size - (size - length);
    size_t fresh = LLVMFuzzerMutate(line, length, room < sizeof line ? room : sizeof line);
    memmove(bytes + start + fresh, bytes + after, size - after);
    memcpy(bytes + start, line, fresh);
    return size - length + fresh;
  }
  }
}

/* Join the first script up to some line with the second from some line on. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second,
                                 size_t second_size, uint8_t *result, size_t max_size,
                                 unsigned seed) {
  size_t ignored = 0;
  size_t head =
      (size_t)(line_at(first, first_size, draw(&seed, count_lines(first, first_size)), &ignored) -
               first);
  const uint8_t *tail =
      line_at(second, second_size, draw(&seed, count_lines(second, second_size)), &ignored);
  size_t rest = second_size - (size_t)(tail - second);
  head = head < max_size ? head : max_size;
  rest = rest < max_size - head ? rest : max_size - head;
  memcpy(result, first, head);
  memcpy(result + head, tail, rest);
  return head + rest;
}
