/* SPDX-License-Identifier: MIT
 *
 * holdfast.h: distributed locks on Redis. This file is the whole public API of locks, and its
 * manual. What stands beside them, on the same client: holdfast_ids.h (global ids),
 * holdfast_stock.h (stock that cannot be oversold), holdfast_store.h (writes that are checked
 * against a hold, a fence or a version).
 *
 *     hf_client *client;
 *     hf_hold *hold;
 *     hf_error error;
 *     hf_open("redis://localhost", NULL, &client, &error);
 *     if (hf_acquire(client, "order:42", HF_ACQUIRE(.wait_ms = 5000), &hold, &error) == HF_OK) {
 *         ... work, while hf_is_valid(hold); write with hf_fence(hold) ...
 *         hf_release(&hold, &error);
 *     }
 *     hf_close(client);
 *
 * Words. A CLIENT is a process's session with its server, or with several that are a QUORUM (see
 * hf_open()); one per process is normal. A LOCK is a name. An OWNER is who may re-enter a lock: the
 * calling thread, unless you name one. A HOLD is one grant of a lock: proof of having it. The LEASE
 * is how long the server keeps a grant that nobody renews; the library renews it for as long as you
 * hold (the WATCHDOG), unless told not to. The DEADLINE is the local, pessimistic moment at which a
 * hold stops being valid: taken on a clock that also runs while the machine sleeps, from before the
 * request was sent, minus an allowance for clocks that run at different rates (1 % of the lease and
 * 2 ms, see drift_ppm). A FENCE is a number that grows with every grant of a lock: give it to the
 * store with each write and let it refuse smaller ones, and not even a process that was stopped for
 * an hour can spoil the work of its successor.
 *
 * Threads. Every function may be called from any thread, on the same client and on different ones.
 * A hold may be used and released by another thread than the one that acquired it; but releasing
 * ends it, so no other call may be using that hold at that moment. Calls that wait disable thread
 * cancellation (pthread_cancel) until they return; use an hf_cancel instead.
 *
 * Time. Every call is bounded, whether the server answers, refuses, is silent or is gone: an
 * acquire by what its options allow, an extend by the deadline of its hold, a listing by how much
 * there is, all others by the client's call_timeout_ms. Time for which the machine sleeps may come
 * on top.
 *
 * fork(). A client belongs to the process that opened it. In a child, every call returns
 * HF_EFORKED, hf_is_valid() says false; hf_release() and hf_close() free the child's copies, of
 * memory and descriptors, without touching the parent's locks. Only async-signal-safe functions are
 * safe between fork() and exec() in a program with threads; ours are not needed there: descriptors
 * are close-on-exec. The same holds for a child of _Fork() or clone(), and for one that a signal
 * handler forks in the middle of a call, but there hf_release() and hf_close() free nothing, and
 * the child must not return from the handler: it calls exec() or _exit(). (fork() itself may
 * deadlock in a signal handler, in malloc() of the C library; _Fork() does not.) A child of vfork()
 * shares the memory of its parent and must call nothing of this library.
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
#define HF_VERSION_MINOR 8
#define HF_VERSION_PATCH 0

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

typedef struct hf_client hf_client;
typedef struct hf_hold hf_hold;
typedef struct hf_cancel hf_cancel;
typedef struct hf_observer hf_observer;

/* ---- Limits ---------------------------------------------------------------------------------- */

#define HF_NAME_MAX        1024 /* bytes of key prefix + lock name                              */
#define HF_OWNER_MAX       256  /* bytes of an owner's name                                     */
#define HF_LABEL_MAX       64   /* bytes of a label                                             */
#define HF_REASON_MAX      120  /* bytes of the text that goes with hf_revoke()                 */
#define HF_LEASE_MIN_MS    100  /* the shortest lease                                           */
#define HF_MS_MAX          604800000 /* the longest duration that any option takes: one week         */
#define HF_USER_MAX        256   /* bytes of a user's name at the server                         */
#define HF_PASSWORD_MAX    4096  /* bytes of a password                                          */
#define HF_SIDE_PREFIX_MAX 128   /* see side_prefix                                              */
#define HF_LOCAL_TURNS_MAX 1000  /* see local_turns                                              */
#define HF_LINKS_MAX       8     /* command connections of one client to one server              */
#define HF_SERVERS_MAX     9     /* servers of a quorum                                          */
#define HF_PENDING_MAX     16384 /* requests, but for renewals, that may wait on one connection  */

/* ---- Status ---------------------------------------------------------------------------------- */

/* What a call came to, named by what there is to do about it. The values are frozen; new ones are
 * only appended. "Not held": the caller has nothing; should a message that was lost on the way
 * still take the lock, the client gives it back in the background. */
#define HF_STATUS_MAP(X)                                                                          \
    X(OK, 0, "done")                                                                              \
    X(EBUSY, 1, "somebody else holds the lock; not held")                                         \
    X(ELOST, 2, "the hold ended before its release; other work may have overlapped with it")      \
    X(EUNKNOWN, 3, "sent, but not answered in time; cleaned up in the background")                \
    X(EUNAVAILABLE, 4, "no server could serve the call in time")                                  \
    X(ECANCELLED, 5, "cancelled; not held")                                                       \
    X(EINVAL, 6, "bad argument; nothing was done")                                                \
    X(EDENIED, 7, "the server refuses our credentials or permissions")                            \
    X(ESERVER, 8, "the server refuses the request and would refuse it again")                     \
    X(ENOMEM, 9, "out of memory; what was begun is cleaned up")                                   \
    X(EDEADLK, 10, "a call that waits was made from inside a callback")                           \
    X(ECLOSED, 11, "the client is closed")                                                        \
    X(EFORKED, 12, "the client belongs to the parent process")                                    \
    X(EINTERNAL, 13, "a fault of this library; please report it")                                 \
    X(ENOTHELD, 14, "nobody holds the lock; nothing was done")                                    \
    X(EUNSAFE, 15, "the server was refused: its certificate or its settings are not good enough") \
    X(EMISSING, 16, "there is no such thing; nothing was done")                                   \
    X(ESOLDOUT, 17, "fewer are left than were asked for; nothing was done")                       \
    X(ELIMIT, 18, "one user may not have so many; nothing was done")                              \
    X(EEXPIRED, 19, "the reservation has ended; its units are back in stock")                     \
    X(ESTALE, 20, "somebody came before who counts more; nothing was written")

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
HF_API const char *hf_version(void);                 /* "0.8.0" of the library that is loaded  */

