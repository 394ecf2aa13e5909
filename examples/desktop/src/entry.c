/* The form that registers an activity, or edits one of the outbox. What the server would refuse is
 * said here, before the item is queued.
 *
 * A form is a JSON object of texts: type, minutes, note, contact_id, day, time. What it shows when
 * it is opened is kept beside it: only what differs is saved, so what the form cannot show stays as
 * it is. A form that is left before it is saved is kept in memory, and offered to the same user
 * again.
 */
#include "app.h"

#include <stdio.h>
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

/* ---- the day and the time ---- */

/* What is written in a field of the time. One that is being written may be empty. */
static int time_part(app *app, const char *id) {
  GtkSpinButton *field = part(&app->entry, id);
  double least = 0, most = 0;
  gtk_spin_button_get_range(field, &least, &most);
  const char *text = gtk_editable_get_text(GTK_EDITABLE(field));
  char *rest = NULL;
  long value = strtol(text, &rest, 10);
  bool is_valid = rest != text && *rest == 0 && value >= (long)least && value <= (long)most;
  return is_valid ? (int)value : gtk_spin_button_get_value_as_int(field);
}

/* A day, and a minute of it. Compared as on the wall: in autumn the clock repeats an hour, and both
 * look alike. */
static int day_number(GDateTime *day) {
  return g_date_time_get_year(day) * 400 + g_date_time_get_day_of_year(day);
}

typedef enum { MOMENT_PAST, MOMENT_LATER_DAY, MOMENT_LATER_TIME } moment_kind;

/* Whether the chosen moment has not come. */
static moment_kind kind_of_moment(app *app) {
  GDateTime *day = gtk_calendar_get_date(part(&app->entry, "calendar"));
  GDateTime *now = g_date_time_new_now_local();
  int days = day_number(day) - day_number(now);
  int minutes = (time_part(app, "hour") - g_date_time_get_hour(now)) * 60 +
                time_part(app, "minute") - g_date_time_get_minute(now);
  g_date_time_unref(day);
  g_date_time_unref(now);
  return days > 0 ? MOMENT_LATER_DAY : days == 0 && minutes > 0 ? MOMENT_LATER_TIME : MOMENT_PAST;
}

/* Says at a row what is wrong with it; "": nothing is. */
static void say_at(AdwActionRow *row, const char *mistake) {
  bool wrong = *mistake != 0;
  adw_action_row_set_subtitle(row, mistake);
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, mistake,
                                 -1);
  gtk_accessible_update_state(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_STATE_INVALID,
                              wrong ? GTK_ACCESSIBLE_INVALID_TRUE : GTK_ACCESSIBLE_INVALID_FALSE,
                              -1);
  if (wrong)
    gtk_widget_add_css_class(GTK_WIDGET(row), "error");
  else
    gtk_widget_remove_css_class(GTK_WIDGET(row), "error");
}

/* Says at the day and at the time whether they can be saved. */
static moment_kind check_moment(app *app) {
  moment_kind kind = kind_of_moment(app);
  say_at(part(&app->entry, "day_row"),
         kind == MOMENT_LATER_DAY
             ? word("This day is in the future. Choose today or an earlier day.")
             : "");
  say_at(part(&app->entry, "time_row"),
         kind == MOMENT_LATER_TIME ? word("This time has not come yet. Choose an earlier one.")
                                   : "");
  return kind;
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
  check_moment(app);
  g_free(text);
  g_date_time_unref(day);
}

static void on_day(GtkCalendar *calendar, gpointer context) {
  app *app = context;
  show_day(calendar, app);
  gtk_menu_button_popdown(part(&app->entry, "day"));
}

static char *time_text(int hour, int minute) { return g_strdup_printf("%02d:%02d", hour, minute); }

/* Shows the chosen time on the button, also while it is being written. */
static void show_time(GtkWidget *field, gpointer context) {
  (void)field;
  app *app = context;
  char *text = time_text(time_part(app, "hour"), time_part(app, "minute"));
  gtk_menu_button_set_label(part(&app->entry, "time"), text);
  check_moment(app);
  g_free(text);
}

