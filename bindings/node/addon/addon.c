/*
 * The Node-API addon: handles of libholdfast for JavaScript, the functions of src/native.ts.
 *
 * Calls write to disk, and holdfast_next() and a mailbox (holdfast_keys.h) block. So each handle
 * has a thread for its calls, one for each of its readers, and one for its key requests. libuv's
 * pool would not do: a key store in JavaScript needs it for its files while a call waits for the
 * key. No function of JavaScript is called from another thread: a thread-safe function of Node-API
 * hands each result over to the loop.
 *
 * A handle is freed when its object in JavaScript and its threads have let go of it. Only the
 * loop's thread counts. The library refuses calls on a closed handle, so nothing here has to.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 8
#include <holdfast.h>
#include <holdfast_keys.h>
#include <node_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { OPEN, CALL, NEXT, KEY, CLOSE } kind;

/* What JavaScript has asked for. */
typedef struct job {
  struct job *next;
  kind kind;
  napi_deferred deferred;
  char operation[64];
  char *request, *reply;
  int32_t what, timeout_ms; /* of NEXT */
  int32_t status;
  holdfast_key_request key;
  bool unlocking; /* the key is for session_unlock */
} job;

typedef struct handle handle;

/* A thread, and the jobs that it carries out in their order. */
typedef struct {
  handle *owner;
  pthread_t thread;
  bool threaded; /* `thread` is to be joined */
  job *queued, **last;
} lane;

enum { CALLS, NEWS, REQUESTS, KEYS, LANES };

struct handle {
  _Atomic(holdfast *) self; /* NULL before it is opened: the library refuses it as closed */
  holdfast_mailbox *box;    /* or NULL */
  int owners;
  pthread_mutex_t lock;   /* guards `ending` and what is queued */
  pthread_cond_t changed; /* `ending`, or something was queued */
  lane lanes[LANES];
  bool ending;           /* the handle is closed: lanes end when they have nothing to do */
  atomic_bool unlocking; /* session_unlock runs */
  bool opened;           /* open was called */
  bool hooked;           /* end_of_environment is registered */
  napi_threadsafe_function loop;
};

/* Tells the handles of this addon from the objects of others. */
static const napi_type_tag TAG = {0x8a2b56f1c0d94e37, 0x9f61d3e8b7a2450c};

/* ---- values ---- */

static napi_value fail(napi_env env, const char *message) {
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (!pending)
    napi_throw_error(env, NULL, message);
  return NULL;
}

/* Keys and passwords are in the texts. */
static void forget(char *text) {
  if (text) {
    explicit_bzero(text, strlen(text));
    free(text);
  }
}

/* The text of a value, to forget(); NULL for undefined and null, and for anything else with
 * `wrong`. */
static char *text_of(napi_env env, napi_value value, bool *wrong) {
  napi_valuetype type;
  size_t length;
  *wrong = false;
  if (napi_typeof(env, value, &type) != napi_ok || type == napi_undefined || type == napi_null)
    return NULL;
  *wrong = napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok;
  char *text = *wrong ? NULL : malloc(length + 1);
  if (text && napi_get_value_string_utf8(env, value, text, length + 1, &length) != napi_ok) {
    free(text);
    text = NULL;
  }
  *wrong = !text;
  return text;
}

static void free_job(job *done) {
  holdfast_free(done->reply);
  forget(done->request);
  explicit_bzero(done, sizeof *done);
  free(done);
}

/* ---- on the lanes ---- */

/* Closes the handle, and ends its lanes. What was queued before is refused or carried out. */
static void end(handle *me) {
  holdfast_close(me->self);
  if (me->box)
    holdfast_mailbox_close(me->box);
  pthread_mutex_lock(&me->lock);
  me->ending = true;
  pthread_cond_broadcast(&me->changed);
  pthread_mutex_unlock(&me->lock);
}

static int32_t open_library(handle *me, job *now) {
  holdfast *self = NULL;
  holdfast_keystore store;
  if (me->box)
    store = holdfast_mailbox_keystore(me->box);
  int32_t status = holdfast_open(now->request, me->box ? &store : NULL, &self, &now->reply);
  me->self = self;
  if (status != HOLDFAST_OK)
    end(me);
  return status;
}

