/* Starts arm64 programs by the emulator, as the kernel cannot: execl() puts HOLDFAST_EMULATOR in
 * front. Preload it. QEMU_SET_ENV of the emulator preloads it again in the program's children. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Children of this machine's own processor cannot load it. */
__attribute__((constructor)) static void leave_no_trace(void) { unsetenv("LD_PRELOAD"); }

int execl(const char *path, const char *first, ...) {
  enum { ROOM = 64 };
  char words[1024], *arguments[ROOM];
  int count = 0;
  const char *emulator = getenv("HOLDFAST_EMULATOR");
  snprintf(words, sizeof words, "%s", emulator == NULL ? "" : emulator);
  for (char *rest = NULL, *word = strtok_r(words, " ", &rest); word != NULL && count < 4;
       word = strtok_r(NULL, " ", &rest))
    arguments[count++] = word;
  char program[4096];
  ssize_t length = readlink(path, program, sizeof program - 1); /* /proc/self/exe */
  if (length >= 0)
    program[length] = 0;
  arguments[count++] = length >= 0 ? program : (char *)(uintptr_t)path;
  va_list list;
  va_start(list, first);
  while (count < ROOM - 1 && (arguments[count] = va_arg(list, char *)) != NULL)
    count++;
  va_end(list);
  arguments[count] = NULL;
  return execve(arguments[0], arguments, environ);
}
