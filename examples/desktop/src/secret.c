/* The keys in the desktop's secret service (GNOME Keyring, KWallet, KeePassXC), over libsecret.
 * Every operation is asynchronous: the service may ask the user to unlock the keyring. When the
 * library's handle is closed, what is under way is cancelled, and libsecret takes its prompt back.
 */
#include "app.h"

#define SECRET_API_SUBJECT_TO_CHANGE /* for functions that tell why a search found nothing */
#include <libsecret/secret.h>
#include <string.h>

static const SecretSchema schema = {
    .name = "org.holdfast.Desktop.Key",
    .attributes = {{"folder", SECRET_SCHEMA_ATTRIBUTE_STRING},
                   {"name", SECRET_SCHEMA_ATTRIBUTE_STRING}},
};

/* ---- the service ----
 *
 * libsecret (0.20 and 0.21) never answers an asynchronous call whose prompt was dismissed, and GLib
 * warns: it returns an error that is not set. This service sets it. And a prompt that is cancelled
 * can answer twice, so this service takes the prompt back itself, and waits for its one answer. */

typedef SecretService Service;
typedef SecretServiceClass ServiceClass;
G_DEFINE_TYPE(Service, service, SECRET_TYPE_SERVICE)

/* A prompt on the screen. */
typedef struct {
  GTask *task;
  gulong handler; /* of the task's cancellable */
} prompted;

static void on_prompted(GObject *source, GAsyncResult *result, gpointer context) {
  prompted *it = context;
  GTask *task = it->task;
  g_cancellable_disconnect(g_task_get_cancellable(task), it->handler);
  GError *error = NULL;
  GVariant *value = secret_prompt_perform_finish(SECRET_PROMPT(source), result, &error);
  if (value != NULL)
    g_task_return_pointer(task, value, (GDestroyNotify)g_variant_unref);
  else if (error != NULL)
    g_task_return_error(task, error);
  else
    g_task_return_new_error(task, SECRET_ERROR, SECRET_ERROR_IS_LOCKED, "dismissed");
  g_object_unref(task);
  g_free(it);
}

static void on_taken_back(GCancellable *cancellable, gpointer prompt) {
  (void)cancellable;
  g_dbus_proxy_call(G_DBUS_PROXY(prompt), "Dismiss", NULL, G_DBUS_CALL_FLAGS_NO_AUTO_START, -1,
                    NULL, NULL, NULL);
}

static void service_prompt(SecretService *self, SecretPrompt *prompt, const GVariantType *type,
                           GCancellable *cancellable, GAsyncReadyCallback done, gpointer context) {
  GTask *task = g_task_new(self, cancellable, done, context);
  if (g_task_return_error_if_cancelled(task)) {
    g_object_unref(task);
    return;
  }
  prompted *it = g_new0(prompted, 1);
  it->task = task;
  if (cancellable != NULL)
    it->handler = g_cancellable_connect(cancellable, G_CALLBACK(on_taken_back),
                                        g_object_ref(prompt), g_object_unref);
  secret_prompt_perform(prompt, NULL, type, NULL, on_prompted, it);
}

static GVariant *service_prompt_finish(SecretService *self, GAsyncResult *result, GError **error) {
  (void)self;
  return g_task_propagate_pointer(G_TASK(result), error);
}

static void service_class_init(ServiceClass *class) {
  class->prompt_async = service_prompt;
  class->prompt_finish = service_prompt_finish;
}

static void service_init(Service *self) { (void)self; }

/* ---- requests ---- */

/* A key request that waits for the service. */
typedef struct {
  app *app;
  json_int_t id;
  const char *operation;
  SecretService *service;
  GHashTable *attributes;
  char *value;             /* to save */
  bool unlocked;           /* the keyring was unlocked for it: it is not asked for twice */
  GCancellable *cancelled; /* with the handle that asked */
} asked;

static GCancellable *cancelled; /* of the handle that is open; NULL: it has asked nothing yet */
static guint pending;           /* requests that wait */
static bool dismissed;          /* the user does not want to unlock the keyring now */

static void answer(asked *it, const char *result, const char *value) {
  if (!g_cancellable_is_cancelled(it->cancelled)) /* else the handle is closed: nobody waits */
    keys_answer(it->app, it->id, result, value);
  pending--;
  g_clear_object(&it->service);
  g_hash_table_unref(it->attributes);
  g_object_unref(it->cancelled);
  holdfast_http_free(it->value); /* zeroes it */
  g_free(it);
}