static void carry_out(handle *me, job *now) {
  switch (now->kind) {
  case OPEN:
    now->status = open_library(me, now);
    break;
  case CALL:
    me->unlocking = strcmp(now->operation, "session_unlock") == 0;
    now->status = holdfast_call(me->self, now->operation, now->request, &now->reply);
    me->unlocking = false;
    break;
  case NEXT:
    now->status = holdfast_next(me->self, now->what, now->timeout_ms, &now->reply);
    break;
  case KEY:
    now->status = me->box ? holdfast_mailbox_next(me->box, -1, &now->key) : HOLDFAST_CLOSED;
    now->unlocking = me->unlocking;
    break;
  case CLOSE:
    end(me);
    break;
  }
}

static void *follow(void *data) {
  lane *mine = data;
  handle *me = mine->owner;
  for (;;) {
    pthread_mutex_lock(&me->lock);
    while (!mine->queued && !me->ending)
      pthread_cond_wait(&me->changed, &me->lock);
    job *now = mine->queued;
    if (now && !(mine->queued = now->next))
      mine->last = &mine->queued;
    pthread_mutex_unlock(&me->lock);
    if (!now)
      break;
    carry_out(me, now);
    /* napi_closing: the environment ends, and this thread must not use the function again. */
    if (napi_call_threadsafe_function(me->loop, now, napi_tsfn_nonblocking) != napi_ok) {
      free_job(now);
      return NULL;
    }
  }
  napi_release_threadsafe_function(me->loop, napi_tsfn_release);
  return NULL;
}

/* ---- on the loop ---- */

/* Ends the threads, which end() has told to. */
static void join(handle *me) {
  for (lane *each = me->lanes; each < me->lanes + LANES; each++) {
    if (each->threaded)
      pthread_join(each->thread, NULL);
    each->threaded = false;
  }
  holdfast_close(me->self); /* what was opened meanwhile */
}

static void release(handle *me) {
  if (--me->owners > 0)
    return;
  for (lane *each = me->lanes; each < me->lanes + LANES; each++) {
    while (each->queued) {
      job *next = each->queued->next;
      free_job(each->queued);
      each->queued = next;
    }
  }
  holdfast_mailbox_free(me->box);
  pthread_mutex_destroy(&me->lock);
  pthread_cond_destroy(&me->changed);
  free(me);
}

/* The object was collected, or the environment ends. */
static void collected(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  handle *me = data;
  end(me);
  release(me);
}

/* The environment ends: of a worker thread, or of the process. The threads must be gone before.
   This hook is younger than the thread-safe function's own, and so runs before it. */
static void end_of_environment(void *data) {
  handle *me = data;
  me->hooked = false;
  end(me);
  join(me);
}

/* The threads have released their function. */
static void finish(napi_env env, void *data, void *hint) {
  (void)hint;
  handle *me = data;
  join(me);
  if (me->hooked)
    napi_remove_env_cleanup_hook(env, end_of_environment, me);
  me->hooked = false;
  release(me);
}

static void set_text(napi_env env, napi_value object, const char *name, const char *text) {
  napi_value value = NULL;
  if (!text || !*text || napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value) != napi_ok)
    napi_get_null(env, &value);
  napi_set_named_property(env, object, name, value);
}

static napi_value outcome(napi_env env, int32_t status, const char *reply) {
  napi_value object = NULL, number = NULL;
  napi_create_object(env, &object);
  napi_create_int32(env, status, &number);
  napi_set_named_property(env, object, "status", number);
  set_text(env, object, "reply", reply);
  return object;
}

static napi_value key_request(napi_env env, const job *done) {
  napi_value object = NULL, id = NULL, unlocking = NULL;
  if (done->status != HOLDFAST_OK) {
    napi_get_null(env, &object);
    return object;
  }
  napi_create_object(env, &object);
  napi_create_int64(env, done->key.id, &id);
  napi_get_boolean(env, done->unlocking, &unlocking);
  napi_set_named_property(env, object, "id", id);
  napi_set_named_property(env, object, "unlocking", unlocking);
  set_text(env, object, "operation", done->key.operation);
  set_text(env, object, "name", done->key.name);
  set_text(env, object, "protection", done->key.protection);
  set_text(env, object, "value", done->key.value);
  return object;
}

