/* Records every change below a folder, and computes the files that a power cut leaves.
 *
 * The model promises no more than POSIX does: a file's bytes are durable once the file was synced,
 * a name once its folder was synced. Any part of all other changes may be there, in any order.
 *
 * trace_image() replays the record up to the cut. A sync applies the pending changes that it covers
 * to `durable`; a failed sync discards them. The image is `durable` plus those pending changes, or
 * sectors of them, that the kind of cut and the seed select. */
#include "disk.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { WROTE, TRUNCATED, SYNCED, LOST, NAMED, UNNAMED, FOLDER, MARK } act_kind;

typedef struct {
  act_kind kind;
  bool moved, ended; /* NAMED: the old name was removed; MARK: the call has ended */
  int node;          /* the file, or the folder that was synced */
  int64_t at;        /* offset, length, or mark */
  size_t count;
  uint8_t *bytes;
  char *path, *from; /* relative to the folder */
} act;

enum { NODES = 4096, NAMES = 256, DESCRIPTORS = 4096 };

typedef struct {
  char *path;
  int node;
} name;

/* The names of the files; a node is the number of a file. */
typedef struct {
  name names[NAMES];
  int count;
} names;

static char root[PATH_MAX];
static bool recording;
static act *acts;
static size_t act_count, act_room;
static names live; /* as the running program sees them */
static int nodes;
static bool is_folder[NODES];
static int node_of[DESCRIPTORS];

/* For trace_image(): the durable files so far, and the acts that may still be lost. */
static struct {
  uint8_t *bytes;
  size_t count;
} durable[NODES];
static names durable_names;
static size_t replayed;
static size_t *pending, pending_count, pending_room;

static void *grown(void *array, size_t *room, size_t count, size_t size) {
  if (count < *room)
    return array;
  *room = *room == 0 ? 1024 : 2 * *room;
  array = realloc(array, *room * size);
  if (array == NULL)
    die("no memory");
  return array;
}

static char *copied(const char *text) {
  char *copy = text == NULL ? NULL : strdup(text);
  if (text != NULL && copy == NULL)
    die("no memory");
  return copy;
}

/* ---- names ---- */

static int find(const names *among, const char *path) {
  for (int index = 0; index < among->count; index++)
    if (strcmp(among->names[index].path, path) == 0)
      return index;
  return -1;
}

static void drop_name(names *among, const char *path) {
  int index = find(among, path);
  if (index < 0)
    return;
  free(among->names[index].path);
  among->names[index] = among->names[--among->count];
}

static void put_name(names *among, const char *path, int node) {
  drop_name(among, path);
  if (among->count == NAMES)
    die("too many files");
  among->names[among->count++] = (name){copied(path), node};
}

static void clear_names(names *among) {
  while (among->count > 0)
    drop_name(among, among->names[0].path);
}

static void copy_names(names *to, const names *from) {
  clear_names(to);
  for (int index = 0; index < from->count; index++)
    put_name(to, from->names[index].path, from->names[index].node);
}

static void folder_of(const char *path, char folder[PATH_MAX]) {
  snprintf(folder, PATH_MAX, "%s", path);
  char *slash = strrchr(folder, '/');
  *(slash != NULL ? slash : folder) = 0;
}

/* ---- recording ---- */

static const char *relative(const char *path) {
  const char *below = path + strlen(root);
  return *below == '/' ? below + 1 : below;
}

/* SQLite's -shm file is shared memory: it does not survive a power cut. */
static bool is_transient(const char *path) {
  size_t length = strlen(path);
  return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

static act *record(act_kind kind, int node) {
  acts = grown(acts, &act_room, act_count, sizeof *acts);
  acts[act_count] = (act){.kind = kind, .node = node};
  return &acts[act_count++];
}

static int new_node(void) {
  if (nodes == NODES)
    die("too many files");
  is_folder[nodes] = false;
  return nodes++;
}

static void know(const char *path, bool folder, void *context) {
  (void)context;
  if (is_transient(path))
    return;
  int node = new_node();
  put_name(&live, path, node);
  put_name(&durable_names, path, node);
  is_folder[node] = folder;
  if (folder)
    return;
  char whole[PATH_MAX * 2];
  snprintf(whole, sizeof whole, "%s/%s", root, path);
  durable[node].bytes = file_read(whole, &durable[node].count);
}

static void forget(void) {
  for (size_t index = 0; index < act_count; index++) {
    free(acts[index].bytes);
    free(acts[index].path);
    free(acts[index].from);
  }
  for (int node = 0; node < nodes; node++) {
    free(durable[node].bytes);
    durable[node].bytes = NULL;
    durable[node].count = 0;
  }
  act_count = replayed = pending_count = 0;
  nodes = 0;
  clear_names(&live);
  clear_names(&durable_names);
}

void trace_start(const char *folder) {
  forget();
  snprintf(root, sizeof root, "%s", folder);
  put_name(&live, "", new_node());
  put_name(&durable_names, "", 0);
  folder_each(folder, know, NULL);
  for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++)
    node_of[descriptor] = -1;
  recording = true;
}

