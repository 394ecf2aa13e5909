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

/* ---- the phone number ---- */

/* The URL that calls a number; NULL: it has no digits. The caller frees it. */
static char *call_url(const char *number) {
  GString *url = g_string_new("tel:");
  gsize scheme = url->len;
  for (const char *at = number; *at != 0; at++)
    if (g_ascii_isdigit(*at) || (*at == '+' && url->len == scheme))
      g_string_append_c(url, *at);
  bool any = strpbrk(url->str, "0123456789") != NULL;
  return g_string_free(url, !any);
}

static const char *number_of(gpointer button) {
  return g_object_get_data(G_OBJECT(button), "number");
}

static void on_call(GtkButton *button, gpointer context) {
  char *url = call_url(number_of(button));
  GError *error = NULL;
  if (!g_app_info_launch_default_for_uri(url, NULL, &error))
    look_toast(context, word("No program for telephone calls was found."));
  g_clear_error(&error);
  g_free(url);
}

static void on_copy(GtkButton *button, gpointer context) {
  gdk_clipboard_set_text(gtk_widget_get_clipboard(GTK_WIDGET(button)), number_of(button));
  look_confirm(context, word("Copied."));
}

static void add_phone_button(app *app, AdwActionRow *row, const char *label, const char *number,
                             GCallback clicked) {
  GtkWidget *button = look_action(label, number);
  gtk_widget_set_valign(button, GTK_ALIGN_CENTER);
  g_object_set_data_full(G_OBJECT(button), "number", g_strdup(number), g_free);
  g_signal_connect(button, "clicked", clicked, app);
  adw_action_row_add_suffix(row, button);
}

static void add_phone(app *app, GtkListBox *list, const char *field, const char *number) {
  GtkWidget *row = look_row(word(field), number);
  char *url = call_url(number);
  if (url != NULL) {
    add_phone_button(app, ADW_ACTION_ROW(row), word("Call"), number, G_CALLBACK(on_call));
    add_phone_button(app, ADW_ACTION_ROW(row), word("Copy"), number, G_CALLBACK(on_copy));
  }
  gtk_list_box_append(list, row);
  g_free(url);
}

/* ---- the fields that are not kept ---- */

static void show_network_only(app *app, const json_t *names, const json_t *contact) {
  GtkListBox *list = part(&app->contact, "needs_network");
  size_t index;
  json_t *name;
  look_clear(list);
  json_array_foreach((json_t *)names, index, name) {
    const char *field = json_string_value(name), *value = text_at(contact, field);
    if (strcmp(field, "phone") == 0 && *value != 0)
      add_phone(app, list, field, value);
    else
      add(list, field, *value != 0 ? value : word("Not available to you"));
  }
}

/* They are not there: says once which ones, and why. */
static void show_missing(app *app, const json_t *names, const char *why) {
  GString *fields = g_string_new(NULL);
  size_t index;
  json_t *name;
  json_array_foreach((json_t *)names, index, name) g_string_append_printf(
      fields, "%s%s", fields->len == 0 ? "" : ", ", word(json_string_value(name)));
  GtkListBox *list = part(&app->contact, "needs_network");
  look_clear(list);
  gtk_list_box_append(list, look_row(fields->str, why));
  g_string_free(fields, TRUE);
}

/* The library's words for why they are not there. */
static const char *reason_of(const json_t *answer) {
  const char *message = text_at(json_object_get(answer, "message"), "text");
  return *message == 0 ? word("Needs a connection") : message;
}

/* The list of what is missing says the message already. */
static void remove_told(json_t *banners, const json_t *reply) {
  const char *code = text_at(json_object_get(reply, "message"), "code");
  for (size_t i = json_array_size(banners); i-- > 0;)
    if (is_text(json_array_get(banners, i), "code", code))
      json_array_remove(banners, i);
}

static json_t *network_only(app *app) {
  return g_object_get_data(G_OBJECT(app->contact.widget), "needs_network");
}

static void release_json(gpointer value) { json_decref(value); }

char *contact_name(app *app, const char *id) {
  json_t *reply = *id == 0 ? NULL : host_call(app, "contact_get", json_pack("{s:s}", "id", id));
  const json_t *name = json_object_get(json_object_get(reply, "contact"), "name");
  char *copy = g_strdup(json_string_value(name));
  json_decref(reply);
  return copy;
}

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
  json_t *banners = json_object_get(reply, "banners");
  remove_told(banners, reply);
  look_own_banners(app, part(&app->contact, "detail_banners"), banners);
  json_t *names = json_incref(json_object_get(reply, "needs_network"));
  g_object_set_data_full(G_OBJECT(app->contact.widget), "needs_network", names, release_json);
  show_missing(app, names, app->live_request > 0 ? word("Fetching …") : reason_of(reply));
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
  if (json_is_object(contact))
    show_network_only(app, network_only(app), contact);
  else
    show_missing(app, network_only(app), reason_of(answer));
}
