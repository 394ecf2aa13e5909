/* What must hold after every call, whatever was called with whatever. A breach ends the process. */
#ifndef JUDGE_H
#define JUDGE_H

#include <holdfast.h>
#include <jansson.h>
#include <stdbool.h>

typedef int32_t operation(holdfast *, const char *, char **);

/* The script's line that is being run, for reports. */
extern const char *judge_line;
/* Whether every call and its reply are printed. */
extern bool judge_tells;

void judge_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Call an operation and judge its answer. The reply, which the caller releases, or NULL if the call
 * was refused. */
json_t *judge_ask(const char *name, operation *function, holdfast *handle, const char *request);
void judge_call(const char *name, operation *function, holdfast *handle, const char *request);
void judge_open(const char *config, const holdfast_keystore *store, holdfast **handle);

/* An operation from inside a callback is refused. */
void judge_reentry(void);

/* Nothing is left: no handle, no reply. */
void judge_nothing_left(void);

/* Log lines hold no secret. */
void judge_log(void *context, int32_t level, const char *line);

#endif
