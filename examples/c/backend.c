/* The tour's own access to the local backend: faults on demand, the log of requests, and the
 * database. See Tests/server/README.md. */
#define _GNU_SOURCE
#include "tour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

json_t *control(const setting *where, const char *method, const char *path, json_t *sent) {
  char *url = NULL;
  char *body = sent == NULL ? strdup("{}") : json_dumps(sent, JSON_COMPACT);
  json_decref(sent);
  if (body == NULL || asprintf(&url, "%s/_control%s", where->backend, path) < 0)
    abort();
  web_answer answer = web_request(method, url, body);
  json_t *reply = answer.status == 200 ? json_loads(answer.body, JSON_DECODE_ANY, NULL) : NULL;
  if (reply == NULL)
    note("%s %s returned %d %s", method, path, answer.status,
         answer.body == NULL ? "" : answer.body);
  web_answer_free(&answer);
  free(url);
  free(body);
  return reply;
}

/* ---- the database ---- */

/* The output of psql, or NULL when it fails or is missing. */
static char *ask_psql(const char *dsn, const char *sql) {
  int ends[2];
  if (pipe(ends) != 0)
    return NULL;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execlp("psql", "psql", "-X", "-q", "-A", "-t", "-c", sql, dsn, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  char *text = NULL, part[4096];
  size_t length = 0;
  FILE *collected = open_memstream(&text, &length);
  ssize_t got;
  while ((got = read(ends[0], part, sizeof part)) > 0)
    fwrite(part, 1, (size_t)got, collected);
  fclose(collected);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    free(text);
    return NULL;
  }
  if (length > 0 && text[length - 1] == '\n')
    text[length - 1] = 0;
  return text;
}

static char *ask_control_api(const setting *where, const char *sql) {
  json_t *rows = control(where, "POST", "/sql", json_pack("{s:s}", "query", sql));
  json_t *row = json_array_get(rows, 0);
  json_t *value = json_object_iter_value(json_object_iter(row));
  char *text = json_is_string(value)    ? strdup(json_string_value(value))
               : json_is_integer(value) ? json_dumps(value, JSON_ENCODE_ANY)
                                        : strdup("");
  json_decref(rows);
  return text;
}

bool has_psql(const setting *where) {
  char *text = where->dsn == NULL ? NULL : ask_psql(where->dsn, "select 'here'");
  bool answers = text != NULL && strcmp(text, "here") == 0;
  free(text);
  return answers;
}

char *query_value(const setting *where, const char *sql) {
  char *text = where->dsn == NULL ? NULL : ask_psql(where->dsn, sql);
  return text != NULL ? text : ask_control_api(where, sql);
}

/* ---- faults and the log of requests ---- */

void add_fault(const setting *where, const char *action, const char *method, const char *path,
               int times, int delay_after_ms) {
  json_t *match = json_pack("{s:s}", "path", path);
  if (method != NULL)
    json_object_set_new(match, "method", json_string(method));
  json_decref(control(where, "POST", "/faults",
                      json_pack("{s:o,s:s,s:i,s:i}", "match", match, "action", action, "times",
                                times, "delay_after_ms", delay_after_ms)));
}

void clear_faults(const setting *where) { json_decref(control(where, "DELETE", "/faults", NULL)); }

json_int_t fault_hits(const setting *where) {
  json_t *faults = control(where, "GET", "/faults", NULL);
  json_int_t hits = 0;
  for (size_t i = 0; i < json_array_size(faults); i++)
    hits += number_at(json_array_get(faults, i), "hits");
  json_decref(faults);
  return hits;
}

size_t requests_seen(const setting *where, const char *method, const char *path) {
  json_t *sent = json_pack("{s:s}", "path", path);
  if (method != NULL)
    json_object_set_new(sent, "method", json_string(method));
  json_t *entries = control(where, "GET", "/requests", sent);
  size_t count = json_array_size(entries);
  json_decref(entries);
  return count;
}

void forget_requests(const setting *where) {
  json_decref(control(where, "DELETE", "/requests", NULL));
}
