/* The operating system of the simulated devices, preloaded into the simulating process.
 *
 * Five answers of the operating system would make a run unrepeatable, or cannot differ between the
 * simulated processes of one real process: the time (while a handle is opened, before the manual
 * clock is set), the boot id, random bytes, the process id, and whether another process lives.
 * This file answers them with values from machine.py and passes every other call to the system. The
 * library under test is the one that is shipped.
 *
 * It also grants every record lock at once. The kernel never refuses one here: all simulated
 * processes are one real process, and the kernel refuses only locks of other processes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_PROCESS = 5000000, PROCESSES = 4096 };

static struct {
  int inside; /* a call into the library is in progress */
  int process;
  int64_t wall_ms, monotonic_ms;
  char boot[37];
  uint64_t random;
  unsigned char alive[PROCESSES];
} machine;

/* ---- set by machine.py ---- */

void machine_enter(int process, int64_t wall_ms, int64_t monotonic_ms, const char *boot) {
  machine.process = process;
  machine.wall_ms = wall_ms;
  machine.monotonic_ms = monotonic_ms;
  snprintf(machine.boot, sizeof machine.boot, "%s", boot);
  machine.inside = 1;
}

void machine_leave(void) { machine.inside = 0; }

void machine_seed(uint64_t seed) { machine.random = seed; }

/* A dead process has no entry in /proc. */
void machine_set_alive(int process, int alive) {
  machine.alive[(process - FIRST_PROCESS) % PROCESSES] = (unsigned char)alive;
}

/* ---- called by the library ---- */

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t next_random(void) {
  uint64_t z = (machine.random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void fill(void *bytes, size_t count) {
  unsigned char *at = bytes;
  while (count > 0) {
    uint64_t word = next_random();
    size_t part = count < sizeof word ? count : sizeof word;
    memcpy(at, &word, part);
    at += part;
    count -= part;
  }
}

/* Replaces libsodium's function, the only generator that the library calls. */
void randombytes_buf(void *const bytes, const size_t count) { fill(bytes, count); }

/* Swift's hash seed: constant, so that the order of hashed collections is the same in every run. */
ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
  if (!machine.inside)
    return syscall(SYS_getrandom, bytes, count, flags);
  memset(bytes, 0x5a, count);
  return (ssize_t)count;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!machine.inside || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME)) {
    if (real == NULL)
      real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
  }
  int64_t ms = clock == CLOCK_REALTIME ? machine.wall_ms : machine.monotonic_ms;
  now->tv_sec = ms / 1000;
  now->tv_nsec = ms % 1000 * 1000000;
  return 0;
}

/* SQLite's locks; see above. glibc has two names for the function. */
int fcntl64(int file, int command, ...) {
  static int (*real)(int, int, ...);
  va_list rest;
  va_start(rest, command);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (command == F_SETLK || command == F_SETLKW)
    return 0;
  if (real == NULL)
    real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64");
  return real(file, command, argument);
}

int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  return fcntl64(file, command, argument);
}

pid_t getpid(void) { return machine.inside ? machine.process : (pid_t)syscall(SYS_getpid); }

FILE *fopen(const char *path, const char *mode) {
  static FILE *(*real)(const char *, const char *);
  if (real == NULL)
    real = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
  if (machine.inside && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
    return fmemopen(machine.boot, strlen(machine.boot), "r");
  return real(path, mode);
}

/* The stat file of a simulated process: the 22nd field is its start time. */
static int open_process(int process) {
  if (!machine.alive[(process - FIRST_PROCESS) % PROCESSES])
    return -1;
  int file = memfd_create("stat", MFD_CLOEXEC);
  if (file >= 0)
    dprintf(file, "%d (sim) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d", process, process);
  return file;
}

int open(const char *path, int flags, ...) {
  int process;
  va_list rest;
  va_start(rest, flags);
  int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  if (machine.inside && sscanf(path, "/proc/%d/stat", &process) == 1 && process >= FIRST_PROCESS)
    return open_process(process);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
