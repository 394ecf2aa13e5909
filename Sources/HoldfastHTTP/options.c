/* Reads the options of holdfast_http_start(), and knows the dashboard of Supabase. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One option: its name, its range, and the address of its value: a number, a text or a flag. */
typedef struct {
  const char *name;
  long *number;
  long least, most;
  char **text;
  bool *flag;
} option;

__attribute__((format(printf, 4, 5))) static int32_t
refuse(hfh_wrong *wrong, const char *name, const char *code, const char *format, ...) {
  va_list given;
  va_start(given, format);
  *wrong = (hfh_wrong){.code = code};
  snprintf(wrong->name, sizeof wrong->name, "%s", name);
  vsnprintf(wrong->message, sizeof wrong->message, format, given);
  va_end(given);
  hfh_drop_half_character(wrong->name);
  hfh_drop_half_character(wrong->message);
  return HOLDFAST_INVALID;
}

static const char wrong_type[] = "request.wrong_type", wrong_value[] = "request.invalid_value";

static int32_t read_number(const option *it, const json_t *value, hfh_wrong *wrong) {
  double number = json_number_value(value);
  if (!json_is_number(value) || !hfh_is_integer(number))
    return refuse(wrong, it->name, wrong_type, "an integer is expected");
  if (number < (double)it->least || number > (double)it->most)
    return refuse(wrong, it->name, wrong_value, "%ld to %ld is expected", it->least, it->most);
  *it->number = (long)number;
  return HOLDFAST_OK;
}

static int32_t read_text(const option *it, const json_t *value, hfh_wrong *wrong) {
  if (!json_is_string(value))
    return refuse(wrong, it->name, wrong_type, "a string is expected");
  if (strlen(json_string_value(value)) != json_string_length(value))
    return refuse(wrong, it->name, wrong_value, "a string without NUL is expected");
  char *copy = strdup(json_string_value(value));
  if (copy == NULL)
    return HOLDFAST_NOMEM;
  free(*it->text);
  *it->text = copy;
  return HOLDFAST_OK;
}

static int32_t unknown_option(const option *known, size_t count, const char *name,
                              hfh_wrong *wrong) {
  char all[160] = "";
  for (size_t i = 0; i < count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i == 0 ? "" : ", ",
             known[i].name);
  return refuse(wrong, name, "request.unknown_field",
                "the driver has no such option; one of %s is expected", all);
}

static int32_t read_option(const option *known, size_t count, const char *name, const json_t *value,
                           hfh_wrong *wrong) {
  for (size_t i = 0; i < count; i++) {
    const option *it = &known[i];
    if (strcmp(it->name, name) != 0)
      continue;
    if (json_is_null(value)) /* the default, as everywhere */
      return HOLDFAST_OK;
    if (it->number != NULL)
      return read_number(it, value, wrong);
    if (it->text != NULL)
      return read_text(it, value, wrong);
    if (!json_is_boolean(value))
      return refuse(wrong, name, wrong_type, "true or false is expected");
    *it->flag = json_is_true(value);
    return HOLDFAST_OK;
  }
  return unknown_option(known, count, name, wrong);
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

static int32_t check_files_and_pins(const hfh_options *options, hfh_wrong *wrong) {
  if (options->pinned_public_key != NULL && !are_pins(options->pinned_public_key))
    return refuse(wrong, "pinned_public_key", wrong_value,
                  "sha256// and 32 bytes in base64 are expected, several joined by ;");
  if (!is_readable(options->ca_file))
    return refuse(wrong, "ca_file", wrong_value, "the file cannot be read");
  if (!is_readable(options->ca_path))
    return refuse(wrong, "ca_path", wrong_value, "the folder cannot be read");
  return HOLDFAST_OK;
}

/* ---- the project's URL ---- */

/* Behind the prefix, or NULL. */
static const char *behind(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

bool hfh_is_dashboard(const char *url, hfh_wrong *wrong) {
  static const char *const hosts[] = {"supabase.com", "www.supabase.com", "app.supabase.com"};
  const char *host = behind(url, "https://"), *path = NULL;
  for (size_t i = 0; host != NULL && path == NULL && i < sizeof hosts / sizeof *hosts; i++)
    path = behind(host, hosts[i]);
  if (path == NULL || (*path != 0 && *path != '/'))
    return false;
  const char *inner = behind(path, "/dashboard"), *project = NULL;
  project = behind(inner == NULL ? path : inner, "/project/");
  size_t length = project == NULL ? 0 : strspn(project, "abcdefghijklmnopqrstuvwxyz0123456789");
  if (length == 0 || length > 63) {
    project = "PROJECT";
    length = strlen(project);
  }
  refuse(wrong, "url", wrong_value,
         "this is the address of the dashboard: https://%.*s.supabase.co is expected", (int)length,
         project);
  return true;
}

int32_t hfh_options_read(const char *text, hfh_options *options, hfh_wrong *wrong) {
  long body_limit = 8L << 20;
  *options =
      (hfh_options){.connections = 8, .connect_timeout_ms = 10000, .thread = true, .log_level = -1};
  options->user_agent = default_user_agent();
  if (options->user_agent == NULL)
    return HOLDFAST_NOMEM;
  int32_t status = HOLDFAST_OK;
  if (text != NULL && *text != 0) {
    const option known[] = {
        {"connections", &options->connections, 1, 64, NULL, NULL},
        {"connect_timeout_ms", &options->connect_timeout_ms, 1, 3600000, NULL, NULL},
        {"body_limit", &body_limit, 1, 1L << 30, NULL, NULL},
        {"ca_file", NULL, 0, 0, &options->ca_file, NULL},
        {"ca_path", NULL, 0, 0, &options->ca_path, NULL},
        {"pinned_public_key", NULL, 0, 0, &options->pinned_public_key, NULL},
        {"proxy", NULL, 0, 0, &options->proxy, NULL},
        {"thread", NULL, 0, 0, NULL, &options->thread},
        {"log_level", &options->log_level, 0, 3, NULL, NULL},
        {"user_agent", NULL, 0, 0, &options->user_agent, NULL},
    };
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (!json_is_object(root) && !json_is_null(root))
      status = refuse(wrong, "", wrong_type, "an object is expected");
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
      if (status == HOLDFAST_OK)
        status = read_option(known, sizeof known / sizeof *known, name, value, wrong);
    }
    json_decref(root);
    if (status == HOLDFAST_OK)
      status = check_files_and_pins(options, wrong);
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
