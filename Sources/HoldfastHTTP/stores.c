/* Key stores by name, for holdfast_http_call(): "host", a mailbox whose requests the host answers,
 * and "secret_service", the desktop's keyring. Both are in holdfast_keys.h. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- in a configuration ---- */

/* Nobody answers key requests before the handle is there: it opens as a worker, which needs no key,
 * and the first screen comes with the first holdfast_next(). */
static char *take_mailbox(json_t *config, const json_t *store, hfh_driver *driver) {
  const char *kind, *role = json_string_value(json_object_get(config, "role"));
  const hfh_field known[] = {{.name = "kind", .text = &kind}, {0}};
  char *refusal = hfh_read(store, "/keystore", known);
  if (refusal != NULL)
    return refusal;
  if (role == NULL || strcmp(role, "app") == 0) {
    driver->resumes = true;
    json_object_set_new(config, "role", json_string("worker"));
  }
  driver->box = holdfast_mailbox_new(HOLDFAST_MAILBOX_WAIT_MS);
  return driver->box == NULL ? hfh_no_memory : NULL;
}

/* Two folders with one name would overwrite each other's keys. */
static char *taken_name(holdfast_keyring *keyring) {
  char *other = holdfast_keyring_other_folder(keyring);
  if (other == NULL)
    return NULL;
  char *refusal = hfh_error(hfh_wrong_value, "/keystore", "name",
                            "the keys under this name are those of the folder %s: choose another "
                            "name for each data_dir",
                            other);
  free(other);
  return refusal;
}

static char *take_keyring(const json_t *config, const json_t *store, hfh_driver *driver) {
  const char *kind, *name = NULL;
  const hfh_field known[] = {
      {.name = "kind", .text = &kind}, {.name = "name", .text = &name, .required = true}, {0}};
  char *refusal = hfh_read(store, "/keystore", known);
  if (refusal != NULL)
    return refusal;
  if (*name == 0 || strlen(name) > 256)
    return hfh_error(hfh_wrong_value, "/keystore", "name", "1 to 256 bytes are expected");
  const json_t *policy = json_object_get(config, "policy");
  const char *presence = json_string_value(json_object_get(policy, "biometric"));
  if (presence == NULL || strcmp(presence, "required") == 0)
    return hfh_error(hfh_wrong_value, "/policy", "biometric",
                     "the secret service asks for no presence: use \"preferred\" or \"off\"");
  const char *folder = json_string_value(json_object_get(config, "data_dir"));
  int32_t status = holdfast_keyring_new(name, folder == NULL ? "" : folder, HOLDFAST_KEYRING_ASKS,
                                        hfh_log_line, &driver->keyring);
  if (status == HOLDFAST_NOT_FOUND)
    return hfh_error(hfh_wrong_value, "/keystore", "kind", "libsecret-1.so.0 is not installed");
  return status == HOLDFAST_OK ? taken_name(driver->keyring) : hfh_no_memory;
}

char *hfh_store_take(json_t *config, hfh_driver *driver) {
  const json_t *store = json_object_get(config, "keystore");
  const char *kind = json_string_value(json_object_get(store, "kind"));
  char *refusal = NULL;
  if (kind != NULL && strcmp(kind, "host") == 0)
    refusal = take_mailbox(config, store, driver);
  else if (kind != NULL && strcmp(kind, "secret_service") == 0)
    refusal = take_keyring(config, store, driver);
  if (driver->box != NULL || driver->keyring != NULL)
    json_object_del(config, "keystore");
  return refusal;
}

bool hfh_store_make(const hfh_driver *driver, holdfast_keystore *store) {
  if (driver->box != NULL)
    *store = holdfast_mailbox_keystore(driver->box);
  if (driver->keyring != NULL)
    *store = holdfast_keyring_keystore(driver->keyring);
  return driver->box != NULL || driver->keyring != NULL;
}

/* ---- the keyring ---- */

char *hfh_store_explained(const hfh_driver *driver, char *reply) {
  char cause[256] = "";
  if (driver != NULL && driver->keyring != NULL)
    holdfast_keyring_cause(driver->keyring, cause, sizeof cause);
  json_t *root = *cause == 0 ? NULL : json_loads(reply, 0, NULL);
  json_t *error = json_object_get(root, "error");
  const char *message = json_string_value(json_object_get(error, "message"));
  char *text = NULL;
  if (message != NULL &&
      json_object_set_new(error, "message",
                          json_sprintf("%s: secret service: %s", message, cause)) == 0)
    text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  if (text == NULL)
    return reply;
  holdfast_http_free(reply);
  return text;
}