/* ---- Client ---------------------------------------------------------------------------------- */

typedef enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARNING, HF_LOG_ERROR } hf_log_level;

/* Receives one line without a line break. Runs on a thread that is inside a call of this library or
 * on the library's own, with no library lock held. It must return soon: other calls, and renewals,
 * may wait for it. Calls that wait return HF_EDEADLK in here. */
typedef void hf_log_function(void *arg, hf_log_level level, const char *text);

/* How bytes get to a server. Leave it out to use sockets; give your own to test without a network,
 * or to go through something else; TLS, if the URL asks for it, is put on top. The functions are
 * called one at a time per client and must not block or call this library. Where a function returns
 * int, a negative errno means failure, or one of these, which no further attempt will change: */
enum {
    HF_PEER_UNSAFE = -0x10000, /* it is not who it should be: calls say HF_EUNSAFE    */
    HF_PEER_DENIES = -0x10001  /* it does not want to talk to us: they say HF_EDENIED */
};

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
    /* May be NULL. Something about the connection for people: after a failure, why it failed; when
     * connected, how it is protected. NULL: nothing to say. Valid until the next call on it. */
    const char *(*describe)(void *connection);
} hf_transport;

/* How a rediss:// connection is protected. Always TLS 1.2 or newer, and the server must show a
 * certificate for the host name in the URL, signed by somebody whom we trust. Files are PEM.
 * ca_file is read by hf_open(); our own certificate and key are read again for each connection, so
 * that they can be renewed: both in one step, by a rename, or in one file. Zero means default. Set
 * `size`, or use HF_TLS(.ca_file = ...). */
typedef struct hf_tls {
    size_t size;
    const char *ca_file; /* whom to trust; default, if neither is given: the system's store */
    const char *ca_dir;  /* the same, as a folder of hashed names (openssl rehash)          */
    const char *certificate_file; /* our own, with its chain; default: none */
    const char *key_file;    /* its key, not encrypted; default: in certificate_file            */
    const char *server_name; /* expected in the certificate instead of the URL's host; with several
                                servers in all of theirs                                        */
    bool insecure_trust_anybody; /* do not look at the server's certificate at all: then whoever is
                                    on the way can be the server */
} hf_tls;

#define HF_TLS(...) (&(hf_tls){.size = sizeof(hf_tls), __VA_ARGS__})

/* Who we are at the server. */
typedef struct hf_credentials {
    char user[HF_USER_MAX + 1]; /* empty: the server's default user */
    char password[HF_PASSWORD_MAX + 1];
} hf_credentials;

/* Fills in the credentials for a connection that is being made, so that they can change while the
 * client lives; `user` comes filled in from the URL of the server. Runs like the log hook: soon,
 * and no calls that wait. The memory is wiped afterwards. False: there are none; the attempt fails
 * with HF_EDENIED. */
typedef bool hf_credentials_function(void *arg, hf_credentials *credentials);

/* What is looked at when a connection is made, and what to do if it is not as it should be. */
typedef enum hf_check {
    HF_CHECK_DEFAULT, /* as said for each below                                                 */
    HF_CHECK_IGNORE,  /* do not look                                                            */
    HF_CHECK_WARN,    /* log a warning, once for each server process                            */
    HF_CHECK_REFUSE   /* the attempt fails, calls say HF_EUNSAFE (a replica: HF_EUNAVAILABLE, for it
                         may become the primary)                                                */
} hf_check;

/* Zero means default. Set `size`, or use HF_CLIENT(.prefix = "shop:", ...). */
typedef struct hf_client_options {
    size_t size;
    const char *prefix;         /* put before every lock name; default none                      */
    int64_t connect_timeout_ms; /* for one attempt to connect; default 1 000                     */
    int64_t reply_timeout_ms;   /* silence after which a connection counts as dead; default 1 000 */
    int64_t call_timeout_ms;    /* bound of one call (see hf_acquire); default 3 000             */
    int64_t max_lease_ms;       /* the longest lease that an acquire may ask for; default 60 000;
                                   quorum: the same for all clients, and for so long a server has
                                   no vote after a restart; see hf_open(), durable_servers       */
    int links; /* command connections to each server, opened when needed; default 4, with several
                  servers 1                                                                      */
    int local_turns;      /* how often in a row a lock passes between threads of this client without
                             asking the server, see hf_acquire(); default 64, -1: never               */
    hf_log_function *log; /* default: no log                                               */
    void *log_arg;
    const hf_transport *transport; /* default: sockets; must outlive the client                   */
    bool fair;     /* all acquires are fair, see hf_acquire()                            */
    bool own_loop; /* no threads; your loop calls hf_process(): see "Your own loop" */
    const char
        *side_prefix;  /* put before the names of the library's own keys, "hf:...", so that they
                          can be under a prefix of yours; the same for all who share locks. At
                          most HF_SIDE_PREFIX_MAX bytes, no '{'; default none. See docs/wire.md */
    const hf_tls *tls; /* for rediss://; default: as HF_TLS()                           */
    /* Where the password comes from, if it is in no URL; one of these at most, for all servers. */
    const char *password_env;  /* the environment variable that has it; read by hf_open()     */
    const char *password_file; /* the file that has it, up to the first line break; read for each
                                  connection, so that it can change                           */
    hf_credentials_function *credentials; /* a function of yours                              */
    void *credentials_arg;
    hf_check check_eviction; /* maxmemory is set with a policy that may drop locks; default warn  */
    hf_check check_replica;  /* it is a replica; default refuse                                   */
    hf_check check_version;  /* it is older than Redis 6.2; default refuse                        */
    hf_check check_persistence; /* appendonly is off: a restart forgets locks; default warn */
    hf_check check_clock; /* its clock is more than 5 s away from ours; default warn           */
    /* What is taken off a lease for clocks that run at different rates: */
    int64_t drift_ppm; /* millionths of it; default 10 000, which is 1 %                        */
    int64_t drift_ms;  /* and so much; default 2. Both together must leave 20 ms of each lease
                          (and of max_lease_ms), otherwise the call says HF_EINVAL              */
    bool durable_servers; /* quorum: no server ever forgets what it has confirmed (appendonly with
                             appendfsync always, on disks that last), so one that was restarted
                             votes at once; the same for all clients                            */
} hf_client_options;

