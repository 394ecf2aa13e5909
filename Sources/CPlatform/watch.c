/* The watch for notices of other processes: one inotify instance for the whole process, because the
 * kernel limits their number and takes milliseconds to close one. Other systems than Linux have no
 * watch: a handle learns there what other processes did when its host polls. */
#define _GNU_SOURCE
#include "private.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef PLATFORM_LINUX
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

/* `ended` is always readable: it stands in for the descriptor of a closed handle, whose host may
 * have duplicated it. */
static struct {
  int inotify;
  private_wake ended;
} watch = {.inotify = -1, .ended = {.readable = -1, .writable = -1}};

void private_watch_close(void) {
  if (watch.inotify >= 0)
    close(watch.inotify);
  if (watch.ended.readable >= 0)
    private_wake_close(&watch.ended);
  watch.inotify = watch.ended.readable = -1;
}

int private_watch_add(const char *notice) {
  if (watch.inotify < 0)
    watch.inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  return watch.inotify < 0
             ? -1
             : inotify_add_watch(watch.inotify, notice, PLATFORM_NOTICED | IN_DONT_FOLLOW);
}

void private_watch_end(int number) { inotify_rm_watch(watch.inotify, number); }

/* The folder around what is at this path. Returns whether somebody with this user's rights could
 * move that: write the folder, or allow that. */
static bool can_be_moved(const char *path, struct stat *around) {
  const char *name = strrchr(path, '/');
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", name == NULL ? 1 : (int)(name - path) + (name == path),
           name == NULL ? "." : path);
  bool is_there = stat(folder, around) == 0;
  return access(folder, W_OK) == 0 || (is_there && around->st_uid == geteuid());
}

/* inotify answers with the same number for the same file. */
static bool has_place(const private_places *places, int number) {
  for (int at = 0; at < places->count; at++)
    if (places->numbers[at] == number)
      return true;
  return false;
}

/* Takes a folder or link on a path; `is_last`: it leads to the notice's folder, in which another
 * file may take its name and give it back. Returns whether to go on. */
typedef bool visitor(const char *part, bool is_last, void *context);

/* Visits all of them, also on the way that a link names. Returns false if a visit did. `is_notice`:
 * the path leads to the notice's folder. */
static bool visit_parts(const char *path, size_t length, visitor *visit, void *context,
                        bool is_notice, int links) {
  char part[PATH_MAX], target[PATH_MAX];
  if (length >= sizeof part || links > 4)
    return false;
  for (size_t end = 1; end <= length; end++) {
    if ((end < length && path[end] != '/') || path[end - 1] == '/')
      continue;
    snprintf(part, sizeof part, "%.*s", (int)end, path);
    bool is_last = is_notice && end == length;
    if (!visit(part, is_last, context))
      return false;
    ssize_t count = readlink(part, target, sizeof target - 1);
    if (count <= 0)
      continue;
    target[count] = 0;
    const char *name = strrchr(part, '/');
    size_t kept = target[0] == '/' || name == NULL ? 0 : (size_t)(name - part) + 1;
    if (kept + (size_t)count >= sizeof part)
      return false;
    memcpy(part + kept, target, (size_t)count + 1);
    if (!visit_parts(part, kept + (size_t)count, visit, context, is_last, links + 1))
      return false;
  }
  return true;
}

static bool watch_part(const char *part, bool is_last, void *context) {
  private_places *places = context;
  uint32_t events = IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW | IN_MASK_ADD;
  if (is_last)
    events |= IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
  int number =
      places->count == PRIVATE_PLACES ? -1 : inotify_add_watch(watch.inotify, part, events);
  struct stat around;
  if (number >= 0 && !has_place(places, number))
    places->numbers[places->count++] = number;
  return number >= 0 || !can_be_moved(part, &around);
}

void private_watch_path(const char *path, size_t length, private_places *places) {
  if (places->is_whole)
    places->is_whole = watch.inotify >= 0 && visit_parts(path, length, watch_part, places, true, 0);
}

struct platform_places {
  int count;
  /* Of each folder and link, and of the folder around it. */
  uint64_t own[2 * PRIVATE_PLACES], around[2 * PRIVATE_PLACES];
};

