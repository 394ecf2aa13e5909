/* What the tour's files share: one section per file. */
#ifndef TOUR_H
#define TOUR_H

#include "holdfast.h"
#include "holdfast_http.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/* Where things are. Given to every act on its command line. */
typedef struct {
  const char *data_dir;      /* the library's folder */
  const char *key_dir;       /* the device key: stands for the platform's key chain */
  bool secret_service;       /* the device key is in the desktop's secret service instead */
  const char *reader_socket; /* where the fingerprint reader listens */
  const char *backend;       /* http://127.0.0.1:port */
  const char *api_key;
  const char *dsn; /* of the backend's database, for psql; NULL: ask the backend's test tool */
} setting;

/* ---- stage.c: what the audience sees ---- */

void stage_title(const char *format, ...) __attribute__((format(printf, 1, 2)));
void stage_act(int number, const char *title);
/* What happens. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A detail, such as a reply in short. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a tick or a cross; returns `ok`. */
bool check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
int checks_failed(void);
/* Also called for every cross. */
void on_cross(void (*call)(void));
void show_decision(const json_t *decision);
void show_event(const json_t *event);
void show_error(const json_t *reply);
/* The files of a folder with their sizes. */
void show_files(const char *folder);

/* ---- json.c ---- */

/* "" when it is absent or no string. */
const char *text_at(const json_t *object, const char *key);
json_int_t number_at(const json_t *object, const char *key);
bool is_text(const json_t *object, const char *key, const char *expected);
/* The first object of an array whose member `key` is `value`; borrowed. */
json_t *find_by(const json_t *array, const char *key, const char *value);

/* ---- keystore.c: a host's key store ---- */

/* The device key in a file or the secret service, the biometric key in the reader. `where` must
 * outlive the handle. */
holdfast_keystore keystore_of(const setting *where);

/* ---- secret_service.c: the desktop's own key store, over libsecret; HOLDFAST_KEY_* ---- */

/* False: there was no libsecret when this was built. */
bool secret_service_built(void);
int32_t secret_service_load(const setting *where, uint8_t *key, size_t capacity, size_t *length);
int32_t secret_service_save(const setting *where, const uint8_t *key, size_t length);
int32_t secret_service_erase(const setting *where);

/* ---- reader.c: the simulated fingerprint reader, a process of its own ---- */

typedef struct {
  pid_t process;
  int finger; /* whoever holds this end can present a finger; -1 when the reader is not ours */
} reader;

/* `memory_file` NULL: the key lives as long as the process does. */
bool reader_start(const char *socket_path, const char *memory_file, reader *started);
void reader_stop(reader *started);
/* A finger on the glass: releases the key once, within the next ten seconds. */
bool reader_present_finger(const reader *started);
/* The host's side: HOLDFAST_KEY_*. */
int32_t reader_load(const char *socket_path, uint8_t *key, size_t capacity, size_t *length);
int32_t reader_save(const char *socket_path, const uint8_t *key, size_t length);
int32_t reader_erase(const char *socket_path);

/* ---- web.c: just enough HTTP for a browser and a test tool on this machine ---- */

typedef struct {
  int status; /* 0: no answer */
  char *location;
  char *body;
} web_answer;

web_answer web_request(const char *method, const char *url, const char *body);
void web_answer_free(web_answer *answer);
/* A person with this e-mail address opens the url and passes BankID: where the browser is sent to
 * then, or NULL. Released with free(). */
char *browser_sign_in(const char *url, const char *email);

/* ---- backend.c: the local backend's test tool ---- */

/* `sent` is taken over and may be NULL; NULL when it was refused. */
json_t *control(const setting *where, const char *method, const char *path, json_t *sent);
/* One value of one row, by psql or, without it, by the test tool; released with free(). */
char *query_value(const setting *where, const char *sql);
bool has_psql(const setting *where);
void add_fault(const setting *where, const char *action, const char *method, const char *path,
               int times, int delay_after_ms);
void clear_faults(const setting *where);
/* How often a fault struck since the last clear_faults(). */
json_int_t fault_hits(const setting *where);
/* Requests of the app that reached the server since forget_requests(). */
size_t requests_seen(const setting *where, const char *method, const char *path);
void forget_requests(const setting *where);

/* ---- app.c: the app ---- */

typedef int32_t (*operation)(holdfast *self, const char *request, char **reply);

typedef struct app {
  const setting *where;
  holdfast_keystore keystore;
  holdfast *self;
  holdfast_http *driver;
  int32_t status;  /* of the last call */
  json_t *backlog; /* events taken that nobody asked for yet */
} app;

bool app_open(app *app, const setting *where);
void app_close(app *app);
/* Takes over `request`, which may be NULL; the reply, never NULL. */
json_t *app_call(app *app, operation operation, json_t *request);
/* The next event of a type, or NULL when none comes in time. */
json_t *app_event(app *app, const char *type, int seconds);
/* Follows `wait` until it is known what to show; takes over `decision`. */
json_t *app_settle(app *app, json_t *decision);
void app_network(app *app, bool online);
/* Waits until nothing is left to be sent; false when it takes longer than that. */
bool app_drained(app *app, int seconds);

/* ---- person.c: between an act and the person who watches it ---- */

typedef struct ledger {
  char **ids;
  char **notes;
  size_t count;
} ledger; /* what the library said is stored, as the person wrote it down */

/* An act's side. */
void person_join(int descriptor);
bool person_asked_for_finger(void);
void person_told_registered(const char *id, const char *text);
void person_told_end(void);
void person_told_cross(void);

typedef struct {
  bool ended; /* the act came to its end */
  int crosses;
} performance;

/* The person's side, until the act's process ends. */
performance person_watch(int descriptor, const reader *finger, ledger *ledger, int seconds);
void ledger_free(ledger *ledger);

/* ---- acts.c ---- */

enum { ACT_COUNT = 4 };

extern const char *const act_titles[ACT_COUNT];
extern const bool act_ends_in_sigkill[ACT_COUNT];
/* Runs in a process of its own; returns the exit status unless it kills itself. */
int act_play(int number, const setting *where);

/* ---- leaks.c: what a thief of the folder would find ---- */

typedef struct {
  char *bytes;
  size_t length;
  char *what; /* for the report; never the secret itself */
} needle;

typedef struct {
  needle *items;
  size_t count;
} needles;

/* A text as UTF-8 and as UTF-16; a UUID also as its 16 bytes and as hex alone. */
void needles_add_text(needles *all, const char *what, const char *text);
void needles_add_bytes(needles *all, const char *what, const void *bytes, size_t length);
void needles_free(needles *all);

typedef struct {
  int files;
  size_t bytes;
  int hits;
} search_result;

/* Every file below the folder. Prints what was found where when `tell`. */
search_result leaks_search(const char *folder, const needles *all, bool tell);

/* ---- parent.c, shell.c ---- */

int tour_run(const char *program, setting where, bool keep);
int shell_run(const setting *where);

#endif /* TOUR_H */
