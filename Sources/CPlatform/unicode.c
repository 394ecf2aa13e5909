/* The Unicode tables that Embedded Swift's strings ask for, left empty.
 *
 * The core compares text scalar by scalar (codes, ids and column names are ASCII) and folds names
 * itself (Base/Folding.swift); it never asks for canonical equivalence or grapheme clusters. The
 * toolchain's tables would be a tenth of the library. Ordinary Swift brings its own. */
#ifdef HOLDFAST_EMBEDDED

#include "platform.h"

/* Nothing decomposes: two strings are equal when their scalars are. */
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

/* Every scalar is a character of its own. */
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

#endif
