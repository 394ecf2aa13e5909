/* A text that grows, and the words of a script that stand for something. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

typedef struct {
  char *bytes; /* NUL-terminated */
  size_t count, capacity;
} text;

void text_add(text *it, const char *bytes, size_t count);
/* A copy of `source` in which words such as @session stand for what they mean now. */
char *text_expand(const char *source);

#endif
