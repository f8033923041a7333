/* SPDX-License-Identifier: MIT
 *
 * holdfast.h: distributed locks on Redis. This file is the whole public API and its manual.
 *
 *     hf_client *client;
 *     hf_hold *hold;
 *     hf_error error;
 *     hf_open("redis://localhost", NULL, &client, &error);
 *     if (hf_acquire(client, "order:42", HF_ACQUIRE(.wait_ms = 5000), &hold, &error) == HF_OK) {
 *         ... work, while hf_is_valid(hold) ...
 *         hf_release(&hold, &error);
 *     }
 *     hf_close(client);
 *
 * Words. A CLIENT is a process's session with its server; one per process is normal. A LOCK is a
 * name. A HOLD is one grant of a lock: proof of having it. The LEASE is how long the server keeps a
 * grant that nobody renews. The DEADLINE is the local, pessimistic moment at which a hold stops
 * being valid: taken on a clock that also runs while the machine sleeps, from before the request
 * was sent, minus an allowance for clocks that run at different rates (1 % of the lease + 2 ms).
 *
 * Threads. Every function may be called from any thread, on the same client and on different ones.
 * A hold may be used and released by another thread than the one that acquired it; but releasing
 * ends it, so no other call may be using that hold at that moment. Calls that wait disable thread
 * cancellation (pthread_cancel) until they return; use an hf_cancel instead.
 *
 * Time. Every call is bounded, whether the server answers, refuses, is silent or is gone: an
 * acquire by what its options allow, an extend by the deadline of its hold, all others by the
 * client's call_timeout_ms. Time for which the machine sleeps may come on top.
 *
 * fork(). A client belongs to the process that opened it. In a child, every call returns
 * HF_EFORKED, hf_is_valid() says false; hf_release() and hf_close() free the child's copies, of
 * memory and descriptors, without touching the parent's locks. Only async-signal-safe functions are
 * safe between fork() and exec() in a program with threads; ours are not needed there: descriptors
 * are close-on-exec.
 *
 * Memory. Nothing here aborts or prints. Where memory runs out, the call says HF_ENOMEM and the
 * client stays usable. Strings that you pass are copied.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

typedef struct hf_client hf_client;
typedef struct hf_hold hf_hold;
typedef struct hf_cancel hf_cancel;

/* ---- Limits ---------------------------------------------------------------------------------- */

#define HF_NAME_MAX     1024      /* bytes of key prefix + lock name                              */
#define HF_LEASE_MIN_MS 100       /* the shortest lease                                           */
#define HF_MS_MAX       604800000 /* the longest duration that any option takes: one week         */
#define HF_LINKS_MAX    8         /* command connections of one client                            */
#define HF_PENDING_MAX  16384     /* requests that may be unanswered on one connection            */

/* ---- Status ---------------------------------------------------------------------------------- */

/* What a call came to, named by what there is to do about it. The values are frozen; new ones are
 * only appended. "Not held": the caller has nothing; should a message that was lost on the way
 * still take the lock, the client gives it back in the background. */
#define HF_STATUS_MAP(X)                                                                     \
    X(OK, 0, "done")                                                                         \
    X(EBUSY, 1, "somebody else holds the lock; not held")                                    \
    X(ELOST, 2, "the hold ended before its release; other work may have overlapped with it") \
    X(EUNKNOWN, 3, "sent, but not answered in time; cleaned up in the background")           \
    X(EUNAVAILABLE, 4, "no server could serve the call in time")                             \
    X(ECANCELLED, 5, "cancelled; not held")                                                  \
    X(EINVAL, 6, "bad argument; nothing was done")                                           \
    X(EDENIED, 7, "the server refuses our credentials or permissions")                       \
    X(ESERVER, 8, "the server refuses the request and would refuse it again")                \
    X(ENOMEM, 9, "out of memory; what was begun is cleaned up")                              \
    X(EDEADLK, 10, "a call that waits was made from inside a callback")                      \
    X(ECLOSED, 11, "the client is closed")                                                   \
    X(EFORKED, 12, "the client belongs to the parent process")                               \
    X(EINTERNAL, 13, "a fault of this library; please report it")

#define HF_STATUS_ENUM(name, value, text) HF_##name = (value),
typedef enum hf_status { HF_STATUS_MAP(HF_STATUS_ENUM) } hf_status;

/* The details of a failure, for people. Owned by the caller; every call that takes one also takes
 * NULL. It is filled on every return: status HF_OK and an empty text when all went well. */
typedef struct hf_error {
    hf_status status;
    char text[252];
} hf_error;

HF_API const char *hf_status_name(hf_status status); /* "HF_EBUSY"; never NULL, static storage */
HF_API const char *hf_status_text(hf_status status); /* the texts above; the same              */
HF_API const char *hf_version(void);                 /* "0.1.0" of the library that is loaded  */

