/* Runs a program COUNT times and measures each run from outside, from fork to exit. In C, because
 * Python's overhead would be in every figure.
 *
 * spawn COUNT PROGRAM ARGUMENT...
 * Prints a line for each run: its seconds, and its last line of output. */
#include "bench.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments) {
  if (count < 3)
    return 64;
  for (long number = atol(arguments[1]); number > 0; number--) {
    static char written[65536];
    int ends[2], status = 0;
    pid_t process;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) != 0)
      fail("pipe", NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    double start = now();
    if (posix_spawn(&process, arguments[2], &actions, NULL, arguments + 2, environ) != 0)
      fail(arguments[2], "cannot be started");
    close(ends[1]);
    size_t size = 0;
    for (ssize_t got; (got = read(ends[0], written + size, sizeof written - 1 - size)) > 0;)
      size += (size_t)got;
    waitpid(process, &status, 0);
    double seconds = now() - start;
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0)
      fail(arguments[2], "failed");
    while (size > 0 && written[size - 1] == '\n')
      size -= 1;
    written[size] = 0;
    char *line = strrchr(written, '\n');
    printf("%.9f %s\n", seconds, line == NULL ? written : line + 1);
  }
  return 0;
}
