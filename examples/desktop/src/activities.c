/* My activities: what this user has registered, stored and waiting in one list, newest first, with
 * or without a network. Each can be changed and taken back. */
#include "app.h"

enum { PAGE = 50 };

static json_t *read_page(app *app, const char *after) {
  return host_call(
      app, "item_list",
      json_pack("{s:s, s:i, s:s*}", "kind", "activity", "limit", PAGE, "after", after));
}

/* The first pages. The last reply has the age and the banners of all, and what comes next. */
static json_t *read_pages(app *app, json_t *items) {
  json_t *reply = read_page(app, NULL);
  json_array_extend(items, json_object_get(reply, "items"));
  for (int page = 1; page < app->activity_pages; page++) {
    const char *next = json_string_value(json_object_get(reply, "next"));
    json_t *following = next == NULL ? NULL : read_page(app, next);
    if (following == NULL)
      break;
    json_array_extend(items, json_object_get(following, "items"));
    json_decref(reply);
    reply = following;
  }
  return reply;
}

static void show_age(app *app, json_int_t as_of) {
  char *time = as_of > 0 ? look_time(as_of) : NULL;
  char *line = time == NULL ? g_strdup("") : g_strdup_printf("%s %s", word("Last updated"), time);
  gtk_label_set_text(part(&app->activities, "activity_age"), line);
  g_free(line);
  g_free(time);
}

/* A list that has not changed keeps its place and its focus. */
static void show_items(app *app, json_t *items) {
  if (json_equal(items, app->activities_shown))
    return;
  GtkListBox *list = part(&app->activities, "activity_list");
  size_t index;
  json_t *item;
  look_clear(list);
  json_array_foreach(items, index, item) gtk_list_box_append(list, item_card(app, item));
  gtk_widget_set_visible(GTK_WIDGET(list), json_array_size(items) > 0);
  gtk_widget_set_visible(part(&app->activities, "activities_empty"), json_array_size(items) == 0);
  json_decref(app->activities_shown);
  app->activities_shown = json_incref(items);
}

static bool is_on_screen(app *app) {
  const char *name = adw_view_stack_get_visible_child_name(part(&app->main, "views"));
  return g_strcmp0(name, "activities") == 0;
}

void activities_refresh(app *app) {
  if (!is_on_screen(app))
    return;
  json_t *items = json_array(), *reply = read_pages(app, items);
  show_items(app, items);
  show_age(app, number_at(reply, "as_of_ms"));
  look_own_banners(app, part(&app->activities, "activity_banners"),
                   json_object_get(reply, "banners"));
  gtk_widget_set_visible(part(&app->activities, "more"),
                         json_is_string(json_object_get(reply, "next")));
  json_decref(reply);
  json_decref(items);
}

void activities_forget(app *app) {
  look_clear(part(&app->activities, "activity_list"));
  json_decref(app->activities_shown);
  app->activities_shown = NULL;
  app->activity_pages = 1;
}

static void on_more(GtkButton *button, gpointer context) {
  (void)button;
  app *app = context;
  app->activity_pages++;
  activities_refresh(app);
}

static void on_view(GObject *views, GParamSpec *what, gpointer context) {
  (void)views, (void)what;
  app *app = context;
  if (is_text(app->decision, "screen", "home"))
    activities_refresh(app);
}

void activities_build(app *app) {
  app->activities = screen_build("activities");
  app->activity_pages = 1;
  g_signal_connect(part(&app->activities, "more"), "clicked", G_CALLBACK(on_more), app);
  g_signal_connect(part(&app->main, "views"), "notify::visible-child", G_CALLBACK(on_view), app);
}
