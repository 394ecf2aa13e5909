/*
 * holdfast_http.h - the network for a host that has none of its own: a driver for holdfast.h, over
 * libcurl.
 *
 * holdfast_http_start() starts one worker thread that takes the handle's requests, sends them
 * (several at once, http and https, no redirects followed) and completes them. The host keeps
 * calling holdfast.h as before, and takes everything else with
 * holdfast_next(self, HOLDFAST_NEXT_NEWS, ...).
 *
 * A host with an event loop (GLib, libuv, Qt, libevent) needs no thread: it starts the driver with
 * {"thread":false}, watches holdfast_http_fd() for reading, and calls holdfast_http_run() when it
 * is readable; and it watches holdfast_wake_fd(self, HOLDFAST_NEXT_NEWS) for the rest. Below, "the
 * worker" is then holdfast_http_run().
 *
 * While a driver runs, the host must not ask for requests: each is given only once, and the driver
 * would miss it.
 *
 * The worker calls holdfast_next() and holdfast_complete(). A key store given to holdfast_open()
 * and a function given to holdfast_log() can thus be called on the worker's thread, or on the one
 * that calls holdfast_http_run().
 *
 * The driver does not detect the state of the network: call holdfast_network_report() when the
 * platform reports a change.
 *
 * CONVENTIONS
 *
 * Status     HOLDFAST_* of holdfast.h.
 * Threads    Any thread may call any function at any time.
 * Handles    A driver is an opaque token, never dereferenced. A stopped or invalid one is answered
 *            with HOLDFAST_CLOSED.
 * fork       In a child process every call on an inherited driver answers HOLDFAST_FORKED.
 * Secrets    Requests carry credentials. They are never logged, and the driver's copies of requests
 *            and replies are zeroed before they are released. The driver cannot zero the buffers of
 *            libcurl and the TLS library.
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
 *   {"connections":8,            requests in flight at once, 1..64; others wait
 *    "connect_timeout_ms":10000, for name, connection and TLS together; never above the request's
 *    "body_limit":8388608,       bytes of one response after decompression, 1..1073741824
 *    "ca_file":"/path"|null,     PEM file of trusted authorities; with it or ca_path, the
 *                                system's authorities are not trusted
 *    "ca_path":"/path"|null,     the same as a folder, as `openssl rehash` prepares it
 *    "pinned_public_key":"sha256//...="|null,
 *                                the server's certificate must have one of these public keys
 *                                (SHA-256 in base64, several joined by ";"), beside being trusted
 *    "proxy":"http://..."|null,  null: from the environment (https_proxy, no_proxy, ...);
 *                                "": none
 *    "thread":true,              false: no thread, see holdfast_http_run(). Linux only.
 *    "log_level":0..3|null,      lines of the library's log up to this level (0 error, 1 warning,
 *                                2 info, 3 debug) go to the standard error; in place of a function
 *                                that the host gave to holdfast_log()
 *    "user_agent":"..."}         default: holdfast/VERSION
 *
 * TLS is of version 1.2 or newer. Each request's `timeout_ms` limits its total time. When a request
 * fails, holdfast_complete() receives one of
 *   dns        the name could not be resolved
 *   refused    nothing listens there; or the driver rejects the response: over the limit, not HTTP
 *   tls        no trusted, encrypted connection could be made
 *   timeout    no complete response in time
 *   offline    no route, or the connection broke before the response was complete
 *   cancelled  the driver was stopped
 *
 * null as the value of an option is its default.
 * Errors: HOLDFAST_INVALID (options: not an object, an unknown field, a wrong type or value, a
 * ca_file or ca_path that cannot be read, or "thread":false where there is no epoll),
 * HOLDFAST_STATE (the handle has a driver), HOLDFAST_CLOSED and HOLDFAST_FORKED (the handle),
 * HOLDFAST_NOMEM, HOLDFAST_INTERNAL (libcurl or a thread would not start).
 */
int32_t holdfast_http_start(holdfast *self, const char *options, holdfast_http **driver);

/*
 * For a driver with "thread":false: do what is to be done now, without waiting for the network, a
 * user or a timer: take requests, send, receive, complete. Call it on the loop's thread when
 * holdfast_http_fd() is readable. A call that has nothing to do does no harm.
 * timeout_ms, if not NULL, receives the time after which the next call is due, at most 30000. The
 * descriptor is readable then, too: a loop that watches it needs no timer.
 * The calls of holdfast.h in it can take their usual time: up to 5 s while another process holds a
 * lock. libcurl may resolve names on short-lived threads of its own.
 * Errors: HOLDFAST_CLOSED (the driver was stopped or its handle is closed: remove the watch, stop
 * the driver; timeout_ms is -1), HOLDFAST_BUSY (another thread is in
 * this call, or a function of the key store or the log made it; timeout_ms is -1), HOLDFAST_STATE
 * (the driver has a thread), HOLDFAST_FORKED.
 */
