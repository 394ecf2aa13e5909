/* The outbox: what is not sent, and why. What the server refused stays until its owner edits it,
 * sends it again or removes it. */
#include "app.h"

#include <string.h>

static char *id_of(gpointer widget) { return g_object_get_data(G_OBJECT(widget), "item"); }

static void on_edit(GtkButton *button, gpointer context) {
  json_t *reply = host_call(context, "queue_get", json_pack("{s:s}", "id", id_of(button)));
  const json_t *item = json_object_get(reply, "item");
  if (item != NULL)
    entry_show(context, NULL, item);
  else
    window_refresh(context);
  json_decref(reply);
}

static void call_for(app *app, const char *operation, const char *id) {
  json_t *reply = host_call(app, operation, json_pack("{s:s}", "id", id));
  if (host_error(reply) != NULL)
    look_toast(app, host_error(reply));
  json_decref(reply);
  window_refresh(app);
}

static void on_retry(GtkButton *button, gpointer context) {
  call_for(context, "queue_retry", id_of(button));
}

static void on_answer(AdwMessageDialog *dialog, const char *response, gpointer context) {
  if (strcmp(response, "remove") == 0)
    call_for(context, "queue_cancel", id_of(dialog));
}

static void on_cancel(GtkButton *button, gpointer context) {
  AdwMessageDialog *dialog =
      look_question(context, word("Remove this registration?"),
                    word("It has not been sent. After this it is gone for good."));
  adw_message_dialog_add_responses(dialog, "keep", word("Keep"), "remove", word("Remove"), NULL);
  adw_message_dialog_set_response_appearance(dialog, "remove", ADW_RESPONSE_DESTRUCTIVE);
  adw_message_dialog_set_default_response(dialog, "keep");
  adw_message_dialog_set_close_response(dialog, "keep");
  g_object_set_data_full(G_OBJECT(dialog), "item", g_strdup(id_of(button)), g_free);
  g_signal_connect(dialog, "response", G_CALLBACK(on_answer), context);
  gtk_window_present(GTK_WINDOW(dialog));
}

static void on_now(GtkButton *button, gpointer context) {
  (void)button;
  json_decref(host_call(context, "sync_now", NULL));
  window_refresh(context);
}

void outbox_build(app *app) {
  app->outbox = screen_build("outbox");
  g_signal_connect(part(&app->outbox, "send_now"), "clicked", G_CALLBACK(on_now), app);
}

static void add_button(GtkBox *box, const char *label, const char *what, const char *id,
                       GCallback clicked, app *app) {
  GtkWidget *button = look_action(label, what);
  g_object_set_data_full(G_OBJECT(button), "item", g_strdup(id), g_free);
  g_signal_connect(button, "clicked", clicked, app);
  gtk_box_append(box, button);
}

/* What it was, and why the item is where it is: the library's reason, and the field that the server
 * refused. */
static char *about(app *app, const json_t *item) {
  GString *lines = g_string_new(NULL);
  entry_about(app, item, lines);
  const char *state = text_at(item, "state"), *field = text_at(item, "field");
  const char *text = text_at(json_object_get(item, "reason"), "text");
  if (*text == 0)
    text = strcmp(state, "sending") == 0 ? word("Sending now …") : word("Waits to be sent.");
  g_string_append(lines, text);
  if (*field != 0)
    g_string_append_printf(lines, " %s: %s", word("Field"), word(field));
  return g_string_free(lines, FALSE);
}

static GtkWidget *row_of(app *app, const json_t *item) {
  char *title = entry_title(item), *lines = about(app, item);
  GtkWidget *row = look_row(title, lines);
  bool parked = is_text(item, "state", "parked");
  GtkWidget *icon = gtk_image_new_from_icon_name(parked ? "dialog-warning-symbolic"
                                                        : "document-open-recent-symbolic");
  if (parked)
    gtk_widget_add_css_class(icon, "warning");
  adw_action_row_add_prefix(ADW_ACTION_ROW(row), icon);
  GtkBox *buttons = GTK_BOX(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6));
  gtk_widget_set_margin_start(GTK_WIDGET(buttons), 12);
  gtk_widget_set_margin_end(GTK_WIDGET(buttons), 12);
  gtk_widget_set_margin_bottom(GTK_WIDGET(buttons), 12);
  gtk_widget_set_halign(GTK_WIDGET(buttons), GTK_ALIGN_END);
  const char *id = text_at(item, "id");
  if (!is_text(item, "state", "sending")) {
    add_button(buttons, word("Remove"), title, id, G_CALLBACK(on_cancel), app);
    if (parked)
      add_button(buttons, word("Send again"), title, id, G_CALLBACK(on_retry), app);
    add_button(buttons, word("Edit"), title, id, G_CALLBACK(on_edit), app);
  }
  /* The buttons are below the text: on a narrow window both need the width. */
  GtkWidget *both = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append(GTK_BOX(both), row);
  gtk_box_append(GTK_BOX(both), GTK_WIDGET(buttons));
  GtkWidget *card = gtk_list_box_row_new();
  gtk_list_box_row_set_child(GTK_LIST_BOX_ROW(card), both);
  gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(card), FALSE);
  gtk_widget_set_focusable(card, FALSE);
  g_free(title);
  g_free(lines);
  return card;
}

static void show_items(app *app, GtkListBox *list, const char *title, bool parked) {
  json_t *reply = host_call(app, "queue_list", json_pack("{s:i}", "limit", 100)), *item;
  size_t index, shown = 0;
  look_clear(list);
  json_array_foreach(json_object_get(reply, "items"), index, item) {
    if (is_text(item, "state", "parked") != parked)
      continue;
    gtk_list_box_append(list, row_of(app, item));
    shown++;
  }
  gtk_widget_set_visible(part(&app->outbox, title), shown > 0);
  json_decref(reply);
}

void outbox_refresh(app *app) {
  json_t *reply = host_call(app, "queue_explain", NULL);
  const json_t *counts = json_object_get(reply, "counts");
  json_int_t parked = number_at(counts, "parked");
  json_int_t unsent =
      number_at(counts, "pending") + number_at(counts, "sending") + number_at(counts, "waiting");
  show_items(app, part(&app->outbox, "parked_items"), "parked_group", true);
  show_items(app, part(&app->outbox, "waiting_items"), "waiting_group", false);
  gtk_widget_set_visible(part(&app->outbox, "outbox_empty"), parked + unsent == 0);
  GString *why = g_string_new(NULL);
  bool offline = false;
  size_t index;
  json_t *reason;
  json_array_foreach(json_object_get(reply, "reasons"), index, reason) {
    offline = offline || is_text(reason, "code", "offline");
    if (!is_text(reason, "code", "parked") && !look_is_told(app, text_at(reason, "code")))
      g_string_append_printf(why, "%s%s", why->len == 0 ? "" : "\n", text_at(reason, "text"));
  }
  gtk_widget_set_visible(part(&app->outbox, "send_now"), unsent > 0 && !offline);
  gtk_label_set_text(part(&app->outbox, "why"), why->str);
  gtk_widget_set_visible(part(&app->outbox, "why"), parked + unsent > 0 && why->len > 0);
  g_string_free(why, TRUE);
  json_decref(reply);
}
