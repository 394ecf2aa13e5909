/*
 * The Node-API addon: handles of libholdfast for JavaScript.
 *
 *   open(config)                           a promise of {status, reply, handle}
 *   call(handle, operation, request)       a promise of {status, reply}
 *   callSync(handle, operation, request)   {status, reply}; blocks the loop
 *   wait(handle)                           a promise of a status: poll now, or the handle is closed
 *   close(handle)                          a promise of {status, reply}
 *
 * Calls write to disk, so they run on libuv's pool; those of one handle in their order, on one
 * thread at a time. holdfast_wait() runs on a thread of its own for each handle: on the pool, a few
 * handles would take the threads that files and names need. No function of JavaScript is called
 * from another thread: a thread-safe function of Node-API hands the status over to the loop.
 *
 * A handle is freed when the last of these has let go of it: its object in JavaScript, the work on
 * the pool, the thread. Only the loop's thread counts. The library refuses calls on a closed
 * handle, so nothing here has to.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 8
#include <holdfast.h>
#include <node_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A call on the pool. Without an operation: the end of the handle. */
typedef struct call {
  struct call *next;
  napi_deferred deferred;
  const char *operation;
  char *request, *reply;
  int32_t status;
} call;

typedef struct handle {
  holdfast *self;
  int owners;
  pthread_mutex_t lock;   /* guards `queued`, `asked` and `ending` */
  pthread_cond_t changed; /* `asked` or `ending` */
  call *queued, **last;
  call *done, **last_done; /* of the work that runs, then of the loop */
  napi_async_work work;
  bool running; /* the work is queued or runs */
  bool asked;   /* JavaScript waits */
  bool ending;
  pthread_t thread;
  bool threaded; /* `thread` is to be joined */
  bool hooked;   /* end_of_environment is registered */
  napi_threadsafe_function waker;
  napi_deferred waiting; /* of wait(), or NULL */
} handle;

/* Tells the handles of this addon from the objects of others. */
static const napi_type_tag TAG = {0x8a2b56f1c0d94e37, 0x9f61d3e8b7a2450c};

static void release(napi_env env, handle *me);

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

/* Releases the reply. */
static napi_value outcome(napi_env env, int32_t status, char *reply) {
  napi_value object = NULL, number = NULL, text = NULL;
  napi_create_object(env, &object);
  napi_create_int32(env, status, &number);
  if (!reply || napi_create_string_utf8(env, reply, NAPI_AUTO_LENGTH, &text) != napi_ok)
    napi_get_null(env, &text);
  holdfast_free(reply);
  napi_set_named_property(env, object, "status", number);
  napi_set_named_property(env, object, "reply", text);
  return object;
}

/* ---- calls ---- */

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* On the pool: the calls that are queued. One batch ends after a millisecond, so that the replies
   of fast calls do not wait for slow ones. */
static void run_calls(napi_env env, void *data) {
  (void)env;
  handle *me = data;
  int64_t end = now_us() + 1000;
  do {
    pthread_mutex_lock(&me->lock);
    call *next = me->queued;
    if (next) {
      me->queued = next->next;
      if (!me->queued)
        me->last = &me->queued;
    }
    pthread_mutex_unlock(&me->lock);
    if (!next)
      return;
    if (next->operation)
      next->status = holdfast_call(me->self, next->operation, next->request, &next->reply);
    else
      holdfast_close(me->self);
    next->next = NULL;
    *me->last_done = next;
    me->last_done = &next->next;
  } while (now_us() < end);
}

static void settle_calls(napi_env env, napi_status status, void *data);

static bool start_calls(napi_env env, handle *me) {
  napi_value name;
  if (napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_async_work(env, NULL, name, run_calls, settle_calls, me, &me->work) != napi_ok)
    return false;
  if (napi_queue_async_work(env, me->work) != napi_ok) {
    napi_delete_async_work(env, me->work);
    return false;
  }
  me->running = true;
  me->owners++;
  return true;
}

/* On the loop: hands out the replies. At the end of an environment no script can run: the results
   of Node-API are not looked at then, and the memory is freed. */
static void settle_calls(napi_env env, napi_status status, void *data) {
  (void)status;
  handle *me = data;
  call *done = me->done;
  me->done = NULL;
  me->last_done = &me->done;
  napi_delete_async_work(env, me->work);
  me->running = false;
  pthread_mutex_lock(&me->lock);
  bool more = me->queued != NULL;
  pthread_mutex_unlock(&me->lock);
  if (more)
    start_calls(env, me);
  while (done) {
    call *next = done->next;
    napi_handle_scope scope;
    bool scoped = napi_open_handle_scope(env, &scope) == napi_ok;
    napi_resolve_deferred(env, done->deferred, outcome(env, done->status, done->reply));
    if (scoped)
      napi_close_handle_scope(env, scope);
    forget(done->request);
    free(done);
    done = next;
  }
  release(env, me);
}

