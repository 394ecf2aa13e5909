/* Clocks and the id of the boot. */
#include "platform.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

static int64_t read_ms(clockid_t clock) {
  struct timespec now;
  if (clock_gettime(clock, &now) != 0)
    return 0;
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t platform_wall_ms(void) { return read_ms(CLOCK_REALTIME); }

int64_t platform_monotonic_ms(void) {
#ifdef CLOCK_BOOTTIME
  return read_ms(CLOCK_BOOTTIME);
#else
  return read_ms(CLOCK_MONOTONIC);
#endif
}

#ifdef __APPLE__
void platform_boot_id(char id[37]) {
  size_t size = 37;
  memset(id, 0, size);
  if (sysctlbyname("kern.bootsessionuuid", id, &size, NULL, 0) != 0)
    id[0] = 0;
}
#else
void platform_boot_id(char id[37]) {
  memset(id, 0, 37);
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == NULL)
    return;
  size_t length = fread(id, 1, 36, file);
  id[length] = 0;
  fclose(file);
}
#endif