#define HF_CLIENT(...) (&(hf_client_options){.size = sizeof(hf_client_options), __VA_ARGS__})

/* Opens a client. No byte is sent: connections are made when they are first needed, so this works
 * while the server is still down.
 *
 *     redis://[[user][:password]@]host[:port][/database]      IPv6 addresses in [brackets]
 *     rediss://...                                            the same over TLS
 *     unix://[[user][:password]@]/path/to/socket[?db=database]
 *
 * The port is 6379 unless given. Special characters in user, password and path are written as %XX.
 *
 * Several servers, at most HF_SERVERS_MAX, are a quorum: a lock is held by who has it on a majority
 * of them. Give several URLs, with commas or white space between them, of any kinds:
 *
 *     redis://a redis://b:7000,rediss://user:password@c/2
 *
 * or one with several hosts, for all of which user, password and database count:
 *
 *     redis://user:password@a,b:7000,c/2
 *
 * A comma never belongs to a user, a password or a path; there it is written as %2C. White space
 * separates only what begins with a scheme of its own. All clients must name the same servers, in
 * whatever order, and none of them twice. Two servers work, but both are needed then: that is
 * logged as a warning. Three survive the loss of one, four also of one, five of two.
 *
 * The servers need not know of each other, and must not be replicas of each other. All are asked at
 * once, and a call is over as soon as its outcome cannot change any more. The fence grows from one
 * grant to the next, whichever servers granted it. All clients of these servers must have the same
 * max_lease_ms and durable_servers: a server that was started, or started again, less than
 * max_lease_ms ago has no vote, for it may have forgotten a lock that is still held. On servers
 * that are all new the first lock is to be had when a majority has run for that long, and servers
 * are to be restarted one at a time, so far apart. (In tests, durable_servers = true does away with
 * it.) Each server must tell its run_id in INFO, by which a restart is noticed; one that hides it
 * (behind a proxy, say) is refused with HF_EUNSAFE. A clock that jumps forward at one of the
 * servers, FLUSHALL or eviction there may let two holds overlap, as with a single one; the fence
 * still orders them. docs/safety.md has the rest.
 *
 * options may be NULL. HF_OK: *client is yours, end it with hf_close(). Otherwise *client is NULL:
 * HF_EINVAL (the text points at the character of the URL, or names the option or file, or says why
 * OpenSSL, which rediss:// needs, cannot be loaded), HF_ENOMEM (also when no thread can be
 * started). Passwords are never in a text or log line, and are wiped when they are not needed any
 * more. */
HF_API hf_status hf_open(const char *url, const hf_client_options *options, hf_client **client,
                         hf_error *error);

/* Ends a client. Calls that wait in other threads, and calls that begin while this runs, return
 * HF_ECLOSED; no call with this client may begin after this has returned. Operations that are under
 * way (hf_acquire_async) are told so before this returns. Holds that are still live are
 * released, for call_timeout_ms together; those left unanswered end with their lease. The hf_hold
 * pointers stay yours: each must still go to hf_release(), which then says HF_ECLOSED.
 * HF_OK, HF_EUNKNOWN (some release was not answered), HF_EFORKED (freed in a child) or, doing
 * nothing, HF_EDEADLK from inside a callback. NULL is fine. */
HF_API hf_status hf_close(hf_client *client);

/* ---- What happens to a hold ------------------------------------------------------------------ */

typedef enum hf_state {
    HF_SAFE,     /* valid, and renewed as planned                                                */
    HF_JEOPARDY, /* still valid, but it may soon be lost: see the reason                         */
    HF_LOST      /* not valid any more, for good; it must still be released                      */
} hf_state;

/* Why the state of a hold is what it is. The values are frozen; new ones are only appended. */
#define HF_REASON_MAP(X)                                          \
    X(NONE, 0, "nothing has happened")                            \
    X(LATE, 1, "a renewal was due, and its answer is late")       \
    X(NEAR, 2, "the deadline is nearer than warn_ms")             \
    X(MAX_HOLD, 3, "held for max_hold_ms: renewals have stopped") \
    X(EXPIRED, 4, "the deadline has passed")                      \
    X(GONE, 5, "the server does not have it any more")            \
    X(BROKEN, 6, "somebody has broken it by force")               \
    X(REVOKED, 7, "somebody asks for the lock: finish soon and release (no change of state)")

#define HF_REASON_ENUM(name, value, text) HF_REASON_##name = (value),
typedef enum hf_reason { HF_REASON_MAP(HF_REASON_ENUM) HF_REASONS } hf_reason;

HF_API const char *hf_state_name(hf_state state);    /* "SAFE"; never NULL, static storage     */
HF_API const char *hf_reason_text(hf_reason reason); /* the texts above; the same              */

typedef struct hf_event {
    const hf_hold *hold; /* to be asked, not released; valid during the callback only */
    hf_state state;      /* now */
    hf_reason reason;
    int64_t remaining_ms; /* until the deadline; 0 when lost */
    const char *text;     /* for people; for HF_REASON_REVOKED, the words of who asked */
} hf_event;

