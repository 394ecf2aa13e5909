/* Contacts: a search in the cache as the user types, with the age of what is shown. */
#include "app.h"

static void on_search(GtkSearchEntry *entry, gpointer context) {
  (void)entry;
  contacts_refresh(context);
}

static void on_contact(GtkListBox *list, GtkListBoxRow *row, gpointer context) {
  (void)list;
  contact_show(context, g_object_get_data(G_OBJECT(row), "contact"));
}

void contacts_build(app *app) {
  app->contacts = screen_build("contacts");
  g_signal_connect(part(&app->contacts, "search"), "search-changed", G_CALLBACK(on_search), app);
  g_signal_connect(part(&app->contacts, "list"), "row-activated", G_CALLBACK(on_contact), app);
}

void contacts_refresh(app *app) {
  GtkListBox *list = part(&app->contacts, "list");
  const char *query = gtk_editable_get_text(part(&app->contacts, "search"));
  json_t *reply =
      host_call(app, "contact_search", json_pack("{s:s, s:i}", "query", query, "limit", 100));
  const json_t *found = json_object_get(reply, "contacts");
  look_clear(list);
  look_own_banners(app, part(&app->contacts, "contact_banners"), json_object_get(reply, "banners"));
  size_t index;
  json_t *contact;
  json_array_foreach((json_t *)found, index, contact) {
    GtkWidget *row = look_row(text_at(contact, "name"), text_at(contact, "municipality"));
    adw_action_row_add_suffix(ADW_ACTION_ROW(row),
                              gtk_image_new_from_icon_name("go-next-symbolic"));
    gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(row), TRUE);
    g_object_set_data_full(G_OBJECT(row), "contact", g_strdup(text_at(contact, "id")), g_free);
    gtk_list_box_append(list, row);
  }
  json_int_t total = number_at(reply, "total"), shown = (json_int_t)json_array_size(found);
  char *count = total > shown
                    ? g_strdup_printf(word("%d of %d contacts"), (int)shown, (int)total)
                    : g_strdup_printf(word(total == 1 ? "%d contact" : "%d contacts"), (int)total);
  json_int_t as_of = number_at(reply, "as_of_ms");
  if (as_of > 0) { /* the age of the list, with or without a network */
    char *time = look_time(as_of);
    char *both = g_strdup_printf("%s · %s %s", count, word("Last updated"), time);
    g_free(count);
    g_free(time);
    count = both;
  }
  bool empty = total == 0 && *query != 0;
  gtk_label_set_text(part(&app->contacts, "count"),
                     empty ? word("No contact has this name or municipality.") : count);
  gtk_widget_set_visible(GTK_WIDGET(list), shown > 0);
  g_free(count);
  json_decref(reply);
}
