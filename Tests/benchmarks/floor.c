/* The floor: the same work in plain C on SQLite, libsodium and jansson, on the library's own files.
 *
 * floor MODE DIR ...
 *   cold DIR               opens the files and reads the session; prints a decision
 *   fill DIR COUNT BAD     no measurement: queues items in one commit, for other runs
 *   warm DIR               no measurement: grows the write-ahead log to its final size
 *   add, drain, ingest, search, status: as in host.c
 *
 * A fair floor must keep the library's promises, but must not copy its rules. It has only:
 *
 * - the same files: the library's keys, seals, tables, indexes and pragmas; each program reads the
 * other's files. So the input and output are the same, down to the synced commits;
 * - the same JSON: it reads the same requests and completions and writes the same replies, with a
 * body as a string in a request, as the C API demands;
 * - everything that the promises need: the lock against setting a file aside while it is opened;
 * SQLite's check of a small file before its data is shown; keys in guarded memory;
 * reading the session in every call, because other processes write it; the lease that keeps two
 * processes from sending the same items, and its check before proved items are erased; the release
 * of items that depend on those.
 *
 * It has no rules: no decision, no validation, no back-off, no events, no other kinds, no recovery.
 * It knows one user with one organisation, and trusts every input. */
#include "bench.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEY = 32, NONCE = 24, TAG = 16, LOOKUP = 16, OVERHEAD = 1 + NONCE + TAG, BATCH = 500 };

/* All keys, in one guarded allocation. */
typedef struct {
  unsigned char device[KEY], session[KEY], lookup[KEY], queues[KEY];
  unsigned char vault[KEY], cache[KEY], queue[KEY];
  char tokens[8192];
} secrets;

static secrets *keys;
static sqlite3 *database, *cache;
static unsigned char owner[LOOKUP], org_tag[LOOKUP], batch_key[LOOKUP], cache_tag[LOOKUP];
static unsigned char org[16];
static char org_text[37], user_text[37];
static sqlite3_stmt *session;

/* ---- SQLite ---- */

static void check(sqlite3 *file, int result, int expected) {
  if (result != expected)
    fail("sqlite", sqlite3_errmsg(file));
}

