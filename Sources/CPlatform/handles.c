/* Handles are values, not pointers: a slot number and the slot's generation. A table that never
 * moves maps them to objects, so that a closed or invented handle is recognised, not followed. */
#include "platform.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void platform_live_add(int by);

enum { SLOT_BITS = 12, SLOT_COUNT = 1 << SLOT_BITS };

typedef struct {
  void *object;         /* NULL: free */
  uintptr_t generation; /* raised by every use of the slot */
  int users;            /* calls inside */
  bool closing;
  int descriptor;
  pid_t process;
  pthread_mutex_t exclusive; /* one lock per handle */
  pthread_t owner;           /* who holds it: to recognise a call from a callback */
  bool owned;
} slot;

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static slot *slots[SLOT_COUNT]; /* made when first used, never released */

/* The low bit is set, so that no handle is a valid pointer to anything aligned. */
static uintptr_t value_of(size_t index, uintptr_t generation) {
  return (generation << (SLOT_BITS + 1)) | (uintptr_t)(index << 1) | 1;
}

/* The open slot of a handle, or NULL. Call with the table locked. */
static slot *find(uintptr_t handle) {
  if ((handle & 1) == 0)
    return NULL;
  size_t index = (handle >> 1) & (SLOT_COUNT - 1);
  slot *found = slots[index];
  if (found == NULL || found->object == NULL || value_of(index, found->generation) != handle)
    return NULL;
  return found;
}

static void *retire_if_unused(slot *it) {
  if (!it->closing || it->users > 0)
    return NULL;
  void *object = it->object;
  close(it->descriptor);
  it->object = NULL;
  platform_live_add(-1);
  return object;
}

/* A child must not inherit the table in the middle of a change. */
static void before_fork(void) {
  pthread_mutex_lock(&table);
  platform_log_before_fork();
}

static void after_fork(void) {
  platform_log_after_fork();
  pthread_mutex_unlock(&table);
}

static pthread_once_t fork_hooks = PTHREAD_ONCE_INIT;
static void install_fork_hooks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

uintptr_t platform_handle_new(void *object) {
  pthread_once(&fork_hooks, install_fork_hooks);
  int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0)
    return 0;
  uintptr_t handle = 0;
  pthread_mutex_lock(&table);
  for (size_t index = 0; index < SLOT_COUNT && handle == 0; index++) {
    if (slots[index] == NULL) {
      slots[index] = calloc(1, sizeof(slot));
      if (slots[index] == NULL)
        break;
      pthread_mutex_init(&slots[index]->exclusive, NULL);
    }
    slot *it = slots[index];
    if (it->object != NULL)
      continue;
    it->object = object;
    it->generation += 1;
    it->users = 0;
    it->closing = false;
    it->descriptor = descriptor;
    it->process = getpid();
    it->owned = false;
    handle = value_of(index, it->generation);
  }
  pthread_mutex_unlock(&table);
  if (handle == 0)
    close(descriptor);
  else
    platform_live_add(1);
  return handle;
}

platform_entry platform_handle_enter(uintptr_t handle, bool exclusive, void **object) {
  *object = NULL;
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it == NULL || it->closing) {
    pthread_mutex_unlock(&table);
    return PLATFORM_CLOSED;
  }
  if (it->process != getpid()) {
    pthread_mutex_unlock(&table);
    return PLATFORM_FORKED;
  }
  if (exclusive && it->owned && pthread_equal(it->owner, pthread_self())) {
    pthread_mutex_unlock(&table);
    return PLATFORM_REENTERED;
  }
  it->users += 1;
  pthread_mutex_unlock(&table);
  if (exclusive) {
    pthread_mutex_lock(&it->exclusive);
    pthread_mutex_lock(&table);
    it->owner = pthread_self();
    it->owned = true;
    pthread_mutex_unlock(&table);
  }
  *object = it->object;
  return PLATFORM_ENTERED;
}

void *platform_handle_leave(uintptr_t handle, bool exclusive) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it == NULL) {
    pthread_mutex_unlock(&table);
    return NULL;
  }
  if (exclusive) {
    it->owned = false;
    pthread_mutex_unlock(&it->exclusive);
  }
  it->users -= 1;
  void *object = retire_if_unused(it);
  pthread_mutex_unlock(&table);
  return object;
}

void *platform_handle_close(uintptr_t handle) {
  void *object = NULL;
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it != NULL && !it->closing && it->process == getpid()) {
    it->closing = true;
    uint64_t one = 1;
    ssize_t written = write(it->descriptor, &one, sizeof one);
    (void)written; /* a full counter is readable as well */
    object = retire_if_unused(it);
  }
  pthread_mutex_unlock(&table);
  return object;
}

bool platform_handle_open(uintptr_t handle) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  bool open = it != NULL && !it->closing;
  pthread_mutex_unlock(&table);
  return open;
}

int platform_handle_descriptor(uintptr_t handle) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  int descriptor = it != NULL && !it->closing && it->process == getpid() ? it->descriptor : -1;
  pthread_mutex_unlock(&table);
  return descriptor;
}

void platform_handle_signal(uintptr_t handle, bool raised) {
  uint64_t count = 1;
  ssize_t done = 0;
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it != NULL && !it->closing)
    done = raised ? write(it->descriptor, &count, sizeof count)
                  : read(it->descriptor, &count, sizeof count);
  (void)done; /* EAGAIN: it was so already */
  pthread_mutex_unlock(&table);
}

platform_entry platform_handle_wait(uintptr_t handle, int timeout_ms) {
  int descriptor = platform_handle_descriptor(handle);
  if (descriptor < 0)
    return PLATFORM_CLOSED;
  struct pollfd item = {.fd = descriptor, .events = POLLIN};
  poll(&item, 1, timeout_ms);
  return platform_handle_open(handle) ? PLATFORM_ENTERED : PLATFORM_CLOSED;
}