static uint64_t mark_of(const struct stat *it) {
  return ((uint64_t)private_changed(it) ^ (uint64_t)it->st_ino) * 0x100000001b3 ^ it->st_dev;
}

static bool note_part(const char *part, bool is_last, void *context) {
  (void)is_last;
  platform_places *places = context;
  struct stat own = {0}, around = {0};
  if (!can_be_moved(part, &around))
    return true;
  if (places->count == 2 * PRIVATE_PLACES)
    return false;
  lstat(part, &own);
  places->own[places->count] = mark_of(&own);
  places->around[places->count++] = mark_of(&around);
  return true;
}

static bool note(const char *folder, const char *given, platform_places *places) {
  return visit_parts(folder, strlen(folder), note_part, places, true, 0) &&
         visit_parts(given, strlen(given), note_part, places, true, 0);
}

platform_places *platform_places_note(const char *folder, const char *given) {
  platform_places *places = calloc(1, sizeof *places);
  if (places == NULL || note(folder, given, places))
    return places;
  free(places);
  return NULL;
}

bool platform_places_moved(const platform_places *since, const char *folder, const char *given) {
  platform_places now = {0};
  bool moved = since == NULL || !note(folder, given, &now) || now.count != since->count;
  for (int at = 0; !moved && at < now.count; at++)
    moved = now.own[at] != since->own[at] && now.around[at] != since->around[at];
  return moved;
}

/* What an event of the folder tells: -1: nothing. */
static int news_of_folder(const struct inotify_event *event) {
  if (strcmp(event->name, "holdfast.db") == 0)
    return PRIVATE_FILES;
  bool is_notice = strcmp(event->name, "holdfast.notice") == 0;
  return is_notice && (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 ? PRIVATE_MOVED : -1;
}

static private_news news_of(uint32_t events) {
  if ((events & IN_Q_OVERFLOW) != 0)
    return PRIVATE_LOST;
  if ((events & ~(uint32_t)(IN_ACCESS | IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE)) != 0)
    return PRIVATE_MOVED;
  return (events & IN_ATTRIB) != 0 ? PRIVATE_KEYS : PRIVATE_CHANGED;
}

void private_watch_read(private_hearer *hear, int own, bool keys) {
  if (watch.inotify < 0)
    return;
  _Alignas(struct inotify_event) char bytes[1024];
  ssize_t count;
  do {
    count = read(watch.inotify, bytes, sizeof bytes);
    for (ssize_t at = 0; at < count;) {
      const struct inotify_event *event = (const struct inotify_event *)(bytes + at);
      at += (ssize_t)(sizeof *event + event->len);
      int told = event->len > 0 ? news_of_folder(event) : (int)news_of(event->mask);
      if (told < 0)
        continue;
      private_news news = (private_news)told;
      if (event->wd != own || news >= PRIVATE_MOVED || (news == PRIVATE_KEYS && !keys))
        hear(event->wd, news);
    }
  } while (count > 0);
}

static bool add_to(int joined, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN};
  return epoll_ctl(joined, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int private_watch_join(const private_wake *raised) {
  if (watch.ended.readable < 0 && !private_wake_make(&watch.ended, true))
    return -1;
  int joined = epoll_create1(EPOLL_CLOEXEC);
  if (joined < 0 || (add_to(joined, raised->readable) && add_to(joined, watch.inotify)))
    return joined;
  close(joined);
  return -1;
}

void private_watch_leave(int joined) {
  add_to(joined, watch.ended.readable);
  close(joined);
}
#else
platform_places *platform_places_note(const char *folder, const char *given) {
  return (void)folder, (void)given, NULL;
}
bool platform_places_moved(const platform_places *since, const char *folder, const char *given) {
  return (void)since, (void)folder, (void)given, true;
}
void private_watch_close(void) {}
int private_watch_add(const char *notice) { return (void)notice, -1; }
void private_watch_path(const char *path, size_t length, private_places *places) {
  (void)path, (void)length;
  places->is_whole = false;
}
void private_watch_end(int number) { (void)number; }
void private_watch_read(private_hearer *hear, int own, bool keys) {
  (void)hear, (void)own, (void)keys;
}
int private_watch_join(const private_wake *raised) { return (void)raised, -1; }
void private_watch_leave(int joined) { (void)joined; }
#endif

void platform_places_free(platform_places *places) { free(places); }
