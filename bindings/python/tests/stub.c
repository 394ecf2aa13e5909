/* A scripted library in place of the core: each operation returns what its request says, or echoes
 * it. */
#include "holdfast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t live = 0;
static holdfast_keystore store;
static holdfast_log_fn log_function = NULL;
static void *log_context = NULL;

static char *text(const char *value) {
  char *copy = malloc(strlen(value) + 1);
  __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return strcpy(copy, value);
}

const char *holdfast_version(void) { return "9.8.7"; }
int32_t holdfast_version_number(void) { return 9008007; }
const char *holdfast_build_info(void) { return "{\"version\":\"9.8.7\",\"abi\":1}"; }
int64_t holdfast_live_count(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }

void holdfast_free(void *reply) {
  if (reply == NULL)
    return;
  __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
  free(reply);
}

void holdfast_log(int32_t level, holdfast_log_fn fn, void *context) {
  log_function = fn;
  log_context = context;
  if (fn != NULL)
    fn(log_context, level, "hello");
}

int32_t holdfast_open(const char *config, const holdfast_keystore *keystore, holdfast **self,
                      char **reply) {
  (void)config;
  if (keystore != NULL)
    store = *keystore;
  if (keystore != NULL && keystore->size != sizeof(holdfast_keystore))
    return HOLDFAST_INTERNAL;
  *self = (holdfast *)(uintptr_t)42;
  *reply = text("{\"version\":\"9.8.7\",\"screen\":null}");
  return HOLDFAST_OK;
}

void holdfast_close(holdfast *self) { (void)self; }
int32_t holdfast_next(holdfast *self, int32_t what, int32_t timeout_ms, char **reply) {
  (void)self;
  (void)what;
  *reply = text("{\"wake_in_ms\":null}");
  return timeout_ms == 1 ? HOLDFAST_CLOSED : HOLDFAST_OK;
}
int32_t holdfast_wake_fd(holdfast *self, int32_t what) { return self == NULL ? -1 : what; }

/* Calls the key store: session_lock saves, session_unlock loads, others erase. */
static int32_t use_store(const char *name, char **reply) {
  uint8_t key[32] = {0};
  size_t length = 0;
  char line[128];
  int32_t answer = 0;
  if (strcmp(name, "session_lock") == 0) {
    memset(key, 7, sizeof key);
    answer = store.save(store.context, "device", key, sizeof key, HOLDFAST_PROTECT_DEVICE);
  } else if (strcmp(name, "session_unlock") == 0) {
    answer = store.load(store.context, "device", key, sizeof key, &length);
  } else {
    answer = store.erase(store.context, "device");
  }
  snprintf(line, sizeof line, "{\"answer\":%d,\"length\":%d,\"first\":%d}", (int)answer,
           (int)length, (int)key[0]);
  *reply = text(line);
  return HOLDFAST_OK;
}

static int32_t answer(const char *name, const char *request, char **reply) {
  char line[512];
  if (reply == NULL)
    return HOLDFAST_OK;
  if (strcmp(name, "session_lock") == 0 || strcmp(name, "session_unlock") == 0 ||
      strcmp(name, "session_logout") == 0)
    return use_store(name, reply);
  if (strcmp(name, "org_list") == 0)
    return HOLDFAST_NOMEM;
  if (strcmp(name, "queue_get") == 0) {
    *reply = text("{\"error\":{\"code\":\"queue.not_found\",\"message\":\"no such item\","
                  "\"field\":\"/id\",\"retryable\":false,\"detail\":{\"n\":1}}}");
    return HOLDFAST_NOT_FOUND;
  }
  snprintf(line, sizeof line, "{\"called\":\"%s\",\"request\":%s}", name,
           request == NULL ? "null" : request);
  *reply = text(line);
  return HOLDFAST_OK;
}

int32_t holdfast_call(holdfast *self, const char *operation, const char *request, char **reply) {
  (void)self;
  return answer(operation, request, reply);
}
