/* An entry in a list, in the outbox or among the own activities: what it was, what happens to it,
 * and the buttons for what its user can do now.
 *
 * A list of the library gives a new entry and a stored one whole. Of a correction the outbox has
 * the changed columns alone: it is edited where the activity is. */
#include "app.h"

#include <string.h>

/* ---- what it was ---- */

enum { NOTE_SHOWN = 120 };

static char *title_of(const json_t *item) {
  const json_t *payload = json_object_get(item, "payload");
  char *time = look_duration(number_at(payload, "minutes"));
  char *when = look_time(entry_occurred_ms(item));
  char *title =
      g_strdup_printf("%s, %s, %s", entry_type_name(text_at(payload, "type")), time, when);
  g_free(time);
  g_free(when);
  return title;
}

/* The beginning of a note, on one line. */
static char *note_line(const char *note) {
  bool is_long = g_utf8_strlen(note, -1) > NOTE_SHOWN;
  char *begin = is_long ? g_utf8_substring(note, 0, NOTE_SHOWN) : g_strdup(note);
  char *line = g_strconcat(g_strdelimit(begin, "\r\n", ' '), is_long ? "…" : NULL, NULL);
  g_free(begin);
  return line;
}

static void add_about(app *app, const json_t *payload, GString *lines) {
  const char *contact = text_at(payload, "contact_id"), *note = text_at(payload, "note");
  if (*contact != 0) {
    char *name = contact_name(app, contact);
    if (name == NULL)
      g_string_append(lines, word("A contact that is not kept here"));
    else
      g_string_append_printf(lines, word("With %s"), name);
    g_string_append_c(lines, '\n');
    g_free(name);
  }
  if (*note != 0) {
    char *line = note_line(note);
    g_string_append_printf(lines, "%s\n", line);
    g_free(line);
  }
}

/* The word of the form for a column. */
static const char *column_name(const char *column) {
  const char *const names[][2] = {{"type", "What"},
                                  {"minutes", "Minutes"},
                                  {"occurred_at", "Time"},
                                  {"contact_id", "With"},
                                  {"note", "Note"}};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (strcmp(names[i][0], column) == 0)
      return word(names[i][1]);
  return word(column);
}

/* A column's value, as a person reads it. */
static char *value_of(app *app, const char *column, const json_t *value) {
  const char *text = json_string_value(value);
  if (json_is_integer(value))
    return strcmp(column, "minutes") == 0
               ? look_duration(json_integer_value(value))
               : g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
  if (text == NULL || *text == 0)
    return g_strdup("–");
  if (strcmp(column, "type") == 0)
    return g_strdup(entry_type_name(text));
  if (strcmp(column, "contact_id") == 0) {
    char *name = contact_name(app, text);
    return name != NULL ? name : g_strdup(word("A contact that is not kept here"));
  }
  GDateTime *then =
      strcmp(column, "occurred_at") == 0 ? g_date_time_new_from_iso8601(text, NULL) : NULL;
  if (then == NULL)
    return note_line(text);
  char *time = look_time((json_int_t)g_date_time_to_unix(then) * 1000);
  g_date_time_unref(then);
  return time;
}

/* ---- what happens to it ---- */

/* A change or a deletion of what is stored. */
static bool is_correction(const json_t *item) {
  const char *const reasons[] = {"changed_elsewhere", "deleted_elsewhere", "not_allowed"};
  const json_t *reason = json_object_get(item, "reason");
  for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++)
    if (is_text(reason, "code", reasons[i]))
      return true;
  return is_text(item, "operation", "change") || is_text(item, "operation", "delete");
}

/* The outbox's view of it: the item has the changed columns alone. */
static bool is_partial(const json_t *item) {
  return is_text(item, "operation", "change") || is_text(item, "operation", "delete");
}

static bool has_conflict(const json_t *item) {
  return json_is_object(json_object_get(item, "conflict"));
}

