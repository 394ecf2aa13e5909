/* The window: which screen is on it, which page above the home screen, and what news say. */
#include "app.h"

#include <string.h>

static void refresh_banners(app *app, const json_t *decision) {
  look_banners(part(&app->main, "banners"), json_object_get(decision, "banners"));
}

/* Nothing stays open under a lock, and nothing is left in the widgets. */
static void forget(app *app, const json_t *decision) {
  bool lasting = is_text(json_object_get(decision, "message"), "code", "signed_out");
  entry_forget(app, lasting);
  if (lasting)
    who_forget(app);
  window_open(app, NULL, NULL);
  if (app->question != NULL)
    gtk_window_destroy(GTK_WINDOW(app->question));
  gtk_editable_set_text(part(&app->contacts, "search"), "");
  look_clear(part(&app->contacts, "list"));
  look_clear(part(&app->contact, "fields"));
  look_clear(part(&app->contact, "needs_network"));
  gtk_label_set_text(part(&app->contact, "contact_name"), "");
  activities_forget(app);
  look_clear(part(&app->outbox, "parked_items"));
  look_clear(part(&app->outbox, "waiting_items"));
  gtk_label_set_text(part(&app->home, "org_name"), "");
  gtk_label_set_text(part(&app->home, "role_name"), "");
  adw_action_row_set_subtitle(part(&app->settings, "who"), "");
}

/* The first home screen is drawn: tell developers how long the start took. */
static void on_painted(GdkFrameClock *clock, gpointer context) {
  app *app = context;
  if (app->started_us == 0)
    return;
  gint64 whole_us = g_get_monotonic_time() - app->started_us;
  g_debug("home drawn after %d us, %d us of it in the library", (int)whole_us,
          (int)host_spent_us());
  app->started_us = 0;
  g_signal_handlers_disconnect_by_func(clock, on_painted, app);
}

void window_show(app *app, const json_t *decision) {
  const char *name = text_at(decision, "screen");
  const char *message = text_at(json_object_get(decision, "message"), "text");
  browser_listen(app, strcmp(name, "sign_in") == 0);
  if (strcmp(name, "home") == 0) {
    home_show(app, decision);
    refresh_banners(app, decision);
    if (*message != 0)
      look_toast(app, message);
  } else if (strcmp(name, "wait") != 0) {
    forget(app, decision);
  }
  if (strcmp(name, "sign_in") == 0)
    sign_in_show(app, decision);
  else if (strcmp(name, "select_org") == 0)
    select_org_show(app, decision);
  else if (strcmp(name, "unlock") == 0)
    unlock_show(app, decision);
  else if (strcmp(name, "wait") == 0)
    gtk_label_set_text(part(&app->wait, "wait_text"), message);
  const char *before = gtk_stack_get_visible_child_name(app->screens);
  gtk_stack_set_visible_child_name(app->screens, name);
  GdkFrameClock *frames = gtk_widget_get_frame_clock(GTK_WIDGET(app->window));
  if (strcmp(name, "home") == 0 && app->started_us != 0 && frames != NULL)
    g_signal_connect(frames, "after-paint", G_CALLBACK(on_painted), app);
  if (g_strcmp0(before, name) != 0)
    gtk_widget_child_focus(GTK_WIDGET(app->screens), GTK_DIR_TAB_FORWARD);
  if (strcmp(name, "home") == 0)
    entry_return(app);
}

void window_refresh(app *app) {
  if (!is_text(app->decision, "screen", "home"))
    return;
  home_refresh(app);
  activities_refresh(app);
  contacts_refresh(app);
  outbox_refresh(app);
}

/* Of the notices, only this one has no place on a screen: the others are in the decision's message
 * and in the outbox. */
void window_news(app *app, const json_t *news) {
  const json_t *answer = json_object_get(news, "answer"), *notice = json_object_get(news, "notice");
  const json_t *ended = json_object_get(json_object_get(news, "sync"), "message");
  if (is_text(answer, "to", "contact_get"))
    contact_answer(app, answer);
  else if (is_text(notice, "type", "storage_recovered") || json_is_object(ended))
    look_toast(app, text_at(notice != NULL ? notice : ended, "text"));
  window_refresh(app);
}

bool window_open(app *app, const char *page, const char *route) {
  AdwLeaflet *leaflet = part(&app->main, "leaflet");
  entry_leave(app);
  if (page == NULL) {
    adw_leaflet_set_visible_child_name(leaflet, "pages");
    if (app->opener != NULL)
      gtk_widget_grab_focus(app->opener);
    g_clear_weak_pointer(&app->opener);
    return true;
  }
  json_t *reply =
      route == NULL ? NULL : host_call(app, "route_check", json_pack("{s:s}", "route", route));
  bool allowed = route == NULL || json_is_true(json_object_get(reply, "allow"));
  if (json_object_get(reply, "screen") != NULL)
    host_show(app, json_object_get(reply, "screen"));
  json_decref(reply);
  if (!allowed)
    return false;
  if (strcmp(adw_leaflet_get_visible_child_name(leaflet), "pages") == 0)
    g_set_weak_pointer(&app->opener, gtk_window_get_focus(app->window));
  gtk_stack_set_visible_child_name(part(&app->main, "page"), page);
  adw_leaflet_set_visible_child_name(leaflet, "page");
  gtk_widget_child_focus(part(&app->main, "page"), GTK_DIR_TAB_FORWARD);
  return true;
}

/* ---- the organisations in the header ---- */