/* Two digits. */
static gboolean on_time_output(GtkSpinButton *field, gpointer context) {
  (void)context;
  char *text = g_strdup_printf("%02d", gtk_spin_button_get_value_as_int(field));
  if (strcmp(text, gtk_editable_get_text(GTK_EDITABLE(field))) != 0)
    gtk_editable_set_text(GTK_EDITABLE(field), text);
  g_free(text);
  return TRUE;
}

/* Enter takes the time that is written. */
static void on_time_entered(GtkWidget *text, gpointer context) {
  (void)text;
  app *app = context;
  gtk_menu_button_popdown(part(&app->entry, "time"));
}

static void set_time(app *app, int hour, int minute) {
  gtk_spin_button_set_value(part(&app->entry, "hour"), hour);
  gtk_spin_button_set_value(part(&app->entry, "minute"), minute);
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

/* The chosen day and time. In the hour that the clock repeats in autumn, that can be later than
 * now; the present is the latest. */
static gint64 chosen_ms(app *app) {
  GDateTime *day = gtk_calendar_get_date(part(&app->entry, "calendar"));
  GDateTime *now = g_date_time_new_now_local();
  GDateTime *then = g_date_time_new_local(g_date_time_get_year(day), g_date_time_get_month(day),
                                          g_date_time_get_day_of_month(day), time_part(app, "hour"),
                                          time_part(app, "minute"), 0);
  gint64 ms = MIN(g_date_time_to_unix(then), g_date_time_to_unix(now)) * 1000;
  g_date_time_unref(day);
  g_date_time_unref(now);
  g_date_time_unref(then);
  return ms;
}

static void set_moment(json_t *payload, gint64 ms) {
  GDateTime *utc = g_date_time_new_from_unix_utc(ms / 1000);
  char *text = g_date_time_format_iso8601(utc);
  json_object_set_new(payload, "occurred_at", json_string(text));
  g_free(text);
  g_date_time_unref(utc);
}

/* ---- the contact ---- */

enum { HITS_MOST = 8 };

static const char *chosen_contact(app *app) {
  const char *id = g_object_get_data(part(&app->entry, "with"), "contact");
  return id == NULL ? "" : id;
}

/* The contact's name; one that is not kept on this computer has none. */
static void choose_contact(app *app, const char *id) {
  AdwExpanderRow *row = part(&app->entry, "with");
  char *found = contact_name(app, id);
  const char *name = found != NULL ? found
                     : *id == 0    ? word("Nobody in particular")
                                   : word("A contact that is not kept here");
  char *kept = g_strdup(id); /* `id` may be the one that is replaced */
  g_object_set_data_full(G_OBJECT(row), "contact", kept, g_free);
  adw_expander_row_set_subtitle(row, name);
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, name,
                                 -1);
  adw_expander_row_set_expanded(row, FALSE);
  gtk_editable_set_text(part(&app->entry, "find"), "");
  g_free(found);
}

static void on_hit(GtkWidget *row, gpointer context) {
  choose_contact(context, g_object_get_data(G_OBJECT(row), "contact"));
}

static void add_hit(app *app, const char *name, const char *place, const char *id) {
  AdwExpanderRow *with = part(&app->entry, "with");
  GPtrArray *hits = g_object_get_data(G_OBJECT(with), "hits");
  GtkWidget *row = look_row(name, place);
  if (id != NULL) {
    gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(row), TRUE);
    g_object_set_data_full(G_OBJECT(row), "contact", g_strdup(id), g_free);
    g_signal_connect(row, "activated", G_CALLBACK(on_hit), app);
  }
  adw_expander_row_add_row(with, row);
  g_ptr_array_add(hits, row);
}

static void clear_hits(app *app) {
  AdwExpanderRow *with = part(&app->entry, "with");
  GPtrArray *hits = g_object_get_data(G_OBJECT(with), "hits");
  for (guint i = 0; i < hits->len; i++)
    adw_expander_row_remove(with, g_ptr_array_index(hits, i));
  g_ptr_array_set_size(hits, 0);
}