static void add_changes(app *app, const json_t *payload, GString *lines) {
  const char *column;
  json_t *value;
  json_object_foreach((json_t *)payload, column, value) {
    char *text = value_of(app, column, value);
    g_string_append_printf(lines, "%s: %s\n", column_name(column), text);
    g_free(text);
  }
}

/* What the user and somebody else have changed both. */
static void add_conflict(app *app, const json_t *item, GString *lines) {
  size_t index;
  json_t *column;
  json_array_foreach(json_object_get(json_object_get(item, "conflict"), "columns"), index, column) {
    const char *name = text_at(column, "name");
    char *mine = value_of(app, name, json_object_get(column, "mine"));
    char *theirs = value_of(app, name, json_object_get(column, "theirs"));
    g_string_append_printf(lines, "\n");
    g_string_append_printf(lines, word("%s: you have %s, the other has %s"), column_name(name),
                           mine, theirs);
    g_free(mine);
    g_free(theirs);
  }
}

/* The app's words for a state that has no reason. Nothing is to be said of what is stored. */
static const char *state_line(const json_t *item) {
  const struct {
    const char *state, *line;
  } lines[] = {{"stored", ""},
               {"sending", word("Sending now …")},
               {"changing", word("Your change waits to be sent.")},
               {"deleting", word("Will be removed.")}};
  for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
    if (is_text(item, "state", lines[i].state))
      return lines[i].line;
  return word("Waits to be sent.");
}

/* What it was, why it is where it is, and the field that the server refused. */
static char *lines_of(app *app, const json_t *item) {
  const json_t *payload = json_object_get(item, "payload");
  const char *reason = text_at(json_object_get(item, "reason"), "text");
  const char *field = text_at(item, "field");
  GString *lines = g_string_new(NULL);
  if (!is_partial(item))
    add_about(app, payload, lines);
  else if (is_text(item, "operation", "change") && !has_conflict(item))
    add_changes(app, payload, lines);
  g_string_append(lines, *reason != 0 ? reason : state_line(item));
  if (*field != 0)
    g_string_append_printf(lines, " %s: %s", word("Field"), word(field));
  add_conflict(app, item, lines);
  if (lines->len > 0 && lines->str[lines->len - 1] == '\n')
    g_string_truncate(lines, lines->len - 1);
  return g_string_free(lines, FALSE);
}

/* ---- what its user can do ---- */

static const json_t *item_of(gpointer object) {
  return g_object_get_data(G_OBJECT(object), "item");
}

static void release_item(gpointer item) { json_decref(item); }

static void keep_item(gpointer object, const json_t *item) {
  g_object_set_data_full(G_OBJECT(object), "item", json_incref((json_t *)item), release_item);
}

static void call_for(app *app, const char *operation, json_t *request) {
  json_t *reply = host_call(app, operation, request);
  if (host_error(reply) != NULL)
    look_toast(app, host_error(reply));
  json_decref(reply);
  window_refresh(app);
}

static void on_edit(GtkButton *button, gpointer context) {
  entry_show(context, NULL, item_of(button));
}

static void on_retry(GtkButton *button, gpointer context) {
  call_for(context, "queue_retry", json_pack("{s:s}", "id", text_at(item_of(button), "id")));
}

static void on_overwrite(GtkButton *button, gpointer context) {
  call_for(context, "queue_retry",
           json_pack("{s:s, s:b}", "id", text_at(item_of(button), "id"), "overwrite", 1));
}

/* The row stays as it is: nothing is lost but the user's own change, which the card shows. */
static void on_drop(GtkButton *button, gpointer context) {
  call_for(context, "queue_cancel", json_pack("{s:s}", "id", text_at(item_of(button), "id")));
}

static void on_answer(AdwMessageDialog *dialog, const char *response, gpointer context) {
  if (strcmp(response, "remove") == 0)
    call_for(context, "queue_cancel", json_pack("{s:s}", "id", text_at(item_of(dialog), "id")));
}

