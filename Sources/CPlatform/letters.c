/* What characters are, and of which letters and marks they consist. The system's own functions
 * depend on its version and locale; these depend on tables that are made from Unicode's data. */
#include "platform.h"

#include "letters.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
enum { PLANE = 0x10000 };

/* The last row of a sorted table that begins with this code or one before it; -1: there is none. */
static ptrdiff_t row_of(const uint16_t *table, size_t count, size_t width, uint32_t code) {
  size_t low = 0, high = count / width;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (table[middle * width] <= code)
      low = middle + 1;
    else
      high = middle;
  }
  return (ptrdiff_t)low - 1;
}

static bool is_in_run(const uint16_t *runs, size_t count, uint32_t code) {
  ptrdiff_t row = row_of(runs, count, 2, code);
  return row >= 0 && code <= runs[row * 2 + 1];
}

int platform_letter_kind(uint32_t character) {
#define IS_IN(runs) is_in_run(runs, COUNT(runs), character % PLANE)
  switch (character / PLANE) {
  case 0:
    if (character < 0x80)
      break;
    if (IS_IN(marks_0))
      return PLATFORM_MARK;
    if (IS_IN(unseens_0))
      return PLATFORM_UNSEEN;
    return IS_IN(gaps_0) ? PLATFORM_GAP : PLATFORM_LETTER;
  case 1:
    if (IS_IN(marks_1))
      return PLATFORM_MARK;
    return IS_IN(unseens_1) ? PLATFORM_UNSEEN : PLATFORM_LETTER;
  case 14: /* tags and variation selectors */
    return PLATFORM_UNSEEN;
  default:
    return PLATFORM_LETTER;
  }
#undef IS_IN
  bool is_letter = (character >= '0' && character <= '9') ||
                   ((character | 0x20) >= 'a' && (character | 0x20) <= 'z');
  if (is_letter)
    return PLATFORM_LETTER;
  return character == '\'' || character == '`' ? PLATFORM_UNSEEN : PLATFORM_GAP;
}

static uint32_t small_letter(uint32_t code) {
  uint32_t plane = code / PLANE;
  if (code < 0x80)
    return code >= 'A' && code <= 'Z' ? code + 32 : code;
  if (plane > 1)
    return code;
  const uint16_t *runs = plane == 0 ? capitals_0 : capitals_1;
  ptrdiff_t row = row_of(runs, plane == 0 ? COUNT(capitals_0) : COUNT(capitals_1), 4, code % PLANE);
  if (row < 0)
    return code;
  const uint16_t *run = runs + row * 4;
  uint32_t at = code % PLANE - run[0];
  bool is_capital = at % run[2] == 0 && at / run[2] < run[1];
  return is_capital ? plane * PLANE + (code + run[3]) % PLANE : code;
}

int platform_letter_parts(uint32_t character, uint32_t parts[PLATFORM_LETTER_PARTS]) {
  uint32_t last[PLATFORM_LETTER_PARTS]; /* second parts, the last one first */
  int count = 0, lasts = 0;
  if (character >= 0xAC00 && character < 0xAC00 + 11172) { /* a Hangul syllable */
    uint32_t syllable = character - 0xAC00;
    parts[0] = 0x1100 + syllable / 588;
    parts[1] = 0x1161 + syllable / 28 % 21;
    parts[2] = 0x11A7 + syllable % 28;
    return syllable % 28 == 0 ? 2 : 3;
  }
  while (character >= 0x80 && character < PLANE && lasts < PLATFORM_LETTER_PARTS - 1) {
    character = small_letter(character);
    ptrdiff_t row = row_of(part_codes, COUNT(part_codes), 1, character);
    if (row < 0 || part_codes[row] != character)
      break;
    character = part_firsts[row];
    if (part_seconds[row] != 0)
      last[lasts++] = seconds[part_seconds[row] - 1];
  }
  parts[count++] = small_letter(character);
  while (lasts > 0)
    parts[count++] = small_letter(last[--lasts]);
  return count;
}

uint32_t platform_letter_base(uint32_t letter) {
  if (letter < 0x80)
    return letter;
  ptrdiff_t row = letter < PLANE ? row_of(bases, COUNT(bases), 2, letter) : -1;
  return row >= 0 && bases[row * 2] == letter ? bases[row * 2 + 1] : letter;
}