/* Told whenever the state of a hold changes and when somebody asks for the lock; changes that
 * overtake each other are told as one. LOST comes by the local deadline, also if the server and the
 * network are dead, and at once when the server says that the hold is gone. Runs on a thread that
 * the client has for this (or in hf_process(), with own_loop), one at a time, with no library lock
 * held: it delays other callbacks of the client, but no call and no renewal. Calls that wait return
 * HF_EDEADLK in here. When a release of the hold (hf_release, hf_release_nowait) has returned, it
 * does not run any more and will not run again: so a release waits for it to return (except one
 * that is made from a callback, and hf_release_async). */
typedef void hf_event_function(void *arg, const hf_event *event);

/* ---- Lock ------------------------------------------------------------------------------------ */

/* Zero means default: one try, a lease of 10 s, renewed automatically. Set `size`, or use
 * HF_ACQUIRE(.wait_ms = 500). */
typedef struct hf_acquire_options {
    size_t size;
    size_t name_length; /* bytes in the name; 0: up to its NUL. For names that contain NUL bytes */
    int64_t lease_ms; /* HF_LEASE_MIN_MS to max_lease_ms of the client; default 10 000            */
    int64_t wait_ms;  /* how long to wait for a lock that is held; 0: one try, -1: no limit       */
    int64_t retry_interval_ms; /* given: poll, with this pause between tries, instead of queueing;
                                  less than 10 counts as 10; see hf_acquire() for the default     */
    int64_t max_retries; /* given: poll, and try so often after the first time                  */
    hf_cancel *cancel;   /* see hf_cancel_new(); default none                                 */

    /* Renewal. JEOPARDY is told when a renewal is not answered within renew_timeout_ms after it
     * was due; the library goes on trying until the deadline. */
    int64_t renew_interval_ms; /* less than lease_ms; default a third of it */
    int64_t renew_timeout_ms;  /* default reply_timeout_ms of the client, or half of what the
                                  interval leaves of the lease if that is less                    */
    int64_t max_hold_ms; /* renewals stop then, so the hold ends by itself; default never    */
    int64_t warn_ms;     /* JEOPARDY at the latest so long before the deadline; default 0    */
    hf_event_function *on_event; /* default: nobody is told */
    void *arg; /* for on_event                                                   */

    /* Who. With an owner, everybody who names the same one shares the lock, also across processes:
     * the first of them takes it, the others join with the same fence, each with a lease of its
     * own, and the last release (or the end of the last lease) frees it. */
    const char *owner; /* such as a request id; at most HF_OWNER_MAX bytes, and not beginning with
                          "hf:" (those belong to the library); default the thread               */
    const char *label; /* shown to operators; at most HF_LABEL_MAX printable bytes; default none */
    bool no_renewal; /* renewed by hf_extend() only                                              */
    bool no_reentry; /* the calling thread may not take it a second time                         */
    bool fair;       /* strictly first come, first served, for every thread                      */
    int replicas;    /* one server with replicas: so many must have the grant too (WAIT), or it is
                        given back and the call says HF_EUNAVAILABLE; default 0                  */
} hf_acquire_options;

#define HF_ACQUIRE(...) (&(hf_acquire_options){.size = sizeof(hf_acquire_options), __VA_ARGS__})

/* Acquires the lock `name`: any bytes but the empty name; prefix + name at most HF_NAME_MAX bytes
 * and neither beginning with "hf:", where the library keeps its own keys. The lock is the plain
 * string key prefix + name, so programs that use SET NX PX on that key take part.
 *
 * Tries once, or waits until a limit is reached: wait_ms or max_retries, whichever comes first.
 * With wait_ms > 0 the call returns within wait_ms, whatever the server does. Otherwise each try is
 * bounded by call_timeout_ms. What may pass is tried again (lock held, server gone, loading,
 * read-only, out of memory); what cannot pass returns at once.
 *
 * Waiting. A call that may wait and finds the lock held joins a queue at the server; whoever
 * releases the lock hands it to the first of the queue who is alive, with one message. Nobody else
 * is woken, and processes are served in the order in which they came. Threads of one client that
 * want the same lock line up behind one of them; among them the lock may pass on without a message,
 * each time with a fence of its own: at most local_turns times in a row, for a third of a lease,
 * and not when another process has been passed over for 20 ms. So a thread may overtake those of
 * other processes, by that much. With `fair`, in this call or for the whole client, every thread
 * queues for itself: strictly first come, first served. Both kinds may be used on one name. A lock
 * that was passed on is valid for at least a third of its lease at first, and renewed as planned;
 * operators see the thread and label that the server granted it to. Calls with no_renewal, and with
 * another lease than the one before, are served by the server. A process that dies or is cut off is
 * skipped; one that is stopped when its turn comes costs a lease. Should a message be lost, the
 * lock is found by a check: every third of a lease, and when the lease of a holder that died is
 * over. With retry_interval_ms or max_retries the call polls instead: it never waits in the queue,
 * and gets the lock only when nobody does. While the server does not allow SUBSCRIBE and PUBLISH
 * (logged once, and tried again), a call has its place in the queue and asks every 100 ms whether
 * it is its turn. Programs that poll with SET NX may come before the queue.
 *
 * Re-entry. A thread that acquires a lock which it has acquired before, and which is still valid,
 * gets it at once and without any message: another handle on the same hold, with the same fence
 * and deadline. The lock is released with the last handle, in whatever order. on_event and arg
 * count for each handle; everything else (lease, renewal, max_hold_ms, warn_ms, label) stays as the
 * first acquire wanted it. To make the lease longer use hf_extend().
 * Only the thread that acquired it re-enters, even if another one releases it in the end.
 * Holds with an `owner` re-enter by that name instead: each acquire asks the server, is a hold of
 * its own with its own lease and options, and has the fence of the first.
 *
 * HF_OK: *hold is yours; end it with hf_release() or hf_release_nowait(). Otherwise *hold is NULL:
 *   HF_EBUSY        somebody else held it all the time
 *   HF_EUNKNOWN     a request was sent and no answer came in time. Should the server have granted
 *                   it, the client gives it back in the background, at the latest when it expires
 *   HF_EUNAVAILABLE no server, or one that cannot serve now; the text says why
 *   HF_ECANCELLED   hf_cancel_fire(); a grant that was under way is given back
 *   HF_EDENIED, HF_EUNSAFE, HF_ESERVER (such as a key of another type at the name), HF_EINVAL,
 *   HF_ENOMEM, HF_EDEADLK, HF_ECLOSED, HF_EFORKED, HF_EINTERNAL
 *
 * On a quorum a refusal and a fault are counted apart, and what a minority says decides nothing:
 *   HF_EBUSY        so many servers answered that others have it, or parts of it, that there is no
 *                   majority to be had. Of single tries that are made at the same moment all may
 *                   be told so; of those that wait, the one that came first gets it
 *   HF_EUNAVAILABLE too many servers were down, silent, or have no vote yet
 *   HF_EUNKNOWN     the same, and those that gave no answer may have granted it
 *   HF_EDENIED, HF_EUNSAFE, HF_ESERVER   said by so many that no majority is left
 * The text says how many granted it and what each server said, as far as there is room. Whatever
 * was granted is given back, at all servers. */