static void on_remove(GtkButton *button, gpointer context) {
  const json_t *item = item_of(button);
  bool is_here_only = is_text(item, "state", "pending");
  AdwMessageDialog *dialog =
      look_question(context, word("Remove this registration?"),
                    is_here_only ? word("It has not been sent. After this it is gone for good.")
                                 : word("It is removed for your organisation, too."));
  adw_message_dialog_add_responses(dialog, "keep", word("Keep"), "remove", word("Remove"), NULL);
  adw_message_dialog_set_response_appearance(dialog, "remove", ADW_RESPONSE_DESTRUCTIVE);
  adw_message_dialog_set_default_response(dialog, "keep");
  adw_message_dialog_set_close_response(dialog, "keep");
  keep_item(dialog, item);
  g_signal_connect(dialog, "response", G_CALLBACK(on_answer), context);
  gtk_window_present(GTK_WINDOW(dialog));
}

typedef struct {
  app *app;
  GtkBox *box;
  const json_t *item;
  const char *title;
} buttons;

static void add_button(const buttons *to, const char *label, GCallback clicked) {
  GtkWidget *button = look_action(label, to->title);
  keep_item(button, to->item);
  g_signal_connect(button, "clicked", clicked, to->app);
  gtk_box_append(to->box, button);
}

static void add_buttons(const buttons *to) {
  const json_t *item = to->item;
  bool parked = is_text(item, "state", "parked");
  if (has_conflict(item)) {
    add_button(to, word("Keep the other"), G_CALLBACK(on_drop));
    add_button(to, word("Use mine"), G_CALLBACK(on_overwrite));
  } else if (parked && is_correction(item)) {
    add_button(to, word("Drop my change"), G_CALLBACK(on_drop));
    add_button(to, word("Send again"), G_CALLBACK(on_retry));
  } else if (!is_partial(item) && !is_text(item, "state", "sending") &&
             !is_text(item, "state", "deleting")) {
    add_button(to, word("Remove"), G_CALLBACK(on_remove));
    if (parked)
      add_button(to, word("Send again"), G_CALLBACK(on_retry));
    add_button(to, word("Edit"), G_CALLBACK(on_edit));
  }
}

/* ---- the card ---- */

static char *whole_title(const json_t *item) {
  return is_text(item, "operation", "change")   ? g_strdup(word("A change of an activity"))
         : is_text(item, "operation", "delete") ? g_strdup(word("A removal of an activity"))
                                                : title_of(item);
}

static GtkWidget *icon_of(const json_t *item) {
  bool parked = is_text(item, "state", "parked"), stored = is_text(item, "state", "stored");
  GtkWidget *icon = gtk_image_new_from_icon_name(parked   ? "dialog-warning-symbolic"
                                                 : stored ? "emblem-ok-symbolic"
                                                          : "document-open-recent-symbolic");
  if (parked)
    gtk_widget_add_css_class(icon, "warning");
  return icon;
}

GtkWidget *item_card(app *app, const json_t *item) {
  char *title = whole_title(item), *lines = lines_of(app, item);
  GtkWidget *row = look_row(title, lines);
  adw_action_row_add_prefix(ADW_ACTION_ROW(row), icon_of(item));
  GtkBox *box = GTK_BOX(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6));
  gtk_widget_set_margin_start(GTK_WIDGET(box), 12);
  gtk_widget_set_margin_end(GTK_WIDGET(box), 12);
  gtk_widget_set_margin_bottom(GTK_WIDGET(box), 12);
  gtk_widget_set_halign(GTK_WIDGET(box), GTK_ALIGN_END);
  add_buttons(&(buttons){.app = app, .box = box, .item = item, .title = title});
  /* The buttons are below the text: on a narrow window both need the width. */
  GtkWidget *both = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append(GTK_BOX(both), row);
  gtk_box_append(GTK_BOX(both), GTK_WIDGET(box));
  GtkWidget *card = gtk_list_box_row_new();
  gtk_list_box_row_set_child(GTK_LIST_BOX_ROW(card), both);
  gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(card), FALSE);
  gtk_widget_set_focusable(card, FALSE);
  g_free(title);
  g_free(lines);
  return card;
}
