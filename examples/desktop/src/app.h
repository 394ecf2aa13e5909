/* The declarations that the files of this app share, one section per file. Start reading with
 * main.c, then host.c. */
#ifndef DESKTOP_APP_H
#define DESKTOP_APP_H

#include <adwaita.h>
#include <holdfast.h>
#include <holdfast_http.h>
#include <jansson.h>
#include <stdbool.h>

#define APP_ID "org.holdfast.Desktop"

typedef struct app app;

/* A part of the window that shows the library's data. `refresh` reads it again. */
typedef struct {
  GtkWidget *widget;
  GtkBuilder *ui; /* owns the widgets by their ids in the .ui file */
} screen;

struct app {
  AdwApplication *application;
  GtkWindow *window;
  AdwToastOverlay *toasts;
  AdwMessageDialog *question; /* the one on the screen */
  GtkStack *screens;          /* wait, sign_in, select_org, unlock, home */

  /* What the environment says. */
  const char *url, *key, *redirect_url;
  const char *new_password_url; /* NULL: there is no such page */
  char *data_dir, *settings_file;
  char locale[4];
  gint64 started_us; /* when main() began; 0: home was drawn since */

  /* host.c */
  holdfast *self;
  holdfast_http *network;
  guint watches[2], timer;
  json_t *decision; /* the one on the screen */

  /* keys.c */
  bool keys_in_service; /* the secret service; else files */
  char *keys_dir;

  /* reader.c */
  char *prompt;             /* the library's words for it */
  AdwMessageDialog *finger; /* the prompt on the screen */
  const char *released;     /* the key, in base64, while it is passed on; else NULL */
  int32_t refused;          /* why there is none, while that is passed on; else HOLDFAST_KEY_OK */

  json_t *who; /* the user's id, and name */

  /* stage.c: nothing of it without HOLDFAST_STAGE */
  const char *stage;
  bool stage_online;
  gint64 stage_clock_ms;

  /* browser.c */
  GSocketService *redirect;

  /* the parts of the window */
  screen main, sign_in, select_org, unlock, wait;
  screen home, activities, contacts, outbox, settings, entry, contact;
  char *route;              /* of the home screen */
  GtkWidget *opener;        /* what had the focus when a page was opened; it gets it back */
  char *contact_id;         /* of the contact on the screen */
  json_int_t live_request;  /* its details that are being fetched */
  json_t *activities_shown; /* what is on the list: {"item", "text"} */
  int activity_pages;       /* how many pages of them are shown */
  json_t *edited;           /* the item that the entry form edits; NULL: a new one */
  json_t *form;             /* what the form showed when it was opened; NULL: it is not open */
  json_t *draft;            /* a form that was left before it was saved */
};

/* ---- main.c ---- */

/* Opens the library and the window. */
void app_start(app *app);

/* ---- json.c ---- */

const char *text_at(const json_t *object, const char *key); /* "" if absent or not a text */
json_int_t number_at(const json_t *object, const char *key);
bool is_text(const json_t *object, const char *key, const char *expected);

/* ---- host.c: the library ---- */

/* Opens the data folder and starts the driver on GLib's loop. False: `problem` says why. */
bool host_open(app *app, char **problem);
/* The window is there: draws the first screen, and takes news from now on. */
void host_begin(app *app);
void host_close(app *app);
/* Takes no more news. */
void host_pause(app *app);
/* Makes a call by its name. Takes over `request`, which may be NULL. The caller owns the reply. */
json_t *host_call(app *app, const char *operation, json_t *request);
/* The text of an error reply that a user can read; NULL: it is no error. */
const char *host_error(const json_t *reply);
/* Shows a decision. */
void host_show(app *app, json_t *decision);
/* Makes a call whose reply says nothing: what it changes comes as news. An error is told. */
void host_do(app *app, const char *operation, json_t *request);
/* How long this process was in the library, in microseconds. */
gint64 host_spent_us(void);

/* ---- keys.c, secret.c, reader.c: the key store. Results are HOLDFAST_KEY_*, keys in base64 ----
 */

void keys_open(app *app);
holdfast_keystore keys_store(app *app);
void secret_open(const app *app);
/* Before the program ends. */
void secret_close(void);
bool secret_available(void);
/* The caller owns `*value`. */
int32_t keys_load(app *app, const char *name, char **value);
int32_t keys_save(app *app, const char *name, const char *value);
int32_t keys_erase(app *app, const char *name);
int32_t secret_load(app *app, const char *name, char **value);
int32_t secret_save(app *app, const char *name, const char *value);
int32_t secret_erase(app *app, const char *name);
/* The user was away: a keyring whose prompt they dismissed may be asked for again. */
void secret_ask_again(void);
/* The handle is closed: takes the prompt back. */
void secret_cancel(void);
/* Before the program ends: waits until the service has taken note. At most two seconds. */
void secret_settle(void);
/* The fingerprint reader, which keeps the key `biometric`. */
int32_t reader_load(app *app, char **value);
int32_t reader_save(app *app, const char *value);
int32_t reader_erase(app *app);
/* Asks for the finger, and then unlocks. */
void reader_unlock(app *app);
/* Unlocks with what a prompt has brought: the key in base64, or why there is none. */
void reader_tell(app *app, int32_t result, const char *key);
/* Nobody needs the finger any more: takes the prompt back. */
void reader_cancel(app *app);

