/* The shell: every operation of holdfast.h is a command with a JSON argument. It reads commands
 * from a terminal or a script on standard input, and prints one line for each result and each
 * event, so that a test can read them. */
#define _GNU_SOURCE
#include "tour.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  const char *name;
  operation operation;
} verb;

#define VERB(name)                                                                                 \
  { #name, holdfast_##name }
static const verb verbs[] = {
    VERB(clock_set),          VERB(session_start),  VERB(sign_in_begin),
    VERB(sign_in_complete),   VERB(sign_in_cancel), VERB(session_resume),
    VERB(session_unlock),     VERB(session_lock),   VERB(session_background),
    VERB(session_foreground), VERB(session_status), VERB(session_token),
    VERB(session_logout),     VERB(org_list),       VERB(org_select),
    VERB(route_check),        VERB(queue_add),      VERB(queue_list),
    VERB(queue_get),          VERB(queue_edit),     VERB(queue_cancel),
    VERB(queue_retry),        VERB(queue_export),   VERB(queue_explain),
    VERB(contact_search),     VERB(contact_get),    VERB(summary_get),
    VERB(network_set),        VERB(sync_now),       VERB(sync_status),
};
#undef VERB
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static const char *const statuses[] = {"OK",       "INVALID", "STATE",   "NOT_FOUND", "CONFLICT",
                                       "KEYSTORE", "STORAGE", "FULL",    "BUSY",      "CLOSED",
                                       "FORKED",   "NOMEM",   "INTERNAL"};

typedef struct {
  app app;
  reader finger;
  char *url; /* the URL of the sign-in in progress */
  pthread_mutex_t lock;
  pthread_cond_t came;
  json_t *arrived; /* event type -> number of events that no `wait` has consumed yet */
  bool prompts;
} shell;

/* ---- output ---- */

static const char *status_name(int32_t status) {
  return status >= 0 && status < (int32_t)(sizeof statuses / sizeof *statuses) ? statuses[status]
                                                                               : "?";
}

/* Print a whole line at a time: two threads print. */
static void print(const char *first, const char *second) {
  flockfile(stdout);
  printf("%s %s\n", first, second);
  fflush(stdout);
  funlockfile(stdout);
}

static void help(void) {
  puts("Operations, each with an optional JSON object (see holdfast.h):");
  for (int i = 0; i < VERB_COUNT; i++)
    printf("  %-20s%s", verbs[i].name, i % 4 == 3 ? "\n" : "");
  puts("Other commands:\n"
       "  finger               put a finger on the reader; then session_unlock "
       "{\"outcome\":\"success\"} within 10 s\n"
       "  browse E-MAIL        pass the simulated BankID for the sign-in in progress, and "
       "complete it\n"
       "  wait TYPE [SECONDS]  wait (10 s) for an event of this type: decision, "
       "sync_completed, ...\n"
       "  ack SEQ              acknowledge all events up to this one: the user has seen them\n"
       "  sleep SECONDS\n"
       "  kill                 send SIGKILL to the shell itself\n"
       "  quit");
}

/* ---- events ---- */

static void count_event(shell *it, const char *type, int by) {
  json_int_t count = number_at(it->arrived, type) + by;
  json_object_set_new(it->arrived, type, json_integer(count));
}

static void *print_events(void *context) {
  shell *it = context;
  char *text = NULL;
  while (holdfast_http_next(it->app.driver, -1, &text) == HOLDFAST_OK) {
    print("event", text);
    json_t *event = json_loads(text, 0, NULL);
    holdfast_http_free(text);
    pthread_mutex_lock(&it->lock);
    count_event(it, text_at(event, "type"), 1);
    pthread_cond_broadcast(&it->came);
    pthread_mutex_unlock(&it->lock);
    json_decref(event);
  }
  return NULL;
}

static void wait_for(shell *it, const char *type, int seconds) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += seconds > 0 ? seconds : 10;
  pthread_mutex_lock(&it->lock);
  int result = 0;
  while (number_at(it->arrived, type) == 0 && result != ETIMEDOUT)
    result = pthread_cond_timedwait(&it->came, &it->lock, &limit);
  bool came = number_at(it->arrived, type) > 0;
  if (came)
    count_event(it, type, -1);
  pthread_mutex_unlock(&it->lock);
  print(came ? "came" : "late", type);
}

