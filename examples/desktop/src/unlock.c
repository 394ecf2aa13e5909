/* The unlock screen. The button asks the library to unlock; the library asks the key store for the
 * key `biometric`, and the reader releases it for a finger (reader.c). */
#include "app.h"

static void on_unlock(GtkButton *button, gpointer context) {
  (void)button;
  host_decide(context, "session_unlock", json_pack("{s:s}", "outcome", "success"));
}

static void on_other(GtkButton *button, gpointer context) {
  (void)button;
  host_decide(context, "session_unlock", json_pack("{s:s}", "outcome", "cancelled"));
}

void unlock_build(app *app) {
  app->unlock = screen_build("unlock");
  look_wrap(part(&app->unlock, "unlock_other"));
  g_signal_connect(part(&app->unlock, "unlock_now"), "clicked", G_CALLBACK(on_unlock), app);
  g_signal_connect(part(&app->unlock, "unlock_other"), "clicked", G_CALLBACK(on_other), app);
}

void unlock_show(app *app, const json_t *decision) {
  gtk_label_set_text(part(&app->unlock, "unlock_text"),
                     text_at(json_object_get(decision, "message"), "text"));
  look_banners(part(&app->unlock, "unlock_banners"), json_object_get(decision, "banners"));
}
