/* The keys in the desktop's secret service (GNOME Keyring, KWallet, KeePassXC), over libsecret.
 * Every operation is asynchronous: the service may ask the user to unlock the keyring. */
#include "app.h"

#define SECRET_API_SUBJECT_TO_CHANGE /* for functions that tell why a search found nothing */
#include <libsecret/secret.h>

static const SecretSchema schema = {
    .name = "org.holdfast.Desktop.Key",
    .attributes = {{"folder", SECRET_SCHEMA_ATTRIBUTE_STRING},
                   {"name", SECRET_SCHEMA_ATTRIBUTE_STRING}},
};

/* A key request that waits for the service. */
typedef struct {
  app *app;
  holdfast *self; /* the handle that asked */
  json_int_t id;
} asked;

static asked *asked_new(app *app, json_int_t id) {
  asked *it = g_new(asked, 1);
  *it = (asked){app, app->self, id};
  return it;
}

static void answer(asked *it, const char *result, const char *value) {
  if (it->app->self == it->self) /* else the handle is closed, and nobody waits */
    keys_answer(it->app, it->id, result, value);
  g_free(it);
}

/* A dismissed prompt means that the keyring is locked. */
static const char *word_for(GError *error) {
  bool locked = g_error_matches(error, SECRET_ERROR, SECRET_ERROR_IS_LOCKED) ||
                g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_info("the secret service: %s", error->message);
  g_error_free(error);
  return locked ? "locked" : "failed";
}

static GHashTable *attributes_of(const app *app, const char *name) {
  return secret_attributes_build(&schema, "folder", app->data_dir, "name", name, NULL);
}

bool secret_available(void) {
  SecretService *service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, NULL);
  bool there = service != NULL;
  g_clear_object(&service);
  return there;
}

/* ---- load ---- */

/* The search found nothing: tell an absent key from a locked keyring. */
static void on_keyring(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  GError *error = NULL;
  SecretCollection *keyring = secret_collection_for_alias_finish(result, &error);
  if (error != NULL)
    answer(context, word_for(error), NULL);
  else
    answer(context,
           keyring != NULL && secret_collection_get_locked(keyring) ? "locked" : "not_found", NULL);
  g_clear_object(&keyring);
}

static void on_found(GObject *source, GAsyncResult *result, gpointer context) {
  GError *error = NULL;
  GList *items = secret_service_search_finish(SECRET_SERVICE(source), result, &error);
  if (error != NULL) {
    answer(context, word_for(error), NULL);
    return;
  }
  if (items == NULL) {
    secret_collection_for_alias(SECRET_SERVICE(source), SECRET_COLLECTION_DEFAULT,
                                SECRET_COLLECTION_NONE, NULL, on_keyring, context);
    return;
  }
  SecretValue *value =
      secret_item_get_locked(items->data) ? NULL : secret_item_get_secret(items->data);
  answer(context, value == NULL ? "locked" : "ok",
         value == NULL ? NULL : secret_value_get_text(value));
  if (value != NULL)
    secret_value_unref(value); /* libsecret zeroes its copy */
  g_list_free_full(items, g_object_unref);
}

typedef struct {
  asked *asked;
  GHashTable *attributes;
} search;

static void on_service(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  search *search = context;
  GError *error = NULL;
  SecretService *service = secret_service_get_finish(result, &error);
  if (service == NULL)
    answer(search->asked, word_for(error), NULL);
  else /* not secret_password_lookup(): after a dismissed prompt it reports that there is no key */
    secret_service_search(service, &schema, search->attributes,
                          SECRET_SEARCH_UNLOCK | SECRET_SEARCH_LOAD_SECRETS, NULL, on_found,
                          search->asked);
  g_clear_object(&service);
  g_hash_table_unref(search->attributes);
  g_free(search);
}

void secret_load(app *app, json_int_t id, const char *name) {
  search *search = g_malloc(sizeof *search);
  search->asked = asked_new(app, id);
  search->attributes = attributes_of(app, name);
  secret_service_get(SECRET_SERVICE_OPEN_SESSION, NULL, on_service, search);
}

/* ---- save and erase ---- */

static void on_stored(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  GError *error = NULL;
  secret_password_store_finish(result, &error);
  answer(context, error == NULL ? "ok" : word_for(error), NULL);
}

void secret_save(app *app, json_int_t id, const char *name, const char *value) {
  GHashTable *attributes = attributes_of(app, name);
  secret_password_storev(&schema, attributes, SECRET_COLLECTION_DEFAULT, "Holdfast Desktop", value,
                         NULL, on_stored, asked_new(app, id));
  g_hash_table_unref(attributes);
}

static void on_erased(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  GError *error = NULL;
  secret_password_clear_finish(
      result, &error); /* false: no such key, or a locked one, which the library then finds */
  answer(context, error == NULL ? "ok" : word_for(error), NULL);
}

void secret_erase(app *app, json_int_t id, const char *name) {
  GHashTable *attributes = attributes_of(app, name);
  secret_password_clearv(&schema, attributes, NULL, on_erased, asked_new(app, id));
  g_hash_table_unref(attributes);
}