void trace_stop(void) { recording = false; }

void trace_mark(long mark, bool ended) {
  if (!recording)
    return;
  act *it = record(MARK, -1);
  it->at = mark;
  it->ended = ended;
}

void trace_opened(int descriptor, const char *path, bool created) {
  node_of[descriptor] = -1;
  if (!recording || is_transient(path))
    return;
  if (created) {
    int node = new_node();
    put_name(&live, relative(path), node);
    record(NAMED, node)->path = copied(relative(path));
  }
  int index = find(&live, relative(path));
  node_of[descriptor] = index < 0 ? -1 : live.names[index].node;
}

void trace_closed(int descriptor) { node_of[descriptor] = -1; }

void trace_wrote(int descriptor, int64_t offset, const void *bytes, size_t count) {
  if (!recording || node_of[descriptor] < 0)
    return;
  act *it = record(WROTE, node_of[descriptor]);
  it->at = offset;
  it->count = count;
  it->bytes = malloc(count);
  if (it->bytes == NULL)
    die("no memory");
  memcpy(it->bytes, bytes, count);
}

void trace_truncated(int descriptor, int64_t length) {
  if (recording && node_of[descriptor] >= 0)
    record(TRUNCATED, node_of[descriptor])->at = length;
}

void trace_synced(int descriptor, bool done) {
  if (recording && node_of[descriptor] >= 0)
    record(done ? SYNCED : LOST, node_of[descriptor]);
}

void trace_named(const char *path, const char *from, bool moved) {
  if (!recording || is_transient(path))
    return;
  int index = find(&live, relative(from));
  int node = index < 0 ? -1 : live.names[index].node;
  act *it = record(NAMED, node);
  it->path = copied(relative(path));
  it->from = copied(relative(from));
  it->moved = moved;
  put_name(&live, it->path, node);
  if (moved)
    drop_name(&live, it->from);
}

void trace_unnamed(const char *path) {
  if (!recording || is_transient(path))
    return;
  record(UNNAMED, -1)->path = copied(relative(path));
  drop_name(&live, relative(path));
}

void trace_made_folder(const char *path) {
  if (!recording)
    return;
  int node = new_node();
  is_folder[node] = true;
  put_name(&live, relative(path), node);
  record(FOLDER, node)->path = copied(relative(path));
}

/* ---- cuts ---- */

/* The act before which the cut comes. */
static size_t place_of(long cut) {
  for (size_t index = 0; index < act_count; index++)
    if (acts[index].kind == SYNCED && cut-- == 0)
      return index;
  return act_count;
}

long trace_cuts(void) {
  long cuts = 1;
  for (size_t index = 0; index < act_count; index++)
    cuts += acts[index].kind == SYNCED;
  return cuts;
}

long trace_mark_at(long cut, bool *ended) {
  for (size_t index = place_of(cut); index-- > 0;)
    if (acts[index].kind == MARK) {
      *ended = acts[index].ended;
      return (long)acts[index].at;
    }
  *ended = false;
  return -1;
}

static void put_bytes(uint8_t **bytes, size_t *count, size_t at, const uint8_t *from,
                      size_t length) {
  if (at + length > *count) {
    *bytes = realloc(*bytes, at + length);
    if (*bytes == NULL)
      die("no memory");
    memset(*bytes + *count, 0, at + length - *count);
    *count = at + length;
  }
  memcpy(*bytes + at, from, length);
}

static void set_size(uint8_t **bytes, size_t *count, size_t size) {
  static const uint8_t zero;
  if (size > *count)
    put_bytes(bytes, count, size - 1, &zero, 1);
  *count = size;
}

static void apply_name(names *to, const act *it) {
  if (it->kind == UNNAMED) {
    drop_name(to, it->path);
    return;
  }
  put_name(to, it->path, it->node);
  if (it->moved)
    drop_name(to, it->from);
}

static void apply_whole(const act *it) {
  if (it->kind == WROTE)
    put_bytes(&durable[it->node].bytes, &durable[it->node].count, (size_t)it->at, it->bytes,
              it->count);
  else if (it->kind == TRUNCATED)
    set_size(&durable[it->node].bytes, &durable[it->node].count, (size_t)it->at);
  else
    apply_name(&durable_names, it);
}

/* Whether a sync covers an act: a change of the same file, or of a name in the synced folder. */
static bool covers(const act *sync, const act *it) {
  if (it->kind == WROTE || it->kind == TRUNCATED)
    return it->node == sync->node;
  char folder[PATH_MAX];
  folder_of(it->path, folder);
  return strcmp(folder, sync->path) == 0;
}

