/* The table of handles.
 *
 * A handle is a value, not a pointer: the number of a slot and the slot's generation, which rises
 * whenever the slot is used again. A closed or invented handle does not match its slot and is
 * recognised without following it. Slots are allocated on first use and never released.
 *
 * A call enters its handle: it counts as a user, which keeps the object alive, and takes the
 * handle's lock if it is exclusive. Closing only marks the slot and wakes waiting threads. The last
 * user to leave (or the close, if there is none) receives the object and releases it. The table has
 * one mutex, which is held only briefly: never while a call runs or waits for another.
 *
 * A handle belongs to the process that made it. After fork() the child finds the process id changed
 * and is refused. A thread that enters a handle which it holds already, from a callback, is refused
 * too.
 *
 * Of the handles of one process on one folder, the one that has changed the data file raises the
 * descriptors of the others. (Across processes, see neighbours.c.) */
#define _GNU_SOURCE
#include "private.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOT_BITS = 12, SLOT_COUNT = 1 << SLOT_BITS };

typedef struct {
  void *object;         /* NULL: the slot is free */
  uintptr_t generation; /* raised whenever the slot is used again */
  int users;            /* calls that have entered */
  bool closing;
  bool disowned; /* a copy of a parent's handle whose connections are closed in this process */
  private_wake wakes[PLATFORM_READERS]; /* readable while that reader should ask */
  bool has_wake[PLATFORM_READERS];      /* made when it is first asked for */
  dev_t device;
  ino_t folder;
  bool told;   /* another handle of this process has changed the data since the last call began */
  int process; /* that made it: process_number() */
  pthread_mutex_t exclusive; /* one lock per handle */
  pthread_t owner;           /* the thread that holds it, to recognise a call from a callback */
  bool owned;
} slot;

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static slot *slots[SLOT_COUNT]; /* allocated on first use, never released */

/* A page that is 1 here and that a fork clears in the child, also one that runs no fork hooks. NULL
 * where the system has no such page. It tells without a system call that a fork made this process.
 */
static volatile char *unforked;

/* A number that differs from that of the process which a fork made this one from. The table must be
 * locked. */
static int process_number(void) {
  static int forks;
  if (unforked == NULL)
    return (int)getpid();
  if (*unforked == 0) {
    forks += 1;
    *unforked = 1;
  }
  return forks;
}

/* Whether the handle belongs to a parent process, whose handles a child must not touch. */
static bool is_inherited(const slot *it) { return it->process != process_number(); }

static void make_unforked(void) {
#ifdef MADV_WIPEONFORK
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return;
  }
  unforked = page;
  *unforked = 1;
#endif
}

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

/* ---- slots ---- */

/* Raises the descriptors of all readers. The table must be locked. */
static void raise_all(slot *it) {
  for (int reader = 0; reader < PLATFORM_READERS; reader++)
    if (it->has_wake[reader])
      private_wake_raise(&it->wakes[reader]);
}

/* Frees a closed slot that no call uses. Returns its object, or NULL. The table must be locked. */
static void *retire_if_unused(slot *it) {
  if (!it->closing || it->users > 0)
    return NULL;
  void *object = it->object;
  for (int reader = 0; reader < PLATFORM_READERS; reader++) {
    if (it->has_wake[reader])
      private_wake_close(&it->wakes[reader]);
    it->has_wake[reader] = false;
  }
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
  platform_log_after_fork(false);
  pthread_mutex_unlock(&table);
}

static void after_fork_in_child(void) {
  /* An emulator may leave the page as it is. */
  if (unforked != NULL)
    *unforked = 0;
  platform_log_after_fork(true);
  pthread_mutex_unlock(&table);
}