HF_API hf_status hf_acquire(hf_client *client, const char *name, const hf_acquire_options *options,
                            hf_hold **hold, hf_error *error);

/* Releases and frees the hold and clears the pointer, whatever the outcome; waits at most
 * call_timeout_ms. NULL and a pointer to NULL do nothing and return HF_OK.
 *   HF_OK       released: the hold was valid to the end
 *   HF_ELOST    it had ended before: expired, deleted by somebody, or the server forgot it; quorum:
 *               a majority did not have it any more
 *   HF_EUNKNOWN, HF_EUNAVAILABLE, HF_EDENIED, HF_EUNSAFE, HF_ESERVER, HF_ENOMEM
 *               the server did not confirm; the client goes on trying in the background until the
 *               lease is over. HF_EUNKNOWN also: the answer was lost, and the lock was gone when the
 *               client sent the release again. The first copy has released it, or it was lost
 *               before; nobody can tell
 *   HF_ECLOSED  freed; hf_close() has released it
 *   HF_EFORKED  freed; it is the parent's
 * The one exception: HF_EDEADLK from inside a callback, where nothing is done and the hold stays.
 * On a quorum it is given back everywhere; HF_OK when a majority has confirmed it, and the rest
 * goes on in the background. */
HF_API hf_status hf_release(hf_hold **hold, hf_error *error);

/* Like hf_release(), but does not wait for the answer: the request is written to the connection
 * before the call returns (if the connection is down or full, as soon as it can be). The next
 * acquire of the same name by this client comes after it. HF_OK, HF_ELOST if the deadline had
 * already passed, HF_ECLOSED, HF_EFORKED. */
HF_API hf_status hf_release_nowait(hf_hold **hold);

/* Renews by hand: makes the lease last at least lease_ms (0: the lease it was acquired with) from
 * now on. It never shortens it. Lost connections and silence are retried until the deadline.
 *   HF_OK      the new deadline stands
 *   HF_ELOST   the hold has ended; the hold must still be released, which will say the same
 *   HF_EUNAVAILABLE, HF_EDENIED, HF_EUNSAFE, HF_ESERVER, HF_EINVAL, ...   not renewed; still valid
 * until the old deadline. On a quorum HF_OK says that a majority has renewed it. */
HF_API hf_status hf_extend(hf_hold *hold, int64_t lease_ms, hf_error *error);

/* What stands in the lock's key while it is held: the injected owner, or a value that nobody else
 * has (of which the number may be another one at each server of a quorum). Written with a NUL
 * behind it, cut if there is no room; returns the length it should have. */
HF_API size_t hf_owner(const hf_hold *hold, char *place, size_t capacity);

/* What is known locally, without any message. Never claims too much: once the deadline has passed
 * these say 0, false and HF_LOST for good, also after the process was stopped or the machine slept.
 */
HF_API int64_t hf_remaining_ms(const hf_hold *hold); /* 0 for NULL */
HF_API bool hf_is_valid(const hf_hold *hold);        /* false for NULL */
HF_API hf_state hf_hold_state(const hf_hold *hold);  /* HF_LOST for NULL */

/* The fence of the grant: larger than that of every earlier grant of this lock, and the same for
 * every handle and every hold that shares it (on a quorum, holds of one owner may have different
 * ones if they began at the same moment, or after a server has lost its copy). 0 for NULL. What it
 * takes for granted is in docs/safety.md. */
HF_API uint64_t hf_fence(const hf_hold *hold);

/* A descriptor that becomes readable whenever there would be something to tell on_event, for
 * programs with a poll loop. Read eight bytes from it, then ask hf_hold_state(). It is the
 * library's: do not close it; it is closed with the release. -1: no descriptor or memory is left,
 * or the client is closed or the parent's. Asking again gives the same one. */
HF_API int hf_descriptor(hf_hold *hold);

/* ---- A hold that outlives its process -------------------------------------------------------- */

#define HF_TOKEN_MAX 2048 /* bytes of a token, with the NUL */

/* Lets go of a hold without releasing the lock, and clears the pointer: the server keeps it until
 * its lease is over, or until somebody with the token renews or releases it, in whatever process.
 * The token is a line without blanks; whoever has it can release the lock. `token` has room for
 * HF_TOKEN_MAX bytes. Does not wait: with several servers, one that was not needed for the
 * majority, and has not been asked for the lock or to extend it yet, is left out.
 *
 *   HF_OK       it is in the token's hands
 *   HF_ELOST    it had ended before
 *   HF_EINVAL   nothing was done: no place for the token, or the thread has re-entered the lock
 *   HF_ECLOSED, HF_EFORKED   as in hf_release() */
