/* One HTTP request: from the JSON of holdfast_next() to libcurl's options, and from the response to
 * the JSON of holdfast_complete(). All copies of headers and bodies are zeroed before they are
 * released. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#if LIBCURL_VERSION_NUM < 0x075500
#error "libcurl 7.85 or newer is needed (CURLOPT_PROTOCOLS_STR)"
#endif

/* ---- the request ---- */

static bool add_line(hfh_transfer *transfer, const char *line) {
  struct curl_slist *grown = curl_slist_append(transfer->headers, line);
  if (grown != NULL)
    transfer->headers = grown;
  return grown != NULL;
}

/* Adds "name: value". For an empty value, libcurl expects "name;". A line end in either would start
 * another header. */
static bool add_header(hfh_transfer *transfer, const char *name, const char *value) {
  if (value == NULL || strpbrk(value, "\r\n") != NULL || strpbrk(name, "\r\n:") != NULL)
    return false;
  size_t size = strlen(name) + strlen(value) + 3; /* asprintf() would leave copies in the heap */
  char *line = malloc(size);
  if (line == NULL)
    return false;
  snprintf(line, size, "%s%s%s", name, *value == 0 ? ";" : ": ", value);
  bool added = add_line(transfer, line);
  hfh_secret_free(line);
  return added;
}

static bool add_headers(hfh_transfer *transfer) {
  bool has_type = false, fine = true;
  const char *name;
  json_t *value;
  json_object_foreach(json_object_get(transfer->request, "headers"), name, value) {
    has_type = has_type || strcasecmp(name, "content-type") == 0;
    fine = fine && add_header(transfer, name, json_string_value(value));
  }
  /* A name with a colon and no value removes the header that libcurl would add: "Expect", which
   * waits for "100 Continue", and the default "Content-Type" of forms. */
  return fine && add_line(transfer, "Expect:") && (has_type || add_line(transfer, "Content-Type:"));
}

static const json_t *body_of(const hfh_transfer *transfer) {
  return json_object_get(transfer->request, "body");
}

/* Passes the body to libcurl. With CURLOPT_POSTFIELDS instead, libcurl could rewind the body and
 * would repeat the request by itself when a reused connection closes without a response. */
static size_t send_body(char *room, size_t size, size_t count, void *context) {
  hfh_transfer *transfer = context;
  const json_t *body = body_of(transfer);
  size_t length = json_string_length(body) - transfer->sent;
  if (length > size * count)
    length = size * count;
  if (length > 0)
    memcpy(room, json_string_value(body) + transfer->sent, length);
  transfer->sent += length;
  return length;
}

/* ---- the response ---- */

static bool make_room(hfh_transfer *transfer, size_t needed) {
  if (needed <= transfer->capacity)
    return true;
  size_t capacity = transfer->capacity < 4096 ? 4096 : transfer->capacity;
  while (capacity < needed)
    capacity *= 2;
  char *grown = malloc(capacity); /* realloc would leave the old bytes in memory */
  if (grown == NULL)
    return false;
  if (transfer->response != NULL) {
    memcpy(grown, transfer->response, transfer->length);
    hfh_zero(transfer->response, transfer->length);
    free(transfer->response);
  }
  transfer->response = grown;
  transfer->capacity = capacity;
  return true;
}

static size_t receive(char *bytes, size_t size, size_t count, void *context) {
  hfh_transfer *transfer = context;
  size_t length = size * count;
  if (length > transfer->limit - transfer->length ||
      !make_room(transfer, transfer->length + length))
    return CURL_WRITEFUNC_ERROR;
  memcpy(transfer->response + transfer->length, bytes, length);
  transfer->length += length;
  return length;
}

/* Notes where the headers end. To libcurl an answer that breaks off before is one without a body.
 */