static pthread_once_t fork_hooks = PTHREAD_ONCE_INIT;
static void install_fork_hooks(void) {
  make_unforked();
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

uintptr_t platform_handle_new(void *object, const char *folder) {
  pthread_once(&fork_hooks, install_fork_hooks);
  struct stat status = {0};
  stat(folder, &status);
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
    it->disowned = false;
    it->told = false;
    it->device = status.st_dev;
    it->folder = status.st_ino;
    it->process = process_number();
    it->owned = false;
    handle = value_of(index, it->generation);
  }
  pthread_mutex_unlock(&table);
  if (handle != 0)
    platform_live_add(1);
  return handle;
}

bool platform_handles_disown(void (*disown)(void *object)) {
  bool all = true;
  pthread_mutex_lock(&table);
  for (size_t index = 0; index < SLOT_COUNT && slots[index] != NULL; index++) {
    slot *it = slots[index];
    if (it->object == NULL || it->disowned || !is_inherited(it))
      continue;
    /* Nobody knows in which state the other thread's call has left the connection. */
    if (it->owned) {
      all = false;
      continue;
    }
    it->disowned = true;
    disown(it->object);
  }
  pthread_mutex_unlock(&table);
  return all;
}

/* This thread is inside a function of a key store. */
static _Thread_local bool calls_back = false;

void platform_callback(bool begins) { calls_back = begins; }

bool platform_callback_runs(void) { return calls_back; }

platform_entry platform_handle_enter(uintptr_t handle, bool exclusive, void **object) {
  *object = NULL;
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it == NULL || it->closing) {
    pthread_mutex_unlock(&table);
    return PLATFORM_CLOSED;
  }
  if (is_inherited(it)) {
    pthread_mutex_unlock(&table);
    return PLATFORM_FORKED;
  }
  if (exclusive && (calls_back || (it->owned && pthread_equal(it->owner, pthread_self())))) {
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
    it->told = false;
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
  if (exclusive)
    it->owned = false;
  it->users -= 1;
  void *object = retire_if_unused(it);
  pthread_mutex_unlock(&table);
  /* After the table, which the thread that waits for this lock takes next. The slot stays. */
  if (exclusive)
    pthread_mutex_unlock(&it->exclusive);
  return object;
}

void *platform_handle_close(uintptr_t handle) {
  void *object = NULL;
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it != NULL && !it->closing && !is_inherited(it)) {
    it->closing = true;
    raise_all(it);
    object = retire_if_unused(it);
  }
  pthread_mutex_unlock(&table);
  return object;
}

int platform_handle_descriptor(uintptr_t handle, int reader) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  int descriptor = -1;
  if (it != NULL && !it->closing && !is_inherited(it)) {
    if (!it->has_wake[reader])
      it->has_wake[reader] = private_wake_make(&it->wakes[reader]);
    if (it->has_wake[reader])
      descriptor = it->wakes[reader].readable;
  }
  pthread_mutex_unlock(&table);
  return descriptor;
}

void platform_handle_tell(uintptr_t handle) {
  pthread_mutex_lock(&table);
  const slot *self = find(handle);
  for (size_t index = 0; self != NULL && index < SLOT_COUNT && slots[index] != NULL; index++) {
    slot *it = slots[index];
    if (it->object == NULL || it->closing || it == self || is_inherited(it) ||
        it->device != self->device || it->folder != self->folder)
      continue;
    it->told = true;
    raise_all(it);
  }
  pthread_mutex_unlock(&table);
}

void platform_handle_signal(uintptr_t handle, uint32_t readers) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  for (int reader = 0; it != NULL && !it->closing && reader < PLATFORM_READERS; reader++) {
    if (!it->has_wake[reader])
      continue;
    if ((readers >> reader & 1) != 0 || it->told)
      private_wake_raise(&it->wakes[reader]);
    else
      private_wake_lower(&it->wakes[reader]);
  }
  pthread_mutex_unlock(&table);
}

void platform_handle_wait(uintptr_t handle, int reader, int timeout_ms) {
  struct pollfd item = {.fd = platform_handle_descriptor(handle, reader), .events = POLLIN};
  if (item.fd >= 0)
    poll(&item, 1, timeout_ms);
}
