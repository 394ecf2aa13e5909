/* The form that registers an activity, or edits one of the outbox. What the server would refuse is
 * said here, before the item is queued. */
#include "app.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTES_MOST = 1440, NOTE_MOST = 4000 };

static const char *const types[][2] = {
    {"visit", "Visit"}, {"call", "Phone call"}, {"meeting", "Meeting"}, {"walk", "Walk"}};

const char *entry_type_name(const char *type) {
  for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
    if (strcmp(types[i][0], type) == 0)
      return word(types[i][1]);
  return type; /* of another version of this app */
}

/* ---- the day ---- */

/* Whether the chosen day has not begun. */
static bool is_future(app *app) {
  GDateTime *day = gtk_calendar_get_date(part(&app->entry, "calendar"));
  GDateTime *now = g_date_time_new_now_local();
  int years = g_date_time_get_year(day) - g_date_time_get_year(now);
  int days = g_date_time_get_day_of_year(day) - g_date_time_get_day_of_year(now);
  g_date_time_unref(day);
  g_date_time_unref(now);
  return years > 0 || (years == 0 && days > 0);
}

/* Says at the day whether it can be saved. */
static void check_day(app *app) {
  AdwActionRow *row = part(&app->entry, "day_row");
  bool future = is_future(app);
  const char *mistake =
      future ? word("This day is in the future. Choose today or an earlier day.") : "";
  adw_action_row_set_subtitle(row, mistake);
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, mistake,
                                 -1);
  gtk_accessible_update_state(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_STATE_INVALID,
                              future ? GTK_ACCESSIBLE_INVALID_TRUE : GTK_ACCESSIBLE_INVALID_FALSE,
                              -1);
  if (future)
    gtk_widget_add_css_class(GTK_WIDGET(row), "error");
  else
    gtk_widget_remove_css_class(GTK_WIDGET(row), "error");
}

/* Shows the chosen day on the button. Leafing through months and years chooses days, too. */
static void show_day(GtkCalendar *calendar, gpointer context) {
  app *app = context;
  GDateTime *day = gtk_calendar_get_date(calendar);
  const char *months[] = {"January", "February", "March",     "April",   "May",      "June",
                          "July",    "August",   "September", "October", "November", "December"};
  char *text = g_strdup_printf(word("%d %s"), g_date_time_get_day_of_month(day),
                               word(months[g_date_time_get_month(day) - 1]));
  gtk_menu_button_set_label(part(&app->entry, "day"), text);
  check_day(app);
  g_free(text);
  g_date_time_unref(day);
}

static void on_day(GtkCalendar *calendar, gpointer context) {
  app *app = context;
  show_day(calendar, app);
  gtk_menu_button_popdown(part(&app->entry, "day"));
}

/* An edit may have moved it; a payload's own time counts for the server. */
json_int_t entry_occurred_ms(const json_t *item) {
  const char *moved = text_at(json_object_get(item, "payload"), "occurred_at");
  GDateTime *then = g_date_time_new_from_iso8601(moved, NULL);
  json_int_t ms = then == NULL ? number_at(item, "occurred_at_ms")
                               : (json_int_t)g_date_time_to_unix(then) * 1000;
  g_clear_pointer(&then, g_date_time_unref);
  return ms;
}

/* When the activity was before this form: an item's moment; for a new one, now. */
static GDateTime *before(app *app) {
  if (app->edited == NULL)
    return g_date_time_new_now_local();
  GDateTime *utc = g_date_time_new_from_unix_utc(entry_occurred_ms(app->edited) / 1000);
  GDateTime *local = g_date_time_to_local(utc);
  g_date_time_unref(utc);
  return local;
}

static void choose_day(app *app) {
  GDateTime *day = before(app);
  gtk_calendar_select_day(part(&app->entry, "calendar"), day);
  show_day(part(&app->entry, "calendar"), app);
  g_date_time_unref(day);
}

/* The chosen day, at the time of the day that it had. In the hour that the clock repeats in autumn,
 * that can be later than now; the present is the latest. */
