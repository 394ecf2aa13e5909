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
 * too.
 *
 * Handles on one folder tell each other about changes. In one process, the handle that changed the
 * data file raises the descriptors of the others. Across processes it writes to the folder's notice
 * file (notice.c), which inotify watches for every handle whose host waits: one watch for the whole
 * process, because the kernel limits their number and takes milliseconds to close one. Any handle
 * reads the watch, and raises the descriptors of the handles that it is for. */
#include "platform.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOT_BITS = 12, SLOT_COUNT = 1 << SLOT_BITS };

typedef struct {
  void *object;         /* NULL: the slot is free */
  uintptr_t generation; /* raised whenever the slot is used again */
  int users;            /* calls that have entered */
  bool closing;
  int raised; /* an eventfd: readable while the host should poll */
  int joined; /* an epoll of `raised` and the process's watch; -1 before the host waits */
  int notice; /* what the watch calls the folder's notice file */
  bool deaf;  /* there was no watch for this handle */
  dev_t device;
  ino_t folder;
  uint64_t heard; /* notices of other handles */
  int forks;      /* of the process, when the handle was made */
  pid_t process;
  pthread_mutex_t exclusive; /* one lock per handle */
  pthread_t owner;           /* the thread that holds it, to recognise a call from a callback */
  bool owned;
} slot;

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static slot *slots[SLOT_COUNT]; /* allocated on first use, never released */

/* How many forks made this process: a child must not touch its parent's handles. */
static int forks;

/* The watch of this process. `ended` is always readable: it stands in for the eventfd of a closed
 * handle, whose host may have duplicated the descriptor. */
static struct {
  int inotify;
  int ended;
} watch = {-1, -1};

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

/* ---- the watch: the table must be locked in all of this ---- */

static void close_watch(void) {
  if (watch.inotify >= 0)
    close(watch.inotify);
  if (watch.ended >= 0)
    close(watch.ended);
  watch.inotify = watch.ended = -1;
}

static bool make_watch(void) {
  if (watch.inotify >= 0)
    return true;
  watch.inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  watch.ended = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
  if (watch.inotify >= 0 && watch.ended >= 0)
    return true;
  close_watch();
  return false;
}

static bool add_to(int joined, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN};
  return epoll_ctl(joined, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

/* Raises the descriptors of the other handles on the folder of `self`, or of those whose notice
 * file the watch calls `notice` (-1: the watch has lost some, so all of them). */
static void tell(const slot *self, bool same_folder, int notice) {
  uint64_t one = 1;
  for (size_t index = 0; index < SLOT_COUNT && slots[index] != NULL; index++) {
    slot *it = slots[index];
    if (it->object == NULL || it->closing || it == self || it->forks != forks)
      continue;
    if (same_folder ? it->device != self->device || it->folder != self->folder
                    : it->joined < 0 || (notice >= 0 && it->notice != notice))
      continue;
    it->heard += 1;
    ssize_t written = write(it->raised, &one, sizeof one);
    (void)written; /* EAGAIN: the counter is full, so the descriptor is readable */
  }
}

static void read_watch(const slot *self) {
  if (watch.inotify < 0)
    return;
  _Alignas(struct inotify_event) char bytes[1024];
  ssize_t count;
  while ((count = read(watch.inotify, bytes, sizeof bytes)) > 0) {
    for (ssize_t at = 0; at < count;) {
      const struct inotify_event *event = (const struct inotify_event *)(bytes + at);
      tell(self, false, event->wd);
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
}

static void stop_listening(slot *it) {
  if (it->joined < 0)
    return;
  add_to(it->joined, watch.ended);
  close(it->joined);
  it->joined = -1;
  for (size_t index = 0; index < SLOT_COUNT && slots[index] != NULL; index++) {
    const slot *other = slots[index];
    if (other->object != NULL && other->joined >= 0 && other->notice == it->notice &&
        other->forks == it->forks)
      return;
  }
  inotify_rm_watch(watch.inotify, it->notice);
}

/* Frees a closed slot that no call uses. Returns its object, or NULL. The table must be locked. */
static void *retire_if_unused(slot *it) {
  if (!it->closing || it->users > 0)
    return NULL;
  void *object = it->object;
  stop_listening(it);
  close(it->raised);
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

/* The child has inherited the parent's watch, and must not read it. */
static void after_fork_in_child(void) {
  forks += 1;
  close_watch();
  after_fork();
}

static pthread_once_t fork_hooks = PTHREAD_ONCE_INIT;
static void install_fork_hooks(void) {
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

uintptr_t platform_handle_new(void *object, const char *folder) {
  pthread_once(&fork_hooks, install_fork_hooks);
  struct stat status = {0};
  stat(folder, &status);
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
    it->raised = descriptor;
    it->joined = -1;
    it->deaf = false;
    it->device = status.st_dev;
    it->folder = status.st_ino;
    it->forks = forks;
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
    ssize_t written = write(it->raised, &one, sizeof one);
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
  int descriptor = -1;
  if (it != NULL && !it->closing && it->process == getpid())
    descriptor = it->joined >= 0 ? it->joined : it->raised;
  pthread_mutex_unlock(&table);
  return descriptor;
}

bool platform_handle_listen(uintptr_t handle, const char *notice) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  /* A host may hold the descriptor, so it stays what it is. */
  if (it != NULL && !it->closing && it->joined < 0 && !it->deaf) {
    int joined = make_watch() ? epoll_create1(EPOLL_CLOEXEC) : -1;
    it->notice = joined < 0 ? -1 : inotify_add_watch(watch.inotify, notice, PLATFORM_NOTICED);
    if (it->notice >= 0 && add_to(joined, it->raised) && add_to(joined, watch.inotify))
      it->joined = joined;
    else if (joined >= 0)
      close(joined);
    it->deaf = it->joined < 0;
  }
  bool listens = it != NULL && it->joined >= 0;
  pthread_mutex_unlock(&table);
  return listens;
}

uint64_t platform_handle_hear(uintptr_t handle, bool changed) {
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  uint64_t heard = 0;
  if (it != NULL) {
    if (changed)
      tell(it, true, 0);
    read_watch(it);
    heard = it->heard;
  }
  pthread_mutex_unlock(&table);
  return heard;
}

void platform_handle_signal(uintptr_t handle, bool raised, uint64_t heard) {
  uint64_t count = 1;
  ssize_t done = 0;
  pthread_mutex_lock(&table);
  slot *it = find(handle);
  if (it != NULL && !it->closing)
    done = raised || it->heard != heard ? write(it->raised, &count, sizeof count)
                                        : read(it->raised, &count, sizeof count);
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
