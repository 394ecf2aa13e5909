/* The keys in the desktop's secret service (GNOME Keyring, KWallet, KeePassXC), over libsecret.
 *
 * What the library asks for is answered at once. Where the keyring is locked, that is the answer,
 * and the user is asked for its password beside the library, which tries again once it is open.
 * When the library's handle is closed, the prompt is taken back. */
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

/* ---- the prompt ---- */

static GCancellable *cancelled; /* of the prompt on the screen; NULL: there is none */
static bool dismissed;          /* the user does not want to unlock the keyring now */

static void on_unlocked(GObject *source, GAsyncResult *result, gpointer context) {
  app *app = context;
  GError *error = NULL;
  GList *opened = NULL;
  secret_service_unlock_finish(SECRET_SERVICE(source), result, &opened, &error);
  bool is_open = opened != NULL, is_over = g_cancellable_is_cancelled(cancelled);
  g_clear_object(&cancelled);
  g_list_free_full(opened, g_object_unref);
  if (error != NULL)
    g_info("the secret service: %s", error->message);
  g_clear_error(&error);
  dismissed = !is_open;
  if (!is_open || is_over || app->self == NULL)
    return;
  if (is_text(app->decision, "screen", "wait"))
    host_do(app, "session_resume", NULL);
  else /* it erases what it owes */
    json_decref(host_call(app, "session_status", NULL));
}

static int32_t locked(app *app, SecretService *service, gpointer item_or_keyring) {
  if (cancelled == NULL && !dismissed) {
    cancelled = g_cancellable_new();
    GList *all = g_list_append(NULL, item_or_keyring);
    secret_service_unlock(service, all, cancelled, on_unlocked, app);
    g_list_free(all);
  }
  return HOLDFAST_KEY_LOCKED;
}

void secret_ask_again(void) { dismissed = false; }

void secret_cancel(void) {
  if (cancelled != NULL)
    g_cancellable_cancel(cancelled);
}

static gboolean on_late(gpointer context) {
  *(bool *)context = true;
  return G_SOURCE_REMOVE;
}

void secret_settle(void) {
  bool late = false;
  guint timer = g_timeout_add_seconds(2, on_late, &late);
  while (cancelled != NULL && !late)
    g_main_context_iteration(NULL, TRUE);
  if (!late)
    g_source_remove(timer);
  GDBusConnection *bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, NULL);
  if (bus != NULL) /* else there is no prompt either */
    g_dbus_connection_flush_sync(bus, NULL, NULL);
  g_clear_object(&bus);
}

bool secret_available(void) {
  SecretService *service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, NULL);
  bool there = service != NULL;
  g_clear_object(&service);
  return there;
}

/* ---- what keys.c asks ---- */

/* A service for each request: one that was restarted meanwhile has another session. */
typedef struct {
  SecretService *service; /* NULL: none answers */
  GHashTable *attributes;
  GList *items;                 /* under the name */
  SecretCollection *collection; /* where new ones go */
  GError *error;
} found;

static found find(app *app, const char *name) {
  found it = {0};
  it.attributes = secret_attributes_build(&schema, "folder", app->data_dir, "name", name, NULL);
  it.service = secret_service_open_sync(service_get_type(), NULL, SECRET_SERVICE_OPEN_SESSION, NULL,
                                        &it.error);
  /* Not secret_password_lookup_sync(): it asks the user, and after a dismissed prompt it reports
   * that there is no key. */
  if (it.error == NULL)
    it.items = secret_service_search_sync(it.service, &schema, it.attributes,
                                          SECRET_SEARCH_LOAD_SECRETS, NULL, &it.error);
  if (it.error == NULL)
    it.collection = secret_collection_for_alias_sync(it.service, SECRET_COLLECTION_DEFAULT,
                                                     SECRET_COLLECTION_NONE, NULL, &it.error);
  return it;
}

static int32_t done(found *it, int32_t result) {
  if (it->error != NULL) {
    g_info("the secret service: %s", it->error->message);
    result = HOLDFAST_KEY_FAILED;
  }
  g_clear_error(&it->error);
  g_list_free_full(it->items, g_object_unref);
  g_clear_object(&it->collection);
  g_clear_object(&it->service);
  g_hash_table_unref(it->attributes);
  return result;
}

/* What is locked, and has to be opened first: the item or, as it does not always say what is in it,
 * the keyring. */
static gpointer barrier(const found *it) {
  if (it->items != NULL)
    return secret_item_get_locked(it->items->data) ? it->items->data : NULL;
  return it->collection != NULL && secret_collection_get_locked(it->collection) ? it->collection
                                                                                : NULL;
}

int32_t secret_load(app *app, const char *name, char **value) {
  found it = find(app, name);
  int32_t result = HOLDFAST_KEY_NOT_FOUND;
  if (it.error == NULL && barrier(&it) != NULL) {
    result = locked(app, it.service, barrier(&it));
  } else if (it.error == NULL && it.items != NULL) {
    SecretValue *secret = secret_item_get_secret(it.items->data);
    const char *text = secret == NULL ? NULL : secret_value_get_text(secret);
    *value = g_strdup(text);
    result = text == NULL ? HOLDFAST_KEY_FAILED : HOLDFAST_KEY_OK;
    g_clear_pointer(&secret, secret_value_unref); /* libsecret zeroes its copy */
  }
  return done(&it, result);
}

int32_t secret_save(app *app, const char *name, const char *value) {
  found it = find(app, name);
  int32_t result = HOLDFAST_KEY_OK;
  if (it.error == NULL && barrier(&it) != NULL) {
    result = locked(app, it.service, barrier(&it));
  } else if (it.error == NULL) {
    SecretValue *secret = secret_value_new(value, -1, "text/plain");
    secret_service_store_sync(it.service, &schema, it.attributes, SECRET_COLLECTION_DEFAULT,
                              "Holdfast Desktop", secret, NULL, &it.error);
    secret_value_unref(secret);
  }
  return done(&it, result);
}

int32_t secret_erase(app *app, const char *name) {
  found it = find(app, name);
  int32_t result = HOLDFAST_KEY_OK;
  if (it.error == NULL && barrier(&it) != NULL)
    result = locked(app, it.service, barrier(&it));
  else if (it.error == NULL) /* false without an error: no such key */
    secret_service_clear_sync(it.service, &schema, it.attributes, NULL, &it.error);
  return done(&it, result);
}
