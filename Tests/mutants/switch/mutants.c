/* HOLDFAST_MUTANTS names a file that the runner shares with every process of a test: the number of
 * the mutant that is on (0: none), and from byte 64 a byte for each mutant whose place was reached.
 */
#include "mutants.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 << 16, FLAGS = 64 };

static _Alignas(64) unsigned char unshared[SIZE];
static volatile unsigned char *shared = unshared;

__attribute__((constructor)) static void share(void) {
  const char *path = getenv("HOLDFAST_MUTANTS");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0)
    return;
  void *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED)
    shared = mapped;
}

bool holdfast_mutant(int32_t number) {
  shared[FLAGS + number] = 1;
  return *(const volatile int32_t *)shared == number;
}
