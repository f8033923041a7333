/* SPDX-License-Identifier: MIT
 *
 * A flash sale: many buyers, few items, and six ways to sell them, of which two do it badly. What
 * the parts share:
 *
 *     main.c        the story: each strategy in turn, then the table and the verdict
 *     strategies.c  THE PART TO READ: each strategy in one function, with its SQL
 *     buyer.c       a process of the shop, whose threads serve one request after the other
 *     crew.c        starts those processes, replaces those that are killed, wakes up the stopped
 *     ledger.c      makes the tables, and counts in the end what is in them
 *     screen.c      progress, the table
 *     options.c     the command line
 *     db*.c         SQLite, PostgreSQL, MariaDB
 *
 * Every buyer clicks twice, so two requests of one user are served at about the same time. The
 * processes share one piece of memory, the SALE, where each request is written down with its
 * answer. A process that is killed has left some without an answer, and the one that takes its
 * place serves them again, under the same request number: whether the first attempt came to
 * anything is for the strategy to find out. */
#ifndef FLASHSALE_H
#define FLASHSALE_H

#include "db.h"

#include <holdfast.h>
#include <holdfast_ids.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLICKS     2      /* requests per buyer                                          */
#define THINK_US   1000   /* what a buyer does between being offered the item and buying */
#define LEASE_MS   300    /* of the lock; short, so that one of a killed worker soon ends */
#define STOP_MS    600    /* how long a stopped worker stays so: longer than its lease    */
#define RESERVE_MS 120000 /* how long a unit is set aside: no run lasts longer */
#define ITEM       "item"
#define PREFIX     "flashsale:" /* of all names in Redis */

#define STRATEGIES  6
#define MISHAPS_MAX 4 /* of one run with --chaos */

enum answer {
    UNDECIDED,
    SOLD,
    SOLD_OUT,
    HAS_ONE, /* this user has ordered before                               */
    IN_VAIN, /* refused, though there was stock left                       */
    AGAIN,   /* not decided: somebody was in the way, serve it once more   */
    FAILED   /* not decided, and will not be                               */
};

struct options {
    int buyers, stock, processes, threads;
    unsigned int seed;
    bool chaos;
    bool chosen[STRATEGIES];
    const char *redis_url;
    const char *db_url; /* NULL: a SQLite file of its own */
};

struct request {
    int64_t user;
    _Atomic int desk; /* of the thread that serves it, or NOBODY */
    _Atomic int answer;
    int attempts;
    int64_t began_us, took_us;
};

#define NOBODY (-1)

struct mishap {
    int at;     /* happens to whom comes to this critical point, counted over all workers */
    int signal; /* SIGKILL or SIGSTOP */
};

struct sale {
    struct options options;
    const struct strategy *strategy;
    struct mishap mishaps[MISHAPS_MAX];
    _Atomic int points;  /* critical points that were passed */
    _Atomic int decided; /* for the progress; what counts is in the requests and in the database */
    _Atomic int sold;
    _Atomic int stale; /* writes that the database refused because of their fence */
    int requests_count;
    struct request requests[];
};

/* One thread of the shop, and the request that it serves. */
struct buyer {
    struct sale *sale;
    struct request *request;
    hf_client *client;
    hf_ids *ids;
    struct db *db;
    int desk;
    int64_t number;   /* of the request: what makes it the same one when it is served again */
    int64_t order_id; /* for the order, should it come to that */
    char user[32], request_name[32]; /* for Redis */
};

struct strategy {
    const char *name;
    enum answer (*serve)(struct buyer *buyer);
    bool one_per_user; /* the table has a unique key for it                    */
    bool exact;        /* claims to sell all there is, but no more             */
    bool never_over;   /* claims not to sell more than there is                */
    bool in_redis;     /* the stock is in Redis; the database has the last word */
};

extern const struct strategy strategies[STRATEGIES];

/* What happens between two steps of a sale: time passes, and with --chaos the process may be killed
 * or stopped right there. critical_point() is the same without the time. */
void think(struct buyer *buyer);
void critical_point(struct buyer *buyer);
/* What a call to Redis that failed means for the request: AGAIN, or FAILED, and says why. */
enum answer trouble_with_redis(const struct buyer *buyer, const hf_error *error);
void complain(const struct buyer *buyer, const char *what, const char *why);

/* Runs in a child process: serves requests until there are no more. Returns its exit code. */
int worker_run(struct sale *sale, int worker);

struct crew_report {
    bool good;
    int killed, stopped;
    int64_t took_us;
};

void crew_run(struct sale *sale, struct crew_report *report);
int64_t now_us(void);                          /* the same clock in all processes */
extern volatile sig_atomic_t sale_interrupted; /* by Ctrl-C and its like */

struct ledger {
    int64_t sold, oversold, duplicates, stock_left;
    int64_t redis_sold; /* by an audit; -1: it does not add up, or there is none */
};

bool redis_is_there(const struct sale *sale); /* waits a little for it; says if not */
bool ledger_begin(const struct sale *sale);
bool ledger_count(const struct sale *sale, struct ledger *ledger);

struct result {
    struct crew_report crew;
    struct ledger ledger;
    int told_sold, in_vain, stale;
    double per_second, p50_ms, p99_ms;
};

void screen_begin(const struct options *options);
void screen_progress(const struct sale *sale, int64_t took_us);
void screen_end_run(const struct sale *sale, const struct result *result);
void screen_table(const struct options *options, const struct result *results);
void screen_check(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool options_parse(int argc, char **argv, struct options *options);

#endif
