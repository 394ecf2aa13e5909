/* The options of holdfast_http_start(). */
#include "driver.h"

#include <unistd.h>

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

char *hfh_options_read(json_t *given, hfh_options *options) {
  static const char path[] = "/http";
  *options = (hfh_options){.given = json_incref(given),
                           .connections = 8,
                           .connect_timeout_ms = 10000,
                           .body_limit = 8 << 20,
                           .log_level = -1,
                           .thread = true};
  const hfh_field known[] = {
      {.name = "connections", .number = &options->connections, .least = 1, .most = 64},
      {.name = "connect_timeout_ms",
       .number = &options->connect_timeout_ms,
       .least = 1,
       .most = 3600000},
      {.name = "body_limit", .number = &options->body_limit, .least = 1, .most = 1 << 30},
      {.name = "ca_file", .text = &options->ca_file},
      {.name = "ca_path", .text = &options->ca_path},
      {.name = "pinned_public_key", .text = &options->pinned_public_key},
      {.name = "proxy", .text = &options->proxy},
      {.name = "thread", .flag = &options->thread},
      {.name = "log_level", .number = &options->log_level, .least = 0, .most = 3},
      {.name = "user_agent", .text = &options->user_agent},
      {0},
  };
  char *refusal = NULL;
  if (given != NULL && !json_is_object(given) && !json_is_null(given))
    refusal = hfh_error(hfh_wrong_type, path, NULL, "an object is expected");
  if (refusal == NULL)
    refusal = hfh_read(given, path, known);
  if (refusal == NULL && options->pinned_public_key != NULL &&
      !are_pins(options->pinned_public_key))
    refusal = hfh_error(hfh_wrong_value, path, "pinned_public_key",
                        "sha256// and 32 bytes in base64 are expected, several joined by ;");
  if (refusal == NULL && !is_readable(options->ca_file))
    refusal = hfh_error(hfh_wrong_value, path, "ca_file", "the file cannot be read");
  if (refusal == NULL && !is_readable(options->ca_path))
    refusal = hfh_error(hfh_wrong_value, path, "ca_path", "the folder cannot be read");
  return refusal;
}