/* Queues a call; without an operation, the end of the handle. Takes the texts. */
static napi_value queue_call(napi_env env, handle *me, const char *operation, char *request) {
  napi_value promise;
  call *made = calloc(1, sizeof *made + (operation ? strlen(operation) + 1 : 0));
  if (!made || napi_create_promise(env, &made->deferred, &promise) != napi_ok) {
    free(made);
    forget(request);
    return fail(env, "out of memory");
  }
  if (operation)
    made->operation = strcpy((char *)(made + 1), operation);
  made->request = request;
  pthread_mutex_lock(&me->lock);
  *me->last = made;
  me->last = &made->next;
  pthread_mutex_unlock(&me->lock);
  if (!me->running && !start_calls(env, me))
    return fail(env, "the call cannot be queued");
  return promise;
}

/* ---- waiting ---- */

static void *follow(void *data) {
  handle *me = data;
  for (;;) {
    pthread_mutex_lock(&me->lock);
    while (!me->asked && !me->ending)
      pthread_cond_wait(&me->changed, &me->lock);
    bool ending = me->ending;
    me->asked = false;
    pthread_mutex_unlock(&me->lock);
    intptr_t status = ending ? HOLDFAST_CLOSED : holdfast_wait(me->self, -1);
    /* napi_closing: the environment ends, and this thread must not use the function again. */
    if (napi_call_threadsafe_function(me->waker, (void *)status, napi_tsfn_nonblocking) != napi_ok)
      return NULL;
    if (ending)
      break;
  }
  napi_release_threadsafe_function(me->waker, napi_tsfn_release);
  return NULL;
}

/* On the loop: the wait has ended. */
static void wake(napi_env env, napi_value function, void *context, void *data) {
  (void)function;
  handle *me = context;
  if (!env || !me->waiting)
    return;
  napi_value status;
  napi_deferred waiting = me->waiting;
  me->waiting = NULL;
  napi_create_int32(env, (int32_t)(intptr_t)data, &status);
  napi_resolve_deferred(env, waiting, status);
}

/* Ends the thread. holdfast_close() wakes it, and it does nothing else, so joining takes no time.
 */
static void join(handle *me) {
  if (!me->threaded)
    return;
  me->threaded = false;
  pthread_join(me->thread, NULL);
}

/* From the loop's thread: the handle is closed and its thread told to end. */
static void end(handle *me) {
  pthread_mutex_lock(&me->lock);
  me->ending = true;
  pthread_cond_signal(&me->changed);
  pthread_mutex_unlock(&me->lock);
  holdfast_close(me->self);
}

/* The environment ends: of a worker thread, or of the process. The thread must be gone before. This
   hook is younger than the thread-safe function's own, and so runs before it. */
static void end_of_environment(void *data) {
  handle *me = data;
  me->hooked = false;
  end(me);
  join(me);
}

/* The thread has released its function. */
static void finish_waiting(napi_env env, void *data, void *hint) {
  (void)hint;
  handle *me = data;
  join(me);
  if (me->hooked)
    napi_remove_env_cleanup_hook(env, end_of_environment, me);
  me->hooked = false;
  release(env, me);
}

static bool start_waiting(napi_env env, handle *me) {
  napi_value name;
  pthread_attr_t attributes;
  if (napi_create_string_utf8(env, "holdfast_wait", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, me, finish_waiting, me, wake,
                                      &me->waker) != napi_ok)
    return false;
  me->owners++;
  me->hooked = napi_add_env_cleanup_hook(env, end_of_environment, me) == napi_ok;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  me->threaded = pthread_create(&me->thread, &attributes, follow, me) == 0;
  pthread_attr_destroy(&attributes);
  if (!me->threaded)
    napi_release_threadsafe_function(me->waker, napi_tsfn_abort);
  return me->threaded;
}

/* ---- handles ---- */

static void release(napi_env env, handle *me) {
  (void)env;
  if (--me->owners > 0)
    return;
  pthread_mutex_destroy(&me->lock);
  pthread_cond_destroy(&me->changed);
  for (call *each = me->queued; each;) {
    call *next = each->next;
    forget(each->request);
    free(each);
    each = next;
  }
  free(me);
}

static handle *new_handle(void) {
  handle *me = calloc(1, sizeof *me);
  if (!me)
    return NULL;
  pthread_mutex_init(&me->lock, NULL);
  pthread_cond_init(&me->changed, NULL);
  me->last = &me->queued;
  me->last_done = &me->done;
  me->owners = 1;
  return me;
}

/* The object was collected, or the environment ends. */
static void collected(napi_env env, void *data, void *hint) {
  (void)hint;
  handle *me = data;
  end(me);
  release(env, me);
}

/* The handle of an argument; anything else throws. */
static handle *handle_of(napi_env env, napi_value value) {
  void *found = NULL;
  napi_valuetype type = napi_undefined;
  bool tagged = false;
  napi_typeof(env, value, &type);
  if (type == napi_object)
    napi_check_object_type_tag(env, value, &TAG, &tagged);
  if (!tagged || napi_unwrap(env, value, &found) != napi_ok)
    napi_throw_type_error(env, NULL, "this is no handle of Holdfast");
  return found;
}

