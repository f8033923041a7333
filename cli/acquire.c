/* SPDX-License-Identifier: MIT */
/* Takes a lock for a script: the token that it prints is the lock, until somebody gives it back or
 * its time is over. Nobody renews it meanwhile; that is up to the script, with "renew".
 *
 * Whatever goes wrong before the token is in somebody's hands, the lock is given back: a signal
 * while we wait or just after the grant, and a standard output that nobody reads. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bell.h"
#include "exit.h"
#include "instant.h"
#include "json.h"
#include "live.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "text.h"
#include "verb.h"

struct acquire_options {
    struct session_options session;
    bool try_once;
    const char *wait;
    int64_t ttl_ms;
    bool fair;
    int64_t replicas;
    const char *owner;
    const char *label;
    const char *busy_code;
    bool skip_ok;
};

#define PLACE(field) offsetof(struct acquire_options, field)

static const struct option options[] = {
    {'n', "nonblock", OPTION_FLAG, PLACE(try_once), 0, "do not wait if somebody holds it", 0, 0, 0},
    {'w', "wait", OPTION_TEXT, PLACE(wait), "TIME", "wait so long at most (no limit)", 0, 0, 0},
    {0, "ttl", OPTION_TIME, PLACE(ttl_ms), "TIME", "how long it lasts without renewal (30)",
     HF_LEASE_MIN_MS, HF_MS_MAX, 0},
    {0, "fair", OPTION_FLAG, PLACE(fair), 0, "strictly first come, first served", 0, 0, 0},
    {0, "replicas", OPTION_NUMBER, PLACE(replicas), "K", "so many replicas must have it too (0)", 0,
     SESSION_REPLICAS_MAX, 0},
    {0, "owner", OPTION_TEXT, PLACE(owner), "ID", "share it with all who name the same owner", 0, 0,
     0},
    {0, "label", OPTION_TEXT, PLACE(label), "TEXT", "shown by status", 0, 0, 0},
    {'E', "conflict-exit-code", OPTION_TEXT, PLACE(busy_code), "CODE",
     "exit code if somebody holds it (75)", 0, 0, 0},
    {0, "skip-ok", OPTION_FLAG, PLACE(skip_ok), 0, "exit code 0 if somebody holds it", 0, 0, 0},
    {0}};

struct attempt {
    struct session session;
    struct bell bell;
    const char *name;
    hf_hold *hold;
    hf_error error;
    int64_t waited_ms;
    int signal; /* the first that came; 0: none */
    int busy_code;
};

/* ---- The wait ---- */

static void acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    struct attempt *attempt = arg;
    attempt->hold = hold;
    attempt->error = *error;
    bell_ring(&attempt->bell);
}

static void notice(struct attempt *attempt, int signal)
{
    if (signal > 0 && attempt->signal == 0)
        attempt->signal = signal;
}

/* Until the attempt has ended, which a signal hastens. */
static void wait_for(struct attempt *attempt, hf_operation operation)
{
    int what;
    while ((what = bell_wait(&attempt->bell, instant_timeout_ms(live_next(), instant_now()))) !=
           BELL_NEWS) {
        if (what == BELL_TIMEOUT) {
            live_show();
            continue;
        }
        notice(attempt, what);
        (void)hf_cancel_operation(attempt->session.client, operation);
    }
    live_end();
    notice(attempt, bell_wait(&attempt->bell, 0));
}

/* A wait without a limit would wait for a server too, which may never come. */
static bool is_there(struct attempt *attempt)
{
    static hf_inspection lock;
    return hf_inspect(attempt->session.client, attempt->name, 0, &lock, &attempt->error) == HF_OK;
}

static void try_it(struct attempt *attempt, const struct acquire_options *given, int64_t wait_ms)
{
    hf_acquire_options wanted = {.size = sizeof(wanted),
                                 .lease_ms = given->ttl_ms,
                                 .wait_ms = wait_ms,
                                 .owner = given->owner,
                                 .label = given->label,
                                 .no_renewal = true,
                                 .fair = given->fair,
                                 .replicas = (int)given->replicas};
    int64_t start_ms = instant_now_ms();
    hf_operation operation;
    hf_error error; /* not the attempt's, which may be filled before the call is back */
    if (wait_ms < 0 && !is_there(attempt))
        return;
    if (hf_acquire_async(attempt->session.client, attempt->name, &wanted, acquired, attempt,
                         &operation, &error) != HF_OK) {
        attempt->error = error;
        return;
    }
    if (wait_ms != 0)
        live_begin(&given->session, &attempt->session, attempt->name);
    wait_for(attempt, operation);
    attempt->waited_ms = instant_now_ms() - start_ms;
}