void secret_cancel(void) {
  if (cancelled != NULL)
    g_cancellable_cancel(cancelled);
  g_clear_object(&cancelled);
}

static gboolean on_late(gpointer context) {
  *(bool *)context = true;
  return G_SOURCE_REMOVE;
}

void secret_settle(void) {
  bool late = false;
  guint timer = g_timeout_add_seconds(2, on_late, &late);
  while (pending > 0 && !late)
    g_main_context_iteration(NULL, TRUE);
  if (!late)
    g_source_remove(timer);
  GDBusConnection *bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, NULL);
  if (bus != NULL) /* else there is no prompt either */
    g_dbus_connection_flush_sync(bus, NULL, NULL);
  g_clear_object(&bus);
}

/* A dismissed prompt means that the keyring is locked. */
static const char *word_for(GError *error) {
  bool locked = g_error_matches(error, SECRET_ERROR, SECRET_ERROR_IS_LOCKED) ||
                g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_info("the secret service: %s", error->message);
  dismissed = dismissed || locked;
  g_error_free(error);
  return locked ? "locked" : "failed";
}

bool secret_available(void) {
  SecretService *service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, NULL);
  bool there = service != NULL;
  g_clear_object(&service);
  return there;
}

/* ---- load ---- */

/* The property is absent once the connection is being given up. */
static bool is_locked(gpointer item_or_keyring) {
  GVariant *locked = g_dbus_proxy_get_cached_property(G_DBUS_PROXY(item_or_keyring), "Locked");
  bool yes = locked == NULL || g_variant_get_boolean(locked);
  g_clear_pointer(&locked, g_variant_unref);
  return yes;
}

static void search(asked *asked);

static void on_keyring_unlocked(GObject *source, GAsyncResult *result, gpointer context) {
  asked *asked = context;
  GError *error = NULL;
  GList *opened = NULL;
  secret_service_unlock_finish(SECRET_SERVICE(source), result, &opened, &error);
  dismissed = error == NULL && opened == NULL;
  asked->unlocked = true;
  if (error != NULL)
    answer(asked, word_for(error), NULL);
  else if (dismissed)
    answer(asked, "locked", NULL);
  else
    search(asked);
  g_list_free_full(opened, g_object_unref);
}

/* The search found nothing: tell an absent key from a locked keyring, which does not always say
 * what is in it. */
static void on_keyring(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  asked *asked = context;
  GError *error = NULL;
  SecretCollection *keyring = secret_collection_for_alias_finish(result, &error);
  if (error != NULL) {
    answer(asked, word_for(error), NULL);
  } else if (keyring == NULL || !is_locked(keyring)) {
    answer(asked, "not_found", NULL);
  } else if (asked->unlocked) {
    answer(asked, "locked", NULL);
  } else {
    GList *locked = g_list_append(NULL, keyring);
    secret_service_unlock(asked->service, locked, asked->cancelled, on_keyring_unlocked, asked);
    g_list_free(locked);
  }
  g_clear_object(&keyring);
}

static void on_loaded(GObject *source, GAsyncResult *result, gpointer context) {
  GError *error = NULL;
  secret_item_load_secret_finish(SECRET_ITEM(source), result, &error);
  SecretValue *value = error == NULL ? secret_item_get_secret(SECRET_ITEM(source)) : NULL;
  dismissed = dismissed && value == NULL;
  if (error != NULL)
    answer(context, word_for(error), NULL);
  else
    answer(context, value == NULL ? "locked" : "ok",
           value == NULL ? NULL : secret_value_get_text(value));
  if (value != NULL)
    secret_value_unref(value); /* libsecret zeroes its copy */
}

static void on_unlocked(GObject *source, GAsyncResult *result, gpointer context) {
  asked *asked = context;
  GError *error = NULL;
  GList *opened = NULL;
  secret_service_unlock_finish(SECRET_SERVICE(source), result, &opened, &error);
  if (error != NULL) {
    answer(asked, word_for(error), NULL);
  } else if (opened == NULL) {
    dismissed = true;
    answer(asked, "locked", NULL);
  } else {
    secret_item_load_secret(opened->data, asked->cancelled, on_loaded, asked);
  }
  g_list_free_full(opened, g_object_unref);
}

