/* The keys in the desktop's secret service (GNOME Keyring, KWallet, KeePassXC), over
 * holdfast_keys.h, and the prompt for it.
 *
 * What the library asks for is answered at once. Where the keyring is locked, that is the answer,
 * and the user is asked for its password beside the library, which tries again once it is open.
 * When the library's handle is closed, the prompt is taken back. */
#include "app.h"

#include <holdfast_keys.h>
#include <libsecret/secret.h>
#include <string.h>

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

static char *keys_name; /* of our entries */

/* What is locked: one of our entries, else the keyring where new ones go. NULL: nothing is. */
static GDBusProxy *locked_object(SecretService *service) {
  GHashTable *ours = g_hash_table_new(g_str_hash, g_str_equal);
  g_hash_table_insert(ours, "xdg:schema", "org.holdfast.Key");
  g_hash_table_insert(ours, "app", keys_name);
  GList *items = secret_service_search_sync(service, NULL, ours, SECRET_SEARCH_ALL, NULL, NULL);
  GDBusProxy *found = NULL;
  for (GList *each = items; each != NULL && found == NULL; each = each->next)
    if (secret_item_get_locked(each->data))
      found = g_object_ref(each->data);
  g_list_free_full(items, g_object_unref);
  g_hash_table_unref(ours);
  if (found != NULL)
    return found;
  SecretCollection *collection = secret_collection_for_alias_sync(
      service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE, NULL, NULL);
  if (collection != NULL && secret_collection_get_locked(collection))
    return G_DBUS_PROXY(collection);
  g_clear_object(&collection);
  return NULL;
}

/* Asks for what is locked; if nothing is any more, the library's next try finds that out. A service
 * for each prompt: one that was restarted meanwhile has another session. */
static void ask(app *app) {
  SecretService *service =
      secret_service_open_sync(service_get_type(), NULL, SECRET_SERVICE_OPEN_SESSION, NULL, NULL);
  GDBusProxy *object = service == NULL ? NULL : locked_object(service);
  if (object != NULL) {
    cancelled = g_cancellable_new();
    GList only = {.data = object};
    secret_service_unlock(service, &only, cancelled, on_unlocked, app);
  }
  g_clear_object(&object);
  g_clear_object(&service);
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

/* ---- what keys.c asks ---- */

static holdfast_keyring *keyring; /* NULL: there is no memory */
static holdfast_keystore store;   /* its functions */

static void on_cause(void *context, int32_t level, const char *line) {
  (void)context, (void)level;
  g_info("the %s", line);
}

void secret_open(const app *app) {
  /* Each folder has keys of its own. */
  keys_name = g_strconcat(APP_ID, " ", app->data_dir, NULL);
  holdfast_keyring_new(keys_name, app->data_dir, HOLDFAST_KEYRING_SILENT, on_cause, &keyring);
  if (keyring != NULL)
    store = holdfast_keyring_keystore(keyring);
}

void secret_close(void) {
  if (keyring != NULL)
    store.destroy(store.context);
  holdfast_keyring_free(keyring);
  g_free(keys_name);
}

bool secret_available(void) {
  SecretService *service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, NULL);
  bool there = service != NULL;
  g_clear_object(&service);
  return there;
}

static int32_t answered(app *app, int32_t result) {
  if (result == HOLDFAST_KEY_LOCKED && cancelled == NULL && !dismissed)
    ask(app);
  return result;
}

int32_t secret_load(app *app, const char *name, char **value) {
  char text[4096];
  size_t length = 0;
  int32_t result = HOLDFAST_KEY_FAILED;
  if (keyring != NULL)
    result = store.load(store.context, name, (uint8_t *)text, sizeof text, &length);
  if (result == HOLDFAST_KEY_OK)
    *value = g_strndup(text, length);
  explicit_bzero(text, sizeof text);
  return answered(app, result);
}

int32_t secret_save(app *app, const char *name, const char *value) {
  int32_t result = HOLDFAST_KEY_FAILED;
  if (keyring != NULL)
    result = store.save(store.context, name, (const uint8_t *)value, strlen(value),
                        HOLDFAST_PROTECT_DEVICE);
  return answered(app, result);
}

int32_t secret_erase(app *app, const char *name) {
  int32_t result = keyring == NULL ? HOLDFAST_KEY_FAILED : store.erase(store.context, name);
  return answered(app, result);
}
