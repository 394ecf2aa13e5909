/* The sign-in: a button per method. BankID and Vipps open the browser; the password has a form. */
#include "app.h"

#include <string.h>

static void show_password(app *app, bool shown) {
  gtk_widget_set_visible(part(&app->sign_in, "password_form"), shown);
  if (shown)
    gtk_widget_grab_focus(part(&app->sign_in, "email"));
}

static void on_method(GtkButton *button, gpointer context) {
  app *app = context;
  const char *id = g_object_get_data(G_OBJECT(button), "id");
  const char *flow = g_object_get_data(G_OBJECT(button), "flow");
  if (strcmp(flow, "password") == 0) {
    show_password(app, true);
    return;
  }
  json_t *reply = host_call(app, "sign_in_begin", json_pack("{s:s}", "method", id));
  if (host_error(reply) != NULL) {
    look_toast(app, host_error(reply));
  } else {
    browser_sign_in(app, text_at(reply, "url"));
    gtk_label_set_text(part(&app->sign_in, "message"), word("Continue in the browser."));
  }
  json_decref(reply);
}

static void on_password(GtkWidget *widget, gpointer context) {
  (void)widget;
  app *app = context;
  GtkEditable *password = part(&app->sign_in, "password");
  json_t *request =
      json_pack("{s:s, s:s}", "email", gtk_editable_get_text(part(&app->sign_in, "email")),
                "password", gtk_editable_get_text(password));
  gtk_editable_set_text(password, "");
  host_do(app, "sign_in_complete", request);
}

/* The library has no call for a new password: the organisation's page does that, or a person. */
static void on_forgotten(GtkButton *button, gpointer context) {
  (void)button;
  app *app = context;
  GtkLabel *message = part(&app->sign_in, "message");
  if (app->new_password_url == NULL)
    gtk_label_set_text(message,
                       word("Ask your coordinator for a new password, or sign in another way."));
  else if (browser_open(app, app->new_password_url))
    gtk_label_set_text(message, word("Continue in the browser."));
}

static void on_unlock(GtkWidget *widget, gpointer context) {
  (void)widget;
  reader_unlock(context);
}

void sign_in_build(app *app) {
  app->sign_in = screen_build("sign_in");
  g_signal_connect(part(&app->sign_in, "password_send"), "clicked", G_CALLBACK(on_password), app);
  g_signal_connect(part(&app->sign_in, "password"), "entry-activated", G_CALLBACK(on_password),
                   app);
  g_signal_connect(part(&app->sign_in, "email"), "entry-activated", G_CALLBACK(on_password), app);
  look_wrap(part(&app->sign_in, "forgotten"));
  g_signal_connect(part(&app->sign_in, "forgotten"), "clicked", G_CALLBACK(on_forgotten), app);
  g_signal_connect(part(&app->sign_in, "try_again"), "clicked", G_CALLBACK(on_unlock), app);
}

void sign_in_show(app *app, const json_t *decision) {
  GtkBox *methods = part(&app->sign_in, "methods");
  look_clear_box(methods);
  look_banners(part(&app->sign_in, "sign_in_banners"), json_object_get(decision, "banners"));
  gtk_label_set_text(part(&app->sign_in, "message"),
                     text_at(json_object_get(decision, "message"), "text"));
  /* Where another prompt is possible, it is offered first: the cheapest way in. */
  gtk_widget_set_visible(part(&app->sign_in, "try_again"),
                         json_is_true(json_object_get(decision, "can_unlock")));
  bool with_password = false;
  size_t index;
  json_t *method;
  json_array_foreach(json_object_get(decision, "methods"), index, method) {
    GtkWidget *button = gtk_button_new_with_label(text_at(method, "label"));
    look_wrap(GTK_BUTTON(button));
    gtk_widget_add_css_class(button, "pill");
    if (index == 0)
      gtk_widget_add_css_class(button, "suggested-action");
    g_object_set_data_full(G_OBJECT(button), "id", g_strdup(text_at(method, "id")), g_free);
    g_object_set_data_full(G_OBJECT(button), "flow", g_strdup(text_at(method, "flow")), g_free);
    g_signal_connect(button, "clicked", G_CALLBACK(on_method), app);
    gtk_box_append(methods, button);
    with_password = with_password || is_text(method, "flow", "password");
  }
  /* A wrong password leads back to the form. */
  bool again = is_text(json_object_get(decision, "message"), "code", "sign_in_failed");
  show_password(app, with_password && again &&
                         *gtk_editable_get_text(part(&app->sign_in, "email")) != 0);
}
