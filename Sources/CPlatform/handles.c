/* The table of handles.
 *
 * A handle is a value, not a pointer: the number of a slot and the slot's generation, which rises
 * whenever the slot is used again. A closed or invented handle does not match its slot and is
 * recognised without following it. Slots are allocated on first use and never released.
 *
 * A call enters its handle: it counts as a user, which keeps the object alive, and takes the
 * handle's lock if it is exclusive. Closing only marks the slot and wakes waiting threads. The last
 * user to leave (or the close, if there is none) receives the object and releases it. The table has
 * one mutex, which is held only briefly and never while a call waits or runs.
 *
 * A handle belongs to the process that made it. After fork() the child finds the process id changed
 * and is refused. A thread that enters a handle which it holds already, from a callback, is refused
 * too. */
#include "platform.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SLOT_BITS = 12, SLOT_COUNT = 1 << SLOT_BITS };

typedef struct {
  void *object;         /* NULL: the slot is free */
  uintptr_t generation; /* raised whenever the slot is used again */
  int users;            /* calls that have entered */
  bool closing;
  int descriptor;
  pid_t process;
  pthread_mutex_t exclusive; /* one lock per handle */
  pthread_t owner;           /* the thread that holds it, to recognise a call from a callback */
  bool owned;
} slot;

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static slot *slots[SLOT_COUNT]; /* allocated on first use, never released */

/* The lowest bit is set, so that no handle equals an aligned pointer. */
static uintptr_t value_of(size_t index, uintptr_t generation) {
  return (generation << (SLOT_BITS + 1)) | (uintptr_t)(index << 1) | 1;
}

/* The slot of a handle, or NULL. The table must be locked. */
static slot *find(uintptr_t handle) {
  if ((handle & 1) == 0)
    return NULL;
  size_t index = (handle >> 1) & (SLOT_COUNT - 1);
  slot *found = slots[index];
  if (found == NULL || found->object == NULL || value_of(index, found->generation) != handle)
    return NULL;
  return found;
}

/* Frees a closed slot that no call uses. Returns its object, or NULL. The table must be locked. */
static void *retire_if_unused(slot *it) {
  if (!it->closing || it->users > 0)
    return NULL;
  void *object = it->object;
  close(it->descriptor);
  it->object = NULL;
  platform_live_add(-1);
  return object;
}

/* The table is locked around fork(), so that the child does not inherit it in the middle of a
 * change. */
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
    (void)written; /* EAGAIN: the counter is full, so the descriptor is readable */
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
  (void)done; /* EAGAIN: the descriptor was in this state */
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
