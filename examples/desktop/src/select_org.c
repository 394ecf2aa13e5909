/* The choice of an organisation: after the sign-in, and when access to the chosen one has ended. */
#include "app.h"

#include <string.h>

static void on_chosen(GtkListBox *list, GtkListBoxRow *row, gpointer context) {
  (void)list;
  host_do(context, "org_select",
          json_pack("{s:s}", "org_id", (char *)g_object_get_data(G_OBJECT(row), "org")));
}

static void on_logout(GtkButton *button, gpointer context) {
  (void)button;
  host_do(context, "session_logout", json_pack("{s:s}", "unsent", "keep"));
}

void select_org_build(app *app) {
  app->select_org = screen_build("select_org");
  g_signal_connect(part(&app->select_org, "orgs"), "row-activated", G_CALLBACK(on_chosen), app);
  g_signal_connect(part(&app->select_org, "leave"), "clicked", G_CALLBACK(on_logout), app);
}

void select_org_show(app *app, const json_t *decision) {
  GtkListBox *list = part(&app->select_org, "orgs");
  look_clear(list);
  look_banners(part(&app->select_org, "org_banners"), json_object_get(decision, "banners"));
  gtk_label_set_text(part(&app->select_org, "org_message"),
                     text_at(json_object_get(decision, "message"), "text"));
  size_t index;
  json_t *org;
  bool any = false;
  json_array_foreach(json_object_get(decision, "orgs"), index, org) {
    const char *status = text_at(org, "status"), *role = text_at(org, "role");
    bool active = strcmp(status, "active") == 0;
    GtkWidget *row = look_row(text_at(org, "name"), active ? word(role)
                                                    : strcmp(status, "disabled") == 0
                                                        ? word("Closed for now")
                                                        : word("Access has ended"));
    if (active)
      adw_action_row_add_suffix(ADW_ACTION_ROW(row),
                                gtk_image_new_from_icon_name("go-next-symbolic"));
    gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(row), active);
    gtk_widget_set_sensitive(row, active);
    g_object_set_data_full(G_OBJECT(row), "org", g_strdup(text_at(org, "org_id")), g_free);
    gtk_list_box_append(list, row);
    any = true;
  }
  gtk_widget_set_visible(GTK_WIDGET(list), any);
}
