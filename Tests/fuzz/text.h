/* A growing text, and the expansion of words in a script. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

typedef struct {
  char *bytes; /* NUL-terminated */
  size_t count, capacity;
} text;

void text_add(text *it, const char *bytes, size_t count);
/* Return a copy of `source` in which words such as @session are replaced by their present value. */
char *text_expand(const char *source);

#endif
