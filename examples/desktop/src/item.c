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
                                  {"occurred_at", "When"},
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
    return g_strdup(strcmp(column, "contact_id") == 0 ? word("Nobody in particular")
                                                      : word("nothing"));
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

/* What it does to its row on the server. */
typedef enum { NOTHING, INSERT, CHANGE, REMOVAL } operation;

static operation operation_named(const json_t *item) {
  return is_text(item, "operation", "change")   ? CHANGE
         : is_text(item, "operation", "delete") ? REMOVAL
                                                : INSERT;
}

static operation operation_of(const json_t *item) {
  return is_text(item, "state", "stored") ? NOTHING : operation_named(item);
}

/* The outbox's view of a correction: the item has the changed columns alone. */
static bool is_partial(const json_t *item) {
  return json_object_get(item, "seq") != NULL && operation_named(item) != INSERT;
}

static bool has_conflict(const json_t *item) {
  return json_is_object(json_object_get(item, "conflict"));
}

static bool has_reason(const json_t *item, const char *code) {
  return is_text(json_object_get(item, "reason"), "code", code);
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

char *item_conflict(app *app, const json_t *columns, bool is_removal) {
  GString *lines = g_string_new(NULL);
  size_t index;
  json_t *column;
  json_array_foreach((json_t *)columns, index, column) {
    const char *name = text_at(column, "name");
    char *before = value_of(app, name, json_object_get(column, "base"));
    char *theirs = value_of(app, name, json_object_get(column, "theirs"));
    char *mine = value_of(app, name, json_object_get(column, "mine"));
    if (index > 0)
      g_string_append_c(lines, '\n');
    if (is_removal)
      g_string_append_printf(lines, word("%s: It was %s. Somebody else wrote %s."),
                             column_name(name), before, theirs);
    else
      g_string_append_printf(lines, word("%s: It was %s. Somebody else wrote %s, you wrote %s."),
                             column_name(name), before, theirs, mine);
    g_free(before);
    g_free(theirs);
    g_free(mine);
  }
  return g_string_free(lines, FALSE);
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

/* Why it is where it is: the library's words, which are about a value; of a removal there is none.
 */
static const char *why(const json_t *item, operation operation) {
  const char *reason = text_at(json_object_get(item, "reason"), "text");
  return operation == REMOVAL && has_conflict(item)
             ? word("Somebody has changed this activity since. Remove it anyway?")
         : *reason != 0 ? reason
                        : state_line(item);
}

/* What it was, why it is where it is, and the field that the server refused. */
static char *lines_of(app *app, const json_t *item, operation operation) {
  const json_t *payload = json_object_get(item, "payload");
  const char *field = text_at(item, "field");
  GString *lines = g_string_new(NULL);
  if (!is_partial(item))
    add_about(app, payload, lines);
  else if (operation == CHANGE && !has_conflict(item))
    add_changes(app, payload, lines);
  g_string_append(lines, why(item, operation));
  if (*field != 0 && !has_conflict(item))
    g_string_append_printf(lines, " %s: %s", word("Field"), column_name(field));
  if (has_conflict(item)) {
    const json_t *columns = json_object_get(json_object_get(item, "conflict"), "columns");
    char *conflict = item_conflict(app, columns, operation == REMOVAL);
    g_string_append_printf(lines, "\n%s", conflict);
    g_free(conflict);
  }
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

static GDateTime *moment_of(const json_t *value) {
  const char *text = json_string_value(value);
  return text == NULL ? NULL : g_date_time_new_from_iso8601(text, NULL);
}

bool item_is_same(const json_t *one, const json_t *other) {
  if (one == NULL || json_is_null(one))
    return other == NULL || json_is_null(other);
  GDateTime *first = moment_of(one), *second = moment_of(other);
  bool same =
      first != NULL && second != NULL ? g_date_time_equal(first, second) : json_equal(one, other);
  g_clear_pointer(&first, g_date_time_unref);
  g_clear_pointer(&second, g_date_time_unref);
  return same;
}

const json_t *item_base(const json_t *item) {
  return is_partial(item) ? NULL : json_object_get(item, "payload");
}

/* No other device can have it. */
static bool is_here_only(const json_t *item) {
  return operation_of(item) == INSERT && !is_text(item, "state", "waiting") &&
         !has_reason(item, "unknown_outcome");
}

static void ask_removal(app *app, const json_t *item, const char *body);

/* What the user saw is removed, and nothing else. */
static void on_answer(AdwMessageDialog *dialog, const char *response, gpointer context) {
  app *app = context;
  const json_t *seen = item_of(dialog);
  if (strcmp(response, "remove") != 0)
    return;
  const char *id = text_at(seen, "id");
  json_t *reply =
      host_call(app, "queue_cancel", json_pack("{s:s, s:O*}", "id", id, "base", item_base(seen)));
  const json_t *now = NULL;
  if (is_text(json_object_get(reply, "error"), "code", "queue.changed"))
    now = activities_item(app, id);
  if (now != NULL)
    ask_removal(app, now, word("Somebody has changed this activity since. Remove it anyway?"));
  else if (host_error(reply) != NULL)
    look_toast(app, host_error(reply));
  json_decref(reply);
  window_refresh(app);
}

static void ask_removal(app *app, const json_t *item, const char *body) {
  AdwMessageDialog *dialog = look_question(app, word("Remove this registration?"), body);
  adw_message_dialog_add_responses(dialog, "keep", word("Keep"), "remove", word("Remove"), NULL);
  adw_message_dialog_set_response_appearance(dialog, "remove", ADW_RESPONSE_DESTRUCTIVE);
  adw_message_dialog_set_default_response(dialog, "keep");
  adw_message_dialog_set_close_response(dialog, "keep");
  keep_item(dialog, item);
  g_signal_connect(dialog, "response", G_CALLBACK(on_answer), app);
  gtk_window_present(GTK_WINDOW(dialog));
}

static void on_remove(GtkButton *button, gpointer context) {
  const json_t *item = item_of(button);
  ask_removal(context, item,
              is_here_only(item) ? word("It has not been sent. After this it is gone for good.")
                                 : word("It is removed for your organisation, too."));
}

typedef struct {
  app *app;
  GtkBox *box;
  const json_t *item;
  operation operation;
  const char *title;
} buttons;

static void add_button(const buttons *to, const char *label, GCallback clicked) {
  GtkWidget *button = look_action(label, to->title);
  keep_item(button, to->item);
  g_signal_connect(button, "clicked", clicked, to->app);
  gtk_box_append(to->box, button);
}

/* A correction that was not taken: the row stays as it is, or it is tried again. */
static void add_choice(const buttons *to) {
  bool is_removal = to->operation == REMOVAL;
  if (has_conflict(to->item)) {
    add_button(to, is_removal ? word("Keep it") : word("Keep theirs"), G_CALLBACK(on_drop));
    add_button(to, is_removal ? word("Remove anyway") : word("Use mine"), G_CALLBACK(on_overwrite));
    return;
  }
  add_button(to, is_removal ? word("Keep it") : word("Drop my change"), G_CALLBACK(on_drop));
  if (has_reason(to->item, "deleted_elsewhere")) /* there is nothing left to change */
    return;
  add_button(to, word("Send again"), G_CALLBACK(on_retry));
  if (!is_removal && !is_partial(to->item))
    add_button(to, word("Edit"), G_CALLBACK(on_edit));
}

static void add_buttons(const buttons *to) {
  const json_t *item = to->item;
  bool parked = is_text(item, "state", "parked");
  if (parked && to->operation != INSERT) {
    add_choice(to);
  } else if (!is_partial(item) && !is_text(item, "state", "sending") && to->operation != REMOVAL) {
    add_button(to, word("Remove"), G_CALLBACK(on_remove));
    if (parked)
      add_button(to, word("Send again"), G_CALLBACK(on_retry));
    add_button(to, word("Edit"), G_CALLBACK(on_edit));
  }
}

/* ---- the card ---- */

static char *whole_title(const json_t *item) {
  if (!is_partial(item))
    return title_of(item);
  return g_strdup(operation_named(item) == CHANGE ? word("A change of an activity")
                                                  : word("A removal of an activity"));
}

/* Only of what is stored the picture says more than the words beside it. */
static GtkWidget *icon_of(const json_t *item) {
  bool parked = is_text(item, "state", "parked"), stored = is_text(item, "state", "stored");
  GtkWidget *icon = g_object_new(
      GTK_TYPE_IMAGE, "icon-name",
      parked   ? "dialog-warning-symbolic"
      : stored ? "emblem-ok-symbolic"
               : "document-open-recent-symbolic",
      "accessible-role", stored ? GTK_ACCESSIBLE_ROLE_IMG : GTK_ACCESSIBLE_ROLE_PRESENTATION, NULL);
  if (stored)
    gtk_accessible_update_property(GTK_ACCESSIBLE(icon), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                   word("Sent"), -1);
  if (parked)
    gtk_widget_add_css_class(icon, "warning");
  return icon;
}

char *item_text(app *app, const json_t *item) {
  char *title = whole_title(item), *lines = lines_of(app, item, operation_of(item));
  char *text = g_strconcat(title, "\n", lines, NULL);
  g_free(title);
  g_free(lines);
  return text;
}

/* A text below or beside others, on as many lines as it needs. */
static GtkWidget *label_of(const char *text) {
  GtkWidget *label = gtk_label_new(text);
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  gtk_widget_set_hexpand(label, TRUE);
  return label;
}

/* The picture, and the texts beside it. */
static GtkWidget *head_of(const json_t *item, const char *title, const char *lines) {
  GtkWidget *head = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *texts = gtk_box_new(GTK_ORIENTATION_VERTICAL, 3), *below = label_of(lines);
  if (!is_text(item, "state", "parked")) /* what asks its user is as clear as its title */
    gtk_widget_add_css_class(below, "dim-label");
  gtk_widget_add_css_class(below, "caption");
  gtk_widget_set_visible(below, *lines != 0);
  gtk_box_append(GTK_BOX(texts), label_of(title));
  gtk_box_append(GTK_BOX(texts), below);
  gtk_widget_set_valign(texts, GTK_ALIGN_CENTER);
  gtk_box_append(GTK_BOX(head), icon_of(item));
  gtk_box_append(GTK_BOX(head), texts);
  return head;
}

GtkWidget *item_card(app *app, const json_t *item) {
  operation operation = operation_of(item);
  char *title = whole_title(item), *lines = lines_of(app, item, operation);
  GtkBox *box = GTK_BOX(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6));
  gtk_widget_set_halign(GTK_WIDGET(box), GTK_ALIGN_END);
  add_buttons(
      &(buttons){.app = app, .box = box, .item = item, .operation = operation, .title = title});
  /* The buttons are below the text: on a narrow window both need the width. */
  GtkWidget *both = gtk_box_new(GTK_ORIENTATION_VERTICAL, 12);
  gtk_widget_add_css_class(both, "card-inside");
  gtk_box_append(GTK_BOX(both), head_of(item, title, lines));
  if (gtk_widget_get_first_child(GTK_WIDGET(box)) != NULL)
    gtk_box_append(GTK_BOX(both), GTK_WIDGET(box));
  else
    g_object_unref(g_object_ref_sink(box));
  GtkWidget *card = gtk_list_box_row_new();
  gtk_list_box_row_set_child(GTK_LIST_BOX_ROW(card), both);
  gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(card), FALSE);
  gtk_accessible_update_property(GTK_ACCESSIBLE(card), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                 GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, lines, -1);
  g_free(title);
  g_free(lines);
  return card;
}