int32_t holdfast_http_run(holdfast_http *driver, int32_t *timeout_ms);

/*
 * The descriptor of a driver with "thread":false, for an event loop: readable while
 * holdfast_http_run() has something to do, from the start on. It stays the same until the driver is
 * stopped. Watch it for reading (level-triggered, the default of poll() and of GLib, libuv and Qt);
 * never read, write or close it. Remove the watch before holdfast_http_stop(), which closes it.
 * -1 for a driver with a thread, a stopped or invalid one, and in a child process.
 */
int32_t holdfast_http_fd(holdfast_http *driver);

/*
 * Stop a driver. Requests in flight are completed with "cancelled" if the handle is open, and the
 * worker ends. The call returns when the worker has ended, which never waits for the network.
 * Called from a function of the key store or the log, or while another thread is in
 * holdfast_http_run(), it returns at once and the worker ends afterwards.
 * NULL, a stopped or an invalid driver is ignored. The handle may be closed before or after: a
 * driver whose handle is closed sends nothing more, and must still be stopped.
 */
void holdfast_http_stop(holdfast_http *driver);

/*
 * The whole library in one function, for bindings: it needs no structure, no callback, no output
 * parameter and no other function but holdfast_http_free(). A handle is a number, 0 before "open";
 * (holdfast *)(intptr_t)app is the same handle for holdfast.h. `request` is a JSON object, NULL or
 * "" for {}. The reply is never NULL: a JSON object, {"error":{...}} on failure, as in holdfast.h.
 * The caller owns it and releases it with holdfast_http_free().
 *
 * `operation` is one of holdfast_call(), except "complete", which the driver calls, or:
 *   open        Opens a handle and starts its driver. The request is the configuration, with the
 *               key store "file", {"kind":"host"} (the host answers key_next, below) or
 *               {"kind":"secret_service","name":"com.example.app"}
 *               (the desktop's keyring, over libsecret; `name` finds the keys, one for each
 *               data_dir: a name of another folder's keys is refused), and has one more field,
 *               "http"?: the options of holdfast_http_start(), except "thread". Why the keyring
 *               gives no key stands in the message of keystore.locked and keystore.failed, and in a
 *               line of the log: level 1, "secret service: ...". An address of Supabase's dashboard
 *               as the backend's url is refused. The handle must be 0: an open one is not
 *               opened again. Another "open" with the same data_dir makes a second handle, which
 *               is safe.
 *               -> the reply of holdfast_open(), and "app":n. With the key store "host" the first
 *               screen is null, and comes with the first "next".
 *   key_next    {"timeout_ms":n=-1} -> {"key_request":{"id","operation":"load|save|erase","name",
 *               "protection":"device|biometric"|null,"value":"base64"|null}|null,"closed":bool}.
 *               With the key store "host": waits for what a call needs of the host's keychain, as
 *               the functions of holdfast_keystore. protection and value: of a save. Show no prompt
 *               for it: prompt before session_unlock, and answer the load of "biometric" that comes
 *               in it with the key that the user has released. It is not logged, as it has a key.
 *   key_complete  {"id":n,"result":"ok|not_found|locked|cancelled|failed|lockout|lockout_permanent|
 *               not_enrolled|invalidated|unavailable","value":"base64"?} -> {"accepted":bool}.
 *               Answers a key request within 10 s; then it has failed. value: the key that a load
 *               found. Two threads are needed: the one that answers makes no other call, which
 *               would wait for itself (handle.busy).
 *   next        {"timeout_ms":n=-1} -> what holdfast_next() gives to HOLDFAST_NEXT_NEWS, waiting up
 *               to timeout_ms (negative: no limit). One thread at a time. With the key store "host"
 *               it gives wake_in_ms after 1 s while a failure of the storage keeps back the first
 *               screen: ask again. handle.closed: the handle is closed or being closed
 *   close       {} -> {}. holdfast_http_stop() and holdfast_close(), from any thread, also again,
 *               and while others wait in next
 */
char *holdfast_http_call(int64_t app, const char *operation, const char *request);

/* Zero the text of a reply of holdfast_http_call(), and release it. A text from
 * malloc() may be released with it too, as a request with a password. NULL is ignored. Not for
 * replies of holdfast.h. */
void holdfast_http_free(char *text);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_HTTP_H */
