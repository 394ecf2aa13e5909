/* A minimal HTTP client for the simulated browser and the backend's control API. The app's own
 * requests go through HoldfastHTTP. One request per connection, plain HTTP; redirects are not
 * followed, because the redirect carries the result of the sign-in. */
#define _GNU_SOURCE
#include "tour.h"

#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE_SECONDS = 20 };

static int connect_to(const char *host, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  if (getaddrinfo(host, port, &hints, &found) != 0)
    return -1;
  int link = -1;
  for (const struct addrinfo *at = found; at != NULL && link < 0; at = at->ai_next) {
    link = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (link >= 0 && connect(link, at->ai_addr, at->ai_addrlen) != 0) {
      close(link);
      link = -1;
    }
  }
  freeaddrinfo(found);
  struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
  if (link >= 0)
    setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return link;
}

static bool send_all(int link, const char *text) {
  size_t length = strlen(text);
  while (length > 0) {
    ssize_t sent = send(link, text, length, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    text += sent;
    length -= (size_t)sent;
  }
  return true;
}

/* Read until the other side closes the connection. */
static char *receive_all(int link) {
  char *text = NULL;
  size_t length = 0;
  FILE *collected = open_memstream(&text, &length);
  char part[16384];
  ssize_t got;
  while ((got = recv(link, part, sizeof part, 0)) > 0)
    fwrite(part, 1, (size_t)got, collected);
  fclose(collected);
  return text;
}

static char *header_value(const char *head, const char *name) {
  for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
    const char *at = line + 2;
    if (strncasecmp(at, name, strlen(name)) != 0 || at[strlen(name)] != ':')
      continue;
    at += strlen(name) + 1;
    at += strspn(at, " ");
    return strndup(at, strcspn(at, "\r"));
  }
  return NULL;
}

web_answer web_request(const char *method, const char *url, const char *body) {
  web_answer answer = {0};
  char host[256], port[16] = "80";
  int path_at = 0;
  if (sscanf(url, "http://%255[^:/]%n", host, &path_at) != 1)
    return answer;
  if (url[path_at] == ':') {
    int length = 0;
    sscanf(url + path_at, ":%15[0-9]%n", port, &length);
    path_at += length;
  }
  const char *path = url[path_at] == '/' ? url + path_at : "/";
  char *request = NULL;
  if (asprintf(&request,
               "%s %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
               method, path, host, port, body == NULL ? 0 : strlen(body),
               body == NULL ? "" : body) < 0)
    return answer;
  int link = connect_to(host, port);
  char *text = link >= 0 && send_all(link, request) ? receive_all(link) : NULL;
  if (link >= 0)
    close(link);
  free(request);
  char *end = text == NULL ? NULL : strstr(text, "\r\n\r\n");
  if (end != NULL && sscanf(text, "HTTP/1.%*d %d", &answer.status) == 1) {
    end[2] = 0;
    answer.location = header_value(text, "location");
    answer.body = strdup(end + 4);
  }
  free(text);
  return answer;
}

void web_answer_free(web_answer *answer) {
  free(answer->location);
  free(answer->body);
  *answer = (web_answer){0};
}

static void percent_encode(const char *text, char *room, size_t size) {
  size_t length = 0;
  for (; *text != 0 && length + 4 < size; text++) {
    if (isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL)
      room[length++] = *text;
    else
      length += (size_t)sprintf(room + length, "%%%02X", (unsigned char)*text);
  }
  room[length] = 0;
}

char *browser_sign_in(const char *url, const char *email) {
  char person[512], *full = NULL;
  percent_encode(email, person, sizeof person);
  if (asprintf(&full, "%s%cuser=%s", url, strchr(url, '?') == NULL ? '?' : '&', person) < 0)
    return NULL;
  web_answer page = web_request("GET", full, NULL);
  free(full);
  char *callback = NULL;
  if (page.status >= 300 && page.status < 400) {
    callback = page.location;
    page.location = NULL;
  }
  web_answer_free(&page);
  return callback;
}