/* ---- the mailbox ---- */

bool hfh_store_waits_for_itself(const hfh_driver *driver) {
  return driver != NULL && driver->box != NULL && holdfast_mailbox_is_answered_here(driver->box);
}

/* The error reply of a handle without a mailbox, or NULL. */
static char *without_mailbox(const hfh_driver *driver, int32_t status) {
  if (status != HOLDFAST_OK && status != HOLDFAST_CLOSED)
    return hfh_failed(status);
  if (driver == NULL || driver->box != NULL)
    return NULL;
  return hfh_error("config.not_configured", NULL, NULL,
                   "the handle was not opened with \"keystore\":{\"kind\":\"host\"}");
}

char *hfh_read_timeout(const char *request, int32_t *timeout_ms) {
  int64_t number = -1;
  const hfh_field known[] = {
      {.name = "timeout_ms", .number = &number, .least = -HFH_LARGEST, .most = HFH_LARGEST}, {0}};
  json_t *root = NULL;
  char *refusal = hfh_parse(request, &root);
  if (refusal == NULL)
    refusal = hfh_read(root, "", known);
  *timeout_ms = number < 0 ? -1 : number > INT32_MAX ? INT32_MAX : (int32_t)number;
  json_decref(root);
  return refusal;
}

static char *request_of(holdfast_mailbox *box, const holdfast_key_request *asked) {
  json_t *root =
      json_pack("{s:{s:I, s:s, s:s, s:s?, s:s?}, s:b}", "key_request", "id", (json_int_t)asked->id,
                "operation", asked->operation, "name", asked->name, "protection", asked->protection,
                "value", *asked->value == 0 ? NULL : asked->value, "closed", 0);
  char *reply = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);
  json_decref(root);
  if (reply != NULL)
    return reply;
  const char *wrong; /* nobody else can answer it */
  holdfast_mailbox_complete(box, asked->id, "failed", NULL, &wrong);
  return hfh_no_memory;
}

char *hfh_store_next(hfh_driver *driver, int32_t status, const char *request) {
  int32_t timeout_ms = -1;
  char *reply = hfh_read_timeout(request, &timeout_ms);
  if (reply == NULL)
    reply = without_mailbox(driver, status);
  if (reply != NULL)
    return reply;
  holdfast_key_request asked = {0};
  if (driver != NULL)
    status = holdfast_mailbox_next(driver->box, timeout_ms, &asked);
  if (status == HOLDFAST_OK)
    reply = request_of(driver->box, &asked);
  else
    reply = hfh_reply(status == HOLDFAST_CLOSED ? "{\"key_request\":null,\"closed\":true}"
                                                : "{\"key_request\":null,\"closed\":false}");
  holdfast_mailbox_zero(&asked);
  return reply;
}

char *hfh_store_complete(hfh_driver *driver, int32_t status, const char *request) {
  int64_t id = 0;
  const char *result = NULL, *value = NULL, *wrong = "";
  const hfh_field known[] = {
      {.name = "id", .number = &id, .least = 0, .most = HFH_LARGEST, .required = true},
      {.name = "result", .text = &result, .required = true},
      {.name = "value", .text = &value},
      {0}};
  json_t *root = NULL;
  char *reply = hfh_parse(request, &root);
  if (reply == NULL)
    reply = hfh_read(root, "", known);
  if (reply == NULL)
    reply = without_mailbox(driver, status);
  if (reply == NULL) {
    if (driver != NULL)
      status = holdfast_mailbox_complete(driver->box, id, result, value, &wrong);
    if (status == HOLDFAST_INVALID)
      reply =
          hfh_error(hfh_wrong_value, wrong, NULL, "%s is expected",
                    strcmp(wrong, "/value") == 0 ? "base64 of the 32 bytes of the key"
                                                 : "ok, not_found, locked, cancelled, failed, ...");
    else
      reply = hfh_reply(status == HOLDFAST_OK ? "{\"accepted\":true}" : "{\"accepted\":false}");
  }
  json_decref(root);
  return reply;
}
