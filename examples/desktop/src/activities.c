/* My activities: what this user has registered, stored and waiting in one list, newest first, with
 * or without a network. Each can be changed and taken back. */
#include "app.h"

#include <string.h>

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
    json_decref(reply);
    reply = following;
    json_array_extend(items, json_object_get(reply, "items"));
  }
  return reply;
}

static void show_age(app *app, json_int_t as_of) {
  char *time = as_of > 0 ? look_time(as_of) : NULL;
  char *line = time == NULL ? g_strdup("") : g_strdup_printf("%s %s", word("Last updated"), time);
  gtk_label_set_text(part(&app->activities, "activity_age"), line);
  gtk_widget_set_visible(part(&app->activities, "activity_age"), *line != 0);
  g_free(line);
  g_free(time);
}

/* The items, with what their cards say: a contact's name may come later than its activities. */
static json_t *shown_of(app *app, json_t *items) {
  json_t *shown = json_array(), *item;
  size_t index;
  json_array_foreach(items, index, item) {
    char *text = item_text(app, item);
    json_array_append_new(shown, json_pack("{s:O, s:s}", "item", item, "text", text));
    g_free(text);
  }
  return shown;
}

static GtkListBox *list_of(app *app) { return part(&app->activities, "activity_list"); }

static const char *id_at(const json_t *shown, int index) {
  return text_at(json_object_get(json_array_get(shown, (size_t)index), "item"), "id");
}

/* The place of the card that has the focus; -1: none has it. */
static int focused_row(app *app) {
  GtkWidget *focus = gtk_window_get_focus(app->window);
  if (focus == NULL || !gtk_widget_is_ancestor(focus, GTK_WIDGET(list_of(app))))
    return -1;
  GtkWidget *row = gtk_widget_get_ancestor(focus, GTK_TYPE_LIST_BOX_ROW);
  return gtk_list_box_row_get_index(GTK_LIST_BOX_ROW(row));
}

static void focus_row(app *app, int index) {
  GtkListBoxRow *row = gtk_list_box_get_row_at_index(list_of(app), index);
  if (row != NULL)
    gtk_widget_child_focus(GTK_WIDGET(row), GTK_DIR_TAB_FORWARD);
}

/* The card with the focus was made anew, or is gone: the focus goes to what is there now. */
static void keep_focus(app *app, int before, const char *id, const json_t *shown) {
  int count = (int)json_array_size(shown), index = 0;
  while (index < count && strcmp(id_at(shown, index), id) != 0)
    index++;
  focus_row(app, index < count ? index : MIN(before, count - 1));
}

/* Replaces the cards that differ: the others keep their place and their focus. */
static void show_items(app *app, json_t *items) {
  json_t *before = app->activities_shown, *shown = shown_of(app, items);
  size_t was = json_array_size(before), is = json_array_size(shown), same = 0, end = 0;
  while (same < MIN(was, is) &&
         json_equal(json_array_get(before, same), json_array_get(shown, same)))
    same++;
  while (end < MIN(was, is) - same &&
         json_equal(json_array_get(before, was - 1 - end), json_array_get(shown, is - 1 - end)))
    end++;
  int focused = focused_row(app);
  bool is_moved = focused >= (int)same && focused < (int)(was - end);
  for (size_t i = same; i < was - end; i++)
    gtk_list_box_remove(list_of(app),
                        GTK_WIDGET(gtk_list_box_get_row_at_index(list_of(app), (int)same)));
  for (size_t i = same; i < is - end; i++)
    gtk_list_box_insert(list_of(app), item_card(app, json_array_get(items, i)), (int)i);
  gtk_widget_set_visible(GTK_WIDGET(list_of(app)), is > 0);
  if (is_moved)
    keep_focus(app, focused, id_at(before, focused), shown);
  json_decref(before);
  app->activities_shown = shown;
}

static bool is_on_screen(app *app) {
  const char *name = adw_view_stack_get_visible_child_name(part(&app->main, "views"));
  return g_strcmp0(name, "activities") == 0;
}

void activities_refresh(app *app) {
  if (!is_on_screen(app))
    return;
  json_t *items = json_array(), *reply = read_pages(app, items);
  if (json_object_get(reply, "error") != NULL) { /* the list stays; the next news try again */
    json_decref(reply);
    json_decref(items);
    return;
  }
  show_items(app, items);
  /* Until they were read once, nobody knows whether there are none; a banner says so. */
  bool is_known = json_is_integer(json_object_get(reply, "as_of_ms"));
  gtk_widget_set_visible(part(&app->activities, "activities_empty"),
                         is_known && json_array_size(items) == 0);
  show_age(app, number_at(reply, "as_of_ms"));
  look_own_banners(app, part(&app->activities, "activity_banners"),
                   json_object_get(reply, "banners"));
  gtk_widget_set_visible(part(&app->activities, "more"),
                         json_is_string(json_object_get(reply, "next")));
  json_decref(reply);
  json_decref(items);
}

const json_t *activities_item(app *app, const char *id) {
  activities_refresh(app);
  const json_t *shown = app->activities_shown;
  for (int index = 0; index < (int)json_array_size(shown); index++)
    if (strcmp(id_at(shown, index), id) == 0)
      return json_object_get(json_array_get(shown, (size_t)index), "item");
  return NULL;
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
  int shown = (int)json_array_size(app->activities_shown);
  app->activity_pages++;
  activities_refresh(app);
  focus_row(app, shown); /* the first that was not there */
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
