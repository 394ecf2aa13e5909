/* Settings: the language, locking, and logging out with the count of what is not sent. */
#include "app.h"

#include <string.h>

static const char *const languages[][2] = {{"nb", "Bokmål"}, {"nn", "Nynorsk"}, {"en", "English"}};

void settings_save(app *app) {
  GKeyFile *settings = g_key_file_new();
  g_key_file_load_from_file(settings, app->settings_file, G_KEY_FILE_NONE, NULL);
  g_key_file_set_string(settings, "app", "language", app->locale);
  g_key_file_save_to_file(settings, app->settings_file, NULL);
  g_key_file_unref(settings);
}

/* The library takes its language when a handle is opened, and the window its words when it is
 * built: both begin anew, without a word from the user, as the session is on the disk. */
static gboolean change_language(gpointer context) {
  app *app = context;
  settings_save(app);
  words_use(app->locale);
  host_close(app);
  window_close(app);
  app_start(app);
  return G_SOURCE_REMOVE;
}

static void on_language(GObject *row, GParamSpec *what, gpointer context) {
  (void)what;
  app *app = context;
  const char *chosen = languages[adw_combo_row_get_selected(ADW_COMBO_ROW(row))][0];
  if (strcmp(chosen, app->locale) == 0)
    return;
  g_strlcpy(app->locale, chosen, sizeof app->locale);
  g_idle_add(change_language, app); /* not while the row is in its own signal */
}

static void on_answer(AdwMessageDialog *dialog, const char *response, gpointer context) {
  json_int_t unsent = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(dialog), "unsent"));
  if (strcmp(response, "leave") == 0)
    host_do(context, "session_logout", json_pack("{s:s}", "unsent", "keep"));
  else if (strcmp(response, "discard") == 0)
    host_do(context, "session_logout",
            json_pack("{s:s, s:I}", "unsent", "discard", "confirm_unsent", unsent));
}

static void on_logout(GtkWidget *widget, gpointer context) {
  (void)widget;
  app *app = context;
  json_t *reply = host_call(app, "sync_status", NULL);
  const json_t *counts = json_object_get(reply, "counts");
  json_int_t unsent = number_at(counts, "pending") + number_at(counts, "sending") +
                      number_at(counts, "waiting") + number_at(counts, "parked");
  json_decref(reply);
  char *text =
      unsent == 0
          ? g_strdup(word("Everything you registered is sent."))
          : g_strdup_printf(
                unsent == 1 ? word("%d registration is not sent. It stays on this device, and is "
                                   "sent after your next sign-in.")
                            : word("%d registrations are not sent. They stay on this device, "
                                   "and are sent after your next sign-in."),
                (int)unsent);
  AdwMessageDialog *dialog = look_question(app, word("Log out?"), text);
  adw_message_dialog_add_responses(dialog, "stay", word("Stay"), "leave", word("Log out"), NULL);
  if (unsent > 0) {
    adw_message_dialog_add_response(dialog, "discard", word("Delete them and log out"));
    adw_message_dialog_set_response_appearance(dialog, "discard", ADW_RESPONSE_DESTRUCTIVE);
  }
  adw_message_dialog_set_default_response(dialog, "stay");
  adw_message_dialog_set_close_response(dialog, "stay");
  g_object_set_data(G_OBJECT(dialog), "unsent", GINT_TO_POINTER((int)unsent));
  g_signal_connect(dialog, "response", G_CALLBACK(on_answer), app);
  gtk_window_present(GTK_WINDOW(dialog));
  g_free(text);
}

void settings_show(app *app) {
  GtkWidget *row = part(&app->settings, "who");
  const char *name = who_name(app);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(row), name);
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, name,
                                 -1);
  gtk_widget_set_visible(row, *name != 0);
  window_open(app, "settings", NULL);
}

void settings_build(app *app) {
  app->settings = screen_build("settings");
  GtkStringList *names = gtk_string_list_new(NULL);
  guint selected = 0;
  for (guint i = 0; i < G_N_ELEMENTS(languages); i++) {
    gtk_string_list_append(names, languages[i][1]);
    if (strcmp(languages[i][0], app->locale) == 0)
      selected = i;
  }
  AdwComboRow *row = part(&app->settings, "language");
  adw_combo_row_set_model(row, G_LIST_MODEL(names));
  adw_combo_row_set_selected(row, selected);
  g_object_unref(names);
  g_signal_connect(row, "notify::selected", G_CALLBACK(on_language), app);
  g_signal_connect(part(&app->settings, "log_out"), "clicked", G_CALLBACK(on_logout), app);
}