/* ---- What came of it ---- */

static int say_busy(const struct attempt *attempt)
{
    static hf_inspection lock;
    char name[SHOW_NAME_MAX], who[SHOW_HOLDER_MAX];
    show_name(name, attempt->name, 0);
    if (hf_inspect(attempt->session.client, attempt->name, 0, &lock, NULL) == HF_OK && lock.held)
        say_note("\"%s\" is held by %s; wait longer for it with -w TIME", name,
                 show_who(who, &lock));
    else
        say_note("\"%s\" was held by somebody else all the time; wait longer with -w TIME", name);
    return attempt->busy_code;
}

/* Nobody has the token, so nobody else could. */
static void give_back(const struct attempt *attempt, const char *token)
{
    hf_hold *hold;
    if (hf_attach(attempt->session.client, attempt->name, token,
                  HF_ACQUIRE(.lease_ms = HF_LEASE_MIN_MS, .no_renewal = true), &hold,
                  NULL) == HF_OK)
        (void)hf_release(&hold, NULL);
}

static int print(const struct attempt *attempt, const struct acquire_options *given,
                 const char *token, uint64_t fence)
{
    if (!given->session.json) {
        printf("%s\n", token);
        return show_finish(EXIT_OK);
    }
    json_begin_object(NULL);
    json_text("name", attempt->name);
    json_text("token", token);
    json_unsigned("fence", fence);
    json_number("ttl_ms", given->ttl_ms);
    json_number("waited_ms", attempt->waited_ms);
    json_end_object();
    (void)json_finish();
    return show_finish(EXIT_OK);
}

static int hand_out(struct attempt *attempt, const struct acquire_options *given)
{
    char token[HF_TOKEN_MAX];
    hf_error error;
    uint64_t fence = hf_fence(attempt->hold);
    if (hf_detach(&attempt->hold, token, &error) != HF_OK)
        return session_fail(&attempt->session, "the lock is lost again", &error);
    int code = print(attempt, given, token, fence);
    if (code != EXIT_OK)
        give_back(attempt, token);
    return code;
}

static int conclude(struct attempt *attempt, const struct acquire_options *given)
{
    if (attempt->signal != 0) {
        (void)hf_release(&attempt->hold, NULL);
        return EXIT_SIGNALLED + attempt->signal;
    }
    if (attempt->error.status == HF_EBUSY)
        return say_busy(attempt);
    if (attempt->error.status != HF_OK)
        return session_fail(&attempt->session, "cannot acquire the lock", &attempt->error);
    return hand_out(attempt, given);
}

/* ---- The verb ---- */

static int run(void *arg, int count, char **words)
{
    struct acquire_options *given = arg;
    struct attempt attempt = {.waited_ms = 0};
    int64_t wait_ms;
    int code = session_take_name(count, words, false, &attempt.name);
    attempt.busy_code = given->skip_ok ? EXIT_OK : EXIT_BUSY;
    if (code == 0 && given->busy_code != NULL &&
        !options_read_exit_code(given->busy_code, &attempt.busy_code))
        code = EXIT_USAGE;
    if (code == 0 && !options_take_wait(given->try_once, given->wait, &wait_ms))
        code = EXIT_USAGE;
    if (code != 0)
        return code;
    if (given->ttl_ms == 0)
        given->ttl_ms = SESSION_TTL_MS;
    (void)signal(SIGPIPE, SIG_IGN); /* so that a failed write is heard of */
    if (!bell_open(&attempt.bell))
        return EXIT_OWN;
    code = session_open(&given->session, given->ttl_ms, &attempt.session);
    if (code == 0) {
        try_it(&attempt, given, wait_ms);
        code = conclude(&attempt, given);
        session_close(&attempt.session);
    }
    bell_close(&attempt.bell);
    return code;
}

const struct verb verb_acquire = {
    .name = "acquire",
    .usage = "[options] NAME",
    .summary = "take a lock and print its token",
    .details = "The lock lasts for --ttl; renew and release it with the token:\n"
               "  token=$(holdfast acquire -w 10 NAME) || exit\n"
               "  ...\n"
               "  holdfast release NAME \"$token\"\n",
    .table = {options, &session_table},
    .size = sizeof(struct acquire_options),
    .run = run,
    .mixed = true};