static gint64 chosen_ms(app *app) {
  GDateTime *day = gtk_calendar_get_date(part(&app->entry, "calendar"));
  GDateTime *now = g_date_time_new_now_local(), *time = before(app);
  GDateTime *then = g_date_time_new_local(
      g_date_time_get_year(day), g_date_time_get_month(day), g_date_time_get_day_of_month(day),
      g_date_time_get_hour(time), g_date_time_get_minute(time), 0);
  gint64 ms = MIN(g_date_time_to_unix(then), g_date_time_to_unix(now)) * 1000;
  g_date_time_unref(day);
  g_date_time_unref(now);
  g_date_time_unref(time);
  g_date_time_unref(then);
  return ms;
}

/* Whether another day was chosen than the activity had. */
static bool is_moved(app *app) {
  GDateTime *day = gtk_calendar_get_date(part(&app->entry, "calendar")), *had = before(app);
  bool moved = g_date_time_get_year(day) != g_date_time_get_year(had) ||
               g_date_time_get_day_of_year(day) != g_date_time_get_day_of_year(had);
  g_date_time_unref(day);
  g_date_time_unref(had);
  return moved;
}

static void set_moment(json_t *payload, gint64 ms) {
  GDateTime *utc = g_date_time_new_from_unix_utc(ms / 1000);
  char *text = g_date_time_format_iso8601(utc);
  json_object_set_new(payload, "occurred_at", json_string(text));
  g_free(text);
  g_date_time_unref(utc);
}

/* ---- the contact ---- */

/* Fills the list of contacts: nobody, then by name. Their ids are kept beside it. */
static void fill_contacts(app *app, const char *chosen) {
  GtkStringList *names = gtk_string_list_new(NULL);
  GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);
  guint selected = 0;
  json_t *reply =
             host_call(app, "contact_search", json_pack("{s:s, s:i}", "query", "", "limit", 200)),
         *contact;
  size_t index;
  gtk_string_list_append(names, word("Nobody in particular"));
  g_ptr_array_add(ids, g_strdup(""));
  json_array_foreach(json_object_get(reply, "contacts"), index, contact) {
    gtk_string_list_append(names, text_at(contact, "name"));
    g_ptr_array_add(ids, g_strdup(text_at(contact, "id")));
    if (chosen != NULL && is_text(contact, "id", chosen))
      selected = (guint)index + 1;
  }
  AdwComboRow *row = part(&app->entry, "with");
  adw_combo_row_set_model(row, G_LIST_MODEL(names));
  adw_combo_row_set_selected(row, selected);
  g_object_set_data_full(G_OBJECT(row), "ids", ids, (GDestroyNotify)g_ptr_array_unref);
  g_object_unref(names);
  json_decref(reply);
}

static const char *chosen_contact(app *app) {
  AdwComboRow *row = part(&app->entry, "with");
  GPtrArray *ids = g_object_get_data(G_OBJECT(row), "ids");
  guint selected = adw_combo_row_get_selected(row);
  return selected < ids->len ? g_ptr_array_index(ids, selected) : "";
}

/* ---- checks ---- */

static void show_mistake(app *app, const char *text, GtkWidget *field) {
  GtkLabel *label = part(&app->entry, "mistake");
  gtk_label_set_text(label, text);
  gtk_widget_set_visible(GTK_WIDGET(label), *text != 0);
  gtk_widget_remove_css_class(part(&app->entry, "minutes"), "error");
  gtk_widget_remove_css_class(part(&app->entry, "note"), "error");
  if (field != NULL) {
    gtk_widget_add_css_class(field, "error");
    gtk_widget_grab_focus(field);
  }
}

static bool is_complete(app *app, json_int_t *minutes, const char *note) {
  const char *text = gtk_editable_get_text(part(&app->entry, "minutes"));
  char *rest = NULL;
  long value = strtol(text, &rest, 10);
  if (rest == text || *rest != 0 || value < 1 || value > MINUTES_MOST) {
    show_mistake(app, word("Write the number of minutes, from 1 to 1440."),
                 part(&app->entry, "minutes"));
    return false;
  }
  check_day(app); /* the form may have been open at midnight */
  if (is_future(app)) {
    show_mistake(app, "", NULL);
    gtk_widget_grab_focus(part(&app->entry, "day"));
    return false;
  }
  if (g_utf8_strlen(note, -1) > NOTE_MOST) {
    show_mistake(app, word("The note may have at most 4000 characters."),
                 part(&app->entry, "note"));
    return false;
  }
  *minutes = value;
  show_mistake(app, "", NULL);
  return true;
}

/* ---- saving ---- */