/* ---- Client ---------------------------------------------------------------------------------- */

typedef enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARNING, HF_LOG_ERROR } hf_log_level;

/* Receives one line without a line break. Runs on a thread that is inside a call of this library or
 * on the library's own, with no library lock held. It should return soon, because other calls of
 * the client may wait for it. Calls that wait return HF_EDEADLK in here. */
typedef void hf_log_function(void *arg, hf_log_level level, const char *text);

/* How bytes get to a server. Leave it out to use sockets; give your own to test without a network,
 * or to go through something else. The functions are called one at a time per client and must not
 * block or call this library. Where a function returns int, a negative errno means failure. */
typedef struct hf_endpoint {
    const char *host; /* NULL for a unix socket */
    int port;
    const char *path; /* of a unix socket, else NULL */
} hf_endpoint;

enum { HF_WAIT_READ = 1, HF_WAIT_WRITE = 2 };

typedef struct hf_transport {
    size_t size; /* sizeof(hf_transport) */
    void *arg;
    /* Begins to connect; sets *connection (passed to the other functions) and returns 0. */
    int (*open)(void *arg, const hf_endpoint *endpoint, void **connection);
    /* 0 when connected; while that takes time, what to wait for on the descriptor before asking
     * again: HF_WAIT_READ, HF_WAIT_WRITE or both; a negative errno when it failed. */
    int (*connected)(void *connection);
    /* The descriptor to wait on; once connected, for reading, and for writing while bytes are held
     * back. It may change until connected. -1: there is none, then the library looks for bytes
     * after each write and every few milliseconds while it expects some. */
    int (*descriptor)(void *connection);
    /* Like read(2) and write(2) on a non-blocking descriptor: a count, 0 at the end of the stream
     * (read), -EAGAIN when nothing can be moved now, another negative errno on failure. */
    int (*read)(void *connection, void *bytes, size_t capacity);
    int (*write)(void *connection, const void *bytes, size_t count);
    void (*close)(void *connection);
} hf_transport;

/* Zero means default. Set `size`, or use HF_CLIENT(.prefix = "shop:", ...). */
typedef struct hf_client_options {
    size_t size;
    const char *prefix;         /* put before every lock name; default none                      */
    int64_t connect_timeout_ms; /* for one attempt to connect; default 1 000                     */
    int64_t reply_timeout_ms;   /* silence after which a connection counts as dead; default 1 000 */
    int64_t call_timeout_ms;    /* bound of one call (see hf_acquire); default 3 000             */
    int64_t max_lease_ms;       /* the longest lease that an acquire may ask for; default 60 000 */
    int links;                  /* command connections, opened when needed; default 4            */
    hf_log_function *log;       /* default: no log                                               */
    void *log_arg;
    const hf_transport *transport; /* default: sockets; must outlive the client                   */
} hf_client_options;

#define HF_CLIENT(...) (&(hf_client_options){.size = sizeof(hf_client_options), __VA_ARGS__})

/* Opens a client. No byte is sent: connections are made when they are first needed, so this works
 * while the server is still down.
 *
 *     redis://[[user]:password@]host[:port][/database]      IPv6 addresses in [brackets]
 *     unix://[[user]:password@]/path/to/socket[?db=database]
 *
 * Special characters in user and password are written as %XX. options may be NULL.
 * HF_OK: *client is yours, end it with hf_close(). Otherwise *client is NULL: HF_EINVAL (the text
 * points at the character of the URL), HF_ENOMEM (also when no thread can be started). */
HF_API hf_status hf_open(const char *url, const hf_client_options *options, hf_client **client,
                         hf_error *error);

/* Ends a client. Calls that wait in other threads return HF_ECLOSED. Holds that are still live are
 * released, for call_timeout_ms together; those left unanswered end with their lease. The hf_hold
 * pointers stay yours: each must still go to hf_release(), which then says HF_ECLOSED.
 * HF_OK, HF_EUNKNOWN (some release was not answered), HF_EFORKED (freed in a child) or, doing
 * nothing, HF_EDEADLK from inside a callback. NULL is fine. */
HF_API hf_status hf_close(hf_client *client);

/* ---- Lock ------------------------------------------------------------------------------------ */

/* Zero means default: one try, lease of 10 s. Set `size`, or use HF_ACQUIRE(.wait_ms = 500). */
typedef struct hf_acquire_options {
    size_t size;
    size_t name_length; /* bytes in the name; 0: up to its NUL. For names that contain NUL bytes */
    int64_t lease_ms; /* HF_LEASE_MIN_MS to max_lease_ms of the client; default 10 000            */
    int64_t wait_ms;  /* how long to wait for a lock that is held; 0: one try, -1: no limit       */
    int64_t retry_interval_ms; /* pause between tries; default 100; less than 10 counts as 10 */
    int64_t max_retries; /* tries after the first; 0: no limit if wait_ms is given, else none */
    hf_cancel *cancel;   /* see hf_cancel_new(); default none                                 */
} hf_acquire_options;

