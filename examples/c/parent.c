/* The tour: runs each act in a process of its own, plays the person between them, and checks the
 * server and the disk at the end. */
#define _GNU_SOURCE
#include "tour.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, ACT_SECONDS = 180, PAUSE_SECONDS = 3, TOKEN_SECONDS = 6 };

/* ---- an act, in a process of its own ---- */

static pid_t start_act(const char *program, int number, const setting *where, int descriptor) {
  char act[8], channel[12];
  snprintf(act, sizeof act, "%d", number);
  snprintf(channel, sizeof channel, "%d", descriptor);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fcntl(descriptor, F_SETFD, 0); /* the act inherits this socket, but not the reader's glass */
    execl(program, program, "--act", act, "--person", channel, "--data", where->data_dir, "--keys",
          where->key_dir, "--reader", where->reader_socket, "--backend", where->backend, "--key",
          where->api_key, "--dsn", where->dsn == NULL ? "" : where->dsn, (char *)NULL);
    _exit(127);
  }
  return child;
}

static bool perform(const char *program, int number, const setting *where, const reader *finger,
                    ledger *ledger) {
  stage_act(number, act_titles[number - 1]);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return check(false, "socketpair: %s", strerror(errno));
  pid_t child = start_act(program, number, where, ends[1]);
  close(ends[1]);
  performance seen = person_watch(ends[0], finger, ledger, ACT_SECONDS);
  close(ends[0]);
  if (!seen.ended)
    kill(child, SIGKILL); /* safe: our own child, not waited for yet */
  int status = 0;
  waitpid(child, &status, 0);
  bool fine = check(seen.ended, "the act played to its end");
  if (act_ends_in_sigkill[number - 1])
    fine &= check(seen.ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                  "SIGKILL ended its process");
  else
    fine &= check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "its process exited normally");
  return fine && seen.crosses == 0;
}

/* ---- the server ---- */

static void seed_earlier_activities(const setting *where) {
  json_decref(
      control(where, "POST", "/sql",
              json_pack("{s:s}", "query",
                        "insert into public.activities (org_id, user_id, type, occurred_at,"
                        " minutes, note) select o.id, u.id, 'samtale', now(), m, 'fra før'"
                        " from public.organizations o, auth.users u, (values (30), (45)) v(m)"
                        " where o.name = 'Mentorforeningen Nordlys'"
                        " and u.email = 'mentor@example.org'")));
}

static void set_token_lifetime(const setting *where, int seconds) {
  json_decref(control(where, "PATCH", "/config", json_pack("{s:i}", "jwt_lifetime", seconds)));
}

static bool check_server(const setting *where, const ledger *ledger) {
  stage_act(ACT_COUNT + 1, "The rows on the server");
  note("queried with %s", has_psql(where) ? "psql" : "the backend's control API: psql fails");
  bool fine = check(ledger->count == 7, "the library reported %zu items as stored", ledger->count);
  for (size_t i = 0; i < ledger->count; i++) {
    char *sql = NULL;
    if (asprintf(&sql,
                 "select (select count(*) from public.activities where id = '%s') || ' ' ||"
                 " (select count(*) from public.activities where note = '%s')",
                 ledger->ids[i], ledger->notes[i]) < 0)
      abort();
    char *counts = query_value(where, sql);
    fine &= check(strcmp(counts, "1 1") == 0, "%s once  %s", ledger->ids[i], ledger->notes[i]);
    free(counts);
    free(sql);
  }
  char *all = query_value(where, "select count(*) from public.activities where note like 'Tur: %'");
  fine &= check((size_t)atoi(all) == ledger->count, "there are no other rows: %s in all", all);
  free(all);
  char *chain =
      query_value(where, "select count(*) from public.activities a join public.activities b"
                         " on b.id = a.follows where a.note like 'Tur: %'");
  fine &= check(strcmp(chain, "1") == 0, "the reference from one activity to another is intact");
  free(chain);
  return fine;
}

/* ---- the disk ---- */

static void add_column(needles *all, const setting *where, const char *what, const char *sql) {
  json_t *rows = control(where, "POST", "/sql", json_pack("{s:s}", "query", sql));
  for (size_t i = 0; i < json_array_size(rows); i++)
    needles_add_text(all, what, text_at(json_array_get(rows, i), "v"));
  json_decref(rows);
}

static void add_key_file(needles *all, const setting *where) {
  char path[PATH_ROOM];
  unsigned char key[64];
  snprintf(path, sizeof path, "%s/device", where->key_dir);
  FILE *file = fopen(path, "re");
  size_t length = file == NULL ? 0 : fread(key, 1, sizeof key, file);
  if (file != NULL)
    fclose(file);
  if (length > 0)
    needles_add_bytes(all, "the device key", key, length);
}

/* Collect the refresh tokens after each act: a logout deletes them from the server. */
static void write_down_refresh_tokens(const setting *where, json_t *tokens) {
  json_t *rows = control(where, "POST", "/sql",
                         json_pack("{s:s}", "query", "select token as v from auth.refresh_tokens"));
  for (size_t i = 0; i < json_array_size(rows); i++)
    json_array_append(tokens, json_object_get(json_array_get(rows, i), "v"));
  json_decref(rows);
}

