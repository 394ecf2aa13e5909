/* One run of the fuzzer: a data folder, its key store, a clock, and up to two handles on it. */
#ifndef SCENE_H
#define SCENE_H

#include "server.h"

#include <holdfast.h>
#include <jansson.h>
#include <stdbool.h>

enum { SCENE_HANDLES = 2, SCENE_PATH = 512 };

typedef struct {
  bool present;
  uint8_t bytes[32];
  int32_t answer; /* the store's status: HOLDFAST_KEY_* or any number */
  size_t length;  /* the length that `load` reports */
  bool reenters;  /* the store calls the library back, which is forbidden */
} scene_key;

typedef struct {
  char folder[SCENE_PATH];
  holdfast *handles[SCENE_HANDLES];
  json_t *requests[SCENE_HANDLES]; /* not answered yet */
  size_t current;
  scene_key device, session, biometric;
  int64_t monotonic_ms;
  int boots;
  server server;     /* its clock is also the device's wall clock */
  char item[37];     /* the id of the last accepted item */
  char nonce[128];   /* the nonce of the last sign-in by identity token */
  json_t *headers;   /* the headers of the next answer */
  bool damaged;      /* the script has damaged a file */
  int idle_turns;    /* how often in a row next gave nothing and wake_in_ms 0 */
  char *last_upload; /* the body of the last upload, for @stored */
} scene;

extern scene the_scene;

/* Choose the place of data folders, in memory if possible. Once per process. */
void scene_prepare(void);
/* Begin a new scene, the same every time. */
void scene_begin(void);
/* Close and remove everything. */
void scene_end(void);

holdfast *scene_handle(void);
/* Open the current handle. `changes` are members of the configuration, or NULL. */
void scene_open(const char *changes);
void scene_open_raw(const char *config);
void scene_close(void);
/* Simulate the death of the process: close everything, but keep the files as they are now. */
void scene_crash(void);

/* Tell the current handle the time. */
void scene_tell_time(void);

/* The key of this name, or NULL. */
scene_key *scene_find_key(const char *name);

/* Damage a file of the closed folder: `hex` overwrites from `offset`; NULL cuts the file there. */
void scene_damage(const char *name, long offset, const char *hex);

#endif
