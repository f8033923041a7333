/* SPDX-License-Identifier: MIT */
/* Waits until nobody holds a lock, without taking it. The lock is watched; when something may have
 * freed it, a look tells whether it has: one that was released may have been handed on. */
#include "bell.h"
#include "exit.h"
#include "instant.h"
#include "json.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "verb.h"

enum { LOOK_AGAIN_MS = 1000 };

struct wait_options {
    struct session_options session;
    const char *wait;
};

static const struct option options[] = {{'w', "wait", OPTION_TEXT,
                                         offsetof(struct wait_options, wait), "TIME",
                                         "wait so long at most (no limit)", 0, 0, 0},
                                        {0}};

struct watch {
    struct session session;
    struct bell bell;
    const char *name;
    int64_t end_ms; /* -1: none */
    bool unsure;    /* the last look has failed */
    hf_inspection lock;
};

static void see(void *arg, const hf_sight *sight)
{
    struct watch *watch = arg;
    if (sight->kind != HF_SEEN_HELD && sight->kind != HF_SEEN_WAITING &&
        sight->kind != HF_SEEN_REVOKED)
        bell_ring(&watch->bell);
}

static int64_t left_ms(const struct watch *watch)
{
    int64_t left = watch->end_ms - instant_now_ms();
    return watch->end_ms < 0 ? -1 : left > 0 ? left : 0;
}

/* When to look again even if nothing is heard: soon, if the last look has failed. */
static int64_t pause_ms(const struct watch *watch)
{
    int64_t left = left_ms(watch);
    return watch->unsure && (left < 0 || left > LOOK_AGAIN_MS) ? LOOK_AGAIN_MS : left;
}

/* While the server is away nothing can be seen; it may come back. */
static bool is_free(struct watch *watch)
{
    watch->unsure = hf_inspect(watch->session.client, watch->name, 0, &watch->lock, NULL) != HF_OK;
    return !watch->unsure && !watch->lock.held;
}

static int watch_it(struct watch *watch)
{
    hf_observer *observer;
    hf_error error;
    int code = -1;
    if (hf_observe(watch->session.client, watch->name, 0, see, watch, &observer, &error) != HF_OK)
        return session_fail(&watch->session, "cannot watch the lock", &error);
    while (code < 0) {
        int what = bell_wait(&watch->bell, pause_ms(watch));
        if (what > 0)
            code = EXIT_SIGNALLED + what;
        else if (is_free(watch))
            code = EXIT_OK;
        else if (left_ms(watch) == 0)
            code = EXIT_BUSY;
    }
    hf_observe_end(&observer);
    return code;
}

static int wait_for(struct watch *watch)
{
    hf_error error;
    char who[SHOW_HOLDER_MAX];
    if (hf_inspect(watch->session.client, watch->name, 0, &watch->lock, &error) != HF_OK)
        return session_fail(&watch->session, "cannot look at the lock", &error);
    int code = watch->lock.held ? watch_it(watch) : EXIT_OK;
    if (code == EXIT_BUSY)
        say_note("still held by %s", show_who(who, &watch->lock));
    return code;
}

static int open_and_wait(struct wait_options *given, struct watch *watch)
{
    int code = session_open(&given->session, 0, &watch->session);
    if (code != 0)
        return code;
    int64_t start_ms = instant_now_ms();
    code = wait_for(watch);
    if (given->session.json && (code == EXIT_OK || code == EXIT_BUSY)) {
        json_begin_object(NULL);
        json_text("name", watch->name);
        json_bool("free", code == EXIT_OK);
        json_number("waited_ms", instant_now_ms() - start_ms);
        json_end_object();
        (void)json_finish();
        code = show_finish(code);
    }
    session_close(&watch->session);
    return code;
}

static int run(void *arg, int count, char **words)
{
    static struct watch watch = {.end_ms = -1};
    struct wait_options *given = arg;
    int64_t limit_ms = 0;
    int code = session_take_name(count, words, false, &watch.name);
    if (code != 0)
        return code;
    if (!options_take_time("wait", given->wait, &limit_ms))
        return EXIT_USAGE;
    if (given->wait != NULL)
        watch.end_ms = instant_now_ms() + limit_ms;
    if (!bell_open(&watch.bell))
        return EXIT_OWN;
    code = open_and_wait(given, &watch);
    bell_close(&watch.bell);
    return code;
}

const struct verb verb_wait = {.name = "wait",
                               .usage = "[options] NAME",
                               .summary = "wait until nobody holds a lock",
                               .details =
                                   "The lock is not taken. Exit code 75: the time is over.\n",
                               .table = {options, &session_table},
                               .size = sizeof(struct wait_options),
                               .run = run,
                               .mixed = true};