static needles secrets_of(const setting *where, const ledger *ledger, const json_t *tokens) {
  needles all = {0};
  needles_add_text(&all, "a JSON web token", "eyJhbGci");
  for (size_t i = 0; i < json_array_size(tokens); i++)
    needles_add_text(&all, "a refresh token", json_string_value(json_array_get(tokens, i)));
  needles_add_text(&all, "the user's e-mail address", "mentor@example.org");
  add_column(&all, where, "an organisation's id", "select id::text as v from public.organizations");
  add_column(&all, where, "an organisation's name", "select name as v from public.organizations");
  add_column(&all, where, "a contact's name", "select name as v from public.contacts");
  add_column(&all, where, "a contact's id", "select id::text as v from public.contacts");
  add_column(&all, where, "a user's id", "select id::text as v from auth.users");
  needles_add_text(&all, "the role", "peer_mentor");
  for (size_t i = 0; i < ledger->count; i++)
    needles_add_text(&all, "a note", ledger->notes[i]);
  add_key_file(&all, where);
  return all;
}

/* Check that the search works: it must find a known string, and every secret in a decoy file. */
static bool check_search(const setting *where, const needles *secrets) {
  needles control_string = {0};
  needles_add_bytes(&control_string, "the header of SQLite", "SQLite format 3", 15);
  search_result result = leaks_search(where->data_dir, &control_string, false);
  needles_free(&control_string);
  bool fine = check(result.hits >= 1, "the search works: it finds SQLite's header in %d files",
                    result.hits);

  char folder[PATH_ROOM], path[PATH_ROOM + 16];
  snprintf(folder, sizeof folder, "%s.decoy", where->data_dir);
  snprintf(path, sizeof path, "%s/decoy", folder);
  mkdir(folder, 0700);
  FILE *decoy = fopen(path, "we");
  for (size_t i = 0; decoy != NULL && i < secrets->count; i++) {
    fwrite(secrets->items[i].bytes, 1, secrets->items[i].length, decoy);
    fputc('|', decoy);
  }
  if (decoy != NULL)
    fclose(decoy);
  result = leaks_search(folder, secrets, false);
  unlink(path);
  rmdir(folder);
  fine &= check(result.hits == (int)secrets->count,
                "in a decoy file with all %zu secrets it finds %d", secrets->count, result.hits);
  return fine;
}

static bool check_disk(const setting *where, const ledger *ledger, const json_t *tokens,
                       const char *when) {
  needles secrets = secrets_of(where, ledger, tokens);
  search_result result = leaks_search(where->data_dir, &secrets, true);
  bool fine = check(result.hits == 0 && result.files > 0 && json_array_size(tokens) > 0 &&
                        secrets.count > 100,
                    "%s: none of %zu secrets is readable in %d files, %zu kB", when, secrets.count,
                    result.files, result.bytes / 1024);
  needles_free(&secrets);
  return fine;
}

static bool check_stolen_folder(const setting *where, const ledger *ledger, const json_t *tokens) {
  stage_act(ACT_COUNT + 2, "The files on the disk");
  show_files(where->data_dir);
  needles secrets = secrets_of(where, ledger, tokens);
  bool fine = check_search(where, &secrets);
  needles_free(&secrets);
  return check_disk(where, ledger, tokens, "at the end") && fine;
}

/* ---- the tour ---- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status;
  (void)kind;
  (void)place;
  return remove(path);
}

static bool play_all(const char *program, const setting *where, const reader *finger) {
  ledger ledger = {0};
  json_t *tokens = json_array();
  bool fine = true;
  seed_earlier_activities(where);
  set_token_lifetime(where, TOKEN_SECONDS);
  for (int number = 1; number <= ACT_COUNT; number++) {
    if (number == 2 || number == 3) {
      say("%d seconds pass.", PAUSE_SECONDS);
      sleep(PAUSE_SECONDS);
    }
    if (number == 3)
      set_token_lifetime(where, 3600);
    fine = perform(program, number, where, finger, &ledger) && fine;
    write_down_refresh_tokens(where, tokens);
    fine = check_disk(where, &ledger, tokens, "a thief copies the folder now") && fine;
  }
  fine = check_server(where, &ledger) && fine;
  fine = check_stolen_folder(where, &ledger, tokens) && fine;
  ledger_free(&ledger);
  json_decref(tokens);
  return fine;
}

int tour_run(const char *program, setting where, bool keep) {
  char folder[] = "/tmp/holdfast-tour-XXXXXX";
  char data[64], keys[64], socket_path[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (mkdtemp(folder) == NULL)
    return 1;
  snprintf(data, sizeof data, "%s/data", folder);
  snprintf(keys, sizeof keys, "%s/keychain", folder);
  snprintf(socket_path, sizeof socket_path, "%s/reader", folder);
  where.data_dir = data;
  where.key_dir = keys;
  where.reader_socket = socket_path;
  stage_title("Holdfast %s, a tour", holdfast_version());
  note("the app's folder    %s", data);
  note("the keychain        %s", keys);
  note("the backend         %s", where.backend);

  reader finger = {0};
  bool fine = reader_start(socket_path, NULL, &finger) && play_all(program, &where, &finger);
  reader_stop(&finger);
  if (!keep)
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  fine = fine && checks_failed() == 0;
  stage_title(fine ? "Every check passed." : "Some checks failed: see the crosses above.");
  return fine ? 0 : 1;
}
