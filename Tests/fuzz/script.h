/* The fuzzer's input: a script, one command per line. README.md has the commands. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stddef.h>
#include <stdint.h>

/* Run a script in a scene of its own. A violated promise aborts the process. */
void script_run(const uint8_t *bytes, size_t size);

#endif
