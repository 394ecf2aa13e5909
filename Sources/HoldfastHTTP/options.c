/* Reads the options of holdfast_http_start(). */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One option: its name, its range, and the address of its value: a number, a text or a flag. */
typedef struct {
  const char *name;
  long *number;
  long least, most;
  char **text;
  bool may_be_null;
  bool *flag;
} option;

static int32_t read_option(const option *known, size_t count, const char *name,
                           const json_t *value) {
  for (size_t i = 0; i < count; i++) {
    const option *it = &known[i];
    if (strcmp(it->name, name) != 0)
      continue;
    if (it->number != NULL) {
      json_int_t number = json_integer_value(value);
      if (!json_is_integer(value) || number < it->least || number > it->most)
        return HOLDFAST_INVALID;
      *it->number = (long)number;
      return HOLDFAST_OK;
    }
    if (it->flag != NULL) {
      if (!json_is_boolean(value))
        return HOLDFAST_INVALID;
      *it->flag = json_is_true(value);
      return HOLDFAST_OK;
    }
    char *copy = NULL;
    if (json_is_string(value)) {
      if (strlen(json_string_value(value)) != json_string_length(value))
        return HOLDFAST_INVALID;
      copy = strdup(json_string_value(value));
      if (copy == NULL)
        return HOLDFAST_NOMEM;
    } else if (!json_is_null(value) || !it->may_be_null) {
      return HOLDFAST_INVALID;
    }
    free(*it->text);
    *it->text = copy;
    return HOLDFAST_OK;
  }
  return HOLDFAST_INVALID; /* unknown option */
}

static char *default_user_agent(void) {
  static const char product[] = "holdfast/";
  const char *version = holdfast_version();
  char *agent = malloc(sizeof product + strlen(version));
  if (agent != NULL) {
    memcpy(agent, product, sizeof product);
    strcat(agent, version);
  }
  return agent;
}

/* Whether the text is a list of pins as libcurl reads it. libcurl would take any other text for the
 * name of a file, and an empty one for no pin. */
static bool are_pins(const char *text) {
  static const char kind[] = "sha256//";
  enum { DIGITS = 43 }; /* 32 bytes in base64, before one '=' */
  static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (;; text++) {
    if (strncmp(text, kind, sizeof kind - 1) != 0)
      return false;
    text += sizeof kind - 1;
    if (strspn(text, base64) != DIGITS || text[DIGITS] != '=')
      return false;
    text += DIGITS + 1;
    if (*text != ';')
      return *text == 0;
  }
}

/* libcurl reads the authorities at the first request, which would fail as `tls`. */
static bool is_readable(const char *path) { return path == NULL || access(path, R_OK) == 0; }

int32_t hfh_options_read(const char *text, hfh_options *options) {
  long body_limit = 8L << 20;
  *options = (hfh_options){.connections = 8, .connect_timeout_ms = 10000, .thread = true};
  options->user_agent = default_user_agent();
  if (options->user_agent == NULL)
    return HOLDFAST_NOMEM;
  int32_t status = HOLDFAST_OK;
  if (text != NULL && *text != 0) {
    const option known[] = {
        {"connections", &options->connections, 1, 64, NULL, false, NULL},
        {"connect_timeout_ms", &options->connect_timeout_ms, 1, 3600000, NULL, false, NULL},
        {"body_limit", &body_limit, 1, 1L << 30, NULL, false, NULL},
        {"ca_file", NULL, 0, 0, &options->ca_file, true, NULL},
        {"ca_path", NULL, 0, 0, &options->ca_path, true, NULL},
        {"pinned_public_key", NULL, 0, 0, &options->pinned_public_key, true, NULL},
        {"proxy", NULL, 0, 0, &options->proxy, true, NULL},
        {"thread", NULL, 0, 0, NULL, false, &options->thread},
        {"user_agent", NULL, 0, 0, &options->user_agent, false, NULL},
    };
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    status = json_is_object(root) ? HOLDFAST_OK : HOLDFAST_INVALID;
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
      if (status == HOLDFAST_OK)
        status = read_option(known, sizeof known / sizeof *known, name, value);
    }
    json_decref(root);
    if (status == HOLDFAST_OK && options->pinned_public_key != NULL &&
        !are_pins(options->pinned_public_key))
      status = HOLDFAST_INVALID;
    if (status == HOLDFAST_OK && !(is_readable(options->ca_file) && is_readable(options->ca_path)))
      status = HOLDFAST_INVALID;
  }
  options->body_limit = (size_t)body_limit;
  if (status != HOLDFAST_OK)
    hfh_options_free(options);
  return status;
}

void hfh_options_free(hfh_options *options) {
  free(options->ca_file);
  free(options->ca_path);
  free(options->pinned_public_key);
  hfh_secret_free(options->proxy); /* may hold a password */
  free(options->user_agent);
  *options = (hfh_options){0};
}