static size_t note_header(char *bytes, size_t size, size_t count, void *context) {
  hfh_transfer *transfer = context;
  size_t length = size * count;
  if (length >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
    transfer->has_headers = false; /* 100 Continue came before */
  else if (length > 0 && (bytes[0] == '\r' || bytes[0] == '\n'))
    transfer->has_headers = true;
  return length;
}

/* Opens sockets so that programs which the host starts do not inherit them. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to) {
  (void)context;
  (void)purpose;
#ifdef SOCK_CLOEXEC
  return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
#else
  curl_socket_t made = socket(to->family, to->socktype, to->protocol);
  if (made != CURL_SOCKET_BAD)
    fcntl(made, F_SETFD, FD_CLOEXEC);
  return made;
#endif
}

static bool configure(hfh_transfer *transfer, const hfh_options *options) {
  const json_t *request = transfer->request;
  const char *method = json_string_value(json_object_get(request, "method"));
  const char *url = json_string_value(json_object_get(request, "url"));
  json_int_t timeout = json_integer_value(json_object_get(request, "timeout_ms"));
  char agent[64];
  if (method == NULL || url == NULL)
    return false;
  snprintf(agent, sizeof agent, "holdfast/%s", holdfast_version());
  if (timeout <= 0 || timeout > 3600000)
    timeout = 3600000;
  int64_t connect_timeout = options->connect_timeout_ms;
  if (connect_timeout > timeout)
    connect_timeout = timeout;
  CURL *curl = transfer->curl;
  bool fine = true;
#define SET(option, value) fine = fine && curl_easy_setopt(curl, (option), (value)) == CURLE_OK
  SET(CURLOPT_PRIVATE, transfer);
  SET(CURLOPT_NOSIGNAL, 1L);
  /* A libcurl without TLS knows neither https nor its options. */
  bool is_plain = strncasecmp(url, "http://", 7) == 0;
  SET(CURLOPT_PROTOCOLS_STR, is_plain ? "http" : "https");
  SET(CURLOPT_FOLLOWLOCATION, 0L);
  SET(CURLOPT_URL, url);
  SET(CURLOPT_HTTPHEADER, transfer->headers);
  SET(CURLOPT_USERAGENT, options->user_agent == NULL ? agent : options->user_agent);
  SET(CURLOPT_ACCEPT_ENCODING, ""); /* all encodings that libcurl supports */
  SET(CURLOPT_TIMEOUT_MS, (long)timeout);
  SET(CURLOPT_CONNECTTIMEOUT_MS, (long)connect_timeout);
  SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  SET(CURLOPT_WRITEFUNCTION, receive);
  SET(CURLOPT_WRITEDATA, transfer);
  SET(CURLOPT_HEADERFUNCTION, note_header);
  SET(CURLOPT_HEADERDATA, transfer);
#if LIBCURL_VERSION_NUM >= 0x075700
  SET(CURLOPT_QUICK_EXIT, 1L); /* stopping does not wait for the resolver */
#endif
  if (!is_plain)
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* or newer */
  /* libcurl has two defaults, a file and a folder. One option alone would leave the other one. */
  if (options->ca_file != NULL || options->ca_path != NULL) {
    SET(CURLOPT_CAINFO, options->ca_file);
    SET(CURLOPT_CAPATH, options->ca_path);
  }
  if (options->pinned_public_key != NULL)
    SET(CURLOPT_PINNEDPUBLICKEY, options->pinned_public_key);
  if (options->proxy != NULL)
    SET(CURLOPT_PROXY, options->proxy);
  if (strcmp(method, "HEAD") == 0) {
    SET(CURLOPT_NOBODY, 1L);
  } else {
    if (json_is_string(body_of(transfer)) || strcmp(method, "POST") == 0) {
      SET(CURLOPT_POST, 1L);
      SET(CURLOPT_READFUNCTION, send_body);
      SET(CURLOPT_READDATA, transfer);
      SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)json_string_length(body_of(transfer)));
    }
    SET(CURLOPT_CUSTOMREQUEST, method);
  }
#undef SET
  return fine;
}

hfh_transfer *hfh_transfer_new(json_t *request, const hfh_options *options) {
  hfh_transfer *transfer = calloc(1, sizeof *transfer);
  if (transfer == NULL)
    return NULL;
  transfer->request = json_incref(request);
  transfer->limit = (size_t)options->body_limit;
  transfer->curl = curl_easy_init();
  if (transfer->curl != NULL && add_headers(transfer) && configure(transfer, options))
    return transfer;
  hfh_transfer_free(transfer);
  return NULL;
}