/* ---- stage.c: the network, clock and reader that a demo or a test simulates ---- */

/* Connects to the stage and takes its first state. Without HOLDFAST_STAGE it does nothing. */
bool stage_open(app *app);
/* Sets the library's clock, if the stage has one. Before every call. */
void stage_tick(app *app);

/* ---- words.c: the app's own words ---- */

/* The word in the app's language. */
const char *word(const char *english);
void words_use(const char *locale);
/* Builds a screen from its .ui file, with the words of the app's language. */
screen screen_build(const char *name);
/* A widget of a screen, by its id. */
gpointer part(const screen *screen, const char *id);

/* ---- look.c: what several screens show ---- */

void look_banners(GtkBox *box, const json_t *banners);
/* The banners of a page, without those that the window shows above it. */
void look_own_banners(app *app, GtkBox *box, const json_t *banners);
/* A notice, in the library's words or in ours. */
void look_toast(app *app, const char *text);
/* A short "done". */
void look_confirm(app *app, const char *text);
/* Whether a banner above the page says this already. */
bool look_is_told(app *app, const char *code);
/* A button. It is read out with what it acts on: its word alone could be any row's. */
GtkWidget *look_action(const char *label, const char *what);
/* A row with a title and a line below it; both are read out. */
GtkWidget *look_row(const char *title, const char *subtitle);
void look_clear(GtkListBox *list);
void look_clear_box(GtkBox *box);
/* "today 14:05", "3 March 14:05"; the caller frees it. */
char *look_time(json_int_t ms);
char *look_duration(json_int_t minutes);
/* Lets the text of a button take several lines, where it is large and the window is narrow. */
void look_wrap(GtkButton *button);
/* A question with several answers. */
AdwMessageDialog *look_question(app *app, const char *title, const char *body);

/* ---- window.c: which screen is on the window ---- */

void window_build(app *app);
/* Destroys the window and all of its screens. */
void window_close(app *app);
void window_show(app *app, const json_t *decision);
/* News that are no screen: a toast, or new data. */
void window_news(app *app, const json_t *news);
/* Reads again what the visible pages show. */
void window_refresh(app *app);
/* Opens a page above the home screen; NULL goes back. `route` is checked first. False: it is not
 * allowed, and the screen that is has been shown. */
bool window_open(app *app, const char *page, const char *route);

/* ---- one file per screen ---- */

void sign_in_build(app *app);
void sign_in_show(app *app, const json_t *decision);
void select_org_build(app *app);
void select_org_show(app *app, const json_t *decision);
void unlock_build(app *app);
void unlock_show(app *app, const json_t *decision);
void home_build(app *app);
void home_show(app *app, const json_t *decision);
void home_refresh(app *app);
void contacts_build(app *app);
void contacts_refresh(app *app);
void contact_build(app *app);
/* The name, for the caller to free; NULL: this contact is not kept on this computer. */
char *contact_name(app *app, const char *id);
void contact_show(app *app, const char *id);
void contact_answer(app *app, const json_t *answer);
void activities_build(app *app);
void activities_refresh(app *app);
/* Nobody is signed in, or the session is locked. */
void activities_forget(app *app);
/* The item as it is now on the list; NULL: it is not there. */
const json_t *activities_item(app *app, const char *id);
/* What somebody else has written, a line for each column of a conflict. The caller frees it. */
char *item_conflict(app *app, const json_t *columns, bool is_removal);
/* Whether two values of a column mean the same: an absent one is null, and a time has several
 * texts. */
bool item_is_same(const json_t *one, const json_t *other);
/* The payload as its user saw it; NULL: an item of the outbox, which has the changed columns alone.
 */
const json_t *item_base(const json_t *item);
/* What the card of an item says. The caller frees it. */
char *item_text(app *app, const json_t *item);
/* What an item was, what happens to it, and what can be done. */
GtkWidget *item_card(app *app, const json_t *item);
void outbox_build(app *app);
void outbox_refresh(app *app);
void settings_build(app *app);
void settings_show(app *app);
void settings_save(app *app);
void entry_build(app *app);
/* Opens the form: empty, for a contact, or with an item of a list. False: it is not allowed. */
bool entry_show(app *app, const char *contact_id, const json_t *item);
/* The form is left: keeps what is written and not saved. */
void entry_leave(app *app);
/* Nobody is signed in, or the session is locked: empties the form. `lasting`: the session ended by
 * the user's wish, and nothing is kept. */
void entry_forget(app *app, bool lasting);
/* The user is back: opens the form that a lock has closed. */
void entry_return(app *app);
const char *entry_type_name(const char *type);
/* When an item's activity was. */
json_int_t entry_occurred_ms(const json_t *item);

/* ---- who.c: who is signed in ---- */

/* The name or the address; "" while it is not known. */
const char *who_name(app *app);
/* The user has logged out. */
void who_forget(app *app);

/* ---- browser.c: BankID and Vipps ---- */

void browser_listen(app *app, bool wanted);
/* Opens the page of a sign-in, which returns. */
void browser_sign_in(app *app, const char *url);
/* Opens a page. False: there is no browser, and the user was told. */
bool browser_open(app *app, const char *url);

#endif
