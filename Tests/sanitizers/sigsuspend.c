/* Preloaded into the unit tests under valgrind: valgrind 3.19 writes to the argument of
 * sigsuspend(), and libdispatch passes a mask in read-only memory. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask) {
  sigset_t copy = *mask;
  return (int)syscall(SYS_rt_sigsuspend, &copy, 8);
}
