/* A volunteer's app on Holdfast: GTK 4 and libadwaita, without a thread of its own.
 *
 * HOLDFAST_URL and HOLDFAST_KEY name the Supabase project. HOLDFAST_DATA is the folder of the app's
 * data, else one in the user's data folder. HOLDFAST_REDIRECT is the address on this machine to
 * which the browser returns; the project must list it. HOLDFAST_NEW_PASSWORD_URL is the page for
 * who forgot the password. HOLDFAST_STAGE is for demos and tests. */
#include "app.h"

#include <glib-unix.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

/* No project, or a folder that cannot be opened: say so in a window, and do nothing else. */
static void show_problem(app *app, const char *title, const char *text) {
  GtkWidget *window = adw_application_window_new(GTK_APPLICATION(app->application));
  GtkWidget *page = adw_status_page_new();
  adw_status_page_set_title(ADW_STATUS_PAGE(page), title);
  adw_status_page_set_description(ADW_STATUS_PAGE(page), text);
  adw_status_page_set_icon_name(ADW_STATUS_PAGE(page), "dialog-warning-symbolic");
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append(GTK_BOX(box), adw_header_bar_new());
  gtk_widget_set_vexpand(page, TRUE);
  gtk_box_append(GTK_BOX(box), page);
  adw_application_window_set_content(ADW_APPLICATION_WINDOW(window), box);
  gtk_window_set_default_size(GTK_WINDOW(window), 480, 480);
  gtk_window_set_title(GTK_WINDOW(window), title);
  gtk_window_present(GTK_WINDOW(window));
}

/* The language of the settings, else that of the desktop. */
static void choose_language(app *app) {
  GKeyFile *settings = g_key_file_new();
  g_key_file_load_from_file(settings, app->settings_file, G_KEY_FILE_NONE, NULL);
  char *chosen = g_key_file_get_string(settings, "app", "language", NULL);
  const char *const *wanted = g_get_language_names();
  g_strlcpy(app->locale, "en", sizeof app->locale);
  for (size_t i = 0; chosen == NULL && wanted[i] != NULL; i++) {
    bool bokmal = g_str_has_prefix(wanted[i], "nb") || g_str_has_prefix(wanted[i], "no");
    if (bokmal || g_str_has_prefix(wanted[i], "nn") || g_str_has_prefix(wanted[i], "en")) {
      g_strlcpy(app->locale, bokmal ? "nb" : wanted[i], sizeof app->locale);
      break;
    }
  }
  if (chosen != NULL)
    g_strlcpy(app->locale, chosen, sizeof app->locale);
  g_free(chosen);
  g_key_file_unref(settings);
  words_use(app->locale);
}

static void on_network(GNetworkMonitor *monitor, gboolean online, gpointer context) {
  (void)monitor;
  app *app = context;
  if (app->self != NULL && app->stage == NULL)
    json_decref(host_call(app, "network_report", json_pack("{s:b}", "online", online)));
}

/* The user left the app, or came back: minimised, or the desktop's screen is locked. */
static void on_presence(GObject *source, GParamSpec *what, gpointer context) {
  (void)source, (void)what;
  app *app = context;
  if (app->self == NULL || app->window == NULL)
    return;
  gboolean dark = FALSE;
  g_object_get(app->application, "screensaver-active", &dark, NULL);
  GdkSurface *surface = gtk_native_get_surface(GTK_NATIVE(app->window));
  bool away = dark || (surface != NULL && (gdk_toplevel_get_state(GDK_TOPLEVEL(surface)) &
                                           GDK_TOPLEVEL_STATE_MINIMIZED) != 0);
  if (away)
    json_decref(host_call(app, "session_background", NULL));
  else
    host_do(app, "session_foreground", NULL);
}

static void on_shown(GtkWidget *window, gpointer context) {
  app *app = context;
  GdkSurface *surface = gtk_native_get_surface(GTK_NATIVE(window));
  g_signal_connect(surface, "notify::state", G_CALLBACK(on_presence), app);
}

/* A surface that is destroyed reports a state, too. Nothing is drawn for it any more. */
static void on_closing(GtkWidget *window, gpointer context) {
  GdkSurface *surface = gtk_native_get_surface(GTK_NATIVE(window));
  g_signal_handlers_disconnect_by_func(surface, on_presence, context);
}

