/* The floor: what the same work costs in plain C on the same libraries, with nothing of ours
 * between.
 *
 * floor prepare DIR | cold DIR | enqueue DIR COUNT | drain DIR
 * Prints "seconds". Each mode does only what cannot be left out: the same pragmas, as many reads,
 * seals and synced commits as the library needs for the same promise. */
#include <jansson.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY = 32, NONCE = 24, TAG = 16 };

static unsigned char key[KEY];
static sqlite3 *database;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void check(int result, int expected) {
  if (result != expected) {
    fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(database));
    exit(1);
  }
}

static void run(const char *sql) {
  check(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *statement = NULL;
  check(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
  return statement;
}

static void open_database(const char *folder) {
  char path[1024];
  snprintf(path, sizeof path, "%s/floor.db", folder);
  if (sqlite3_open(path, &database) != SQLITE_OK)
    exit(1);
  sqlite3_busy_timeout(database, 5000);
  run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON");
}

static size_t seal(const void *plain, size_t count, unsigned char *out) {
  unsigned long long size = 0;
  size_t padded = 0;
  unsigned char *room = malloc(count + 64);
  memcpy(room, plain, count);
  sodium_pad(&padded, room, count, 64, count + 64);
  randombytes_buf(out, NONCE);
  crypto_aead_xchacha20poly1305_ietf_encrypt(out + NONCE, &size, room, padded, NULL, 0, NULL, out,
                                             key);
  free(room);
  return NONCE + (size_t)size;
}

static json_t *unseal(const unsigned char *sealed, size_t count) {
  unsigned char *plain = malloc(count);
  unsigned long long size = 0;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &size, NULL, sealed + NONCE, count - NONCE,
                                                 NULL, 0, sealed, key) != 0)
    exit(2);
  size_t unpadded = 0;
  sodium_unpad(&unpadded, plain, (size_t)size, 64);
  json_t *value = json_loadb((const char *)plain, unpadded, 0, NULL);
  sodium_memzero(plain, count);
  free(plain);
  return value;
}

static void make(const char *folder) {
  open_database(folder);
  run("CREATE TABLE session(id INTEGER PRIMARY KEY, tokens BLOB, choice BLOB, memberships BLOB);"
      "CREATE TABLE queue(seq INTEGER PRIMARY KEY AUTOINCREMENT, item BLOB NOT NULL UNIQUE,"
      " owner BLOB NOT NULL, state INTEGER NOT NULL, body BLOB NOT NULL);"
      "CREATE INDEX ready ON queue(owner, state, seq)");
  char tokens[1400];
  memset(tokens, 'x', sizeof tokens);
  memcpy(tokens, "{\"t\":\"", 6);
  memcpy(tokens + sizeof tokens - 2, "\"}", 2);
  unsigned char sealed[2048];
  sqlite3_stmt *insert = prepare("INSERT INTO session VALUES (1, ?, ?, ?)");
  for (int column = 1; column <= 3; column++) {
    size_t size = seal(tokens, sizeof tokens, sealed);
    sqlite3_bind_blob(insert, column, sealed, (int)size, SQLITE_TRANSIENT);
  }
  check(sqlite3_step(insert), SQLITE_DONE);
  sqlite3_finalize(insert);
}

static void cold(const char *folder) {
  open_database(folder);
  sqlite3_stmt *select = prepare("SELECT tokens, choice, memberships FROM session");
  check(sqlite3_step(select), SQLITE_ROW);
  for (int column = 0; column < 3; column++) {
    json_t *value =
        unseal(sqlite3_column_blob(select, column), (size_t)sqlite3_column_bytes(select, column));
    if (value == NULL)
      exit(3);
    json_decref(value);
  }
  sqlite3_finalize(select);
}

static void enqueue(int count) {
  sqlite3_stmt *insert = prepare("INSERT INTO queue(item, owner, state, body) VALUES (?, ?, 0, ?)");
  unsigned char owner[16] = {1}, item[16], sealed[1024];
  for (int number = 0; number < count; number++) {
    char request[256];
    snprintf(request, sizeof request,
             "{\"kind\":\"activity\",\"payload\":{\"type\":\"visit\",\"minutes\":%d,"
             "\"note\":\"kaffe og prat\"}}",
             number % 1440 + 1);
    json_t *parsed = json_loads(request, 0, NULL);
    char *text = json_dumps(parsed, JSON_COMPACT);
    size_t size = seal(text, strlen(text), sealed);
    randombytes_buf(item, sizeof item);
    sqlite3_bind_blob(insert, 1, item, sizeof item, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 2, owner, sizeof owner, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 3, sealed, (int)size, SQLITE_STATIC);
    check(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_reset(insert);
    free(text);
    json_decref(parsed);
  }
  sqlite3_finalize(insert);
}

/* Batches of 500: marked as sent in one commit, unsealed into a body, erased in a second commit. */
static void drain(void) {
  sqlite3_stmt *select =
      prepare("SELECT seq, body FROM queue WHERE state = 0 ORDER BY seq LIMIT 500");
  sqlite3_stmt *mark = prepare("UPDATE queue SET state = 1 WHERE seq = ?");
  sqlite3_stmt *erase = prepare("DELETE FROM queue WHERE seq = ?");
  for (;;) {
    sqlite3_int64 rows[500];
    int count = 0;
    json_t *body = json_array();
    run("BEGIN IMMEDIATE");
    while (sqlite3_step(select) == SQLITE_ROW) {
      rows[count++] = sqlite3_column_int64(select, 0);
      json_array_append_new(
          body, unseal(sqlite3_column_blob(select, 1), (size_t)sqlite3_column_bytes(select, 1)));
    }
    sqlite3_reset(select);
    for (int index = 0; index < count; index++) {
      sqlite3_bind_int64(mark, 1, rows[index]);
      check(sqlite3_step(mark), SQLITE_DONE);
      sqlite3_reset(mark);
    }
    run("COMMIT");
    char *text = json_dumps(body, JSON_COMPACT);
    json_t *again = json_loads(text, 0, NULL); /* stands for reading the answer */
    run("BEGIN IMMEDIATE");
    for (int index = 0; index < count; index++) {
      sqlite3_bind_int64(erase, 1, rows[index]);
      check(sqlite3_step(erase), SQLITE_DONE);
      sqlite3_reset(erase);
    }
    run("COMMIT");
    free(text);
    json_decref(again);
    json_decref(body);
    if (count == 0)
      break;
  }
}

int main(int count, char **arguments) {
  if (count < 3 || sodium_init() < 0)
    return 64;
  const char *mode = arguments[1], *folder = arguments[2];
  double start = now();
  if (strcmp(mode, "prepare") == 0)
    make(folder);
  else if (strcmp(mode, "cold") == 0)
    cold(folder);
  else {
    open_database(folder);
    start = now();
    if (strcmp(mode, "enqueue") == 0)
      enqueue(atoi(arguments[3]));
    else
      drain();
  }
  printf("%.6f\n", now() - start);
  return 0;
}
