/* A host that stores nothing: it calls library functions by name for its parent and zeroes its
 * buffers.
 *
 * Usage: host LIBRARY [STACK]. Per call on standard input: u32 size, "name\0request"; on standard
 * output: i32 status, u32 size, reply. "live" answers with holdfast_live_count() as its status;
 * "exit" ends. With STACK, the calls run on a thread with a stack of so many bytes, and "stack"
 * answers with how many of them were used. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "holdfast.h"

typedef int32_t operation(holdfast *, const char *, char **);

static char buffer[1 << 25];
static holdfast *handle;
static void *library;

static void wipe(void *data, size_t size) {
  volatile char *place = data;
  while (size-- > 0)
    *place++ = 0;
}

static int transfer(int output, char *data, size_t size) {
  while (size > 0) {
    ssize_t done = output ? write(1, data, size) : read(0, data, size);
    if (done <= 0)
      return -1;
    data += done;
    size -= (size_t)done;
  }
  return 0;
}

static unsigned char *stack;
static size_t stack_size;
enum { UNUSED = 0xA5, GUARD = 1 << 16 };

/* A stack grows down, so its unused bytes are the first ones. */
static int32_t stack_used(void) {
  size_t at = 0;
  while (at < stack_size && stack[at] == UNUSED)
    at++;
  return (int32_t)(stack_size - at);
}

static void *symbol(const char *name) {
  char full[80];
  snprintf(full, sizeof full, "holdfast_%s", name);
  return dlsym(library, full);
}

static int serve(void) {
  uint32_t size;
  void (*release)(void *) = (void (*)(void *))symbol("free");
  while (transfer(0, (char *)&size, sizeof size) == 0 && size < sizeof buffer - 1) {
    char *reply = NULL;
    int32_t status = HOLDFAST_INTERNAL;
    if (transfer(0, buffer, size) != 0)
      return 3;
    buffer[size] = 0;
    const char *name = buffer, *request = buffer + strlen(buffer) + 1;
    if (strcmp(name, "exit") == 0)
      return 0;
    if (strcmp(name, "open") == 0) {
      int32_t (*open)(const char *, const holdfast_keystore *, holdfast **, char **) =
          (int32_t(*)(const char *, const holdfast_keystore *, holdfast **, char **))symbol(name);
      status = open(request, NULL, &handle, &reply);
    } else if (strcmp(name, "close") == 0) {
      ((void (*)(holdfast *))symbol(name))(handle);
      status = HOLDFAST_OK;
    } else if (strcmp(name, "live") == 0) {
      status = (int32_t)((int64_t(*)(void))symbol("live_count"))();
    } else if (strcmp(name, "stack") == 0) {
      status = stack_used();
    } else if (strcmp(name, "next") == 0) {
      int what = 0, timeout_ms = 0;
      if (sscanf(request, "%d %d", &what, &timeout_ms) != 2)
        return 5;
      int32_t (*next)(holdfast *, int32_t, int32_t, char **) =
          (int32_t(*)(holdfast *, int32_t, int32_t, char **))symbol(name);
      status = next(handle, what, timeout_ms, &reply);
    } else if (symbol(name) != NULL) {
      status = ((operation *)symbol(name))(handle, request, &reply);
    }
    wipe(buffer, size);
    size = reply == NULL ? 0 : (uint32_t)strlen(reply);
    if (transfer(1, (char *)&status, sizeof status) != 0)
      return 4;
    if (transfer(1, (char *)&size, sizeof size) != 0 || transfer(1, reply, size) != 0)
      return 4;
    release(reply);
  }
  return 0;
}

static void *serve_on_stack(void *unused) {
  (void)unused;
  exit(serve());
}

int main(int count, char **arguments) {
  library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (library == NULL)
    return 2;
  if (count < 3)
    return serve();
  stack_size = (size_t)atol(arguments[2]);
  int how = MAP_PRIVATE | MAP_ANONYMOUS;
  stack = mmap(NULL, stack_size + GUARD, PROT_READ | PROT_WRITE, how, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, GUARD, PROT_NONE) != 0)
    return 5;
  stack += GUARD;
  memset(stack, UNUSED, stack_size);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, stack_size) != 0 ||
      pthread_create(&thread, &attributes, serve_on_stack, NULL) != 0)
    return 6;
  pthread_join(thread, NULL);
  return 0;
}