#define HF_ACQUIRE(...) (&(hf_acquire_options){.size = sizeof(hf_acquire_options), __VA_ARGS__})

/* Acquires the lock `name`: any bytes but the empty name; prefix + name at most HF_NAME_MAX bytes
 * and not beginning with "hf:", where the library keeps its own keys. The lock is the plain string
 * key prefix + name, so programs that use SET NX PX on that key take part.
 *
 * Tries once, or again until a limit is reached: wait_ms or max_retries, whichever comes first.
 * With wait_ms > 0 the call returns within wait_ms, whatever the server does. Otherwise each try is
 * bounded by call_timeout_ms. What may pass is tried again (lock held, server gone, loading,
 * read-only, out of memory); what cannot pass returns at once. Waiting is not in order of arrival.
 *
 * HF_OK: *hold is yours; end it with hf_release() or hf_release_nowait(). Otherwise *hold is NULL:
 *   HF_EBUSY        somebody else held it all the time
 *   HF_EUNKNOWN     a request was sent and no answer came in time. Should the server have granted
 *                   it, the client gives it back in the background, at the latest when it expires
 *   HF_EUNAVAILABLE no server, or one that cannot serve now; the text says why
 *   HF_ECANCELLED   hf_cancel_fire(); a grant that was under way is given back
 *   HF_EDENIED, HF_ESERVER (such as a key of another type at the name), HF_EINVAL, HF_ENOMEM,
 *   HF_EDEADLK, HF_ECLOSED, HF_EFORKED, HF_EINTERNAL */
HF_API hf_status hf_acquire(hf_client *client, const char *name, const hf_acquire_options *options,
                            hf_hold **hold, hf_error *error);

/* Releases and frees the hold and clears the pointer, whatever the outcome; waits at most
 * call_timeout_ms. NULL and a pointer to NULL do nothing and return HF_OK.
 *   HF_OK       released: the hold was valid to the end
 *   HF_ELOST    it had ended before: expired, deleted by somebody, or the server forgot it
 *   HF_EUNKNOWN, HF_EUNAVAILABLE, HF_EDENIED, HF_ESERVER, HF_ENOMEM   the server did not confirm;
 *               the client goes on trying in the background until the lease is over
 *   HF_ECLOSED, HF_EFORKED   freed; hf_close() has released it; it is the parent's
 * The one exception: HF_EDEADLK from inside a callback, where nothing is done and the hold stays.
 */
HF_API hf_status hf_release(hf_hold **hold, hf_error *error);

/* Like hf_release(), but does not wait for the answer: the request is written to the connection
 * before the call returns (if the connection is down or full, as soon as it can be). The next
 * acquire of the same name by this client comes after it. HF_OK, HF_ELOST if the deadline had
 * already passed, HF_ECLOSED, HF_EFORKED. */
HF_API hf_status hf_release_nowait(hf_hold **hold);

/* Renews: makes the lease last at least lease_ms (0: the lease it was acquired with) from now on.
 * It never shortens it. Lost connections and silence are retried until the deadline.
 *   HF_OK      the new deadline stands
 *   HF_ELOST   the hold has ended; the hold must still be released, which will say the same
 *   HF_EUNAVAILABLE, HF_EDENIED, HF_ESERVER, HF_EINVAL, ...   not renewed; still valid until the
 *              old deadline */
HF_API hf_status hf_extend(hf_hold *hold, int64_t lease_ms, hf_error *error);

/* What is known locally, without any message. Never claims too much: once the deadline has passed
 * these say 0 and false for good, also after the process was stopped or the machine slept. */
HF_API int64_t hf_remaining_ms(const hf_hold *hold); /* 0 for NULL */
HF_API bool hf_is_valid(const hf_hold *hold);        /* false for NULL */

/* ---- Cancellation ---------------------------------------------------------------------------- */

/* A cancel is fired once and then stays fired: acquires that were given it return HF_ECANCELLED,
 * those that wait now and those that come later. One cancel may serve many calls and clients.
 * hf_cancel_fire() may be called from any thread, but not from a signal handler.
 * hf_cancel_free() must come after the last call that was given it has returned. A cancel is not
 * for use in a child after fork(). */
HF_API hf_cancel *hf_cancel_new(void); /* NULL: out of memory */
HF_API void hf_cancel_fire(hf_cancel *cancel);
HF_API void hf_cancel_free(hf_cancel *cancel); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
