/* A key store for holdfast_open(), in place of a platform's keychain. */
#ifndef KEYCHAIN_H
#define KEYCHAIN_H

#include <holdfast.h>
#include <stdatomic.h>

typedef struct {
  char folder[4096]; /* outside the library's: a stolen data folder has no key */
  /* What the prompt has brought: HOLDFAST_KEY_OK releases the key "biometric". Set it for the time
   * of holdfast_session_unlock() alone; at all others it is HOLDFAST_KEY_CANCELLED. */
  _Atomic int32_t prompt;
} keychain;

/* `keys` must outlive the handle. */
holdfast_keystore keychain_store(keychain *keys);

#endif