void app_start(app *app) {
  char *problem = NULL;
  if (app->url == NULL || app->key == NULL)
    show_problem(app, word("No project is set"),
                 word("Set HOLDFAST_URL and HOLDFAST_KEY to a Supabase project, and start again."));
  else if (!host_open(app, &problem))
    show_problem(app, word("The data on this computer cannot be opened"), problem);
  else {
    window_build(app);
    g_signal_connect(app->window, "realize", G_CALLBACK(on_shown), app);
    g_signal_connect(app->window, "unrealize", G_CALLBACK(on_closing), app);
    bool online = app->stage != NULL
                      ? app->stage_online
                      : g_network_monitor_get_network_available(g_network_monitor_get_default());
    json_decref(host_call(app, "network_report", json_pack("{s:b}", "online", online)));
    host_begin(app);
    gtk_window_present(app->window);
  }
  g_free(problem);
}

static void on_activate(GApplication *application, gpointer context) {
  app *app = context;
  GtkWindow *window = gtk_application_get_active_window(GTK_APPLICATION(application));
  if (window != NULL)
    gtk_window_present(window);
  else if (!stage_open(app))
    show_problem(app, word("The stage of this demo has ended."), "");
  else
    app_start(app);
}

static void add_style(void) {
  GtkCssProvider *style = gtk_css_provider_new();
  gtk_css_provider_load_from_resource(style, "/org/holdfast/Desktop/style.css");
  gtk_style_context_add_provider_for_display(gdk_display_get_default(), GTK_STYLE_PROVIDER(style),
                                             GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
  g_object_unref(style);
}

static void on_startup(GApplication *application, gpointer context) {
  app *app = context;
  add_style();
  const struct {
    const char *action, *keys[2];
  } shortcuts[] = {{"win.register", {"<Control>n", NULL}},
                   {"win.lock", {"<Control>l", NULL}},
                   {"win.settings", {"<Control>comma", NULL}},
                   {"win.back", {"<Alt>Left", NULL}},
                   {"window.close", {"<Control>q", NULL}}};
  for (size_t i = 0; i < G_N_ELEMENTS(shortcuts); i++)
    gtk_application_set_accels_for_action(GTK_APPLICATION(application), shortcuts[i].action,
                                          shortcuts[i].keys);
  g_signal_connect(application, "notify::screensaver-active", G_CALLBACK(on_presence), app);
  g_signal_connect(g_network_monitor_get_default(), "network-changed", G_CALLBACK(on_network), app);
}

/* The session ends, or somebody has pressed Ctrl C: as if the user had closed every window. */
static gboolean on_end(gpointer context) {
  app *app = context;
  GList *windows;
  while ((windows = gtk_application_get_windows(GTK_APPLICATION(app->application))) != NULL)
    gtk_window_destroy(windows->data);
  g_application_quit(G_APPLICATION(app->application));
  return G_SOURCE_CONTINUE;
}

int main(int count, char **arguments) {
  app app = {.started_us = g_get_monotonic_time(),
             .url = g_getenv("HOLDFAST_URL"),
             .key = g_getenv("HOLDFAST_KEY"),
             .redirect_url = g_getenv("HOLDFAST_REDIRECT"),
             .new_password_url = g_getenv("HOLDFAST_NEW_PASSWORD_URL"),
             .stage = g_getenv("HOLDFAST_STAGE")};
  if (app.redirect_url == NULL)
    app.redirect_url = "http://127.0.0.1:47831/signed-in";
  const char *folder = g_getenv("HOLDFAST_DATA");
  char *base = folder != NULL ? g_strdup(folder)
                              : g_build_filename(g_get_user_data_dir(), "holdfast-desktop", NULL);
  g_mkdir_with_parents(base, 0700);
  app.data_dir = g_build_filename(base, "data", NULL);
  app.keys_dir = g_build_filename(base, "keys", NULL);
  app.settings_file = g_build_filename(base, "settings.ini", NULL);
  choose_language(&app);
  keys_open(&app);

  app.application = adw_application_new(APP_ID, app.stage == NULL ? G_APPLICATION_DEFAULT_FLAGS
                                                                  : G_APPLICATION_NON_UNIQUE);
  g_signal_connect(app.application, "startup", G_CALLBACK(on_startup), &app);
  g_signal_connect(app.application, "activate", G_CALLBACK(on_activate), &app);
  const int ends[] = {SIGTERM, SIGINT, SIGHUP};
  for (size_t i = 0; i < G_N_ELEMENTS(ends); i++)
    g_unix_signal_add(ends[i], on_end, &app);
  int status = g_application_run(G_APPLICATION(app.application), count, arguments);
  browser_listen(&app, false);
  host_close(&app);
  secret_settle();
  secret_close();
  g_object_unref(app.application);
  g_free(app.data_dir);
  g_free(app.keys_dir);
  g_free(app.settings_file);
  g_free(app.prompt);
  g_free(app.route);
  g_free(app.contact_id);
  json_decref(app.edited);
  json_decref(app.form);
  json_decref(app.draft);
  json_decref(app.who);
  json_decref(app.activities_shown);
  g_free(base);
  return status;
}