/* The first contacts that match what is written, and nobody. */
static void find_contacts(GtkWidget *widget, gpointer context) {
  (void)widget;
  app *app = context;
  const char *query = gtk_editable_get_text(part(&app->entry, "find"));
  clear_hits(app);
  if (!adw_expander_row_get_expanded(part(&app->entry, "with")))
    return;
  json_t *reply = host_call(app, "contact_search",
                            json_pack("{s:s, s:i}", "query", query, "limit", HITS_MOST)),
         *contact;
  const json_t *found = json_object_get(reply, "contacts");
  size_t index;
  json_array_foreach((json_t *)found, index, contact) add_hit(
      app, text_at(contact, "name"), text_at(contact, "municipality"), text_at(contact, "id"));
  json_int_t total = number_at(reply, "total"), shown = (json_int_t)json_array_size(found);
  if (total > shown) {
    char *count = g_strdup_printf(word("%d of %d contacts"), (int)shown, (int)total);
    add_hit(app, count, "", NULL);
    g_free(count);
  } else if (total == 0) {
    add_hit(app, word("No contact has this name or municipality."), "", NULL);
  }
  if (*query == 0)
    add_hit(app, word("Nobody in particular"), "", "");
  json_decref(reply);
}

static void on_expanded(GObject *row, GParamSpec *what, gpointer context) {
  (void)what;
  app *app = context;
  find_contacts(NULL, app);
  if (adw_expander_row_get_expanded(ADW_EXPANDER_ROW(row)))
    gtk_widget_grab_focus(part(&app->entry, "find"));
}

/* Enter takes the first one. */
static void on_find(GtkWidget *widget, gpointer context) {
  (void)widget;
  app *app = context;
  GPtrArray *hits = g_object_get_data(part(&app->entry, "with"), "hits");
  const char *id = hits->len == 0 ? NULL : g_object_get_data(g_ptr_array_index(hits, 0), "contact");
  if (id != NULL)
    choose_contact(app, id);
}

/* ---- the form ---- */

static char *day_text(GDateTime *day) { return g_date_time_format(day, "%F"); }

static json_t *form_read(app *app) {
  guint type = adw_combo_row_get_selected(part(&app->entry, "type"));
  GDateTime *chosen = gtk_calendar_get_date(part(&app->entry, "calendar"));
  char *day = day_text(chosen);
  char *time = time_text(time_part(app, "hour"), time_part(app, "minute"));
  json_t *form = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "type",
                           type < G_N_ELEMENTS(types) ? types[type][0] : "", "minutes",
                           gtk_editable_get_text(part(&app->entry, "minutes")), "note",
                           gtk_editable_get_text(part(&app->entry, "note")), "contact_id",
                           chosen_contact(app), "day", day, "time", time);
  g_free(day);
  g_free(time);
  g_date_time_unref(chosen);
  return form;
}

static void form_write(app *app, const json_t *form) {
  guint type = GTK_INVALID_LIST_POSITION; /* of another version of this app */
  for (guint i = 0; i < G_N_ELEMENTS(types); i++)
    if (is_text(form, "type", types[i][0]))
      type = i;
  adw_combo_row_set_selected(part(&app->entry, "type"), type);
  gtk_editable_set_text(part(&app->entry, "minutes"), text_at(form, "minutes"));
  gtk_editable_set_text(part(&app->entry, "note"), text_at(form, "note"));
  choose_contact(app, text_at(form, "contact_id"));
  int year = 0, month = 0, date = 0;
  if (sscanf(text_at(form, "day"), "%d-%d-%d", &year, &month, &date) == 3) {
    GDateTime *day = g_date_time_new_local(year, month, date, 0, 0, 0);
    gtk_calendar_select_day(part(&app->entry, "calendar"), day);
    g_date_time_unref(day);
  }
  int hour = 0, minute = 0;
  if (sscanf(text_at(form, "time"), "%d:%d", &hour, &minute) == 2)
    set_time(app, hour, minute);
  show_day(part(&app->entry, "calendar"), app);
  show_time(NULL, app);
}

/* Whether the user has changed a field. */
static bool is_changed(const json_t *before, const json_t *now, const char *field) {
  return !is_text(before, field, text_at(now, field));
}

