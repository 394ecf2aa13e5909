/* The promises that must hold after every call with any input. A violation aborts the process. */
#ifndef JUDGE_H
#define JUDGE_H

#include <holdfast.h>
#include <jansson.h>
#include <stdbool.h>

typedef int32_t operation(holdfast *, const char *, char **);

/* The current line of the script, for reports. */
extern const char *judge_line;
/* Whether to print every call and its reply. */
extern bool judge_prints;

void judge_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Call an operation and check its result. Returns the reply, which the caller releases, or NULL if
 * the call failed. */
json_t *judge_ask(const char *name, operation *function, holdfast *handle, const char *request);
json_t *judge_next(holdfast *handle, int32_t what, int32_t timeout_ms);
void judge_call(const char *name, operation *function, holdfast *handle, const char *request);
void judge_open(const char *config, const holdfast_keystore *store, holdfast **handle);

/* Check that a call from inside a callback is refused. */
void judge_reentry(void);

/* Check that every handle and reply is freed. */
void judge_nothing_left(void);

/* A log callback: checks that lines contain no secret. */
void judge_log(void *context, int32_t level, const char *line);

#endif