static void on_switch(GSimpleAction *action, GVariant *org, gpointer context) {
  (void)action;
  window_open(context, NULL, NULL);
  host_do(context, "org_select", json_pack("{s:s}", "org_id", g_variant_get_string(org, NULL)));
}

static void on_settings(GSimpleAction *action, GVariant *value, gpointer context) {
  (void)action, (void)value;
  app *app = context;
  if (is_text(app->decision, "screen", "home"))
    settings_show(app);
}

static void on_lock(GSimpleAction *action, GVariant *value, gpointer context) {
  (void)action, (void)value;
  host_do(context, "session_lock", NULL);
}

static void on_back(GSimpleAction *action, GVariant *value, gpointer context) {
  (void)action, (void)value;
  window_open(context, NULL, NULL);
}

static void on_register(GSimpleAction *action, GVariant *value, gpointer context) {
  (void)action, (void)value;
  app *app = context;
  if (is_text(app->decision, "screen", "home"))
    entry_show(app, NULL, NULL);
}

/* A screen reader reads the visible child of a stack only. GTK 4.8 leaves that to the app. */
static void on_child(GObject *stack, GParamSpec *what, gpointer context) {
  (void)what, (void)context;
  GtkWidget *shown = NULL;
  g_object_get(stack, "visible-child", &shown, NULL);
  for (GtkWidget *child = gtk_widget_get_first_child(GTK_WIDGET(stack)); child != NULL;
       child = gtk_widget_get_next_sibling(child))
    gtk_accessible_update_state(GTK_ACCESSIBLE(child), GTK_ACCESSIBLE_STATE_HIDDEN, child != shown,
                                -1);
  g_clear_object(&shown);
}

static void read_shown_only(gpointer stack) {
  g_signal_connect(stack, "notify::visible-child", G_CALLBACK(on_child), NULL);
  on_child(stack, NULL, NULL);
}

/* The user has closed the window: nothing more is drawn, and the program ends. */
static void on_gone(GtkWidget *window, gpointer context) {
  (void)window;
  app *app = context;
  app->window = NULL;
  host_pause(app);
}

void window_build(app *app) {
  const GActionEntry actions[] = {
      {.name = "switch", .activate = on_switch, .parameter_type = "s"},
      {.name = "settings", .activate = on_settings},
      {.name = "lock", .activate = on_lock},
      {.name = "back", .activate = on_back},
      {.name = "register", .activate = on_register},
  };
  screen window = screen_build("window");
  app->window = GTK_WINDOW(window.widget);
  app->screens = part(&window, "screens");
  app->toasts = part(&window, "toasts");
  gtk_window_set_application(app->window, GTK_APPLICATION(app->application));
  g_signal_connect(app->window, "destroy", G_CALLBACK(on_gone), app);
  g_action_map_add_action_entries(G_ACTION_MAP(app->window), actions, G_N_ELEMENTS(actions), app);
  g_object_unref(window.ui);

  app->main = screen_build("main");
  app->wait = screen_build("wait");
  home_build(app);
  activities_build(app);
  contacts_build(app);
  outbox_build(app);
  entry_build(app);
  contact_build(app);
  settings_build(app);
  sign_in_build(app);
  select_org_build(app);
  unlock_build(app);

  gtk_stack_add_named(app->screens, app->wait.widget, "wait");
  gtk_stack_add_named(app->screens, app->sign_in.widget, "sign_in");
  gtk_stack_add_named(app->screens, app->select_org.widget, "select_org");
  gtk_stack_add_named(app->screens, app->unlock.widget, "unlock");
  gtk_stack_add_named(app->screens, app->main.widget, "home");
  AdwViewStack *views = part(&app->main, "views");
  adw_view_stack_add_titled(views, app->home.widget, "home", word("Home"));
  adw_view_stack_add_titled(views, app->activities.widget, "activities", word("Activities"));
  adw_view_stack_add_titled(views, app->contacts.widget, "contacts", word("Contacts"));
  adw_view_stack_add_titled(views, app->outbox.widget, "outbox", word("Outbox"));
  const char *icons[][2] = {{"home", "go-home-symbolic"},
                            {"activities", "view-list-symbolic"},
                            {"contacts", "system-users-symbolic"},
                            {"outbox", "mail-send-symbolic"}};
  for (size_t i = 0; i < G_N_ELEMENTS(icons); i++)
    adw_view_stack_page_set_icon_name(
        adw_view_stack_get_page(views, adw_view_stack_get_child_by_name(views, icons[i][0])),
        icons[i][1]);
  GtkStack *page = part(&app->main, "page");
  gtk_stack_add_named(page, app->entry.widget, "entry");
  gtk_stack_add_named(page, app->contact.widget, "contact");
  gtk_stack_add_named(page, app->settings.widget, "settings");
  read_shown_only(app->screens);
  read_shown_only(views);
  read_shown_only(page);
  read_shown_only(part(&app->main, "leaflet"));
}

void window_close(app *app) {
  g_clear_weak_pointer(&app->opener);
  screen *const all[] = {&app->main,   &app->wait,  &app->sign_in,    &app->select_org,
                         &app->unlock, &app->home,  &app->activities, &app->contacts,
                         &app->outbox, &app->entry, &app->contact,    &app->settings};
  browser_listen(app, false);
  entry_leave(app);
  gtk_window_destroy(app->window);
  app->window = NULL;
  for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
    g_clear_object(&all[i]->ui);
    all[i]->widget = NULL;
  }
  json_decref(app->edited);
  app->edited = NULL;
  json_decref(app->activities_shown);
  app->activities_shown = NULL;
}
