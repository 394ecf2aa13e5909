/* Searches data for many patterns in one pass.
 *
 * scan_make() sorts the patterns into buckets by a hash of their first four bytes; scan_find()
 * walks the data and compares only with the patterns of the bucket. Every pattern has at least
 * SCAN_LEAST bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_LEAST = 4, BUCKETS = 1 << 16 };

struct scan {
  const uint8_t *text;    /* the patterns, concatenated; owned by the caller */
  const uint64_t *edges;  /* where each starts, and the end of the last */
  int32_t heads[BUCKETS]; /* the first pattern of a bucket, or -1 */
  int32_t *next;          /* the next pattern in the same bucket, or -1 */
};

struct scan *scan_make(const uint8_t *text, const uint64_t *edges, int32_t count);
int64_t scan_find(const struct scan *scan, const uint8_t *data, uint64_t size, int32_t *found,
                  int64_t room);
void scan_free(struct scan *scan);

static uint32_t bucket(const uint8_t *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return (word * 2654435761u) >> 16;
}

struct scan *scan_make(const uint8_t *text, const uint64_t *edges, int32_t count) {
  struct scan *scan = malloc(sizeof *scan);
  if (scan == NULL)
    return NULL;
  scan->next = malloc(sizeof(int32_t) * (size_t)(count > 0 ? count : 1));
  if (scan->next == NULL) {
    free(scan);
    return NULL;
  }
  scan->text = text;
  scan->edges = edges;
  memset(scan->heads, 0xFF, sizeof scan->heads);
  for (int32_t index = 0; index < count; index++) {
    uint32_t place = bucket(text + edges[index]);
    scan->next[index] = scan->heads[place];
    scan->heads[place] = index;
  }
  return scan;
}

/* Writes the indices of the patterns in the data, at most `room`; an index may repeat.
 */
int64_t scan_find(const struct scan *scan, const uint8_t *data, uint64_t size, int32_t *found,
                  int64_t room) {
  int64_t finds = 0;
  for (uint64_t at = 0; at + SCAN_LEAST <= size && finds < room; at++) {
    for (int32_t index = scan->heads[bucket(data + at)]; index >= 0; index = scan->next[index]) {
      uint64_t length = scan->edges[index + 1] - scan->edges[index];
      if (length > size - at || memcmp(data + at, scan->text + scan->edges[index], length) != 0)
        continue;
      found[finds++] = index;
      if (finds == room)
        break;
    }
  }
  return finds;
}

void scan_free(struct scan *scan) {
  if (scan != NULL)
    free(scan->next);
  free(scan);
}
