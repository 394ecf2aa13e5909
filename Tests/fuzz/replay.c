/* Runs scripts one after another without libFuzzer: against the shipped library, under valgrind, or
 * under a sanitizer. `replay [-v] SCRIPT...`; -v prints every call with its reply. A violated
 * promise aborts the process. */
#include "judge.h"
#include "scene.h"
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
  scene_prepare();
  holdfast_log(3, judge_log, NULL);
  judge_prints = count > 1 && strcmp(arguments[1], "-v") == 0;
  int first = judge_prints ? 2 : 1;
  for (int at = first; at < count; at++) {
    FILE *file = fopen(arguments[at], "rb");
    static uint8_t script[1 << 20];
    size_t size = file == NULL ? 0 : fread(script, 1, sizeof script, file);
    if (file == NULL || ferror(file)) {
      perror(arguments[at]);
      return EXIT_FAILURE;
    }
    fclose(file);
    script_run(script, size);
  }
  printf("%d scripts replayed\n", count - first);
  return EXIT_SUCCESS;
}