/* What the form shows of an item, or of a new activity. */
static json_t *form_of(app *app, const char *contact_id, const json_t *item) {
  const json_t *payload = json_object_get(item, "payload");
  GDateTime *moment = before(app);
  char *day = day_text(moment);
  char *time = time_text(g_date_time_get_hour(moment), g_date_time_get_minute(moment));
  char *minutes = item == NULL
                      ? g_strdup("")
                      : g_strdup_printf("%" JSON_INTEGER_FORMAT, number_at(payload, "minutes"));
  json_t *form = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "type",
                           item == NULL ? types[0][0] : text_at(payload, "type"), "minutes",
                           minutes, "note", text_at(payload, "note"), "contact_id",
                           item != NULL         ? text_at(payload, "contact_id")
                           : contact_id != NULL ? contact_id
                                                : "",
                           "day", day, "time", time);
  g_free(day);
  g_free(time);
  g_free(minutes);
  g_date_time_unref(moment);
  return form;
}

/* ---- drafts ---- */

/* Whose form this is: the user and the organisation. */
static char *owner(app *app) {
  json_t *status = host_call(app, "session_status", NULL);
  char *both = g_strconcat(text_at(status, "user_id"), " ",
                           text_at(json_object_get(app->decision, "org"), "id"), NULL);
  json_decref(status);
  return both;
}

static void drop_draft(app *app) {
  json_decref(app->draft);
  app->draft = NULL;
  gtk_widget_set_visible(part(&app->entry, "offered"), FALSE);
}

/* Whether the draft belongs to this form. */
static bool is_draft_of(app *app, const char *owner, const json_t *item) {
  return is_text(app->draft, "owner", owner) &&
         is_text(json_object_get(app->draft, "item"), "id", text_at(item, "id"));
}

/* What is kept of a form. Of an item only what its user has written: the rest may be another one
 * when the form is opened again. */
static json_t *written(const app *app, json_t *now) {
  if (app->edited == NULL)
    return json_incref(now);
  const json_t *shown = json_object_get(app->form, "shown");
  json_t *fields = json_object(), *text;
  const char *field;
  json_object_foreach(now, field, text) if (is_changed(shown, now, field))
      json_object_set(fields, field, text);
  return fields;
}

void entry_leave(app *app) {
  if (app->form == NULL)
    return;
  json_t *now = form_read(app);
  bool is_written = !json_equal(now, json_object_get(app->form, "shown"));
  if (is_written || is_draft_of(app, text_at(app->form, "owner"), app->edited))
    drop_draft(app);
  if (is_written)
    app->draft = json_pack("{s:O, s:O, s:o}", "owner", json_object_get(app->form, "owner"), "item",
                           json_object_get(app->form, "item"), "form", written(app, now));
  json_decref(now);
  json_decref(app->form);
  app->form = NULL;
}

void entry_forget(app *app, bool lasting) {
  bool was_open = app->form != NULL;
  entry_leave(app);
  if (was_open && app->draft != NULL)
    json_object_set_new(app->draft, "returns", json_true());
  if (lasting)
    drop_draft(app);
  json_decref(app->edited);
  app->edited = NULL;
  form_write(app, NULL);
  clear_hits(app);
}

void entry_return(app *app) {
  if (!json_is_true(json_object_get(app->draft, "returns")))
    return;
  json_object_del(app->draft, "returns");
  char *mine = owner(app);
  const json_t *item = json_object_get(app->draft, "item");
  if (is_text(app->draft, "owner", mine) &&
      !entry_show(app, NULL, json_object_size(item) == 0 ? NULL : item))
    json_object_set_new(app->draft, "returns", json_true()); /* the access is checked first */
  g_free(mine);
}