HF_API hf_status hf_detach(hf_hold **hold, char *token, hf_error *error);

/* Takes up the hold of a token, for this client: it is renewed and released as if it had been
 * acquired here, with the same fence. Of the options those about the lease, renewal, on_event and
 * name_length count; the lease is the longest that the hold has asked for unless it is given, and is
 * renewed with this call. If two take up the same token, both hold it, and the first release ends it. A request to
 * give it up (hf_revoke) is heard of with this call and with its renewals. What is left of the
 * lease is believed up to the longer of the token's and the one that is given. With several servers
 * a majority must have it; the others are waited for as long again as that took, or 50 ms, so that
 * a renewal or release reaches all that can be reached.
 *
 *   HF_OK       *hold is yours
 *   HF_ELOST    it has ended: released, expired or broken; or it is of another lock
 *   HF_EUNKNOWN, HF_EUNAVAILABLE   nothing is known of it; it lasts as long as it would have
 *   HF_EINVAL (not a token), HF_EDENIED, ... as in hf_acquire() */
HF_API hf_status hf_attach(hf_client *client, const char *name, const char *token,
                           const hf_acquire_options *options, hf_hold **hold, hf_error *error);

/* ---- Without waiting ------------------------------------------------------------------------- */

/* The calls below start an operation and return; what came of it is told to a function of yours.
 * If the call returns HF_OK, that function runs exactly once, whatever happens, and never inside
 * the call that started the operation (but perhaps before that call has returned, on the client's
 * thread). If it returns anything else, the function never runs.
 *
 * Callbacks of a client, these and on_event, run one at a time, with no library lock held, on a
 * thread that the client has for this; or, if it was opened with own_loop, in hf_process() and at
 * last in hf_close(). They may make all calls that do not wait: start further operations,
 * hf_release_nowait(), hf_cancel_fire(). Calls that wait return HF_EDEADLK in there. A callback
 * that takes its time delays other callbacks of the client, but no call and no renewal (in an own
 * loop, all of that).
 *
 * hf_close() ends what is under way: functions that have not run yet run before it returns, so do
 * not call it with something locked that they need. In a child after fork() none runs. */

/* Acquires of one client whose functions have not run yet. */
#define HF_OPERATIONS_MAX 65536

typedef uint64_t hf_operation; /* never 0, and never the same twice in a client */

/* error->status as hf_acquire() would return it. HF_OK: the hold is yours. Otherwise it is NULL. */
typedef void hf_acquired_function(void *arg, hf_hold *hold, const hf_error *error);
/* error->status as hf_release() would return it. */
typedef void hf_done_function(void *arg, const hf_error *error);

/* Acquires without waiting: as hf_acquire(), with the same options, limits and outcomes, except
 * that there is no thread whose lock it would be: each operation is an owner of its own, unless
 * `owner` names one, and nobody re-enters its hold. A `cancel` may be freed when the function runs.
 * *operation (which may be NULL) can be given to hf_cancel_operation(); it is set before the
 * function can run, and 0 if the call fails.
 * HF_OK: `function` will run. Otherwise: HF_EINVAL, HF_ENOMEM, HF_ECLOSED, HF_EFORKED, or
 * HF_EUNAVAILABLE if HF_OPERATIONS_MAX are outstanding.
 *
 * Requests of operations leave at once over a connection that is idle, and otherwise together with
 * others: so start as many as there are to do. */
HF_API hf_status hf_acquire_async(hf_client *client, const char *name,
                                  const hf_acquire_options *options, hf_acquired_function *function,
                                  void *arg, hf_operation *operation, hf_error *error);

/* Releases and frees the hold and clears the pointer, whatever is returned, without waiting; then
 * on_event of the hold begins no more, and if it is running just now, `function` runs after it.
 * HF_OK: `function` will run. HF_ENOMEM: it will not; released as by hf_release_nowait().
 * HF_ECLOSED, HF_EFORKED: it will not; as in hf_release(). HF_EINVAL: there is no hold.
 * With function NULL this is hf_release_nowait(). */
HF_API hf_status hf_release_async(hf_hold **hold, hf_done_function *function, void *arg,
                                  hf_error *error);

/* Asks for the end of an acquire. Its function still runs, with HF_ECANCELLED, or with what had
 * happened before: look at what it is given. Does not wait. HF_OK, also if that acquire has ended
 * already; HF_EINVAL: there was none; HF_ECLOSED, HF_EFORKED. */
HF_API hf_status hf_cancel_operation(hf_client *client, hf_operation operation);

/* ---- Your own loop --------------------------------------------------------------------------- */

/* A client that was opened with own_loop = true has no thread (except while a host name is being
 * looked up). A build without epoll (HOLDFAST_POLL) has one that only waits, for the descriptor
 * below, and does nothing else. Renewals, answers and callbacks happen when your loop calls
 * hf_process(), so it must come back in time: a lease that nobody renews is lost. With any loop:
 *
 *     add hf_loop_descriptor(client) to what you poll for reading
 *     for (;;) {
 *         poll(..., hf_loop_timeout_ms(client) or less);
 *         hf_process(client, &error);
 *     }
 *
 * Calls of all kinds may be made from any thread, also those that wait (outside of callbacks); they
 * make the descriptor readable if there is something to do for the loop. */

/* Readable while there is something for hf_process(), including when its time has come: a loop
 * that cannot wait for a limited time needs nothing else. It is the client's: do not read or close
 * it; it is closed by hf_close(), so take it out of your loop before. -1: the client has threads,
 * or is NULL or the parent's. */
HF_API int hf_loop_descriptor(hf_client *client);

/* When to call hf_process() at the latest: milliseconds from now, or -1: when the descriptor is
 * readable. -1 also if the client has threads, or is NULL or the parent's. It changes with every
 * call: ask each time before you wait. */
HF_API int hf_loop_timeout_ms(hf_client *client);