static void run(sqlite3 *file, const char *sql) {
  check(file, sqlite3_exec(file, sql, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(sqlite3 *file, const char *sql) {
  sqlite3_stmt *statement = NULL;
  check(file, sqlite3_prepare_v3(file, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL),
        SQLITE_OK);
  return statement;
}

static void bind(sqlite3_stmt *statement, int at, const void *bytes, size_t count) {
  sqlite3_bind_blob(statement, at, bytes, (int)count, SQLITE_STATIC);
}

static void finish(sqlite3_stmt *statement) {
  check(sqlite3_db_handle(statement), sqlite3_step(statement), SQLITE_DONE);
  sqlite3_reset(statement);
}

static sqlite3 *open_file(const char *folder, const char *name, const char *synchronous) {
  sqlite3 *file = NULL;
  char path[1024], pragmas[256];
  snprintf(path, sizeof path, "%s/data/%s", folder, name);
  if (sqlite3_open_v2(path, &file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    fail(path, "cannot be opened");
  sqlite3_busy_timeout(file, 5000);
  snprintf(pragmas, sizeof pragmas,
           "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA secure_delete=ON;"
           "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1024; PRAGMA trusted_schema=OFF;"
           "PRAGMA wal_autocheckpoint=500",
           synchronous);
  run(file, pragmas);
  return file;
}

/* ---- libsodium ---- */

typedef struct {
  unsigned char bytes[160];
  size_t count;
} context;

static void part(context *data, const void *bytes, size_t count) {
  data->bytes[data->count++] = (unsigned char)(count >> 8);
  data->bytes[data->count++] = (unsigned char)count;
  memcpy(data->bytes + data->count, bytes, count);
  data->count += count;
}

/* The context of a sealed value, authenticated with it. */
static context belongs(const char *table, const unsigned char *row, size_t row_size,
                       const unsigned char *of, size_t of_size, const char *column) {
  context data = {.bytes = {1}, .count = 1};
  part(&data, table, strlen(table));
  part(&data, row, row_size);
  part(&data, of, of_size);
  part(&data, column, strlen(column));
  return data;
}

/* A row of the cache, which names its organisation. */
static context cached(const char *table, const unsigned char *row, size_t row_size,
                      const char *column) {
  context data = belongs(table, row, row_size, owner, LOOKUP, column);
  part(&data, cache_tag, LOOKUP);
  return data;
}

static void tag(unsigned char result[LOOKUP], const char *domain, const void *first,
                size_t first_size, const void *second, size_t second_size, const void *third,
                size_t third_size) {
  unsigned char message[512];
  size_t count = 0;
  const void *parts[] = {domain, first, second, third};
  const size_t sizes[] = {strlen(domain), first_size, second_size, third_size};
  for (int index = 0; index < 4; index++) {
    if (parts[index] == NULL)
      continue;
    for (int shift = 24; shift >= 0; shift -= 8)
      message[count++] = (unsigned char)(sizes[index] >> shift);
    memcpy(message + count, parts[index], sizes[index]);
    count += sizes[index];
  }
  crypto_generichash(result, LOOKUP, message, count, keys->lookup, KEY);
}

/* Seal into `out`, which needs room for the text, the padding and the overhead. */
static size_t seal(const char *text, size_t count, const context *data, const unsigned char *key,
                   unsigned char *out) {
  unsigned long long size = 0;
  size_t padded = 0;
  unsigned char *plain = out + 1 + NONCE;
  memcpy(plain, text, count);
  sodium_pad(&padded, plain, count, 64, count + 64);
  out[0] = 1;
  randombytes_buf(out + 1, NONCE);
  crypto_aead_xchacha20poly1305_ietf_encrypt(plain, &size, plain, padded, data->bytes, data->count,
                                             NULL, out + 1, key);
  return 1 + NONCE + (size_t)size;
}

static size_t unseal(const void *sealed, size_t count, const context *data,
                     const unsigned char *key, void *plain) {
  const unsigned char *bytes = sealed;
  unsigned long long size = 0;
  size_t unpadded = 0;
  if (count < OVERHEAD || crypto_aead_xchacha20poly1305_ietf_decrypt(
                              plain, &size, NULL, bytes + 1 + NONCE, count - 1 - NONCE, data->bytes,
                              data->count, bytes + 1, key) != 0)
    fail("unseal", "not authentic");
  sodium_unpad(&unpadded, plain, (size_t)size, 64);
  return unpadded;
}

/* A sealed JSON value of a row. */
static json_t *unseal_json(sqlite3_stmt *row, int column, const context *data,
                           const unsigned char *key) {
  size_t count = (size_t)sqlite3_column_bytes(row, column);
  char room[16384];
  if (count > sizeof room)
    fail("unseal", "too long");
  size_t size = unseal(sqlite3_column_blob(row, column), count, data, key, room);
  json_t *value = json_loadb(room, size, 0, NULL);
  sodium_memzero(room, size);
  if (value == NULL)
    fail("unseal", "no JSON");
  return value;
}

static void read_uuid(unsigned char bytes[16], const char *text) {
  size_t count = 0;
  sodium_hex2bin(bytes, 16, text, 36, "-", &count, NULL);
}

static void write_uuid(char text[37], const unsigned char bytes[16]) {
  static const char digits[] = "0123456789abcdef";
  char *at = text;
  for (int index = 0; index < 16; index++) {
    if (index == 4 || index == 6 || index == 8 || index == 10)
      *at++ = '-';
    *at++ = digits[bytes[index] >> 4];
    *at++ = digits[bytes[index] & 15];
  }
  *at = 0;
}

static long long wall_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (long long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void make_id(unsigned char id[16]) {
  long long ms = wall_ms();
  randombytes_buf(id, 16);
  for (int index = 0; index < 6; index++)
    id[index] = (unsigned char)(ms >> (40 - 8 * index));
  id[6] = (unsigned char)(0x70 | (id[6] & 15));
  id[8] = (unsigned char)(0x80 | (id[8] & 63));
}

/* ---- opening ---- */

static void load_key(const char *folder, const char *name, unsigned char *key) {
  char path[1024];
  snprintf(path, sizeof path, "%s/data/keys/%s.key", folder, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, key, KEY) != KEY)
    fail(path, "no key");
  close(file);
}

static void load_keys(const char *folder) {
  keys = sodium_malloc(sizeof *keys);
  if (keys == NULL)
    fail(folder, "no memory");
  load_key(folder, "device", keys->device);
  load_key(folder, "session", keys->session);
  crypto_kdf_blake2b_derive_from_key(keys->lookup, KEY, 1, "holdfast", keys->device);
  crypto_kdf_blake2b_derive_from_key(keys->queues, KEY, 5, "holdfast", keys->device);
}

static int64_t generation;

/* Every call first checks that the stored session is still the open one. */
static void look(void) {
  if (session == NULL)
    session =
        prepare(database, "SELECT generation, owner, wrap_session, tokens, choice, memberships, "
                          "cache_key FROM session WHERE id = 1");
  check(database, sqlite3_step(session), SQLITE_ROW);
  int64_t found = sqlite3_column_int64(session, 0);
  if (found != generation) {
    memcpy(owner, sqlite3_column_blob(session, 1), LOOKUP);
    context wrap = belongs("session", NULL, 0, owner, LOOKUP, "wrap_session");
    context cache = belongs("session", NULL, 0, owner, LOOKUP, "cache_key");
    unsigned char room[KEY + 64];
    unseal(sqlite3_column_blob(session, 2), (size_t)sqlite3_column_bytes(session, 2), &wrap,
           keys->session, room);
    memcpy(keys->vault, room, KEY);
    unseal(sqlite3_column_blob(session, 6), (size_t)sqlite3_column_bytes(session, 6), &cache,
           keys->vault, room);
    memcpy(keys->cache, room, KEY);
    sodium_memzero(room, sizeof room);
    crypto_generichash(keys->queue, KEY, owner, LOOKUP, keys->queues, KEY);
    context tokens = belongs("session", NULL, 0, owner, LOOKUP, "tokens");
    context choice = belongs("session", NULL, 0, owner, LOOKUP, "choice");
    context memberships = belongs("session", NULL, 0, owner, LOOKUP, "memberships");
    json_t *read = unseal_json(session, 3, &tokens, keys->vault);
    snprintf(keys->tokens, sizeof keys->tokens, "%s",
             json_string_value(json_object_get(read, "access_token")));
    snprintf(user_text, sizeof user_text, "%s",
             json_string_value(json_object_get(read, "user_id")));
    json_decref(read);
    read = unseal_json(session, 4, &choice, keys->vault);
    snprintf(org_text, sizeof org_text, "%s", json_string_value(json_object_get(read, "org_id")));
    read_uuid(org, org_text);
    json_decref(read);
    json_decref(unseal_json(session, 5, &memberships, keys->vault));
    generation = found;
  }
  sqlite3_reset(session);
}

static void tags_of_session(void) {
  tag(org_tag, "org", org, sizeof org, NULL, 0, NULL, 0);
  tag(cache_tag, "cache", owner, LOOKUP, org, sizeof org, NULL, 0);
  static const char columns[] = "id,org_id,user_id,type,minutes,occurred_at,note";
  tag(batch_key, "batch_key", org, sizeof org, "activity", 8, columns, strlen(columns));
  batch_key[LOOKUP - 1] &= 0xFE; /* its items share requests */
}

static void check_key(void) {
  /* It is there twice. */
  sqlite3_stmt *row = prepare(
      database, "SELECT substr(value, 1, length(value) / 2) FROM meta WHERE name = 'key_check'");
  check(database, sqlite3_step(row), SQLITE_ROW);
  context data = belongs("meta", NULL, 0, NULL, 0, "key_check");
  json_decref(unseal_json(row, 0, &data, keys->device));
  sqlite3_finalize(row);
}

/* NULL: read it only; each version of the library has another number of its schema. */
static void check_file(const char *pragma, const char *wanted) {
  sqlite3_stmt *row = prepare(database, pragma);
  check(database, sqlite3_step(row), SQLITE_ROW);
  if (wanted != NULL && strcmp((const char *)sqlite3_column_text(row, 0), wanted) != 0)
    fail(pragma, (const char *)sqlite3_column_text(row, 0));
  sqlite3_finalize(row);
}

static void open_data(const char *folder) {
  char config[1024], path[1024];
  write_config(config, sizeof config, folder);
  json_t *read = json_loads(config, JSON_REJECT_DUPLICATES, NULL);
  struct stat status;
  snprintf(path, sizeof path, "%s/data", folder);
  if (sodium_init() < 0 || stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
    fail(path, "no folder");
  int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (held < 0 || flock(held, LOCK_SH) != 0)
    fail(path, "not locked");
  database = open_file(folder, "holdfast.db", "FULL");
  check_file("PRAGMA user_version", NULL);
  snprintf(path, sizeof path, "%s/data/holdfast.db", folder);
  if (stat(path, &status) == 0 && status.st_size <= 1048576)
    check_file("PRAGMA integrity_check(1)", "ok");
  close(held);
  load_keys(folder);
  check_key();
  json_decref(read);
}

static char *dump(json_t *value) {
  char *text = json_dumps(value, JSON_COMPACT);
  if (text == NULL)
    fail("JSON", "cannot be written");
  json_decref(value);
  return text;
}

static void cold(const char *folder) {
  double start = now();
  open_data(folder);
  look();
  char *decision =
      dump(json_pack("{s:s,s:s,s:{s:s,s:s,s:s},s:n,s:[],s:[],s:[],s:n}", "screen", "home", "route",
                     "/mentor", "org", "id", ORG, "name", "Mentorforeningen Nordlys", "role",
                     "peer_mentor", "message", "methods", "orgs", "banners", "deadline_ms"));
  sample(now() - start);
  puts(decision);
  free(decision);
}

/* ---- adding ---- */

static sqlite3_stmt *insert;
static pthread_mutex_t exclusive = PTHREAD_MUTEX_INITIALIZER;

/* The library counts items by state, in the transaction that moves them. */
static void count_items(int state, int change) {
  static sqlite3_stmt *put = NULL;
  if (put == NULL)
    put = prepare(database, "INSERT INTO queue_count(owner, state, wait_reason, items) "
                            "VALUES (?1, ?2, 0, ?3) ON CONFLICT DO UPDATE SET items = items + ?3");
  bind(put, 1, owner, LOOKUP);
  sqlite3_bind_int(put, 2, state);
  sqlite3_bind_int(put, 3, change);
  finish(put);
}

/* Add one row in one commit; the constraint on `item` detects an id that is already queued. */
static char *add_one(const char *request) {
  unsigned char id[16], item[LOOKUP], sealed[2048];
  char text[37];
  json_t *read = json_loads(request, JSON_REJECT_DUPLICATES, NULL);
  make_id(id);
  write_uuid(text, id);
  pthread_mutex_lock(&exclusive);
  look();
  json_t *whole = json_pack("{s:s,s:O,s:s,s:O,s:[],s:n}", "id", text, "kind",
                            json_object_get(read, "kind"), "org_id", org_text, "payload",
                            json_object_get(read, "payload"), "depends_on", "occurred_at_ms");
  char *body = dump(whole);
  tag(item, "item", owner, LOOKUP, id, sizeof id, NULL, 0);
  context data = belongs("queue", item, LOOKUP, owner, LOOKUP, "body");
  size_t count = strlen(body), size = seal(body, count, &data, keys->queue, sealed);
  if (insert == NULL)
    insert = prepare(
        database,
        "INSERT INTO queue(item, owner, org, batch_key, state, wait_reason, created_ms, size, "
        "body) VALUES (?, ?, ?, ?, 0, 0, ?, ?, ?)");
  bind(insert, 1, item, sizeof item);
  bind(insert, 2, owner, LOOKUP);
  bind(insert, 3, org_tag, LOOKUP);
  bind(insert, 4, batch_key, LOOKUP);
  sqlite3_bind_int64(insert, 5, wall_ms());
  sqlite3_bind_int64(insert, 6, (sqlite3_int64)count);
  bind(insert, 7, sealed, size);
  bool is_alone = sqlite3_get_autocommit(database) != 0;
  if (is_alone)
    run(database, "BEGIN IMMEDIATE");
  finish(insert);
  count_items(0, 1);
  if (is_alone)
    run(database, "COMMIT");
  pthread_mutex_unlock(&exclusive);
  sodium_memzero(body, count);
  free(body);
  json_decref(read);
  return dump(json_pack("{s:s,s:s}", "id", text, "state", "pending"));
}

/* One visit in BAD_EVERY, at places that look random and are the same in every run. */
static bool is_bad(long number) {
  uint32_t mixed = (uint32_t)number * 2654435761u;
  mixed ^= mixed >> 15;
  mixed *= 2246822519u;
  return (mixed ^ mixed >> 13) % BAD_EVERY == 0;
}

static void fill(long count, bool with_bad) {
  char request[REQUEST_ROOM];
  run(database, "PRAGMA wal_autocheckpoint=0; BEGIN IMMEDIATE");
  for (long number = 0; number < count; number++) {
    write_visit(request, number, with_bad && is_bad(number));
    free(add_one(request));
  }
  run(database, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}

/* Grow the log: while it grows, every sync also costs a commit of the file system. */
static void warm(void) {
  run(database, "PRAGMA synchronous=OFF");
  for (int number = 0; number < 1500; number++)
    run(database, "UPDATE session SET seen_wall_ms = seen_wall_ms");
}

/* ---- draining ---- */

typedef struct {
  sqlite3_int64 sequence;
  unsigned char item[LOOKUP];
  char id[37];
  size_t count;
  unsigned char body[2048];
} taken;

static taken batch[BATCH];
static sqlite3_stmt *next, *mark, *erase, *waits, *free_them, *raise_sent;
static const unsigned char holder[16] = "this process";
static long flight;

/* Lease up to 500 items in one commit, then make their request. NULL: the queue is empty. */
static char *poll_upload(int *count) {
  look();
  if (next == NULL) {
    next = prepare(database, "SELECT seq, item, body FROM queue WHERE owner = ?1 AND state = 0 AND "
                             "retry_group = 0 AND batch_key = ?2 ORDER BY seq LIMIT 500");
    mark = prepare(
        database,
        "UPDATE queue SET state = 1, wait_reason = 0, lease = ?2, lease_ms = ?3 WHERE seq = ?1");
  }
  *count = 0;
  run(database, "BEGIN IMMEDIATE");
  bind(next, 1, owner, LOOKUP);
  bind(next, 2, batch_key, LOOKUP);
  while (sqlite3_step(next) == SQLITE_ROW) {
    taken *it = &batch[(*count)++];
    it->sequence = sqlite3_column_int64(next, 0);
    memcpy(it->item, sqlite3_column_blob(next, 1), LOOKUP);
    it->count = (size_t)sqlite3_column_bytes(next, 2);
    if (it->count > sizeof it->body)
      fail("drain", "an item is too long");
    memcpy(it->body, sqlite3_column_blob(next, 2), it->count);
  }
  sqlite3_reset(next);
  long long until = wall_ms() + 75000;
  for (int index = 0; index < *count; index++) {
    sqlite3_bind_int64(mark, 1, batch[index].sequence);
    bind(mark, 2, holder, sizeof holder);
    sqlite3_bind_int64(mark, 3, until);
    finish(mark);
  }
  count_items(0, -*count);
  count_items(1, *count);
  run(database, "COMMIT");
  if (*count == 0)
    return NULL;
  json_t *rows = json_array();
  for (int index = 0; index < *count; index++) {
    taken *it = &batch[index];
    char plain[2048];
    context data = belongs("queue", it->item, LOOKUP, owner, LOOKUP, "body");
    size_t size = unseal(it->body, it->count, &data, keys->queue, plain);
    json_t *item = json_loadb(plain, size, 0, NULL);
    sodium_memzero(plain, size);
    json_t *row = json_object_get(item, "payload");
    snprintf(it->id, sizeof it->id, "%s", json_string_value(json_object_get(item, "id")));
    json_object_set(row, "id", json_object_get(item, "id"));
    json_object_set(row, "org_id", json_object_get(item, "org_id"));
    json_object_set_new(row, "user_id", json_string(user_text));
    json_array_append(rows, row);
    json_decref(item);
  }
  char *body = dump(rows), bearer[sizeof keys->tokens + 8];
  snprintf(bearer, sizeof bearer, "Bearer %s", keys->tokens);
  json_t *request = json_pack(
      "{s:I,s:s,s:s,s:s,s:{s:s,s:s,s:s,s:s},s:s,s:i}", "id", (json_int_t)++flight, "purpose",
      "upload", "method", "POST", "url",
      "http://127.0.0.1:9/rest/v1/"
      "activities?columns=id,org_id,user_id,type,minutes,occurred_at,note&on_conflict=id&select=id",
      "headers", "apikey", "public-key", "Prefer",
      "resolution=ignore-duplicates,return=representation,missing=default", "Authorization", bearer,
      "Content-Type", "application/json", "body", body, "timeout_ms", 60000);
  free(body);
  return dump(json_pack("{s:[o],s:[],s:n}", "requests", request, "events", "wake_in_ms"));
}

/* Erase the items that the answer names, in one commit. The answer has the order of the request. */
static void complete_upload(const char *completion, int count) {
  json_t *read = json_loads(completion, JSON_REJECT_DUPLICATES, NULL), *row;
  json_t *rows = json_loads(json_string_value(json_object_get(read, "body")), 0, NULL);
  look();
  if (erase == NULL) {
    erase = prepare(database, "DELETE FROM queue WHERE seq = ?1 AND state = 1 AND lease = ?2");
    waits = prepare(database, "SELECT 1 FROM dependency LIMIT 1");
    free_them = prepare(database, "DELETE FROM dependency WHERE parent = ?1");
    raise_sent =
        prepare(database, "INSERT INTO sync_run(owner, started_ms, sent, parked) VALUES "
                          "(?1, ?2, ?3, 0) ON CONFLICT(owner) DO UPDATE SET sent = sent + ?3");
  }
  run(database, "BEGIN IMMEDIATE");
  bool any_waits = sqlite3_step(waits) == SQLITE_ROW;
  sqlite3_reset(waits);
  size_t at;
  int sent = 0;
  json_array_foreach(rows, at, row) {
    const char *id = json_string_value(json_object_get(row, "id"));
    while (sent < count && strcmp(batch[sent].id, id) != 0)
      sent += 1;
    if (sent == count)
      fail("drain", "an answer to something else");
    sqlite3_bind_int64(erase, 1, batch[sent].sequence);
    bind(erase, 2, holder, sizeof holder);
    finish(erase);
    if (any_waits) {
      bind(free_them, 1, batch[sent].item, LOOKUP);
      finish(free_them);
    }
  }
  bind(raise_sent, 1, owner, LOOKUP);
  sqlite3_bind_int64(raise_sent, 2, wall_ms());
  sqlite3_bind_int64(raise_sent, 3, count);
  finish(raise_sent);
  count_items(1, -count);
  run(database, "COMMIT");
  json_decref(rows);
  json_decref(read);
}

static void drain(long items) {
  double spent = 0, start;
  long requests = 0;
  int count = 0;
  for (;;) {
    start = now();
    char *polled = poll_upload(&count);
    spent += now() - start;
    if (polled == NULL)
      break;
    json_t *reply = json_loads(polled, 0, NULL);
    char *completion = answer(json_array_get(json_object_get(reply, "requests"), 0));
    start = now();
    complete_upload(completion, count);
    char *accepted = dump(json_pack("{s:b}", "accepted", 1));
    spent += now() - start;
    requests += 1;
    free(accepted);
    free(completion);
    json_decref(reply);
    free(polled);
  }
  sample(spent);
  report(items, requests);
}

/* ---- contacts ---- */

static void take_page(const char *completion) {
  static sqlite3_stmt *put = NULL, *note = NULL;
  static const char *const columns[] = {"id", "org_id", "name", "municipality", "relation"};
  json_t *read = json_loads(completion, JSON_REJECT_DUPLICATES, NULL), *row, *last = NULL;
  json_t *rows = json_loads(json_string_value(json_object_get(read, "body")), 0, NULL);
  look();
  if (put == NULL) {
    put = prepare(cache, "INSERT INTO contact(row, org, version, round, sealed) VALUES "
                         "(?1, ?2, ?3, ?4, ?5) ON CONFLICT(org, row) DO UPDATE SET version = ?3, "
                         "round = ?4, sealed = ?5");
    note = prepare(cache,
                   "INSERT INTO dataset(org, place, name, as_of_ms, cursor, reconciled_ms, round, "
                   "skipped) VALUES (?1, ?1, 'rows', ?2, ?3, ?2, 0, 0) ON CONFLICT DO UPDATE "
                   "SET as_of_ms = ?2, cursor = ifnull(?3, cursor), reconciled_ms = ?2");
  }
  run(cache, "BEGIN IMMEDIATE");
  size_t at;
  json_array_foreach(rows, at, row) {
    unsigned char id[16], place[LOOKUP], sealed[2048];
    read_uuid(id, json_string_value(json_object_get(row, "id")));
    tag(place, "contact", cache_tag, LOOKUP, id, sizeof id, NULL, 0);
    json_t *kept = json_object();
    for (size_t column = 0; column < sizeof columns / sizeof *columns; column++)
      json_object_set(kept, columns[column], json_object_get(row, columns[column]));
    char *text = dump(kept);
    context data = cached("contact", place, LOOKUP, "sealed");
    size_t count = strlen(text), size = seal(text, count, &data, keys->cache, sealed);
    sodium_memzero(text, count);
    free(text);
    bind(put, 1, place, LOOKUP);
    bind(put, 2, cache_tag, LOOKUP);
    sqlite3_bind_text(put, 3, json_string_value(json_object_get(row, "updated_at")), -1,
                      SQLITE_STATIC);
    sqlite3_bind_int64(put, 4, 0);
    bind(put, 5, sealed, size);
    finish(put);
    last = row;
  }
  unsigned char sealed[1024];
  size_t size = 0;
  if (last != NULL) {
    char *text =
        dump(json_pack("{s:O,s:O,s:[sssss]}", "updated_at", json_object_get(last, "updated_at"),
                       "id", json_object_get(last, "id"), "columns", columns[0], columns[1],
                       columns[2], columns[3], columns[4]));
    context data = cached("dataset", NULL, 0, "cursor");
    size = seal(text, strlen(text), &data, keys->cache, sealed);
    free(text);
  }
  bind(note, 1, cache_tag, LOOKUP);
  sqlite3_bind_int64(note, 2, wall_ms());
  if (last != NULL)
    bind(note, 3, sealed, size);
  else
    sqlite3_bind_null(note, 3);
  finish(note);
  run(cache, "COMMIT");
  json_decref(rows);
  json_decref(read);
}

static void ingest(long count) {
  double spent = 0;
  long pages = 0;
  contacts_there = count;
  for (long page = 0; page <= count / ROWS_IN_PAGE; page++, pages++) {
    json_t *request = json_pack("{s:i,s:s,s:s}", "id", 1, "purpose", "pull", "url",
                                page == 0 ? "contacts?" : "contacts?updated_at=gte.");
    char *completion = answer(request);
    double start = now();
    take_page(completion);
    spent += now() - start;
    free(completion);
    json_decref(request);
  }
  sample(spent);
  report(count, pages);
}

/* The searched text of a contact: folded name and place. */
typedef struct {
  unsigned char row[LOOKUP];
  char text[120];
} entry;

static entry *entries;
static size_t entry_count;

/* Fold to lower case without diacritics, for the letters of Norwegian names. */
static void fold(char *out, size_t room, const char *text) {
  static const char *const marked[] = {"å", "Å", "ø", "Ø", "æ", "Æ", "é", "É"};
  static const char *const plain[] = {"a", "a", "o", "o", "ae", "ae", "e", "e"};
  size_t count = 0;
  while (*text != 0 && count + 3 < room) {
    if ((unsigned char)*text < 0x80) {
      out[count++] = (char)(isalnum((unsigned char)*text) ? tolower((unsigned char)*text) : ' ');
      text += 1;
      continue;
    }
    for (size_t letter = 0; letter < sizeof marked / sizeof *marked; letter++) {
      if (strncmp(text, marked[letter], 2) != 0)
        continue;
      for (const char *at = plain[letter]; *at != 0; at++)
        out[count++] = *at;
      break;
    }
    text += 2;
  }
  out[count] = 0;
}

static int compare(const void *left, const void *right) {
  return strcmp(((const entry *)left)->text, ((const entry *)right)->text);
}

static void make_index(void) {
  size_t room = 16384;
  sqlite3_stmt *all = prepare(cache, "SELECT row, sealed FROM contact WHERE org = ?");
  entries = malloc(room * sizeof *entries);
  bind(all, 1, cache_tag, LOOKUP);
  while (sqlite3_step(all) == SQLITE_ROW && entry_count < room) {
    entry *it = &entries[entry_count++];
    memcpy(it->row, sqlite3_column_blob(all, 0), LOOKUP);
    context data = cached("contact", it->row, LOOKUP, "sealed");
    json_t *contact = unseal_json(all, 1, &data, keys->cache);
    it->text[0] = ' ';
    fold(it->text + 1, 80, json_string_value(json_object_get(contact, "name")));
    size_t count = strlen(it->text);
    it->text[count] = ' ';
    fold(it->text + count + 1, sizeof it->text - count - 1,
         json_string_value(json_object_get(contact, "municipality")));
    json_decref(contact);
  }
  sqlite3_finalize(all);
  qsort(entries, entry_count, sizeof *entries, compare);
}

/* Every word must occur in the text; matches at beginnings of words come first. Reads the first
 * fifty from the file. */
static char *search_one(const char *request) {
  static sqlite3_stmt *find = NULL, *known = NULL;
  static unsigned char ranks[16384];
  char folded[300];
  look();
  json_t *read = json_loads(request, JSON_REJECT_DUPLICATES, NULL);
  fold(folded, sizeof folded, json_string_value(json_object_get(read, "query")));
  char *words[32], *rest = NULL;
  size_t word_count = 0;
  for (char *word = strtok_r(folded, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
    words[word_count++] = word;
  if (entries == NULL)
    make_index();
  long total = 0;
  for (size_t index = 0; index < entry_count; index++) {
    unsigned char rank = 0;
    for (size_t word = 0; word < word_count; word++) {
      const char *found = strstr(entries[index].text, words[word]);
      if (found == NULL) {
        rank = 255;
        break;
      }
      bool begins = false;
      for (; found != NULL && !begins; found = strstr(found + 1, words[word]))
        begins = found[-1] == ' ';
      rank += begins ? 0 : 1;
    }
    ranks[index] = rank;
    total += rank != 255;
  }
  if (find == NULL) {
    find = prepare(cache, "SELECT sealed FROM contact WHERE org = ?2 AND row = ?1");
    known = prepare(cache, "SELECT as_of_ms FROM dataset WHERE org = ? AND name = 'rows'");
  }
  json_t *contacts = json_array();
  for (unsigned char rank = 0; rank < 33 && json_array_size(contacts) < 50; rank++)
    for (size_t index = 0; index < entry_count && json_array_size(contacts) < 50; index++) {
      if (ranks[index] != rank)
        continue;
      context data = cached("contact", entries[index].row, LOOKUP, "sealed");
      bind(find, 1, entries[index].row, LOOKUP);
      bind(find, 2, cache_tag, LOOKUP);
      check(cache, sqlite3_step(find), SQLITE_ROW);
      json_array_append_new(contacts, unseal_json(find, 0, &data, keys->cache));
      sqlite3_reset(find);
    }
  bind(known, 1, cache_tag, LOOKUP);
  check(cache, sqlite3_step(known), SQLITE_ROW);
  json_int_t as_of = sqlite3_column_int64(known, 0);
  sqlite3_reset(known);
  json_decref(read);
  return dump(json_pack("{s:o,s:I,s:I,s:[]}", "contacts", contacts, "total", (json_int_t)total,
                        "as_of_ms", as_of, "banners"));
}

static void search(long count) {
  char request[256];
  for (long number = 0; number <= count; number++) {
    snprintf(request, sizeof request, "{\"query\":\"%s\"}", query(number));
    double start = now();
    char *reply = search_one(request);
    sample(now() - start);
    free(reply);
  }
}

/* ---- the smallest call ---- */

static void status(long count) {
  for (long number = 0; number < count; number++) {
    double start = now();
    look();
    long long ms = wall_ms();
    char *reply = dump(json_pack(
        "{s:s,s:b,s:s,s:I,s:I,s:I,s:[],s:i,s:I}", "state", "active", "stale", 0, "user_id",
        user_text, "expires_ms", (json_int_t)ms, "validated_ms", (json_int_t)ms, "validated_age_ms",
        (json_int_t)0, "owed", "clock_offset_ms", 0, "generation", (json_int_t)generation));
    sample(now() - start);
    free(reply);
  }
}

int main(int count, char **arguments) {
  if (count < 3)
    return 64;
  const char *mode = arguments[1], *folder = arguments[2];
  long number = count > 3 ? atol(arguments[3]) : 0, other = count > 4 ? atol(arguments[4]) : 0;
  if (strcmp(mode, "cold") == 0) {
    cold(folder);
    report(1, 0);
    return 0;
  }
  open_data(folder);
  look();
  tags_of_session();
  if (strcmp(mode, "drain") == 0) {
    drain(number);
    return 0;
  }
  if (strcmp(mode, "ingest") == 0 || strcmp(mode, "search") == 0)
    cache = open_file(folder, "cache.db", "NORMAL");
  if (strcmp(mode, "ingest") == 0) {
    ingest(number);
    return 0;
  }
  if (strcmp(mode, "fill") == 0)
    fill(number, other != 0);
  else if (strcmp(mode, "warm") == 0)
    warm();
  else if (strcmp(mode, "add") == 0)
    add_all(number, other, add_one, free);
  else if (strcmp(mode, "search") == 0)
    search(number);
  else if (strcmp(mode, "status") == 0)
    status(number);
  else
    return 64;
  report(number, 0);
  return 0;
}
