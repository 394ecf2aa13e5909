/* disk power|faults|memory FOLDER [SEEDS [SHARE]]
 * disk replay FOLDER CHAPTER KIND AT ERRNO STAYS, with the numbers from a finding
 * Exits with 0 when no check failed. */
#define _GNU_SOURCE
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
  if (count < 3)
    die("usage: %s power|faults|memory FOLDER [SEEDS [SHARE]]", arguments[0]);
  plan how = {arguments[2], count > 3 ? atoi(arguments[3]) : 1, count > 4 ? atoi(arguments[4]) : 1};
  folder_remove(how.room);
  folder_make(how.room);
  memory_install();
  vfs_register();
  if (strcmp(arguments[1], "power") == 0)
    power_run(&how);
  else if (strcmp(arguments[1], "faults") == 0)
    faults_run(&how);
  else if (strcmp(arguments[1], "memory") == 0)
    memory_run(&how);
  else if (strcmp(arguments[1], "replay") == 0 && count == 8)
    replay_run(&how, atoi(arguments[3]),
               (fault){(op_kind)atoi(arguments[4]), atol(arguments[5]), atoi(arguments[6]),
                       atoi(arguments[7]) != 0});
  else
    die("no such part: %s", arguments[1]);
  if (findings() > 0)
    printf("%ld findings\n", findings());
  return findings() == 0 ? 0 : 1;
}