/* One step at a time. With SECRET_SEARCH_UNLOCK and SECRET_SEARCH_LOAD_SECRETS, libsecret looks at
 * items after it was cancelled, and warns. */
static void on_found(GObject *source, GAsyncResult *result, gpointer context) {
  asked *asked = context;
  GError *error = NULL;
  GList *items = secret_service_search_finish(SECRET_SERVICE(source), result, &error);
  if (error != NULL)
    answer(asked, word_for(error), NULL);
  else if (items == NULL)
    secret_collection_for_alias(SECRET_SERVICE(source), SECRET_COLLECTION_DEFAULT,
                                SECRET_COLLECTION_NONE, asked->cancelled, on_keyring, asked);
  else if (is_locked(items->data))
    secret_service_unlock(SECRET_SERVICE(source), items, asked->cancelled, on_unlocked, asked);
  else
    secret_item_load_secret(items->data, asked->cancelled, on_loaded, asked);
  g_list_free_full(items, g_object_unref);
}

/* Not secret_password_lookup(): after a dismissed prompt it reports that there is no key. */
static void search(asked *asked) {
  secret_service_search(asked->service, &schema, asked->attributes, SECRET_SEARCH_NONE,
                        asked->cancelled, on_found, asked);
}

/* ---- save and erase ---- */

static void on_stored(GObject *source, GAsyncResult *result, gpointer context) {
  GError *error = NULL;
  secret_service_store_finish(SECRET_SERVICE(source), result, &error);
  dismissed = dismissed && error != NULL;
  answer(context, error == NULL ? "ok" : word_for(error), NULL);
}

static void on_erased(GObject *source, GAsyncResult *result, gpointer context) {
  GError *error = NULL;
  secret_service_clear_finish(
      SECRET_SERVICE(source), result,
      &error); /* false: no such key, or a locked one, which the library then finds */
  dismissed = dismissed && error != NULL;
  answer(context, error == NULL ? "ok" : word_for(error), NULL);
}

/* The library repeats an erasure that failed. A user who has dismissed the prompt is not asked
 * again and again. */
static void on_lock_known(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  asked *asked = context;
  GError *error = NULL;
  SecretCollection *keyring = secret_collection_for_alias_finish(result, &error);
  if (error != NULL)
    answer(asked, word_for(error), NULL);
  else if (keyring != NULL && is_locked(keyring))
    answer(asked, "locked", NULL);
  else
    secret_service_clear(asked->service, &schema, asked->attributes, asked->cancelled, on_erased,
                         asked);
  g_clear_object(&keyring);
}

/* ---- what keys.c asks ---- */

static void on_service(GObject *source, GAsyncResult *result, gpointer context) {
  (void)source;
  asked *asked = context;
  GError *error = NULL;
  SecretService *service = asked->service = secret_service_open_finish(result, &error);
  if (service == NULL) {
    answer(asked, word_for(error), NULL);
  } else if (strcmp(asked->operation, "load") == 0) {
    search(asked);
  } else if (strcmp(asked->operation, "save") == 0) {
    SecretValue *value = secret_value_new(asked->value, -1, "text/plain");
    secret_service_store(service, &schema, asked->attributes, SECRET_COLLECTION_DEFAULT,
                         "Holdfast Desktop", value, asked->cancelled, on_stored, asked);
    secret_value_unref(value);
  } else if (dismissed) {
    secret_collection_for_alias(service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE,
                                asked->cancelled, on_lock_known, asked);
  } else {
    secret_service_clear(service, &schema, asked->attributes, asked->cancelled, on_erased, asked);
  }
}

void secret_serve(app *app, json_int_t id, const char *operation, const char *name,
                  const char *value) {
  if (cancelled == NULL)
    cancelled = g_cancellable_new();
  asked *it = g_new(asked, 1);
  *it = (asked){
      .app = app,
      .id = id,
      .operation = g_intern_string(operation),
      .attributes = secret_attributes_build(&schema, "folder", app->data_dir, "name", name, NULL),
      .value = g_strdup(value),
      .cancelled = g_object_ref(cancelled),
  };
  pending++;
  /* A service for each request: one that was restarted meanwhile has another session. */
  secret_service_open(service_get_type(), NULL, SECRET_SERVICE_OPEN_SESSION, it->cancelled,
                      on_service, it);
}