/* Hands out the result of a job. Without `env`: the environment ends, and no script can run. */
static void settle(napi_env env, napi_value function, void *context, void *data) {
  (void)function, (void)context;
  job *done = data;
  if (env) {
    napi_value value =
        done->kind == KEY ? key_request(env, done) : outcome(env, done->status, done->reply);
    napi_resolve_deferred(env, done->deferred, value);
  }
  free_job(done);
}

/* ---- handles ---- */

/* With its threads; NULL without memory. */
static handle *new_handle(napi_env env, bool has_keys) {
  napi_value name;
  size_t count = has_keys ? LANES : KEYS; /* the last lane is for keys alone */
  handle *me = calloc(1, sizeof *me);
  if (!me)
    return NULL;
  pthread_mutex_init(&me->lock, NULL);
  pthread_cond_init(&me->changed, NULL);
  for (lane *each = me->lanes; each < me->lanes + LANES; each++)
    *each = (lane){.owner = me, .last = &each->queued};
  me->owners = 1;
  me->box = has_keys ? holdfast_mailbox_new(HOLDFAST_MAILBOX_WAIT_MS) : NULL;
  if ((has_keys && !me->box) ||
      napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, NULL, NULL, name, 0, count, me, finish, me, settle,
                                      &me->loop) != napi_ok) {
    release(me);
    return NULL;
  }
  me->hooked = napi_add_env_cleanup_hook(env, end_of_environment, me) == napi_ok;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  bool whole = true;
  for (lane *each = me->lanes; each < me->lanes + count; each++) {
    each->threaded = pthread_create(&each->thread, &attributes, follow, each) == 0;
    if (!each->threaded)
      napi_release_threadsafe_function(me->loop, napi_tsfn_release);
    whole = whole && each->threaded;
  }
  pthread_attr_destroy(&attributes);
  if (!whole)
    end(me); /* `finish` frees it */
  return whole ? me : NULL;
}

/* Queues a job, and returns its promise. Takes the job and its request. */
static napi_value begin(napi_env env, handle *me, lane *its, job given) {
  napi_value promise;
  job *made = malloc(sizeof *made);
  if (!made || napi_create_promise(env, &given.deferred, &promise) != napi_ok) {
    free(made);
    forget(given.request);
    return fail(env, "out of memory");
  }
  *made = given;
  pthread_mutex_lock(&me->lock);
  bool ended = me->ending; /* then the lane may be gone */
  if (!ended) {
    *its->last = made;
    its->last = &made->next;
    pthread_cond_broadcast(&me->changed);
  }
  pthread_mutex_unlock(&me->lock);
  if (ended) { /* takes no time */
    carry_out(me, made);
    settle(env, NULL, me, made);
  }
  return promise;
}

/* ---- the functions ---- */

static napi_value js_create(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given[1], object;
  bool has_keys = false;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok)
    return NULL;
  napi_get_value_bool(env, given[0], &has_keys);
  handle *me = new_handle(env, has_keys);
  if (!me)
    return fail(env, "out of memory or threads");
  me->owners++;
  if (napi_create_object(env, &object) == napi_ok &&
      napi_type_tag_object(env, object, &TAG) == napi_ok &&
      napi_wrap(env, object, me, collected, NULL, NULL) == napi_ok)
    return object;
  collected(env, me, NULL);
  return fail(env, "out of memory");
}

/* The arguments of a function, and the handle that is the first one; NULL: an exception was thrown.
 */
static handle *arguments(napi_env env, napi_callback_info info, napi_value given[4]) {
  size_t count = 4;
  void *found = NULL;
  napi_valuetype type = napi_undefined;
  bool tagged = false;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok)
    return NULL;
  napi_typeof(env, given[0], &type);
  if (type == napi_object)
    napi_check_object_type_tag(env, given[0], &TAG, &tagged);
  if (!tagged || napi_unwrap(env, given[0], &found) != napi_ok)
    napi_throw_type_error(env, NULL, "this is no handle of Holdfast");
  return found;
}

