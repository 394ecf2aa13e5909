/* One contact. Some fields are never kept on the device: they are fetched while the page is open,
 * and without a connection the page says which ones are missing. */
#include "app.h"

#include <string.h>

static void on_register(GtkButton *button, gpointer context) {
  (void)button;
  app *app = context;
  entry_show(app, app->contact_id, NULL);
}

void contact_build(app *app) {
  app->contact = screen_build("contact");
  g_signal_connect(part(&app->contact, "register_with"), "clicked", G_CALLBACK(on_register), app);
}

static void add(GtkListBox *list, const char *field, const char *value) {
  gtk_list_box_append(list, look_row(word(field), value));
}

/* The fields that are not kept: each with its value, or with `instead` of it. */
static void show_withheld(app *app, const json_t *names, const json_t *contact,
                          const char *instead) {
  GtkListBox *list = part(&app->contact, "withheld");
  size_t index;
  json_t *name;
  look_clear(list);
  json_array_foreach((json_t *)names, index, name) {
    const char *field = json_string_value(name);
    const json_t *value = json_object_get(contact, field);
    add(list, field,
        json_is_string(value) ? json_string_value(value)
        : contact != NULL     ? word("Not available to you")
                              : instead);
  }
}

static json_t *withheld_names(app *app) {
  return g_object_get_data(G_OBJECT(app->contact.widget), "withheld");
}

static void release_json(gpointer value) { json_decref(value); }

void contact_show(app *app, const char *id) {
  json_t *reply = host_call(app, "contact_get", json_pack("{s:s, s:b}", "id", id, "live", 1));
  if (host_error(reply) != NULL) {
    look_toast(app, host_error(reply));
    json_decref(reply);
    return;
  }
  char *kept = g_strdup(id);
  g_free(app->contact_id);
  app->contact_id = kept;
  app->live_request = number_at(reply, "request");
  const json_t *contact = json_object_get(reply, "contact");
  gtk_label_set_text(part(&app->contact, "contact_name"), text_at(contact, "name"));
  GtkListBox *list = part(&app->contact, "fields");
  look_clear(list);
  add(list, "municipality", text_at(contact, "municipality"));
  add(list, "relation", text_at(contact, "relation"));
  look_own_banners(app, part(&app->contact, "detail_banners"), json_object_get(reply, "banners"));
  const char *message = text_at(json_object_get(reply, "message"), "text");
  gtk_label_set_text(part(&app->contact, "detail_message"), message);
  gtk_widget_set_visible(part(&app->contact, "detail_message"), *message != 0);
  json_t *names = json_incref(json_object_get(reply, "withheld"));
  g_object_set_data_full(G_OBJECT(app->contact.widget), "withheld", names, release_json);
  show_withheld(app, names, NULL,
                app->live_request > 0 ? word("Fetching …") : word("Needs a connection"));
  char *route = g_strconcat("/contacts/", id, NULL);
  window_open(app, "contact", route);
  g_free(route);
  json_decref(reply);
}

void contact_answer(app *app, const json_t *answer) {
  if (app->live_request == 0 || number_at(answer, "request") != app->live_request)
    return;
  app->live_request = 0;
  const json_t *contact = json_object_get(answer, "contact");
  const char *message = text_at(json_object_get(answer, "message"), "text");
  show_withheld(app, withheld_names(app), json_is_object(contact) ? contact : NULL,
                word("Needs a connection"));
  gtk_label_set_text(part(&app->contact, "detail_message"), message);
  gtk_widget_set_visible(part(&app->contact, "detail_message"), *message != 0);
}
