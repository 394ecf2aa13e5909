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
  int32_t answer; /* what the store says; HOLDFAST_KEY_* or anything */
  size_t length;  /* what it says of the length of a key that it gives */
  bool reenters;  /* whether it calls the library back, which is forbidden */
} scene_key;

typedef struct {
  char folder[SCENE_PATH];
  holdfast *handles[SCENE_HANDLES];
  json_t *requests[SCENE_HANDLES]; /* handed out and not answered */
  size_t current;
  scene_key device, biometric;
  int64_t monotonic_ms;
  int boots;
  server server;     /* its clock is right: the device's wall clock is this one */
  char item[37];     /* the id of the last item that was accepted */
  char state[128];   /* of the last sign-in in a browser */
  json_t *headers;   /* of the next answer */
  bool damaged;      /* the script has spoilt a file */
  int idle_polls;    /* one after the other that had nothing and asked for the next at once */
  char *last_upload; /* the body of the last upload, for what is stored */
} scene;

extern scene the_scene;

/* Where data folders are made: in memory if the machine has such a place. Once per process. */
void scene_prepare(void);
/* A scene in which nothing has happened yet, the same every time. */
void scene_begin(void);
/* Close and remove everything. */
void scene_end(void);

holdfast *scene_handle(void);
/* Open the current handle. `changes` are members of the configuration, or NULL. */
void scene_open(const char *changes);
void scene_open_raw(const char *config);
void scene_close(void);
/* What a death of the process leaves: the files as they are now, with everything closed. */
void scene_crash(void);

/* Tell the current handle the time. */
void scene_tell_time(void);

/* The key of this name, or NULL. */
scene_key *scene_find_key(const char *name);

/* Change a file of the closed folder. `hex` overwrites from `offset`; NULL cuts the file there. */
void scene_damage(const char *name, long offset, const char *hex);

#endif