/* ---- the functions ---- */

typedef struct opening {
  napi_async_work work;
  napi_deferred deferred;
  char *config, *reply;
  holdfast *self;
  int32_t status;
} opening;

static void run_open(napi_env env, void *data) {
  (void)env;
  opening *me = data;
  me->status = holdfast_open(me->config, NULL, &me->self, &me->reply);
}

static napi_value object_of(napi_env env, holdfast *self) {
  napi_value object = NULL;
  handle *made = new_handle();
  if (!made)
    return NULL;
  made->self = self;
  if (napi_create_object(env, &object) != napi_ok ||
      napi_wrap(env, object, made, collected, NULL, NULL) != napi_ok) {
    release(env, made);
    return NULL;
  }
  if (napi_type_tag_object(env, object, &TAG) != napi_ok || !start_waiting(env, made))
    return NULL; /* `collected` frees it */
  return object;
}

static void settle_open(napi_env env, napi_status status, void *data) {
  (void)status;
  opening *me = data;
  napi_value object = NULL;
  if (me->status == HOLDFAST_OK && !(object = object_of(env, me->self))) {
    holdfast_close(me->self);
    holdfast_free(me->reply);
    me->reply = NULL;
    me->status = HOLDFAST_NOMEM;
  }
  napi_value reply = outcome(env, me->status, me->reply);
  if (object)
    napi_set_named_property(env, reply, "handle", object);
  napi_resolve_deferred(env, me->deferred, reply);
  napi_delete_async_work(env, me->work);
  forget(me->config);
  free(me);
}

static napi_value js_open(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given[1], name, promise;
  bool wrong;
  opening *me = calloc(1, sizeof *me);
  if (!me || napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok ||
      napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &name) != napi_ok) {
    free(me);
    return fail(env, "out of memory");
  }
  me->config = text_of(env, given[0], &wrong);
  if (wrong ||
      napi_create_async_work(env, NULL, name, run_open, settle_open, me, &me->work) != napi_ok) {
    forget(me->config);
    free(me);
    return fail(env, "the configuration is no text");
  }
  if (napi_create_promise(env, &me->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, me->work) != napi_ok) {
    napi_delete_async_work(env, me->work);
    forget(me->config);
    free(me);
    return fail(env, "the call cannot be queued");
  }
  return promise;
}

static napi_value js_call(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value given[3];
  char operation[64];
  size_t length;
  bool wrong;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok)
    return NULL;
  handle *me = handle_of(env, given[0]);
  if (!me)
    return NULL;
  if (napi_get_value_string_utf8(env, given[1], operation, sizeof operation, &length) != napi_ok)
    return fail(env, "the operation is no text");
  char *request = text_of(env, given[2], &wrong);
  if (wrong)
    return fail(env, "the request is no text");
  return queue_call(env, me, operation, request);
}

static napi_value js_call_sync(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value given[3];
  char operation[64], *reply = NULL;
  size_t length;
  bool wrong;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok)
    return NULL;
  handle *me = handle_of(env, given[0]);
  if (!me)
    return NULL;
  if (napi_get_value_string_utf8(env, given[1], operation, sizeof operation, &length) != napi_ok)
    return fail(env, "the operation is no text");
  char *request = text_of(env, given[2], &wrong);
  if (wrong)
    return fail(env, "the request is no text");
  int32_t status = holdfast_call(me->self, operation, request, &reply);
  forget(request);
  return outcome(env, status, reply);
}

static napi_value js_wait(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given[1], promise;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok)
    return NULL;
  handle *me = handle_of(env, given[0]);
  if (!me)
    return NULL;
  if (me->waiting)
    return fail(env, "somebody waits already");
  napi_deferred waiting;
  if (napi_create_promise(env, &waiting, &promise) != napi_ok)
    return fail(env, "out of memory");
  pthread_mutex_lock(&me->lock);
  bool ended = me->ending;
  me->asked = !ended;
  pthread_cond_signal(&me->changed);
  pthread_mutex_unlock(&me->lock);
  if (ended) {
    napi_value status;
    napi_create_int32(env, HOLDFAST_CLOSED, &status);
    napi_resolve_deferred(env, waiting, status);
  } else
    me->waiting = waiting;
  return promise;
}

static napi_value js_close(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given[1];
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok)
    return NULL;
  handle *me = handle_of(env, given[0]);
  if (!me)
    return NULL;
  /* Behind the calls that are queued. The thread ends when the library wakes it. */
  pthread_mutex_lock(&me->lock);
  me->ending = true;
  pthread_cond_signal(&me->changed);
  pthread_mutex_unlock(&me->lock);
  return queue_call(env, me, NULL, NULL);
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
  } functions[] = {{"open", js_open},       {"call", js_call},      {"callSync", js_call_sync},
                   {"wait", js_wait},       {"close", js_close},    {"liveCount", js_live},
                   {"buildInfo", js_build}, {"logToStderr", js_log}};
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