/* Does what there is to do, runs callbacks, and returns without ever waiting (but for them). Of no
 * use, but harmless, when the descriptor is not readable. HF_OK; HF_EINVAL: the client has threads,
 * or another thread is in here; HF_EDEADLK: called from a callback; HF_EFORKED. */
HF_API hf_status hf_process(hf_client *client, hf_error *error);

/* ---- Looking from outside -------------------------------------------------------------------- */

#define HF_HOLDERS_MAX 16
#define HF_WAITERS_MAX 32

typedef struct hf_holder { /* one hold, as its value at the server says */
    char client_id[33];    /* empty: a program that does not use this library                   */
    char host[65];         /* of the process                                                    */
    char label[HF_LABEL_MAX + 1];
    uint64_t pid;
    uint64_t thread;
    uint64_t number;      /* of the hold, within its client                                    */
    int64_t remaining_ms; /* of this hold at the server; -1: it never expires. Of a waiter: 0   */
    int64_t waited_ms;    /* of a waiter: since it joined the queue                            */
} hf_holder;

typedef struct hf_inspection {
    char name[HF_NAME_MAX + 1]; /* without the client's prefix, with a NUL behind it           */
    size_t name_length;
    bool held;
    char owner[HF_OWNER_MAX + 1]; /* as it stands in the lock's key: the injected owner, or the
                                     whole value; cut if a foreign one is longer               */
    bool shared;                  /* by an injected owner                                      */
    uint64_t fence;               /* the highest that was given out or reserved; 0: unknown    */
    int64_t remaining_ms;         /* of the lock at the server; -1: it never expires           */
    uint64_t hold_count;          /* live holds: 1, or those that share it                     */
    size_t holder_count;          /* of them, how many are in `holders`                        */
    hf_holder holders[HF_HOLDERS_MAX]; /* those that last longest first                        */
    uint64_t queue_length;             /* how many wait in the queue, threads that line up
                                          behind one of their own process not counted          */
    size_t waiter_count;               /* of them, how many are in `waiters`                   */
    hf_holder waiters[HF_WAITERS_MAX]; /* in the order in which they will be served            */
} hf_inspection;

/* Asks the server who holds a lock. name_length 0: up to the NUL. HF_OK: *inspection is filled,
 * also if nobody does. Each message of the calls in this section is bounded by call_timeout_ms.
 *
 * On a quorum all servers are asked, and it is over as soon as those that have answered leave no
 * doubt. Held means by a majority. Times are what a majority says at least; the fence is the
 * highest of those that agree (if nobody holds it, of all that answered); of those who share it,
 * the ones that a majority knows are counted and listed, which may be none for a moment. Numbers of
 * holds differ from server to server, and one of them is told. Those who wait are told as the
 * server says that knows most of them; if nobody has a majority, those that have some servers are
 * in front of them. HF_EUNAVAILABLE or HF_EUNKNOWN: too few servers have answered, or those that
 * have not decide who holds it; the text says what happened at which. */
HF_API hf_status hf_inspect(hf_client *client, const char *name, size_t name_length,
                            hf_inspection *inspection, hf_error *error);

/* What the server says about itself, and how far away it is. */
typedef struct hf_examination {
    char version[32];
    char run_id[41];          /* changes when it is restarted; empty: it does not tell          */
    char eviction_policy[32]; /* of interest if there is a limit                                */
    uint64_t memory_limit;    /* bytes; 0: none                                                 */
    uint64_t evicted_keys;    /* since it was started                                           */
    uint64_t replicas;        /* that are connected                                             */
    int64_t uptime_ms;
    int64_t round_trip_us;  /* the shortest of a few                                            */
    int64_t clock_ahead_us; /* of ours; negative: behind; give or take half a round trip        */
    bool replica;           /* it is one itself                                                 */
    bool append_only;       /* it writes down what it does, and remembers it after a restart    */
    bool cluster;           /* a node of a cluster                                              */
} hf_examination;

/* Asks the server about itself: INFO and TIME. HF_OK: *examination is filled. Of a quorum it is the
 * first that is asked, and hf_examine_server() asks the one of that number, from 0, in the order of
 * the URLs; HF_EINVAL: there are not so many. */
HF_API hf_status hf_examine(hf_client *client, hf_examination *examination, hf_error *error);
HF_API hf_status hf_examine_server(hf_client *client, int server, hf_examination *examination,
                                   hf_error *error);

/* How many servers the client has: 1, or those of a quorum. 0: it is NULL. */
HF_API int hf_server_count(const hf_client *client);

/* Calls `see` for each lock that is held and whose name matches the glob-style pattern of Redis
 * (NULL: all; at most 1024 bytes), under the client's prefix; until it returns false. It finds
 * locks that this library has taken, by its side keys (SCAN), so locks that others hold only if we
 * had them within the last hour. A lock that is taken or released meanwhile may or may not be seen;
 * one may be seen twice. `see` runs in the calling thread and may use the client. On a quorum it
 * finds what is known to be held by a majority, and a majority has to answer. */
typedef bool hf_list_function(void *arg, const hf_inspection *inspection);
HF_API hf_status hf_list(hf_client *client, const char *pattern, hf_list_function *see, void *arg,
                         hf_error *error);

/* Asks the holder to give up: at once if its client is connected for messages (it is once it has
 * waited for a lock, or if the hold has an on_event), else with its next renewal, it is told
 * HF_REASON_REVOKED and the text `why` (at most HF_REASON_MAX bytes; NULL: none). What it does then
 * is up to it; a hold is told once. HF_OK: somebody holds it, and the request is left for them;
 * HF_ENOTHELD. On a quorum it is left at all servers that have the lock for whoever has a majority,
 * and HF_OK says that at least one has taken it. */
HF_API hf_status hf_revoke(hf_client *client, const char *name, size_t name_length, const char *why,
                           hf_error *error);