static void on_start_over(GtkButton *button, gpointer context) {
  (void)button;
  app *app = context;
  drop_draft(app);
  form_write(app, json_object_get(app->form, "shown"));
  gtk_widget_grab_focus(part(&app->entry, "minutes"));
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
  moment_kind moment = check_moment(app); /* the clock may have been set back meanwhile */
  if (moment != MOMENT_PAST) {
    show_mistake(app, "", NULL);
    gtk_widget_grab_focus(part(&app->entry, moment == MOMENT_LATER_DAY ? "day" : "time"));
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

/* What is saved; of an item that is edited only what the user has changed. */
static json_t *payload_of(app *app, const json_t *form, json_int_t minutes) {
  const json_t *shown = app->edited == NULL ? NULL : json_object_get(app->form, "shown");
  json_t *payload = json_object();
  const char *const texts[] = {"type", "contact_id", "note"};
  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
    const char *text = text_at(form, texts[i]);
    if (shown == NULL || is_changed(shown, form, texts[i]))
      json_object_set_new(payload, texts[i], *text == 0 ? json_null() : json_string(text));
  }
  if (shown == NULL || is_changed(shown, form, "minutes"))
    json_object_set_new(payload, "minutes", json_integer(minutes));
  if (shown != NULL && (is_changed(shown, form, "day") || is_changed(shown, form, "time")))
    set_moment(payload, chosen_ms(app));
  return payload;
}

/* Queues the payload, or the change of what the user saw. */
static json_t *save(app *app, json_t *payload) {
  if (app->edited == NULL)
    return host_call(app, "queue_add",
                     json_pack("{s:s, s:O, s:I}", "kind", "activity", "payload", payload,
                               "occurred_at_ms", (json_int_t)chosen_ms(app)));
  return host_call(app, "queue_edit",
                   json_pack("{s:s, s:O, s:O*}", "id", text_at(app->edited, "id"), "payload",
                             payload, "base", item_base(app->edited)));
}

/* Somebody else has written since the form was opened: the user is told, and may save again. */
static void tell_changes(app *app, const json_t *payload) {
  const json_t *now = activities_item(app, text_at(app->edited, "id"));
  if (now == NULL)
    return;
  json_t *columns = json_array(), *mine;
  const char *name;
  json_object_foreach((json_t *)payload, name, mine) {
    json_t *base = json_object_get(json_object_get(app->edited, "payload"), name);
    json_t *theirs = json_object_get(json_object_get(now, "payload"), name);
    if (!item_is_same(base, theirs))
      json_array_append_new(columns, json_pack("{s:s, s:O?, s:O?, s:O}", "name", name, "base", base,
                                               "theirs", theirs, "mine", mine));
  }
  char *text = item_conflict(app, columns, false);
  show_mistake(app, text, NULL);
  g_free(text);
  json_decref(columns);
  json_decref(app->edited);
  app->edited = json_deep_copy(now);
}

/* The form is saved: nothing is left to keep. */
static void leave_saved(app *app) {
  if (is_draft_of(app, text_at(app->form, "owner"), app->edited))
    drop_draft(app);
  json_decref(app->form);
  app->form = NULL;
  window_open(app, NULL, NULL);
  window_refresh(app);
}

static void on_save(GtkWidget *widget, gpointer context) {
  (void)widget;
  app *app = context;
  const char *note = gtk_editable_get_text(part(&app->entry, "note"));
  json_int_t minutes = 0;
  if (!is_complete(app, &minutes, note))
    return;
  json_t *form = form_read(app), *payload = payload_of(app, form, minutes);
  json_decref(form);
  json_t *reply = save(app, payload);
  const char *error = host_error(reply);
  if (is_text(json_object_get(reply, "error"), "code", "queue.changed")) {
    tell_changes(app, payload);
  } else if (error != NULL) {
    show_mistake(app, error, NULL);
  } else {
    if (json_object_size(payload) > 0)
      look_confirm(app, app->edited != NULL ? word("Changed.") : word("Registered."));
    leave_saved(app);
  }
  json_decref(payload);
  json_decref(reply);
}

/* ---- usual durations ---- */

static const struct {
  const char *button, *label;
  int minutes;
} usual[] = {{"usual_0", "½ h", 30}, {"usual_1", "1 h", 60}, {"usual_2", "1½ h", 90}};

static void on_usual(GtkButton *button, gpointer context) {
  app *app = context;
  for (size_t i = 0; i < G_N_ELEMENTS(usual); i++)
    if (part(&app->entry, usual[i].button) == button) {
      char *minutes = g_strdup_printf("%d", usual[i].minutes);
      gtk_editable_set_text(part(&app->entry, "minutes"), minutes);
      g_free(minutes);
    }
}

/* A screen reader may not know the fraction. */
static void build_usual(app *app) {
  for (size_t i = 0; i < G_N_ELEMENTS(usual); i++) {
    GtkWidget *button = part(&app->entry, usual[i].button);
    char *spoken = g_strdup_printf(word("%s, %d minutes"), word(usual[i].label), usual[i].minutes);
    gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, spoken,
                                   -1);
    g_signal_connect(button, "clicked", G_CALLBACK(on_usual), app);
    g_free(spoken);
  }
}

