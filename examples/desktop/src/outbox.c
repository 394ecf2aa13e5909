/* The outbox: what is not sent, and why. What the server refused stays until its owner edits it,
 * sends it again or removes it. */
#include "app.h"

#include <string.h>

static void on_now(GtkButton *button, gpointer context) {
  (void)button;
  json_decref(host_call(context, "sync_now", NULL));
  window_refresh(context);
}

void outbox_build(app *app) {
  app->outbox = screen_build("outbox");
  g_signal_connect(part(&app->outbox, "send_now"), "clicked", G_CALLBACK(on_now), app);
}

static void show_items(app *app, GtkListBox *list, const char *title, bool parked) {
  json_t *reply = host_call(app, "queue_list", json_pack("{s:i}", "limit", 100)), *item;
  size_t index, shown = 0;
  look_clear(list);
  json_array_foreach(json_object_get(reply, "items"), index, item) {
    if (is_text(item, "state", "parked") != parked)
      continue;
    gtk_list_box_append(list, item_card(app, item));
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
