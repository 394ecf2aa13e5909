/*
 * holdfast_http.h - the network for a host that has none of its own: a driver for holdfast.h, over
 * libcurl.
 *
 * holdfast_http_start() starts one worker thread that waits for work, polls, sends the requests
 * (several at once, http and https, no redirects followed) and completes them. The host keeps
 * calling holdfast.h as before and takes the events from holdfast_http_next(), on a thread of its
 * own. Nothing of the host's is ever called by the driver itself.
 *
 * While a driver runs, the host must not call holdfast_poll(): each request and each one-time event
 * is handed out once and would reach the wrong one of the two.
 *
 * The worker calls holdfast_poll() and holdfast_complete(). A key store given to holdfast_open()
 * and a function given to holdfast_log() can thus be called on the worker's thread.
 *
 * The driver does not judge the network: say holdfast_network_set() when the platform tells that it
 * went or came.
 *
 * CONVENTIONS
 *
 * Status     HOLDFAST_* of holdfast.h.
 * Threads    Any thread may call any function at any time.
 * Handles    An opaque token, never dereferenced: one that is stopped, stopped twice or garbage is
 *            answered with HOLDFAST_CLOSED.
 * fork       In a child process every call on an inherited driver answers HOLDFAST_FORKED.
 * Secrets    Requests carry credentials. They are never logged, and the driver's copies of requests
 *            and replies are zeroed before they are released. What libcurl and the TLS library keep
 *            in buffers of theirs is beyond the driver.
 */
#ifndef HOLDFAST_HTTP_H
#define HOLDFAST_HTTP_H

#include "holdfast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A driver: opaque, never dereferenced. */
typedef struct holdfast_http holdfast_http;

/*
 * Start a driver for an open handle; at most one per handle.
 *
 * options, a JSON object, NULL or "" for the defaults:
 *   {"connections":8,            requests under way at once, 1..64; others wait their turn
 *    "connect_timeout_ms":10000, for name, connection and TLS together; never above the request's
 *    "body_limit":33554432,      bytes of one response after decompression, 1..1073741824
 *    "ca_file":"/path"|null,     PEM file of trusted authorities instead of the system's
 *    "ca_path":"/path"|null,     the same as a folder
 *    "proxy":"http://..."|null,  null: what the environment says (https_proxy, no_proxy, ...);
 *                                "": none
 *    "user_agent":"..."}         default: holdfast/VERSION
 *
 * Each request's own `timeout_ms` bounds it as a whole. What went wrong reaches holdfast_complete()
 * as one of
 *   dns        the name could not be resolved
 *   refused    nobody listens there; or the answer was refused here: over the limit, not HTTP
 *   tls        no trusted, encrypted connection came about
 *   timeout    no complete answer in time
 *   offline    no route to there, or the connection broke before the answer was complete
 *   cancelled  the driver was stopped
 *
 * Errors: HOLDFAST_INVALID (options: not an object, an unknown field, a wrong type or value),
 * HOLDFAST_STATE (the handle has a driver), HOLDFAST_CLOSED and HOLDFAST_FORKED (the handle),
 * HOLDFAST_NOMEM, HOLDFAST_INTERNAL (libcurl or a thread would not start). @since 0.1
 */
int32_t holdfast_http_start(holdfast *self, const char *options, holdfast_http **driver);

/*
 * Stop: requests under way are completed with "cancelled" if the handle lives, acknowledgements are
 * handed on, the worker ends, threads waiting in holdfast_http_next() are woken. Returns when the
 * worker has ended, which waits for no network; when called from a function that the worker is
 * inside of (a key store's, the log's) it returns at once and the worker ends after it.
 * Events not yet taken are dropped; those that a user must learn of come again with the next
 * driver. NULL, a stopped or a garbage driver is fine. Close the handle before or after, as you
 * like: a driver whose handle is closed sends nothing more, and still has to be stopped. @since 0.1
 */
void holdfast_http_stop(holdfast_http *driver);

/*
 * The next event, as JSON text (see holdfast_poll()), waiting for it at most timeout_ms (0: not at
 * all, negative: no limit). Each event is handed out once per driver. The caller owns `*event` and
 * releases it with holdfast_http_free(); it is NULL unless HOLDFAST_OK is returned.
 * A `sync_progress` that nobody has taken is replaced by the next one. At most 4096 events are
 * kept; then the oldest are dropped. Errors: HOLDFAST_NOT_FOUND (none came in that time),
 * HOLDFAST_CLOSED (the driver was stopped, or its handle closed and all events taken),
 * HOLDFAST_INVALID (event is NULL), HOLDFAST_FORKED, HOLDFAST_NOMEM. @since 0.1
 */
int32_t holdfast_http_next(holdfast_http *driver, int32_t timeout_ms, char **event);

/*
 * The user has learned of every event up to `seq`: hand {"ack":seq} to the next holdfast_poll(),
 * which follows at once. Without it, events that a user must learn of come again after a restart.
 * Errors: HOLDFAST_INVALID (seq below 0 or above 2^53), HOLDFAST_CLOSED, HOLDFAST_FORKED. @since
 * 0.1
 */
int32_t holdfast_http_ack(holdfast_http *driver, int64_t seq);

/* Zero an event's text and release it. NULL is fine. Not for replies of holdfast.h. @since 0.1 */
void holdfast_http_free(char *event);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_HTTP_H */
