/* The unlock screen. The button asks the reader for a finger, which releases the key `biometric`,
 * and then the library to unlock (reader.c). */
#include "app.h"

static void on_unlock(GtkButton *button, gpointer context) {
  (void)button;
  reader_unlock(context);
}

static void on_other(GtkButton *button, gpointer context) {
  (void)button;
  reader_tell(context, HOLDFAST_KEY_CANCELLED, NULL);
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
