/* What a call costs in C: the floor of tests/java/org/holdfast/Bench.java. Usage: bench FOLDER
 * CALLS */
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

/* Nanoseconds for one call: the median of rounds. */
static double measured(holdfast *app, const char *operation, const char *request, int calls) {
  double rounds[15];
  int count = sizeof rounds / sizeof *rounds;
  for (int round = 0; round < count; round++) {
    double start = now();
    for (int i = 0; i < calls; i++) {
      char *reply = NULL;
      if (holdfast_call(app, operation, request, &reply) != HOLDFAST_OK)
        exit(2);
      holdfast_free(reply);
    }
    double each = (now() - start) / calls;
    int at = round;
    for (; at > 0 && rounds[at - 1] > each; at--)
      rounds[at] = rounds[at - 1];
    rounds[at] = each;
  }
  return rounds[count / 2];
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  char config[4096];
  snprintf(
      config, sizeof config,
      "{\"data_dir\":\"%s\",\"backend\":{\"url\":\"https://x.supabase.co\",\"api_key\":\"k\"},"
      "\"auth_methods\":[],\"policy\":{\"biometric\":\"off\"},\"keystore\":{\"kind\":\"file\"}}",
      argv[1]);
  holdfast *app = NULL;
  char *reply = NULL;
  if (holdfast_open(config, NULL, &app, &reply) != HOLDFAST_OK) {
    fprintf(stderr, "%s\n", reply ? reply : "no memory");
    return 1;
  }
  holdfast_free(reply);
  int calls = atoi(argv[2]);
  printf("%.0f %.0f\n", measured(app, "network_set", "{\"online\":true}", calls),
         measured(app, "session_status", NULL, calls));
  holdfast_close(app);
  return 0;
}
