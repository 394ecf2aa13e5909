/* Searches the bytes of every file for secrets, as a thief of the folder would. */
#define _GNU_SOURCE
#include "tour.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the secrets to search for ---- */

void needles_add_bytes(needles *all, const char *what, const void *bytes, size_t length) {
  needle *items = realloc(all->items, (all->count + 1) * sizeof *items);
  char *copy = malloc(length);
  if (items == NULL || copy == NULL)
    abort();
  memcpy(copy, bytes, length);
  all->items = items;
  items[all->count++] = (needle){.bytes = copy, .length = length, .what = strdup(what)};
}

/* Add a text as little-endian UTF-16. Only for the basic plane, which suffices for the names here.
 */
static void add_utf16(needles *all, const char *what, const char *text) {
  char wide[2048];
  size_t length = 0;
  for (const unsigned char *at = (const unsigned char *)text;
       *at != 0 && length + 2 < sizeof wide;) {
    unsigned point = *at++;
    int more = point >= 0xE0 ? 2 : point >= 0xC0 ? 1 : 0;
    point &= more == 2 ? 0x0F : more == 1 ? 0x1F : 0x7F;
    for (; more > 0 && *at != 0; more--)
      point = point << 6 | (*at++ & 0x3F);
    wide[length++] = (char)(point & 0xFF);
    wide[length++] = (char)(point >> 8);
  }
  needles_add_bytes(all, what, wide, length);
}

static bool as_uuid(const char *text, char hex[33]) {
  size_t length = 0;
  if (strlen(text) != 36)
    return false;
  for (; *text != 0; text++)
    if (*text != '-' && length < 32)
      hex[length++] = *text;
  hex[length] = 0;
  return length == 32 && strspn(hex, "0123456789abcdef") == 32;
}

void needles_add_text(needles *all, const char *what, const char *text) {
  char hex[33];
  if (*text == 0)
    return;
  needles_add_bytes(all, what, text, strlen(text));
  add_utf16(all, what, text);
  if (as_uuid(text, hex)) {
    unsigned char raw[16];
    for (int i = 0; i < 16; i++)
      sscanf(hex + 2 * i, "%2hhx", &raw[i]);
    needles_add_bytes(all, what, raw, sizeof raw);
    needles_add_bytes(all, what, hex, 32);
  }
}

void needles_free(needles *all) {
  for (size_t i = 0; i < all->count; i++) {
    free(all->items[i].bytes);
    free(all->items[i].what);
  }
  free(all->items);
  *all = (needles){0};
}

/* ---- the search ---- */

/* Global because nftw() passes no context to its callback. */
static const needles *wanted;
static bool telling;
static search_result found;

static char *read_whole(const char *path, size_t length) {
  FILE *file = fopen(path, "re");
  char *bytes = file == NULL ? NULL : malloc(length + 1);
  if (bytes != NULL && fread(bytes, 1, length, file) != length) {
    free(bytes);
    bytes = NULL;
  }
  if (file != NULL)
    fclose(file);
  return bytes;
}

static int search_file(const char *path, const struct stat *status, int kind, struct FTW *place) {
  if (kind != FTW_F)
    return 0;
  size_t length = (size_t)status->st_size;
  char *bytes = read_whole(path, length);
  if (bytes == NULL)
    return 0;
  found.files += 1;
  found.bytes += length;
  for (size_t i = 0; i < wanted->count; i++) {
    const needle *it = &wanted->items[i];
    if (memmem(bytes, length, it->bytes, it->length) == NULL)
      continue;
    found.hits += 1;
    if (telling)
      note("%s contains %s", path + place->base, it->what);
  }
  free(bytes);
  return 0;
}

search_result leaks_search(const char *folder, const needles *all, bool tell) {
  wanted = all;
  telling = tell;
  found = (search_result){0};
  nftw(folder, search_file, 16, FTW_PHYS);
  return found;
}
