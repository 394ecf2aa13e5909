/* A server with one canned answer for every kind of request. */
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
  const char *user; /* the user who signs in */
  int64_t now_ms;
  int tokens; /* the number of tokens issued so far: makes each one unique */
} server;

/* Parts of answers; the caller releases them. */
json_t *server_session(server *it, const char *user);
json_t *server_memberships(void);
json_t *server_contacts(void);
/* The answer to an upload whose rows are all stored. */
json_t *server_stored(const char *body);

/* The body of a healthy server's answer (NULL for none) and its status. */
json_t *server_answer(server *it, const json_t *request, int *status);

#endif
