/* The switch of the mutants: part of the copied tree only, never of the library. */
#ifndef HOLDFAST_MUTANTS_H
#define HOLDFAST_MUTANTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the mutant of this number is on; notes that its place was reached. */
__attribute__((visibility("hidden"))) bool holdfast_mutant(int32_t number);

#endif
