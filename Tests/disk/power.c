/* Power cuts: play the day once and record it; then make every cut, in every way, and check. */
#include "disk.h"

#include <limits.h>
#include <stdio.h>

/* Random kinds of cuts are repeated with different seeds. */
static const int seeds[CUT_KINDS] = {
    [CUT_DROP] = 1, [CUT_WHOLE] = 1, [CUT_REORDER] = 2, [CUT_TEAR] = 3, [CUT_GARBLE] = 3};

static void play(const char *folder) {
  folder_make(folder);
  world it;
  world_begin(&it, folder);
  it.is_recorded = true;
  calls_watch(folder);
  trace_start(folder);
  for (int index = 0; index < day_chapters; index++) {
    trying("%s, without faults", day[index].name);
    day[index].play(&it);
  }
  trace_stop();
  calls_watch(NULL);
  world_end(&it);
}

static void check_cut(long cut, cut_kind kind, uint64_t seed, const char *folder) {
  static const world nothing = {.now = {.user = NOBODY, .org = NOBODY},
                                .next = {.user = NOBODY, .org = NOBODY},
                                .now_ms = 1795600000000};
  trying("power cut %ld, %s %d", cut, cut_name(kind), (int)seed);
  folder_remove(folder);
  folder_make(folder);
  trace_image(cut, kind, (uint64_t)cut << 8 | seed, folder);
  bool ended;
  long mark = trace_mark_at(cut, &ended);
  const world *at = mark < 0 ? &nothing : world_at(mark);
  if (mark >= 0 && ended)
    check_folder(folder, at, world_after(mark), world_after(mark));
  else
    check_folder(folder, at, &at->now, &at->next);
}

void power_run(const plan *how) {
  char live[PATH_MAX], image[PATH_MAX];
  snprintf(live, sizeof live, "%s/live", how->room);
  snprintf(image, sizeof image, "%s/image", how->room);
  play(live);
  long before = findings(), cuts = trace_cuts(), made = 0;
  for (long cut = 0; cut < cuts; cut++)
    for (int kind = 0; kind < CUT_KINDS; kind++)
      for (int seed = 0; seed < seeds[kind] * how->seeds; seed++, made++)
        check_cut(cut, kind, (uint64_t)seed, image);
  folder_remove(live);
  folder_remove(image);
  printf("reliability: power cuts (%ld moments of a day): %ld tried, %ld survived\n", cuts, made,
         made - (findings() - before));
}
