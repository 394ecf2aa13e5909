/* This process, and whether another one still runs. */
#define _GNU_SOURCE
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

int platform_process_id(void) { return (int)getpid(); }

#ifdef __APPLE__

/* In microseconds since 1970; 0: the system does not tell. */
static int64_t start_of(int process) {
  struct kinfo_proc found;
  size_t size = sizeof found;
  int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, process};
  if (sysctl(name, 4, &found, &size, NULL, 0) != 0 || size != sizeof found)
    return 0;
  return (int64_t)found.kp_proc.p_starttime.tv_sec * 1000000 + found.kp_proc.p_starttime.tv_usec;
}

#else

/* In clock ticks since the boot; 0: the system does not tell. */
static int64_t start_of(int process) {
  char path[64];
  char text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
  if (file >= 0)
    close(file);
  if (length < 0)
    return 0;
  text[length] = 0;
  /* The second field is the command in brackets, which may contain any character. Count the fields
   * from the last bracket. */
  char *at = strrchr(text, ')');
  for (int field = 2; at != NULL && field < 22; field++)
    at = strchr(at + 1, ' ');
  return at == NULL ? 0 : strtoll(at, NULL, 10);
}

#endif

int64_t platform_process_start(int process) {
  int64_t start = start_of(process);
  if (start != 0)
    return start;
  /* Without /proc, or where a sandbox hides processes: the system still tells which ones run. */
  return process > 0 && (kill(process, 0) == 0 || errno == EPERM) ? PLATFORM_START_UNKNOWN : 0;
}
