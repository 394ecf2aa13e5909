/* Folders and files: create, copy, remove, read, write. */
#define _GNU_SOURCE
#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void join(char path[PATH_MAX], const char *folder, const char *name) {
  if (snprintf(path, PATH_MAX, "%s%s%s", folder, *name != 0 ? "/" : "", name) >= PATH_MAX)
    die("a path is too long");
}

void folder_make(const char *path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST)
    die("%s: %s", path, strerror(errno));
}

static void each(const char *root, const char *relative, void (*visit)(const char *, bool, void *),
                 void *context) {
  char path[PATH_MAX];
  join(path, root, relative);
  DIR *folder = opendir(path);
  if (folder == NULL)
    die("%s: %s", path, strerror(errno));
  struct dirent *entry;
  while ((entry = readdir(folder)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    char below[PATH_MAX];
    if (*relative != 0)
      join(below, relative, entry->d_name);
    else
      join(below, entry->d_name, "");
    bool is_folder = entry->d_type == DT_DIR;
    visit(below, is_folder, context);
    if (is_folder)
      each(root, below, visit, context);
  }
  closedir(folder);
}

void folder_each(const char *path, void (*visit)(const char *, bool, void *), void *context) {
  each(path, "", visit, context);
}

void folder_remove(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL)
    return;
  struct dirent *entry;
  while ((entry = readdir(folder)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    char below[PATH_MAX];
    join(below, path, entry->d_name);
    if (entry->d_type == DT_DIR)
      folder_remove(below);
    else
      unlink(below);
  }
  closedir(folder);
  rmdir(path);
}

uint8_t *file_read(const char *path, size_t *count) {
  *count = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    return NULL;
  struct stat status;
  if (fstat(fileno(file), &status) != 0)
    die("%s: %s", path, strerror(errno));
  uint8_t *bytes = malloc((size_t)status.st_size + 1);
  if (bytes == NULL)
    die("no memory");
  *count = fread(bytes, 1, (size_t)status.st_size, file);
  fclose(file);
  return bytes;
}

void file_write(const char *path, const uint8_t *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
    die("%s: %s", path, strerror(errno));
  chmod(path, 0600);
}

typedef struct {
  const char *from, *to;
} copying;

static void copy(const char *relative, bool is_folder, void *context) {
  const copying *it = context;
  char from[PATH_MAX], to[PATH_MAX];
  join(from, it->from, relative);
  join(to, it->to, relative);
  if (is_folder) {
    folder_make(to);
    return;
  }
  size_t count;
  uint8_t *bytes = file_read(from, &count);
  if (bytes == NULL)
    die("%s: %s", from, strerror(errno));
  file_write(to, bytes, count);
  free(bytes);
}

void folder_damage(const char *folder) {
  char path[PATH_MAX];
  join(path, folder, "data/holdfast.db");
  size_t count;
  uint8_t *bytes = file_read(path, &count);
  if (bytes == NULL || count < 64)
    die("%s: no header", path);
  memset(bytes, 0xff, 64);
  file_write(path, bytes, count);
  free(bytes);
}

void folder_copy(const char *from, const char *to) {
  folder_make(to);
  copying both = {from, to};
  folder_each(from, copy, &both);
}
