/* Keeps the keys "device" and "session" in the desktop's secret service (GNOME Keyring, KWallet,
 * KeePassXC), over libsecret. Without libsecret at build time these functions return
 * HOLDFAST_KEY_UNAVAILABLE. */
#include "tour.h"

#include <string.h>

#ifdef HOLDFAST_LIBSECRET

#define SECRET_API_SUBJECT_TO_CHANGE /* for functions that report why a search found nothing */
#include <libsecret/secret.h>

bool secret_service_built(void) { return true; }

/* The keys "device" and "session" of each data folder. */
static const SecretSchema schema = {
    .name = "org.holdfast.example.DeviceKey",
    .attributes = {{"folder", SECRET_SCHEMA_ATTRIBUTE_STRING},
                   {"name", SECRET_SCHEMA_ATTRIBUTE_STRING}},
};

static GHashTable *attributes_of(const setting *where, const char *name) {
  return secret_attributes_build(&schema, "folder", where->data_dir, "name", name, NULL);
}

/* Translate an error. A dismissed prompt means LOCKED, not FAILED. */
static int32_t failed(GError *error) {
  int32_t answer = HOLDFAST_KEY_FAILED;
  if (g_error_matches(error, SECRET_ERROR, SECRET_ERROR_IS_LOCKED))
    answer = HOLDFAST_KEY_LOCKED;
  if (error != NULL)
    note("the secret service: %s", error->message);
  g_clear_error(&error);
  return answer;
}

/* The search found nothing: tell an absent key from a locked collection. */
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
  secret_value_unref(value); /* libsecret wipes its copy */
  return fits ? HOLDFAST_KEY_OK : HOLDFAST_KEY_FAILED;
}

int32_t secret_service_load(const setting *where, const char *name, uint8_t *key, size_t capacity,
                            size_t *length) {
  GError *error = NULL;
  SecretService *service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, &error);
  if (service == NULL)
    return failed(error);
  GHashTable *attributes = attributes_of(where, name);
  /* Not secret_password_lookup(): after a dismissed prompt it reports that there is no key. */
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

int32_t secret_service_save(const setting *where, const char *name, const uint8_t *key,
                            size_t length) {
  GError *error = NULL;
  GHashTable *attributes = attributes_of(where, name);
  SecretValue *value =
      secret_value_new((const gchar *)key, (gssize)length, "application/octet-stream");
  bool stored = secret_service_store_sync(NULL, &schema, attributes, SECRET_COLLECTION_DEFAULT,
                                          "Holdfast example", value, NULL, &error);
  secret_value_unref(value);
  g_hash_table_unref(attributes);
  return stored ? HOLDFAST_KEY_OK : failed(error);
}

int32_t secret_service_erase(const setting *where, const char *name) {
  GError *error = NULL;
  GHashTable *attributes = attributes_of(where, name);
  secret_service_clear_sync(NULL, &schema, attributes, NULL, &error); /* false: no such key */
  g_hash_table_unref(attributes);
  return error == NULL ? HOLDFAST_KEY_OK : failed(error);
}

#else

bool secret_service_built(void) { return false; }

int32_t secret_service_load(const setting *where, const char *name, uint8_t *key, size_t capacity,
                            size_t *length) {
  (void)where, (void)name, (void)key, (void)capacity, (void)length;
  return HOLDFAST_KEY_UNAVAILABLE;
}

int32_t secret_service_save(const setting *where, const char *name, const uint8_t *key,
                            size_t length) {
  (void)where, (void)name, (void)key, (void)length;
  return HOLDFAST_KEY_UNAVAILABLE;
}

int32_t secret_service_erase(const setting *where, const char *name) {
  (void)where, (void)name;
  return HOLDFAST_KEY_UNAVAILABLE;
}

#endif
