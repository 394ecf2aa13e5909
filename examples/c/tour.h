/* The declarations that the tour's files share, one section per file. */
#ifndef TOUR_H
#define TOUR_H

#include "holdfast.h"
#include "holdfast_http.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/* Paths and addresses. Every act receives them on its command line. */
typedef struct {
  const char *data_dir; /* the library's folder */
  const char *key_dir;  /* the folder of the keys "device" and "session", in place of a platform's
                           keychain */
  bool secret_service;  /* keep these keys in the desktop's secret service instead */
  const char *reader_socket; /* the socket of the fingerprint reader */
  const char *backend;       /* http://127.0.0.1:port */
  const char *api_key;
  const char *dsn; /* the backend's database, for psql; NULL: use the backend's control API */
} setting;

/* ---- stage.c: the output ---- */

void stage_title(const char *format, ...) __attribute__((format(printf, 1, 2)));
void stage_act(int number, const char *title);
/* Print what happens next in the story. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a detail, such as a reply in short. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a tick or a cross; returns `ok`. */
bool check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The number of crosses so far. */
int checks_failed(void);
/* Call this function for every cross, too. */
void on_cross(void (*call)(void));
void show_decision(const json_t *decision);
void show_event(const json_t *event);
void show_error(const json_t *reply);
/* Print the files of a folder with their sizes. */
void show_files(const char *folder);

/* ---- json.c ---- */

/* A string member; "" when it is absent or not a string. */
const char *text_at(const json_t *object, const char *key);
json_int_t number_at(const json_t *object, const char *key);
bool is_text(const json_t *object, const char *key, const char *expected);
/* The first object of an array whose member `key` is `value`; borrowed. */
json_t *find_by(const json_t *array, const char *key, const char *value);

/* ---- keystore.c: a host's key store ---- */

/* "device" and "session" in files or the secret service, the biometric key in the reader. `where`
 * must outlive the handle. */
holdfast_keystore keystore_of(const setting *where);

/* ---- secret_service.c: the desktop's own key store, over libsecret; HOLDFAST_KEY_* ---- */

/* Whether this program was built with libsecret. */
bool secret_service_built(void);
int32_t secret_service_load(const setting *where, const char *name, uint8_t *key, size_t capacity,
                            size_t *length);
int32_t secret_service_save(const setting *where, const char *name, const uint8_t *key,
                            size_t length);
int32_t secret_service_erase(const setting *where, const char *name);

/* ---- reader.c: the simulated fingerprint reader, a process of its own ---- */

typedef struct {
  pid_t process;
  int finger; /* a write to this descriptor presents a finger; -1: the reader is not ours */
} reader;

/* Start the reader. It keeps its key in `memory_file`, or with NULL only in its process. */
bool reader_start(const char *socket_path, const char *memory_file, reader *started);
void reader_stop(reader *started);
/* Put a finger on the reader: it releases the key once, within the next ten seconds. */
bool reader_present_finger(const reader *started);
/* The functions of the host; they return HOLDFAST_KEY_*. */
int32_t reader_load(const char *socket_path, uint8_t *key, size_t capacity, size_t *length);
int32_t reader_save(const char *socket_path, const uint8_t *key, size_t length);
int32_t reader_erase(const char *socket_path);

/* ---- web.c: a minimal HTTP client for the simulated browser and the backend's control API ---- */

typedef struct {
  int status; /* 0: no answer */
  char *location;
  char *body;
} web_answer;

web_answer web_request(const char *method, const char *url, const char *body);
void web_answer_free(web_answer *answer);
/* Open the URL as the person with this e-mail address, who passes BankID. Returns the URL to which
 * the browser is redirected, or NULL; the caller frees it. */
char *browser_sign_in(const char *url, const char *email);

/* ---- backend.c: the local backend's control API ---- */

/* Call the control API. Takes over `sent`, which may be NULL. Returns NULL on failure. */
json_t *control(const setting *where, const char *method, const char *path, json_t *sent);
/* Query one value of one row, by psql or else by the control API; the caller frees it. */
char *query_value(const setting *where, const char *sql);
bool has_psql(const setting *where);
void add_fault(const setting *where, const char *action, const char *method, const char *path,
               int times, int delay_after_ms);
void clear_faults(const setting *where);
/* How often a fault occurred since the last clear_faults(). */
json_int_t fault_hits(const setting *where);
/* How many requests of the app reached the server since forget_requests(). */
size_t requests_seen(const setting *where, const char *method, const char *path);
void forget_requests(const setting *where);

/* ---- app.c: the app ---- */

typedef int32_t (*operation)(holdfast *self, const char *request, char **reply);

typedef struct app {
  const setting *where;
  holdfast_keystore keystore;
  holdfast *self;
  holdfast_http *driver;
  int32_t status;  /* the status of the last call */
  json_t *backlog; /* events that app_event() took while it waited for another type */
} app;

bool app_open(app *app, const setting *where);
void app_close(app *app);
/* Call an operation. Takes over `request`, which may be NULL. Returns the reply, never NULL. */
json_t *app_call(app *app, operation operation, json_t *request);
/* Wait for the next event of a type; NULL when none comes in time. */
json_t *app_event(app *app, const char *type, int seconds);
/* While the decision says `wait`, wait for the next one. Takes over `decision`. */
json_t *app_settle(app *app, json_t *decision);
void app_network(app *app, bool online);
/* Wait until the queue is empty; false when it takes longer than this. */
bool app_drained(app *app, int seconds);

/* ---- person.c: the connection between an act and the simulated person ---- */

typedef struct ledger {
  char **ids;
  char **notes;
  size_t count;
} ledger; /* every item that the library reported as stored, as the person wrote it down */

/* The functions of an act. */
void person_join(int descriptor);
bool person_asked_for_finger(void);
void person_told_registered(const char *id, const char *text);
void person_told_end(void);
void person_told_cross(void);

typedef struct {
  bool ended; /* the act reported its end */
  int crosses;
} performance;

/* Play the person until the act's process ends. */
performance person_watch(int descriptor, const reader *finger, ledger *ledger, int seconds);
void ledger_free(ledger *ledger);

/* ---- acts.c ---- */

enum { ACT_COUNT = 4 };

extern const char *const act_titles[ACT_COUNT];
extern const bool act_ends_in_sigkill[ACT_COUNT];
/* Play an act in this process; returns the exit status unless the act kills the process. */
int act_play(int number, const setting *where);

/* ---- leaks.c: the search for secrets in a stolen folder ---- */

typedef struct {
  char *bytes;
  size_t length;
  char *what; /* a description for the report; never the secret itself */
} needle;

typedef struct {
  needle *items;
  size_t count;
} needles;

/* Add a text as UTF-8 and as UTF-16; a UUID also as its 16 bytes and as plain hex. */
void needles_add_text(needles *all, const char *what, const char *text);
void needles_add_bytes(needles *all, const char *what, const void *bytes, size_t length);
void needles_free(needles *all);

typedef struct {
  int files;
  size_t bytes;
  int hits;
} search_result;

/* Search every file below the folder. With `tell`, print each hit. */
search_result leaks_search(const char *folder, const needles *all, bool tell);

/* ---- parent.c, shell.c ---- */

int tour_run(const char *program, setting where, bool keep);
int shell_run(const setting *where);

#endif /* TOUR_H */
