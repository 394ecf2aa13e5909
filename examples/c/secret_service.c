/* The device key in the desktop's secret service (GNOME Keyring, KWallet, KeePassXC), over
 * libsecret. Without libsecret at build time the example is built all the same, and says so. */
#include "tour.h"

#include <string.h>

#ifdef HOLDFAST_LIBSECRET

#define SECRET_API_SUBJECT_TO_CHANGE /* what asks without hiding why there is no answer */
#include <libsecret/secret.h>

bool secret_service_built(void) { return true; }

/* One key for each folder of data. */
static const SecretSchema schema = {
    .name = "org.holdfast.example.DeviceKey",
    .attributes = {{"folder", SECRET_SCHEMA_ATTRIBUTE_STRING}},
};

static GHashTable *attributes_of(const setting *where) {
  return secret_attributes_build(&schema, "folder", where->data_dir, NULL);
}

/* The answer for what went wrong. A prompt that was sent away is no failure of the store. */
static int32_t failed(GError *error) {
  int32_t answer = HOLDFAST_KEY_FAILED;
  if (g_error_matches(error, SECRET_ERROR, SECRET_ERROR_IS_LOCKED))
    answer = HOLDFAST_KEY_LOCKED;
  if (error != NULL)
    note("the secret service: %s", error->message);
  g_clear_error(&error);
  return answer;
}

/* Nothing was found: because there is nothing, or because a locked store tells nobody? */
static int32_t absent(SecretService *service) {
  GError *error = NULL;
  SecretCollection *collection = secret_collection_for_alias_sync(
      service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE, NULL, &error);
  if (error != NULL)
    return failed(error);
  bool locked = collection != NULL && secret_collection_get_locked(collection);
  g_clear_object(&collection);
  return locked ? HOLDFAST_KEY_LOCKED : HOLDFAST_KEY_NOT_FOUND;
}

static int32_t copy_secret(SecretItem *item, uint8_t *key, size_t capacity, size_t *length) {
  SecretValue *value = secret_item_get_secret(item);
  if (value == NULL)
    return HOLDFAST_KEY_LOCKED;
  gsize size = 0;
  const gchar *bytes = secret_value_get(value, &size);
  bool fits = size > 0 && size <= capacity;
  if (fits) {
    memcpy(key, bytes, size);
    *length = size;
  }
  secret_value_unref(value); /* libsecret keeps it in locked memory and wipes it */
  return fits ? HOLDFAST_KEY_OK : HOLDFAST_KEY_FAILED;
}

int32_t secret_service_load(const setting *where, uint8_t *key, size_t capacity, size_t *length) {
  GError *error = NULL;
  SecretService *service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, &error);
  if (service == NULL)
    return failed(error);
  GHashTable *attributes = attributes_of(where);
  /* Not secret_password_lookup(): to it, a key behind a prompt that was sent away is no key. */
  GList *items =
      secret_service_search_sync(service, &schema, attributes,
                                 SECRET_SEARCH_UNLOCK | SECRET_SEARCH_LOAD_SECRETS, NULL, &error);
  g_hash_table_unref(attributes);
  int32_t answer;
  if (error != NULL)
    answer = failed(error);
  else if (items == NULL)
    answer = absent(service);
  else if (secret_item_get_locked(items->data))
    answer = HOLDFAST_KEY_LOCKED;
  else
    answer = copy_secret(items->data, key, capacity, length);
  g_list_free_full(items, g_object_unref);
  g_object_unref(service);
  return answer;
}

int32_t secret_service_save(const setting *where, const uint8_t *key, size_t length) {
  GError *error = NULL;
  GHashTable *attributes = attributes_of(where);
  SecretValue *value =
      secret_value_new((const gchar *)key, (gssize)length, "application/octet-stream");
  bool stored = secret_service_store_sync(NULL, &schema, attributes, SECRET_COLLECTION_DEFAULT,
                                          "Holdfast example", value, NULL, &error);
  secret_value_unref(value);
  g_hash_table_unref(attributes);
  return stored ? HOLDFAST_KEY_OK : failed(error);
}

int32_t secret_service_erase(const setting *where) {
  GError *error = NULL;
  GHashTable *attributes = attributes_of(where);
  secret_service_clear_sync(NULL, &schema, attributes, NULL, &error); /* false: there was none */
  g_hash_table_unref(attributes);
  return error == NULL ? HOLDFAST_KEY_OK : failed(error);
}

#else

bool secret_service_built(void) { return false; }

int32_t secret_service_load(const setting *where, uint8_t *key, size_t capacity, size_t *length) {
  (void)where, (void)key, (void)capacity, (void)length;
  return HOLDFAST_KEY_UNAVAILABLE;
}

int32_t secret_service_save(const setting *where, const uint8_t *key, size_t length) {
  (void)where, (void)key, (void)length;
  return HOLDFAST_KEY_UNAVAILABLE;
}

int32_t secret_service_erase(const setting *where) {
  (void)where;
  return HOLDFAST_KEY_UNAVAILABLE;
}

#endif