void hfh_transfer_free(hfh_transfer *transfer) {
  if (transfer == NULL)
    return;
  curl_easy_cleanup(transfer->curl); /* first, because it points to the members below */
  for (struct curl_slist *header = transfer->headers; header != NULL; header = header->next)
    hfh_zero(header->data, strlen(header->data));
  curl_slist_free_all(transfer->headers);
  json_decref(transfer->request);
  if (transfer->response != NULL)
    hfh_zero(transfer->response, transfer->length);
  free(transfer->response);
  free(transfer);
}

/* ---- the completion ---- */

static const char *unreachable(CURL *curl) {
  long number = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
  switch (number) {
  case ENETUNREACH:
  case ENETDOWN:
  case EHOSTUNREACH:
  case EHOSTDOWN:
  case EADDRNOTAVAIL:
    return "offline";
  case ETIMEDOUT:
    return "timeout";
  default:
    return "refused";
  }
}

/* The connection broke. When it was new and brought nothing, what listens there does not speak
 * HTTP. A connection that was kept may just have reached its end. */
static const char *broken(CURL *curl) {
  long opened = 0;
  long received = 0;
  long number = 0;
  curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &opened);
  curl_easy_getinfo(curl, CURLINFO_HEADER_SIZE, &received);
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
  bool by_peer = number == 0 || number == ECONNRESET || number == EPIPE;
  return opened > 0 && received == 0 && by_peer ? "refused" : "offline";
}

static const char *error_of(CURL *curl, CURLcode result) {
  switch (result) {
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_RESOLVE_PROXY:
    return "dns";
  case CURLE_COULDNT_CONNECT:
    return unreachable(curl);
  case CURLE_OPERATION_TIMEDOUT:
    return "timeout";
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CIPHER:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    return "tls";
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
  case CURLE_GOT_NOTHING:
    return broken(curl);
  case CURLE_SEND_FAIL_REWIND: /* a kept connection ended, and libcurl would have sent again */
  case CURLE_PARTIAL_FILE:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    return "offline"; /* the connection broke */
  default:
    return "refused"; /* an invalid URL, a body over the limit, not HTTP */
  }
}

/* The headers that the core reads. libcurl searches its list for each name; to go through a list of
 * thousands would take it time that is quadratic. */
static const char *const read_headers[] = {"date", "age", "retry-after", "content-range"};

static json_t *response_headers(CURL *curl) {
  json_t *headers = json_object();
  struct curl_header *header;
  for (size_t i = 0; i < sizeof read_headers / sizeof *read_headers; i++)
    if (curl_easy_header(curl, read_headers[i], 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
      /* A value that is not UTF-8 is left out. */
      (void)json_object_set_new(headers, read_headers[i], json_string(header->value));
  return headers;
}

/* The body as a JSON string; null when it is not UTF-8 or holds a NUL. */
static json_t *text_of(const char *bytes, size_t length) {
  if (length == 0)
    return json_string("");
  json_t *text = memchr(bytes, 0, length) == NULL ? json_stringn(bytes, length) : NULL;
  return text == NULL ? json_null() : text;
}

/* As text, for the request that it completes. Takes over `completion`. */
static char *completed(const json_t *request, json_t *completion) {
  char *text = NULL;
  if (json_object_set(completion, "id", json_object_get(request, "id")) == 0)
    text = json_dumps(completion, JSON_COMPACT);
  json_decref(completion);
  return text;
}

char *hfh_transfer_completion(const hfh_transfer *transfer, CURLcode result) {
  if (result != CURLE_OK)
    return hfh_failure(transfer->request, error_of(transfer->curl, result));
  if (!transfer->has_headers)
    return hfh_failure(transfer->request, "offline");
  long status = 0;
  curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
  return completed(transfer->request, json_pack("{s:i, s:o, s:o}", "status", (int)status, "headers",
                                                response_headers(transfer->curl), "body",
                                                text_of(transfer->response, transfer->length)));
}

char *hfh_failure(const json_t *request, const char *error) {
  return completed(request, json_pack("{s:s}", "error", error));
}
