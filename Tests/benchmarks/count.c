/* A plugin of qemu's user-mode emulators: counts the instructions of one library during calls, as
 * check.py does with callgrind on this machine's own processor.
 *
 * qemu-aarch64 -plugin count.so,library=NAME,program=NAME,calls=OFFSET+OFFSET,result=FILE PROGRAM
 *
 * Counting begins where a thread enters one of the library's functions at these offsets, and ends
 * where it is back in the program. NAMEs are the ends of paths. The file gets the number. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is used of qemu-plugin.h, which Debian does not have as a package ---- */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void when_translated(uint64_t plugin, struct qemu_plugin_tb *block);
typedef void when_executed(unsigned thread, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, when_translated *function);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, when_executed *function,
                                          int registers, void *data);
void qemu_plugin_register_atexit_cb(uint64_t plugin, void (*function)(uint64_t, void *),
                                    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t at);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;

/* ---- the two files ---- */

typedef struct {
  const char *name;
  uintptr_t start, end; /* where it is in memory; 0: not yet */
} image;

static image library, program;

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), wanted = strlen(end);
  return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Files are mapped from their beginning to their end without anything between. */
static void find(image *wanted) {
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL)
    abort();
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long start, end;
    line[strcspn(line, "\n")] = 0;
    if (!ends_with(line, wanted->name) || sscanf(line, "%lx-%lx", &start, &end) != 2)
      continue;
    if (wanted->start == 0)
      wanted->start = start;
    wanted->end = end;
  }
  fclose(maps);
}

static bool is_in(image *one, uintptr_t address) {
  if (one->start == 0)
    find(one);
  return address >= one->start && address < one->end;
}

/* ---- counting ---- */

#define THREADS 64
#define CALLS 8

static uintptr_t calls[CALLS];
static int call_count;
static const char *result;
static bool counts[THREADS];
static atomic_ulong total, began;

/* How many instructions a block has; the first block of a call begins the count. */
#define BEGINS ((uintptr_t)1 << 32)

static void in_library(unsigned thread, void *data) {
  if (thread >= THREADS)
    abort();
  if (((uintptr_t)data & BEGINS) != 0) {
    counts[thread] = true;
    began += 1;
  }
  if (counts[thread])
    total += (uintptr_t)data & ~BEGINS;
}

static void in_program(unsigned thread, void *data) {
  (void)data;
  if (thread >= THREADS)
    abort();
  counts[thread] = false;
}

static void translated(uint64_t plugin, struct qemu_plugin_tb *block) {
  (void)plugin;
  uintptr_t address = (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0));
  uintptr_t length = qemu_plugin_tb_n_insns(block);
  if (is_in(&program, address)) {
    qemu_plugin_register_vcpu_tb_exec_cb(block, in_program, 0, NULL);
  } else if (is_in(&library, address)) {
    for (int at = 0; at < call_count; at++)
      if (address - library.start == calls[at])
        length |= BEGINS;
    qemu_plugin_register_vcpu_tb_exec_cb(block, in_library, 0, (void *)length);
  }
}

static void finished(uint64_t plugin, void *data) {
  (void)plugin;
  (void)data;
  FILE *file = fopen(result, "we");
  if (file == NULL || fprintf(file, "%lu %lu\n", total, began) < 0 || fclose(file) != 0)
    abort();
}

EXPORTED int qemu_plugin_install(uint64_t plugin, const void *emulator, int count, char **given) {
  (void)emulator;
  for (int at = 0; at < count; at++) {
    char *text = strchr(given[at], '=');
    if (text == NULL)
      return 1;
    *text++ = 0;
    text = strdup(text);
    if (strcmp(given[at], "library") == 0)
      library.name = text;
    else if (strcmp(given[at], "program") == 0)
      program.name = text;
    else if (strcmp(given[at], "result") == 0)
      result = text;
    else if (strcmp(given[at], "calls") == 0)
      for (char *one = strtok(text, "+"); one != NULL && call_count < CALLS;
           one = strtok(NULL, "+"))
        calls[call_count++] = strtoul(one, NULL, 0);
  }
  if (library.name == NULL || program.name == NULL || result == NULL || call_count == 0)
    return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  qemu_plugin_register_atexit_cb(plugin, finished, NULL);
  return 0;
}
