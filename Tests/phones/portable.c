/* Checks what the platform module uses on systems without eventfd and /proc: compiled with
 * PLATFORM_PORTABLE, on any system. `portable FOLDER`; a failed check names its line. */
#define _GNU_SOURCE
#include "platform.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(bool it, int line) {
  if (it)
    return;
  fprintf(stderr, "portable.c:%d: not so\n", line);
  exit(1);
}
#define EXPECT(it) expect(it, __LINE__)

static bool is_readable(int descriptor) {
  struct pollfd item = {.fd = descriptor, .events = POLLIN};
  return poll(&item, 1, 0) == 1;
}

static void *close_soon(void *handle) {
  usleep(50000);
  return platform_handle_close((uintptr_t)handle);
}

/* Takes news and requests. */
enum { READER = 3 };

static void check_signals(const char *folder) {
  static int object;
  uintptr_t handle = platform_handle_new(&object, folder);
  void *entered;
  EXPECT(handle != 0);
  EXPECT(platform_handle_enter(handle, true, &entered) == PLATFORM_ENTERED && entered == &object);
  int descriptor = platform_handle_descriptor(handle, READER);
  EXPECT((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  EXPECT((fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0);
  EXPECT(!is_readable(descriptor));
  /* Raised more often than a pipe holds, it is lowered at once. */
  for (int count = 0; count < 100000; count++)
    platform_handle_signal(handle, 1u << READER);
  EXPECT(is_readable(descriptor));
  platform_handle_signal(handle, 0);
  EXPECT(!is_readable(descriptor));
  EXPECT(platform_handle_leave(handle, true) == NULL);
  /* Another handle of this process raises it. */
  static int other_object;
  uintptr_t other = platform_handle_new(&other_object, folder);
  EXPECT(platform_handle_enter(other, true, &entered) == PLATFORM_ENTERED);
  platform_handle_tell(other);
  EXPECT(is_readable(descriptor));
  /* A call that began afterwards lowers it; one that was running does not. */
  EXPECT(platform_handle_enter(handle, true, &entered) == PLATFORM_ENTERED);
  platform_handle_signal(handle, 0);
  EXPECT(!is_readable(descriptor));
  platform_handle_tell(other);
  platform_handle_signal(handle, 0);
  EXPECT(is_readable(descriptor));
  EXPECT(platform_handle_leave(handle, true) == NULL);
  EXPECT(platform_handle_leave(other, true) == NULL);
  EXPECT(platform_handle_close(other) == &other_object);
  EXPECT(platform_handle_enter(handle, true, &entered) == PLATFORM_ENTERED);
  platform_handle_signal(handle, 0);
  EXPECT(!is_readable(descriptor));
  EXPECT(platform_handle_leave(handle, true) == NULL);
  /* The host's copy is readable after the close, and who waits wakes. */
  EXPECT(platform_handle_enter(handle, false, &entered) == PLATFORM_ENTERED);
  int copy = dup(descriptor);
  pthread_t closer;
  pthread_create(&closer, NULL, close_soon, (void *)handle);
  platform_handle_wait(handle, READER, 60000);
  EXPECT(platform_handle_enter(handle, false, &entered) == PLATFORM_CLOSED);
  pthread_join(closer, NULL);
  EXPECT(platform_handle_leave(handle, false) == &object);
  EXPECT(is_readable(copy));
  close(copy);
  EXPECT(platform_live() == 0);
}

/* Whether the system tells when a process began or not, a living one is told from a dead one. */
static void check_processes(void) {
  int64_t own = platform_process_start(platform_process_id());
  EXPECT(own != 0);
  EXPECT(own == platform_process_start(platform_process_id()));
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT(platform_process_start(child) != 0);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  EXPECT(platform_process_start(child) == 0);
  EXPECT(platform_process_start(0) == 0 && platform_process_start(-1) == 0);
}

int main(int count, char **arguments) {
  if (count != 2)
    return 64;
  check_signals(arguments[1]);
  check_processes();
  char id[37];
  platform_boot_id(id);
  printf("%d %zu\n", platform_process_start(platform_process_id()) == PLATFORM_START_UNKNOWN,
         strlen(id));
  return 0;
}
