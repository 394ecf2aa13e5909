/* Memory for secrets, many small ones in few guarded regions.
 *
 * A region costs seven system calls and four pages; with one region per secret, the start of the
 * library would make eleven. A region is therefore one page of 4 kB, divided into 64 slots of 64
 * bytes, with one bit per slot in `used`. A secret takes the first run of free slots that is long
 * enough. A secret of more than 4 kB gets its own region. */
#include "platform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SLOT = 64, SLOTS = 64 }; /* SLOTS is the number of bits of `used` */

typedef struct region {
  struct region *next;
  unsigned char *start;
  uint64_t used;
} region;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static region *regions; /* empty regions are kept for the next secret */

static uint64_t mask_of(size_t slots) {
  return slots == SLOTS ? UINT64_MAX : (UINT64_C(1) << slots) - 1;
}

static void *take_from(region *it, size_t slots) {
  for (size_t at = 0; at + slots <= SLOTS; at++) {
    uint64_t wanted = mask_of(slots) << at;
    if ((it->used & wanted) == 0) {
      it->used |= wanted;
      return it->start + at * SLOT;
    }
  }
  return NULL;
}

void *platform_secret_take(size_t count, void *(*make)(size_t)) {
  size_t slots = (count + SLOT - 1) / SLOT;
  if (slots > SLOTS)
    return make(count);
  void *found = NULL;
  pthread_mutex_lock(&lock);
  for (region *it = regions; it != NULL && found == NULL; it = it->next)
    found = take_from(it, slots);
  if (found == NULL) {
    region *fresh = calloc(1, sizeof *fresh);
    unsigned char *start = fresh != NULL ? make(SLOT * SLOTS) : NULL;
    if (start != NULL) {
      *fresh = (region){.next = regions, .start = start};
      regions = fresh;
      found = take_from(fresh, slots);
    } else {
      free(fresh);
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

bool platform_secret_give(void *secret, size_t count) {
  size_t slots = (count + SLOT - 1) / SLOT;
  if (slots > SLOTS)
    return false;
  platform_zero(secret, count);
  pthread_mutex_lock(&lock);
  for (region *it = regions; it != NULL; it = it->next) {
    size_t offset = (size_t)((uintptr_t)secret - (uintptr_t)it->start);
    if (offset < SLOT * SLOTS) {
      it->used &= ~(mask_of(slots) << (offset / SLOT));
      break;
    }
  }
  pthread_mutex_unlock(&lock);
  return true;
}

static atomic_bool unlocked; /* some memory of secrets may be written to swap space */
static atomic_bool warned;

void platform_secret_not_locked(void) { atomic_store(&unlocked, true); }

bool platform_secret_warns(void) {
  enum { WARNING = 1 };
  return atomic_load(&unlocked) && platform_log_wants(WARNING) && !atomic_exchange(&warned, true);
}
