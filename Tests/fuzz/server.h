/* A server that knows one thing to say to every request. */
#ifndef SERVER_H
#define SERVER_H

#include <jansson.h>
#include <stdint.h>

#define USER "10000000-0000-4000-8000-000000000001"
#define OTHER_USER "10000000-0000-4000-8000-000000000002"
#define ORG "0f000000-0000-4000-8000-000000000001"
#define OTHER_ORG "0f000000-0000-4000-8000-000000000002"
#define CONTACT "c0000000-0000-4000-8000-000000000001"

typedef struct {
  const char *user; /* who signs in */
  int64_t now_ms;
  int tokens; /* given out so far: each is another */
} server;

/* The answers' parts; the caller releases them. */
json_t *server_session(server *it, const char *user);
json_t *server_memberships(void);
json_t *server_contacts(void);
/* The rows of an upload's body, as stored. */
json_t *server_stored(const char *body);

/* The body that a healthy server sends, NULL for none, and its status. */
json_t *server_answer(server *it, const json_t *request, int *status);

#endif