/* Replay the record up to `place`: synced acts become durable, the others are pending. */
static void replay(size_t place) {
  for (; replayed < place; replayed++) {
    act *it = &acts[replayed];
    if (it->kind == MARK)
      continue;
    if (it->kind != SYNCED && it->kind != LOST) {
      pending = grown(pending, &pending_room, pending_count, sizeof *pending);
      pending[pending_count++] = replayed;
      continue;
    }
    if (it->path == NULL) {
      /* Find the path of a synced folder. "\n" matches no folder: for files without a name. */
      const char *path = "\n";
      for (int index = 0; index < live.count; index++)
        if (live.names[index].node == it->node)
          path = live.names[index].path;
      it->path = copied(path);
    }
    size_t kept = 0;
    for (size_t index = 0; index < pending_count; index++) {
      const act *waiting = &acts[pending[index]];
      if (!covers(it, waiting))
        pending[kept++] = pending[index];
      else if (it->kind == SYNCED)
        apply_whole(waiting);
    }
    pending_count = kept;
  }
}

/* ---- images ---- */

static uint64_t state;

/* SplitMix64. */
static uint64_t word(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static bool coin(void) { return (word() & 1) != 0; }

const char *cut_name(cut_kind kind) {
  static const char *const names[CUT_KINDS] = {"drop", "whole", "reorder", "tear", "garble"};
  return names[kind];
}

/* Apply a write sector by sector: each stays old, becomes new, or becomes noise. Bytes outside of
 * the write stay intact: SQLite's "powersafe overwrite". */
static void apply_sectors(uint8_t **bytes, size_t *count, const act *it, cut_kind kind) {
  size_t sector = coin() ? 512 : 4096;
  size_t at = (size_t)it->at, done = 0;
  while (done < it->count) {
    size_t length = sector - (at + done) % sector;
    if (length > it->count - done)
      length = it->count - done;
    uint64_t lot = word() % (kind == CUT_GARBLE ? 3 : 2);
    if (lot == 1)
      put_bytes(bytes, count, at + done, it->bytes + done, length);
    if (lot == 2) {
      uint8_t noise[4096];
      for (size_t index = 0; index < length; index++)
        noise[index] = (uint8_t)word();
      put_bytes(bytes, count, at + done, noise, length);
    }
    done += length;
  }
}

static void write_image(const names *left, uint8_t **files, const size_t *sizes,
                        const char *folder) {
  char path[PATH_MAX], whole[PATH_MAX];
  /* A folder is older than its files, so it has a lower number. */
  for (int node = 1; node < nodes; node++)
    for (int index = 0; index < left->count; index++) {
      if (left->names[index].node != node)
        continue;
      snprintf(whole, sizeof whole, "%s/%s", folder, left->names[index].path);
      folder_of(whole, path);
      if (access(path, F_OK) != 0)
        continue; /* its folder was lost */
      if (is_folder[node])
        folder_make(whole);
      else
        file_write(whole, files[node], sizes[node]);
    }
}

void trace_image(long cut, cut_kind kind, uint64_t seed, const char *folder) {
  replay(place_of(cut));
  state = seed;
  uint8_t **files = calloc((size_t)nodes, sizeof *files);
  size_t *sizes = calloc((size_t)nodes, sizeof *sizes);
  if (files == NULL || sizes == NULL)
    die("no memory");
  for (int node = 0; node < nodes; node++)
    if (durable[node].count > 0)
      put_bytes(&files[node], &sizes[node], 0, durable[node].bytes, durable[node].count);
  names left = {0}, stuck = {0};
  copy_names(&left, &durable_names);
  for (size_t index = 0; index < pending_count; index++) {
    const act *it = &acts[pending[index]];
    bool takes = kind == CUT_WHOLE || (kind != CUT_DROP && coin());
    if (it->kind == WROTE && kind >= CUT_TEAR)
      apply_sectors(&files[it->node], &sizes[it->node], it, kind);
    else if (it->kind == WROTE && takes)
      put_bytes(&files[it->node], &sizes[it->node], (size_t)it->at, it->bytes, it->count);
    else if (it->kind == TRUNCATED && takes)
      set_size(&files[it->node], &sizes[it->node], (size_t)it->at);
    else if (it->path != NULL) {
      /* Changes of one name stay in order: after a lost one, all later ones are lost. */
      bool late = find(&stuck, it->path) >= 0 || (it->from != NULL && find(&stuck, it->from) >= 0);
      if (takes && !late) {
        apply_name(&left, it);
      } else {
        put_name(&stuck, it->path, 0);
        if (it->from != NULL)
          put_name(&stuck, it->from, 0);
      }
    }
  }
  write_image(&left, files, sizes, folder);
  for (int node = 0; node < nodes; node++)
    free(files[node]);
  free(files);
  free(sizes);
  clear_names(&left);
  clear_names(&stuck);
}