static void build_time(app *app) {
  const char *const fields[] = {"hour", "minute"};
  for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
    GtkEditable *field = part(&app->entry, fields[i]);
    g_signal_connect(field, "output", G_CALLBACK(on_time_output), app);
    g_signal_connect(field, "changed", G_CALLBACK(show_time), app);
    g_signal_connect(gtk_editable_get_delegate(field), "activate", G_CALLBACK(on_time_entered),
                     app);
  }
}

void entry_build(app *app) {
  app->entry = screen_build("entry");
  GtkStringList *names = gtk_string_list_new(NULL);
  for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
    gtk_string_list_append(names, word(types[i][1]));
  adw_combo_row_set_model(part(&app->entry, "type"), G_LIST_MODEL(names));
  g_object_unref(names);
  g_object_set_data_full(part(&app->entry, "with"), "hits", g_ptr_array_new(),
                         (GDestroyNotify)g_ptr_array_unref);
  g_signal_connect(part(&app->entry, "with"), "notify::expanded", G_CALLBACK(on_expanded), app);
  g_signal_connect(part(&app->entry, "find"), "changed", G_CALLBACK(find_contacts), app);
  g_signal_connect(part(&app->entry, "find"), "entry-activated", G_CALLBACK(on_find), app);
  g_signal_connect(part(&app->entry, "start_over"), "clicked", G_CALLBACK(on_start_over), app);
  GtkCalendar *calendar = part(&app->entry, "calendar");
  g_signal_connect(calendar, "day-selected", G_CALLBACK(on_day), app);
  const char *leafed[] = {"prev-month", "next-month", "prev-year", "next-year"};
  for (size_t i = 0; i < G_N_ELEMENTS(leafed); i++)
    g_signal_connect(calendar, leafed[i], G_CALLBACK(show_day), app);
  build_time(app);
  build_usual(app);
  g_signal_connect(part(&app->entry, "save"), "clicked", G_CALLBACK(on_save), app);
  g_signal_connect(part(&app->entry, "minutes"), "entry-activated", G_CALLBACK(on_save), app);
  g_signal_connect(part(&app->entry, "note"), "entry-activated", G_CALLBACK(on_save), app);
}

bool entry_show(app *app, const char *contact_id, const json_t *item) {
  json_t *kept = json_deep_copy(item); /* NULL of NULL */
  if (!window_open(app, "entry", "/activities/new")) {
    json_decref(kept);
    return false;
  }
  json_decref(app->edited);
  app->edited = kept;
  char *mine = owner(app);
  json_t *shown = form_of(app, contact_id, item);
  form_write(app, shown);
  if (app->draft != NULL && !is_text(app->draft, "owner", mine))
    drop_draft(app);
  bool offered = app->draft != NULL && is_draft_of(app, mine, item);
  if (offered) {
    json_t *both = json_copy(shown);
    json_object_update(both, json_object_get(app->draft, "form"));
    form_write(app, both);
    json_decref(both);
  }
  if (offered && contact_id != NULL) /* from the contact's page */
    choose_contact(app, contact_id);
  gtk_widget_set_visible(part(&app->entry, "offered"), offered);
  gtk_label_set_text(part(&app->entry, "entry_title"),
                     item == NULL ? word("Register an activity") : word("Edit the registration"));
  show_mistake(app, "", NULL);
  app->form = json_pack("{s:s, s:o, s:o}", "owner", mine, "item",
                        item == NULL ? json_object() : json_deep_copy(item), "shown", shown);
  g_free(mine);
  gtk_widget_grab_focus(part(&app->entry, "minutes")); /* the field that everybody fills */
  return true;
}
