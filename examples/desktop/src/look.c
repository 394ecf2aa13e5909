/* What several screens show: banners, toasts, rows, times, questions. */
#include "app.h"

#include <string.h>

void look_clear(GtkListBox *list) {
  GtkWidget *row;
  while ((row = gtk_widget_get_first_child(GTK_WIDGET(list))) != NULL)
    gtk_list_box_remove(list, row);
}

void look_clear_box(GtkBox *box) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(box))) != NULL)
    gtk_box_remove(box, child);
}

char *look_time(json_int_t ms) {
  GDateTime *utc = g_date_time_new_from_unix_utc(ms / 1000);
  GDateTime *then = g_date_time_to_local(utc), *now = g_date_time_new_now_local();
  bool today = g_date_time_get_year(then) == g_date_time_get_year(now) &&
               g_date_time_get_day_of_year(then) == g_date_time_get_day_of_year(now);
  char *clock = g_date_time_format(then, "%H:%M"), *text;
  if (today) {
    text = g_strdup_printf("%s %s", word("today"), clock);
  } else {
    const char *months[] = {"January", "February", "March",     "April",   "May",      "June",
                            "July",    "August",   "September", "October", "November", "December"};
    text = g_strdup_printf(word("%d %s at %s"), g_date_time_get_day_of_month(then),
                           word(months[g_date_time_get_month(then) - 1]), clock);
  }
  g_free(clock);
  g_date_time_unref(utc);
  g_date_time_unref(then);
  g_date_time_unref(now);
  return text;
}

char *look_duration(json_int_t minutes) {
  if (minutes < 60)
    return g_strdup_printf(word("%d min"), (int)minutes);
  if (minutes % 60 == 0)
    return g_strdup_printf(word("%d h"), (int)(minutes / 60));
  return g_strdup_printf(word("%d h %d min"), (int)(minutes / 60), (int)(minutes % 60));
}

/* A strip with an icon and the library's text. It is announced as a status, not as an alarm. */
static GtkWidget *banner_new(const json_t *banner) {
  const char *tone = text_at(banner, "tone");
  /* Only what may be out of date has an age worth telling. */
  json_int_t as_of = is_text(banner, "code", "stale_data") ? number_at(banner, "as_of_ms") : 0;
  char *time = as_of > 0 ? look_time(as_of) : NULL;
  char *text = time == NULL ? g_strdup(text_at(banner, "text"))
                            : g_strdup_printf("%s %s %s.", text_at(banner, "text"),
                                              word("Last updated"), time);
  GtkWidget *strip = g_object_new(GTK_TYPE_BOX, "accessible-role", GTK_ACCESSIBLE_ROLE_STATUS,
                                  "spacing", 12, NULL);
  bool info = strcmp(tone, "info") == 0;
  GtkWidget *icon = gtk_image_new_from_icon_name(strcmp(text_at(banner, "code"), "offline") == 0
                                                     ? "network-offline-symbolic"
                                                 : info ? "dialog-information-symbolic"
                                                        : "dialog-warning-symbolic");
  g_object_set(icon, "accessible-role", GTK_ACCESSIBLE_ROLE_PRESENTATION, NULL);
  GtkWidget *label = gtk_label_new(text);
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  gtk_widget_set_hexpand(label, TRUE);
  gtk_box_append(GTK_BOX(strip), icon);
  gtk_box_append(GTK_BOX(strip), label);
  gtk_widget_add_css_class(strip, "notice");
  gtk_widget_add_css_class(strip, info ? "notice-info" : "notice-warning");
  g_free(text);
  g_free(time);
  return strip;
}

void look_banners(GtkBox *box, const json_t *banners) {
  size_t index;
  json_t *banner;
  look_clear_box(box);
  json_array_foreach((json_t *)banners, index, banner) gtk_box_append(box, banner_new(banner));
  gtk_widget_set_visible(GTK_WIDGET(box), json_array_size(banners) > 0);
}

/* One after the other. None is taken back early: libadwaita 1.2 uses a toast's memory after its end
 * if the toast goes while it still moves in. */
static void add_toast(app *app, const char *text, guint seconds) {
  AdwToast *toast = adw_toast_new("");
  GtkWidget *label = gtk_label_new(text); /* a toast's own title ends in an ellipsis */
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  gtk_widget_add_css_class(label, "heading");
  adw_toast_set_custom_title(toast, label);
  /* A test looks at a screen of a loaded machine. */
  adw_toast_set_timeout(toast, app->stage == NULL ? seconds : 2 * seconds);
  adw_toast_overlay_add_toast(app->toasts, toast);
}

void look_toast(app *app, const char *text) { add_toast(app, text, 5); }

void look_confirm(app *app, const char *text) { add_toast(app, text, 2); }

bool look_is_told(app *app, const char *code) {
  size_t index;
  json_t *banner;
  bool told = false;
  json_array_foreach(json_object_get(app->decision, "banners"), index, banner) told =
      told || is_text(banner, "code", code);
  return told;
}

void look_own_banners(app *app, GtkBox *box, const json_t *banners) {
  json_t *left = json_array(), *banner;
  size_t index;
  json_array_foreach((json_t *)banners, index,
                     banner) if (!look_is_told(app, text_at(banner, "code")))
      json_array_append(left, banner);
  look_banners(box, left);
  json_decref(left);
}

void look_wrap(GtkButton *button) {
  GtkLabel *label = GTK_LABEL(gtk_button_get_child(button));
  gtk_label_set_wrap(label, TRUE);
  gtk_label_set_justify(label, GTK_JUSTIFY_CENTER);
}

GtkWidget *look_action(const char *label, const char *what) {
  GtkWidget *button = gtk_button_new_with_label(label);
  look_wrap(GTK_BUTTON(button));
  char *spoken = g_strdup_printf("%s: %s", label, what);
  gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, spoken, -1);
  g_free(spoken);
  return button;
}

GtkWidget *look_row(const char *title, const char *subtitle) {
  GtkWidget *row = adw_action_row_new();
  adw_preferences_row_set_use_markup(ADW_PREFERENCES_ROW(row), FALSE);
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(row), subtitle);
  /* The title is the row's name already. */
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, subtitle,
                                 -1);
  return row;
}

AdwMessageDialog *look_question(app *app, const char *title, const char *body) {
  g_set_weak_pointer(&app->question,
                     ADW_MESSAGE_DIALOG(adw_message_dialog_new(app->window, title, body)));
  return app->question;
}