/* Takes the lock away by force from whoever holds it now, and hands it on. Its holder finds out
 * like one that is revoked, or with its release, and works on until then: so the fence is raised,
 * and *fence (which may be NULL) is the new one: larger than the victim's. Make the store know it
 * first. HF_ENOTHELD: nobody held it, or another hold followed meanwhile, which was left alone. On
 * a quorum it is taken from the hold that has a majority, at all servers that answer. HF_OK: at a
 * majority it does not have it any more (a hold of the same thread and label that follows at this
 * very moment may be taken for it). HF_EUNKNOWN: some have taken it away, but too few; the text
 * says what happened at the others. Breaking it again does no harm. */
HF_API hf_status hf_break(hf_client *client, const char *name, size_t name_length, uint64_t *fence,
                          hf_error *error);

/* Watching a lock: what happens to it, as it happens. */
typedef enum hf_sight_kind {
    HF_SEEN_HELD,     /* at the start: `who` has it                                             */
    HF_SEEN_FREE,     /* at the start: nobody does                                              */
    HF_SEEN_GRANTED,  /* `who` has got it, for lease_ms unless it is renewed                    */
    HF_SEEN_RELEASED, /* by `who`                                                               */
    HF_SEEN_EXPIRED,  /* it ended without a release                                             */
    HF_SEEN_WAITING,  /* `who` has joined the queue                                             */
    HF_SEEN_REVOKED,  /* somebody has asked `who` to give it up                                 */
    HF_SEEN_BROKEN,   /* it was taken away from `who` by force                                  */
    HF_SEEN_MISSED    /* a gap: more has happened here than could be kept                       */
} hf_sight_kind;

typedef struct hf_sight {
    hf_sight_kind kind;
    hf_holder who;  /* empty for programs that do not use this library                          */
    uint64_t fence; /* of the lock then: the highest that was given out or reserved             */
    int64_t lease_ms;
} hf_sight;

typedef void hf_sight_function(void *arg, const hf_sight *sight);

/* Calls `function` with what happens to a lock, beginning with HF_SEEN_HELD or HF_SEEN_FREE, until
 * hf_observe_end(). It runs where on_event runs, and may do what that may. What this library does
 * is heard by message, the end of a lease by a look at that moment. What other programs do to the
 * key is found by looking, every 10 s and when a lease ends; while the connection is down or the
 * server does not allow SUBSCRIBE (which is tried again), everything is, once a second. Turns that
 * threads of one client take among themselves are one grant. A lock of the same name in another
 * database of the server may be heard too: Redis has one set of channels for all. On a quorum there
 * are no messages: everything is found by looking, once a second, so that what begins and ends
 * between two looks is not seen, nor who waits, and every end is HF_SEEN_EXPIRED. The fence is that
 * of hf_inspect(): a server that comes to a hold late may make it higher than the hold's own, which
 * is then told as ended and granted again, and the next hold may have a smaller one than was told;
 * it is larger than those that all holds before had themselves. name_length 0: up to the NUL.
 * HF_OK: *observer is yours. Watched locks cost the server a message for everything that happens to
 * them. */
HF_API hf_status hf_observe(hf_client *client, const char *name, size_t name_length,
                            hf_sight_function *function, void *arg, hf_observer **observer,
                            hf_error *error);

/* Ends it and clears the pointer, also after hf_close(). `function` does not run any more when this
 * returns, unless this is called from a callback. NULL and a pointer to NULL are fine. */
HF_API void hf_observe_end(hf_observer **observer);

/* ---- Statistics ------------------------------------------------------------------------------ */

#define HF_BUCKETS      32
#define HF_REASON_SLOTS 16 /* room for reasons to come */

/* Bucket 0 counts durations below 1 us, bucket n those from 2^(n-1) to below 2^n us, the last one
 * everything longer. */
typedef struct hf_histogram {
    uint64_t count;
    uint64_t total_us;
    uint64_t bucket[HF_BUCKETS];
} hf_histogram;

typedef struct hf_stats {
    uint64_t acquisitions; /* acquires that were granted by the server                         */
    uint64_t reentries;    /* and those that needed no message                                 */
    uint64_t turns;        /* acquisitions that came from another thread of this client          */
    uint64_t contentions;  /* acquires that found the lock held, however they ended            */
    uint64_t failures;     /* acquires that were begun and not granted                         */
    uint64_t releases;     /* holds that were given back while they were valid                 */
    uint64_t renewals;     /* answered renewals, automatic and by hand                         */
    uint64_t renewal_failures; /* renewals that the server refused                             */
    uint64_t jeopardies;       /* changes from SAFE to JEOPARDY                                */
    uint64_t losses[HF_REASON_SLOTS]; /* by reason */
    uint64_t held;     /* holds right now                                            */
    hf_histogram wait; /* from the call of an acquire to its grant                   */
    hf_histogram hold; /* from a grant to its release or loss                        */
} hf_stats;

/* What this client has done since it was opened. HF_OK, HF_EINVAL, HF_ECLOSED or HF_EFORKED. */
HF_API hf_status hf_stats_read(hf_client *client, hf_stats *stats);

/* How near this client is to what it and its servers can do. Renewals leave before everything else.
 * When they are late all the same, acquires that would add a hold wait until they are on time, or
 * fail with HF_EUNAVAILABLE when their time is over: so no hold is lost for a new one. The log says
 * when that begins and when it is over. Watch late_ms and overloads: if they are not 0, this client
 * holds too many locks, for leases that are too short, on servers that are too busy. */
typedef struct hf_load {
    size_t size;        /* sizeof(hf_load), set by the caller                               */
    uint64_t late_ms;   /* how late the latest renewal is, from an eighth of its interval on */
    uint64_t held_back; /* acquires that wait for late renewals                             */
    uint64_t unsent;    /* other requests that wait until earlier ones are answered         */
    uint64_t overloads; /* how often renewals of a connection have begun to be late         */
} hf_load;

/* Fills what `size` says there is room for. HF_OK, HF_EINVAL, HF_ECLOSED or HF_EFORKED. */
HF_API hf_status hf_load_read(hf_client *client, hf_load *load);

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
