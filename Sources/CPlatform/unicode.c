/* Empty replacements for the Unicode tables of Embedded Swift's strings.
 *
 * The core compares text scalar by scalar (codes, ids and column names are ASCII) and folds names
 * itself (Base/Folding.swift). It never needs canonical equivalence or grapheme clusters. The
 * toolchain's tables would be a tenth of the library. Ordinary Swift uses its own tables. */
#ifdef HOLDFAST_EMBEDDED

#include "platform.h"

/* No scalar decomposes: two strings are equal when their scalars are equal. */
PLATFORM_HIDDEN const uint8_t *const _swift_stdlib_nfd_decompositions = (const uint8_t *)"";

PLATFORM_HIDDEN uint16_t _swift_stdlib_getNormData(uint32_t scalar) {
  (void)scalar;
  return 0;
}

PLATFORM_HIDDEN uint32_t _swift_stdlib_getDecompositionEntry(uint32_t scalar) {
  (void)scalar;
  return UINT32_MAX;
}

PLATFORM_HIDDEN uint32_t _swift_stdlib_getComposition(uint32_t first, uint32_t second) {
  (void)first;
  (void)second;
  return UINT32_MAX;
}

/* Every scalar is a character. */
PLATFORM_HIDDEN uint8_t _swift_stdlib_getGraphemeBreakProperty(uint32_t scalar) {
  (void)scalar;
  return UINT8_MAX;
}

PLATFORM_HIDDEN bool _swift_stdlib_isExtendedPictographic(uint32_t scalar) {
  (void)scalar;
  return false;
}

PLATFORM_HIDDEN bool _swift_stdlib_isInCB_Consonant(uint32_t scalar) {
  (void)scalar;
  return false;
}

/* Replacements for functions of the standard library that this core never needs: strings of
 * Objective-C and of UTF-16, and canonical equivalence. The library's own definitions are weak, so
 * these take precedence, and the linker drops the code that only those used (a thirtieth of the
 * library). If a toolchain names the functions differently, it keeps its own. */
#ifdef __ELF__

#include <string.h>

/* _stringCompareFastUTF8Abnormal: compares two texts whose bytes differ and of which one is not
 * ASCII. */
PLATFORM_HIDDEN bool platform_compare_text(
    const uint8_t *left, intptr_t left_count, const uint8_t *right, intptr_t right_count,
    uint8_t less) __asm__("$es30_stringCompareFastUTF8Abnormal33_835F230159459CFFE280B5F8E69D8077LL"
                          "__9expectingSbSRys5UInt8VG_AFs23_StringComparisonResultOtF");

bool platform_compare_text(const uint8_t *left, intptr_t left_count, const uint8_t *right,
                           intptr_t right_count, uint8_t less) {
  int order = memcmp(left, right, (size_t)(left_count < right_count ? left_count : right_count));
  if (order == 0)
    order = left_count < right_count ? -1 : left_count > right_count;
  return less ? order < 0 : order == 0;
}

static void foreign_text(void) { __builtin_trap(); }

#define NEVER_CALLED(name, symbol)                                                                 \
  PLATFORM_HIDDEN void name(void) __asm__(symbol) __attribute__((alias("foreign_text")))

NEVER_CALLED(platform_no_1,
             "$es16_StringGutsSliceV7compare4with9expectingSbAB_s01_A16ComparisonResultOtF");
NEVER_CALLED(platform_no_2, "$es11_StringGutsV27_slowEnsureMatchingEncodingySS5IndexVAEF");
NEVER_CALLED(platform_no_3,
             "$es11_StringGutsV12_foreignGrow33_408A76AB043BD3EFBAB6FAAAAA9B4914LLyySiF");
NEVER_CALLED(
    platform_no_4,
    "$es11_StringGutsV24_foreignConvertedToSmall33_408A76AB043BD3EFBAB6FAAAAA9B4914LLs01_fA0VyF");
NEVER_CALLED(platform_no_5, "$es11_StringGutsV21_foreignAppendInPlace33_"
                            "408A76AB043BD3EFBAB6FAAAAA9B4914LLyys01_aB5SliceVF");
NEVER_CALLED(platform_no_6, "$eSS8UTF8ViewV16_foreignDistance4from2toSiSS5IndexV_AGtF");
NEVER_CALLED(platform_no_7, "$eSS8UTF8ViewV13_foreignCountSiyF");
NEVER_CALLED(platform_no_8, "$eSS8UTF8ViewV13_foreignIndex_8offsetBySS0D0VAF_SitF");
NEVER_CALLED(platform_no_9, "$eSS8UTF8ViewV13_foreignIndex_8offsetBy07limitedF0SS0D0VSgAG_SiAGtF");

#endif

#endif