/* The item's payload: that of the edited one, with what the form changes. */
static json_t *payload_of(app *app, json_int_t minutes, const char *note) {
  json_t *payload =
      app->edited == NULL ? json_object() : json_deep_copy(json_object_get(app->edited, "payload"));
  guint type = adw_combo_row_get_selected(part(&app->entry, "type"));
  const char *contact = chosen_contact(app);
  if (type < G_N_ELEMENTS(types)) /* else it stays as it was */
    json_object_set_new(payload, "type", json_string(types[type][0]));
  json_object_set_new(payload, "minutes", json_integer(minutes));
  json_object_set_new(payload, "contact_id", *contact == 0 ? json_null() : json_string(contact));
  json_object_set_new(payload, "note", *note == 0 ? json_null() : json_string(note));
  if (app->edited != NULL && is_moved(app))
    set_moment(payload, chosen_ms(app));
  return payload;
}

static void on_save(GtkWidget *widget, gpointer context) {
  (void)widget;
  app *app = context;
  const char *note = gtk_editable_get_text(part(&app->entry, "note"));
  json_int_t minutes = 0;
  if (!is_complete(app, &minutes, note))
    return;
  json_t *payload = payload_of(app, minutes, note);
  json_t *reply =
      app->edited != NULL
          ? host_call(app, "queue_edit",
                      json_pack("{s:s, s:o}", "id", text_at(app->edited, "id"), "payload", payload))
          : host_call(app, "queue_add",
                      json_pack("{s:s, s:o, s:I}", "kind", "activity", "payload", payload,
                                "occurred_at_ms", (json_int_t)chosen_ms(app)));
  const char *error = host_error(reply);
  if (error != NULL) {
    show_mistake(app, error, NULL);
  } else {
    look_confirm(app, app->edited != NULL ? word("Changed.") : word("Registered."));
    window_open(app, NULL, NULL);
    window_refresh(app);
  }
  json_decref(reply);
}

void entry_build(app *app) {
  app->entry = screen_build("entry");
  GtkStringList *names = gtk_string_list_new(NULL);
  for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
    gtk_string_list_append(names, word(types[i][1]));
  adw_combo_row_set_model(part(&app->entry, "type"), G_LIST_MODEL(names));
  g_object_unref(names);
  GtkCalendar *calendar = part(&app->entry, "calendar");
  g_signal_connect(calendar, "day-selected", G_CALLBACK(on_day), app);
  const char *leafed[] = {"prev-month", "next-month", "prev-year", "next-year"};
  for (size_t i = 0; i < G_N_ELEMENTS(leafed); i++)
    g_signal_connect(calendar, leafed[i], G_CALLBACK(show_day), app);
  g_signal_connect(part(&app->entry, "save"), "clicked", G_CALLBACK(on_save), app);
  g_signal_connect(part(&app->entry, "minutes"), "entry-activated", G_CALLBACK(on_save), app);
  g_signal_connect(part(&app->entry, "note"), "entry-activated", G_CALLBACK(on_save), app);
}

void entry_show(app *app, const char *contact_id, const json_t *item) {
  const json_t *payload = json_object_get(item, "payload");
  json_decref(app->edited);
  app->edited = json_deep_copy(item);
  guint type = item == NULL ? 0 : GTK_INVALID_LIST_POSITION; /* of another version of this app */
  for (guint i = 0; i < G_N_ELEMENTS(types); i++)
    if (is_text(payload, "type", types[i][0]))
      type = i;
  char *minutes = item == NULL
                      ? g_strdup("")
                      : g_strdup_printf("%" JSON_INTEGER_FORMAT, number_at(payload, "minutes"));
  adw_combo_row_set_selected(part(&app->entry, "type"), type);
  gtk_editable_set_text(part(&app->entry, "minutes"), minutes);
  gtk_editable_set_text(part(&app->entry, "note"), text_at(payload, "note"));
  fill_contacts(app, item == NULL ? contact_id : text_at(payload, "contact_id"));
  choose_day(app);
  gtk_label_set_text(part(&app->entry, "entry_title"),
                     item == NULL ? word("Register an activity") : word("Edit the registration"));
  show_mistake(app, "", NULL);
  g_free(minutes);
  window_open(app, "entry", "/activities/new");
  gtk_widget_grab_focus(part(&app->entry, "minutes")); /* the field that everybody fills */
}
