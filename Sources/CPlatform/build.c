#include "platform.h"

#include <pthread.h>
#include <stdio.h>

/* The link of the bundled library defines this symbol (mk/embedded.mk); otherwise it is NULL. */
PLATFORM_HIDDEN extern const char platform_bundled[] __attribute__((weak));

static const char *flavour(void) {
  if (platform_bundled != NULL)
    return "bundled";
#ifdef HOLDFAST_EMBEDDED
  return "embedded";
#else
  return "runtime";
#endif
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[256];

const char *platform_build_info(const char *version, int32_t abi, const char *sqlite,
                                const char *libsodium, const char *jansson) {
  pthread_mutex_lock(&lock);
  if (text[0] == 0)
    snprintf(text, sizeof text,
             "{\"version\":\"%s\",\"abi\":%d,\"flavour\":\"%s\",\"sqlite\":\"%s\","
             "\"libsodium\":\"%s\",\"jansson\":\"%s\"}",
             version, (int)abi, flavour(), sqlite, libsodium, jansson);
  pthread_mutex_unlock(&lock);
  return text;
}
