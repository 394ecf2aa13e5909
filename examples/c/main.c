/* The command line of holdfast-tour; README.md explains the tour. */
#define _GNU_SOURCE
#include "tour.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *out) {
  fputs("The tour:  holdfast-tour --backend URL --key ANON_KEY [--dsn DSN] [--keep]\n"
        "           plays against a running local backend with demo data; demo.sh starts both\n"
        "The shell: holdfast-tour --shell --data DIR --backend URL --key ANON_KEY\n"
        "           every operation is a command; type help\n"
        "           --keystore file (default) | secret-service: the place of the device key\n",
        out);
}

static bool choose_keystore(const char *name, setting *where) {
  where->secret_service = strcmp(name, "secret-service") == 0;
  if (!where->secret_service && strcmp(name, "file") != 0) {
    fprintf(stderr, "--keystore %s: unknown; use file or secret-service\n", name);
    return false;
  }
  if (where->secret_service && !secret_service_built()) {
    fputs("--keystore secret-service: this program was built without libsecret; install"
          " libsecret-1-dev and build it again\n",
          stderr);
    return false;
  }
  return true;
}

int main(int count, char **arguments) {
  enum { ACT = 256, PERSON, DATA, KEYS, READER, BACKEND, KEY, DSN, KEEP, SHELL, STORE, HELP };
  static const struct option options[] = {
      {"act", required_argument, NULL, ACT},
      {"person", required_argument, NULL, PERSON},
      {"data", required_argument, NULL, DATA},
      {"keys", required_argument, NULL, KEYS},
      {"reader", required_argument, NULL, READER},
      {"backend", required_argument, NULL, BACKEND},
      {"key", required_argument, NULL, KEY},
      {"dsn", required_argument, NULL, DSN},
      {"keep", no_argument, NULL, KEEP},
      {"shell", no_argument, NULL, SHELL},
      {"help", no_argument, NULL, HELP},
      {"keystore", required_argument, NULL, STORE},
      {NULL, 0, NULL, 0},
  };
  setting where = {0};
  int act = 0;
  bool keep = false, shell = false;
  for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
    switch (option) {
    case ACT:
      act = atoi(optarg);
      break;
    case PERSON:
      person_join(atoi(optarg));
      break;
    case DATA:
      where.data_dir = optarg;
      break;
    case KEYS:
      where.key_dir = optarg;
      break;
    case READER:
      where.reader_socket = optarg;
      break;
    case BACKEND:
      where.backend = optarg;
      break;
    case KEY:
      where.api_key = optarg;
      break;
    case DSN:
      where.dsn = *optarg == 0 ? NULL : optarg;
      break;
    case KEEP:
      keep = true;
      break;
    case SHELL:
      shell = true;
      break;
    case STORE:
      if (!choose_keystore(optarg, &where))
        return 2;
      break;
    case HELP:
      usage(stdout);
      return 0;
    default:
      usage(stderr);
      return 2;
    }
  }
  if (where.backend == NULL || where.api_key == NULL || optind != count ||
      (shell && where.data_dir == NULL) || (!shell && where.secret_service) || act < 0 ||
      act > ACT_COUNT) {
    usage(stderr);
    return 2;
  }
  if (shell)
    return shell_run(&where);
  return act > 0 ? act_play(act, &where) : tour_run("/proc/self/exe", where, keep);
}
