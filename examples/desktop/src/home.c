/* The home screen of a role: for a peer mentor the figures of the year, for an administrator the
 * organisation. Both can register, and see what waits. */
#include "app.h"

#include <string.h>

void home_build(app *app) { app->home = screen_build("home"); }

/* The menu of organisations in the header. */
static void show_orgs(app *app, const json_t *decision) {
  json_t *reply = host_call(app, "org_list", NULL), *org;
  GMenu *menu = g_menu_new();
  size_t index, active = 0;
  const char *current = text_at(json_object_get(decision, "org"), "id");
  json_array_foreach(json_object_get(reply, "orgs"), index, org) {
    if (!is_text(org, "status", "active"))
      continue;
    active++;
    if (is_text(org, "org_id", current))
      continue;
    GMenuItem *item = g_menu_item_new(text_at(org, "name"), NULL);
    g_menu_item_set_action_and_target(item, "win.switch", "s", text_at(org, "org_id"));
    g_menu_append_item(menu, item);
    g_object_unref(item);
  }
  GtkMenuButton *button = part(&app->home, "org_menu");
  gtk_menu_button_set_menu_model(button, G_MENU_MODEL(menu));
  gtk_widget_set_visible(GTK_WIDGET(button), active > 1);
  g_object_unref(menu);
  json_decref(reply);
}

static void set_row(GtkWidget *row, const char *title, const char *subtitle) {
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(row), subtitle);
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, subtitle,
                                 -1);
}

/* A number, and a duration, below each other; a dash while they are not known. */
static void show_pair(app *app, const char *count_id, const char *time_id, bool known,
                      json_int_t activities, json_int_t minutes) {
  char *count = known ? g_strdup_printf("%" JSON_INTEGER_FORMAT, activities) : g_strdup("–"),
       *time = known ? look_duration(minutes) : g_strdup("–");
  gtk_label_set_text(part(&app->home, count_id), count);
  gtk_label_set_text(part(&app->home, time_id), time);
  g_free(count);
  g_free(time);
}

/* The own figures, and those of the organisation: the server's, with what this device has stored
 * since, and what it has not sent. */
static void show_figures(app *app) {
  json_t *reply = host_call(app, "summary_get", NULL);
  const json_t *summary = json_object_get(reply, "summary"), *sent = json_object_get(reply, "sent"),
               *queued = json_object_get(reply, "queued"),
               *everybody = json_object_get(summary, "organization");
  json_int_t activities = number_at(sent, "activities") + number_at(queued, "activities");
  json_int_t minutes = number_at(sent, "minutes") + number_at(queued, "minutes");
  show_pair(app, "figure_activities", "figure_time", json_is_object(summary) || activities > 0,
            number_at(summary, "activities") + activities, number_at(summary, "minutes") + minutes);
  show_pair(app, "overview_activities", "overview_time", json_is_object(everybody),
            number_at(everybody, "activities") + activities,
            number_at(everybody, "minutes") + minutes);
  look_own_banners(app, part(&app->home, "figure_banners"), json_object_get(reply, "banners"));
  json_int_t as_of = number_at(reply, "as_of_ms");
  char *when = as_of > 0 ? look_time(as_of) : NULL;
  char *line = when == NULL ? g_strdup("") : g_strdup_printf("%s %s", word("Counted"), when);
  gtk_label_set_text(part(&app->home, "figure_age"), line);
  json_int_t members = number_at(everybody, "members");
  char *title = json_is_object(everybody)
                    ? g_strdup_printf(word(members == 1 ? "%d member" : "%d members"), (int)members)
                    : g_strdup(word("Members"));
  set_row(part(&app->home, "overview_members"), title, when == NULL ? "–" : line);
  g_free(title);
  g_free(when);
  g_free(line);
  json_decref(reply);
}

static void show_waiting(app *app) {
  json_t *reply = host_call(app, "queue_explain", NULL);
  const json_t *counts = json_object_get(reply, "counts");
  json_int_t parked = number_at(counts, "parked");
  json_int_t unsent =
      number_at(counts, "pending") + number_at(counts, "sending") + number_at(counts, "waiting");
  const json_t *reason = json_array_get(json_object_get(reply, "reasons"), 0);
  const char *text = look_is_told(app, text_at(reason, "code")) ? "" : text_at(reason, "text");
  char *title = unsent == 0 ? g_strdup(word("Everything is sent"))
                            : g_strdup_printf(word("%d not sent yet"), (int)unsent);
  set_row(part(&app->home, "waiting"), title, text);
  gtk_widget_set_visible(part(&app->home, "waiting"), unsent > 0 || parked == 0);
  GtkWidget *look = part(&app->home, "parked");
  gtk_widget_set_visible(look, parked > 0);
  g_free(title);
  title = g_strdup_printf(word("%d could not be sent"), (int)parked);
  set_row(look, title, word("Open the outbox to see why."));
  AdwViewStack *views = part(&app->main, "views");
  AdwViewStackPage *page =
      adw_view_stack_get_page(views, adw_view_stack_get_child_by_name(views, "outbox"));
  adw_view_stack_page_set_badge_number(page, (guint)(unsent + parked));
  adw_view_stack_page_set_needs_attention(page, parked > 0);
  g_free(title);
  json_decref(reply);
}

/* The contacts are those of the cache, so their number has its own age. */
static void show_overview(app *app) {
  json_t *found =
      host_call(app, "contact_search", json_pack("{s:s, s:i}", "query", "", "limit", 1));
  json_int_t total = number_at(found, "total");
  char *title = g_strdup_printf(word(total == 1 ? "%d contact" : "%d contacts"), (int)total);
  json_int_t as_of = number_at(found, "as_of_ms");
  char *when = as_of > 0 ? look_time(as_of) : g_strdup("–");
  char *line = g_strdup_printf("%s %s", word("Last updated"), when);
  set_row(part(&app->home, "overview_contacts"), title, line);
  g_free(title);
  g_free(when);
  g_free(line);
  json_decref(found);
}

/* The user's role, and who that is. */
static void show_person(app *app) {
  const char *role = word(text_at(json_object_get(app->decision, "org"), "role"));
  const char *name = who_name(app);
  char *line = g_strdup_printf(*role != 0 && *name != 0 ? "%s · %s" : "%s%s", role, name);
  gtk_label_set_text(part(&app->home, "role_name"), line);
  g_free(line);
}

void home_refresh(app *app) {
  show_person(app);
  show_figures(app);
  show_waiting(app);
  if (gtk_widget_get_visible(part(&app->home, "overview")))
    show_overview(app);
}

void home_show(app *app, const json_t *decision) {
  const json_t *org = json_object_get(decision, "org");
  g_free(app->route);
  app->route = g_strdup(text_at(decision, "route"));
  gtk_label_set_text(part(&app->home, "org_name"), text_at(org, "name"));
  gtk_widget_set_visible(part(&app->home, "overview"), strcmp(app->route, "/admin") == 0);
  show_orgs(app, decision);
  window_refresh(app);
}
