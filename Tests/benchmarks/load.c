/* Measures the cost of loading a library: the time of dlopen in a process that has loaded only the
 * C library, and the growth of resident memory. The library's dependencies (SQLite, libsodium and
 * so on, if not bundled) count too.
 *
 * load FILE | load FILE COUNT: the second also measures TDLib's smallest call, td_execute. */
#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kilobytes. */
static long resident(const char *what) {
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  long found = -1;
  while (file != NULL && found < 0 && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, what, strlen(what)) == 0)
      sscanf(line + strlen(what), "%ld", &found);
  if (file == NULL || found < 0)
    fail("smaps_rollup", what);
  fclose(file);
  return found;
}

int main(int count, char **arguments) {
  if (count < 2)
    return 64;
  resident("Rss:"); /* the first reading allocates memory itself */
  long all = resident("Rss:"), own = resident("Private_Dirty:");
  double start = now();
  void *library = dlopen(arguments[1], RTLD_NOW);
  double seconds = now() - start;
  if (library == NULL)
    fail("dlopen", dlerror());
  all = resident("Rss:") - all;
  own = resident("Private_Dirty:") - own;
  if (count > 2) {
    const char *(*execute)(const char *);
    *(void **)&execute = dlsym(library, "td_execute");
    if (execute == NULL)
      fail("td_execute", dlerror());
    static const char request[] = "{\"@type\":\"getLogVerbosityLevel\"}";
    execute("{\"@type\":\"setLogVerbosityLevel\",\"new_verbosity_level\":0}");
    for (long number = atol(arguments[2]); number > 0; number--) {
      double before = now();
      const char *reply = execute(request);
      sample(now() - before);
      if (strstr(reply, "logVerbosityLevel") == NULL)
        fail("td_execute", reply);
    }
  } else {
    sample(seconds);
  }
  report(all, own);
  return 0;
}