static napi_value js_open(napi_env env, napi_callback_info info) {
  napi_value given[4];
  bool wrong;
  handle *me = arguments(env, info, given);
  if (!me)
    return NULL;
  if (me->opened)
    return fail(env, "this handle was opened before");
  job made = {.kind = OPEN, .request = text_of(env, given[1], &wrong)};
  if (wrong)
    return fail(env, "the configuration is no text");
  me->opened = true;
  return begin(env, me, &me->lanes[CALLS], made);
}

static napi_value js_call(napi_env env, napi_callback_info info) {
  napi_value given[4];
  size_t length;
  bool wrong;
  job made = {.kind = CALL};
  handle *me = arguments(env, info, given);
  if (!me)
    return NULL;
  if (napi_get_value_string_utf8(env, given[1], made.operation, sizeof made.operation, &length) !=
      napi_ok)
    return fail(env, "the operation is no text");
  made.request = text_of(env, given[2], &wrong);
  return wrong ? fail(env, "the request is no text") : begin(env, me, &me->lanes[CALLS], made);
}

static napi_value js_next(napi_env env, napi_callback_info info) {
  napi_value given[4];
  job made = {.kind = NEXT};
  handle *me = arguments(env, info, given);
  if (!me)
    return NULL;
  if (napi_get_value_int32(env, given[1], &made.what) != napi_ok ||
      napi_get_value_int32(env, given[2], &made.timeout_ms) != napi_ok)
    return fail(env, "what is asked for and the time are numbers");
  return begin(env, me, &me->lanes[made.what == HOLDFAST_NEXT_REQUESTS ? REQUESTS : NEWS], made);
}

static napi_value js_key_next(napi_env env, napi_callback_info info) {
  napi_value given[4];
  handle *me = arguments(env, info, given);
  return me ? begin(env, me, &me->lanes[me->box ? KEYS : CALLS], (job){.kind = KEY}) : NULL;
}

static napi_value js_key_complete(napi_env env, napi_callback_info info) {
  napi_value given[4], wrong = NULL;
  int64_t id = 0;
  bool no_result, no_value;
  handle *me = arguments(env, info, given);
  if (!me)
    return NULL;
  napi_get_value_int64(env, given[1], &id);
  char *result = text_of(env, given[2], &no_result), *value = text_of(env, given[3], &no_value);
  const char *field = NULL;
  if (me->box)
    holdfast_mailbox_complete(me->box, id, result, value, &field);
  forget(result);
  forget(value);
  if (!field || napi_create_string_utf8(env, field, NAPI_AUTO_LENGTH, &wrong) != napi_ok)
    napi_get_null(env, &wrong);
  return wrong;
}

static napi_value js_close(napi_env env, napi_callback_info info) {
  napi_value given[4];
  handle *me = arguments(env, info, given);
  return me ? begin(env, me, &me->lanes[CALLS], (job){.kind = CLOSE}) : NULL;
}

static napi_value js_live(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value number = NULL;
  napi_create_int64(env, holdfast_live_count(), &number);
  return number;
}

static napi_value js_build(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value text = NULL;
  napi_create_string_utf8(env, holdfast_build_info(), NAPI_AUTO_LENGTH, &text);
  return text;
}

static void write_line(void *context, int32_t level, const char *line) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  (void)context;
  fprintf(stderr, "holdfast %s: %s\n", names[level & 3], line);
}

static napi_value js_log(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given[1];
  int32_t level = -1;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok ||
      napi_get_value_int32(env, given[0], &level) != napi_ok)
    return fail(env, "the level is a number");
  holdfast_log(level, level < 0 ? NULL : write_line, NULL);
  return NULL;
}

NAPI_MODULE_INIT() {
  const struct {
    const char *name;
    napi_callback function;
  } functions[] = {{"create", js_create},    {"open", js_open},
                   {"call", js_call},        {"next", js_next},
                   {"keyNext", js_key_next}, {"keyComplete", js_key_complete},
                   {"close", js_close},      {"liveCount", js_live},
                   {"buildInfo", js_build},  {"logToStderr", js_log}};
  if (holdfast_version_number() < HOLDFAST_VERSION_NUMBER)
    return fail(env, "libholdfast is older than this package");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    napi_value made;
    if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL,
                             &made) != napi_ok ||
        napi_set_named_property(env, exports, functions[i].name, made) != napi_ok)
      return fail(env, "the module cannot be filled");
  }
  return exports;
}