/* ---- commands ---- */

static void call(shell *it, const verb *verb, const char *request) {
  char *reply = NULL;
  int32_t status = verb->operation(it->app.self, request, &reply);
  if (verb->operation == holdfast_sign_in_begin && status == HOLDFAST_OK) {
    json_t *begun = json_loads(reply, 0, NULL);
    free(it->url);
    it->url = strdup(text_at(begun, "url"));
    json_decref(begun);
  }
  print(status_name(status), reply == NULL ? "" : reply);
  holdfast_free(reply);
}

static void browse(shell *it, const char *email) {
  char *callback = it->url == NULL ? NULL : browser_sign_in(it->url, email);
  if (callback == NULL) {
    print("error", "no sign-in in progress, or the provider did not redirect the browser");
    return;
  }
  static const verb complete = {"sign_in_complete", holdfast_sign_in_complete};
  json_t *request = json_pack("{s:s}", "callback_url", callback);
  char *text = json_dumps(request, JSON_COMPACT);
  call(it, &complete, text);
  free(text);
  json_decref(request);
  free(callback);
}

/* Run a command line. Returns false when the shell must end. */
static bool obey(shell *it, char *line) {
  char *name = line + strspn(line, " \t");
  char *rest = name + strcspn(name, " \t\n");
  if (*rest != 0)
    *rest++ = 0;
  rest += strspn(rest, " \t");
  rest[strcspn(rest, "\n")] = 0;
  for (int i = 0; i < VERB_COUNT; i++) {
    if (strcmp(verbs[i].name, name) == 0) {
      call(it, &verbs[i], rest);
      return true;
    }
  }
  if (strcmp(name, "quit") == 0)
    return false;
  if (*name == 0 || *name == '#')
    return true;
  if (strcmp(name, "help") == 0) {
    help();
  } else if (strcmp(name, "finger") == 0) {
    print(reader_present_finger(&it->finger) ? "OK" : "error", "finger");
  } else if (strcmp(name, "browse") == 0) {
    browse(it, rest);
  } else if (strcmp(name, "wait") == 0) {
    char type[64] = "decision";
    int seconds = 0;
    sscanf(rest, "%63s %d", type, &seconds);
    wait_for(it, type, seconds);
  } else if (strcmp(name, "ack") == 0) {
    print(status_name(holdfast_http_ack(it->app.driver, strtoll(rest, NULL, 10))), "ack");
  } else if (strcmp(name, "sleep") == 0) {
    double seconds = atof(rest);
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
  } else if (strcmp(name, "kill") == 0) {
    kill(getpid(), SIGKILL);
  } else {
    print("error", "unknown command; try help");
  }
  return true;
}

static void read_commands(shell *it) {
  char *line = NULL;
  size_t room = 0;
  for (;;) {
    if (it->prompts) {
      fputs("holdfast> ", stdout);
      fflush(stdout);
    }
    if (getline(&line, &room, stdin) < 0 || !obey(it, line))
      break;
  }
  free(line);
}

int shell_run(const setting *given) {
  setting where = *given;
  char keys[4096], memory[4112], socket_path[64];
  char folder[] = "/tmp/holdfast-shell-XXXXXX";
  snprintf(keys, sizeof keys, "%s.keys", where.data_dir);
  snprintf(memory, sizeof memory, "%s/reader", keys);
  if (mkdtemp(folder) == NULL)
    return 1;
  snprintf(socket_path, sizeof socket_path, "%s/reader", folder);
  mkdir(keys, 0700);
  where.key_dir = where.key_dir == NULL ? keys : where.key_dir;
  where.reader_socket = socket_path;

  shell it = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .came = PTHREAD_COND_INITIALIZER,
              .arrived = json_object(),
              .prompts = isatty(STDIN_FILENO)};
  pthread_t printer;
  int result = 1;
  if (reader_start(socket_path, memory, &it.finger) && app_open(&it.app, &where) &&
      pthread_create(&printer, NULL, print_events, &it) == 0) {
    read_commands(&it);
    holdfast_http_stop(it.app.driver);
    pthread_join(printer, NULL);
    result = 0;
  }
  app_close(&it.app);
  reader_stop(&it.finger);
  json_decref(it.arrived);
  free(it.url);
  return result;
}
