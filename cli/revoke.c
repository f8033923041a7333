/* SPDX-License-Identifier: MIT */
/* Asks the holder of a lock to give it up; or, with --force, takes it away from a holder that may
 * go on working: only the fence keeps its work apart from that of the next one. So that is asked
 * about first, and a script has to say --yes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "verb.h"

struct revoke_options {
    struct session_options session;
    const char *why;
    bool force;
    bool yes;
};

#define PLACE(field) offsetof(struct revoke_options, field)

static const struct option options[] = {
    {0, "why", OPTION_TEXT, PLACE(why), "TEXT", "tell the holder", 0, 0, 0},
    {0, "force", OPTION_FLAG, PLACE(force), 0, "break the lock: the holder is not waited for", 0, 0,
     0},
    {'y', "yes", OPTION_FLAG, PLACE(yes), 0, "do not ask", 0, 0, 0},
    {0}};

struct order {
    const struct revoke_options *given;
    struct session session;
    const char *name;
    char shown[SHOW_NAME_MAX];
    hf_inspection lock;
};

/* ---- What came of it ---- */

static int print(const struct order *order, bool done, uint64_t fence)
{
    if (!order->given->session.json) {
        if (done && order->given->force)
            printf("%" PRIu64 "\n", fence);
        return show_finish(done ? EXIT_OK : EXIT_NO);
    }
    json_begin_object(NULL);
    json_text("name", order->name);
    json_bool(order->given->force ? "broken" : "revoked", done);
    if (done && order->given->force)
        json_unsigned("fence", fence);
    json_end_object();
    (void)json_finish();
    return show_finish(done ? EXIT_OK : EXIT_NO);
}

static int nobody(const struct order *order)
{
    say_note("nobody holds \"%s\"", order->shown);
    return print(order, false, 0);
}

/* ---- Asking ---- */

static bool look(struct order *order, hf_error *error)
{
    return hf_inspect(order->session.client, order->name, 0, &order->lock, error) == HF_OK;
}

static bool says_yes(const struct order *order)
{
    char who[SHOW_HOLDER_MAX], answer[16];
    (void)fprintf(stderr, "Break the lock \"%s\" held by %s? [y/N] ", order->shown,
                  show_who(who, &order->lock));
    (void)fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL)
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* Somebody may think for a while; what they say yes to is the holder that they were shown. */
static int ask(struct order *order)
{
    uint64_t fence = order->lock.fence;
    hf_error error;
    if (!says_yes(order)) {
        say_note("it was left alone");
        return EXIT_NO;
    }
    if (!look(order, &error))
        return session_fail(&order->session, "cannot look at the lock", &error);
    if (!order->lock.held || order->lock.fence == fence)
        return 0;
    say_error("somebody else holds \"%s\" by now; it was left alone", order->shown);
    return EXIT_BUSY;
}

/* ---- The orders ---- */

static int break_it(struct order *order)
{
    uint64_t fence = 0;
    hf_error error;
    int code = 0;
    if (!look(order, &error))
        return session_fail(&order->session, "cannot look at the lock", &error);
    if (order->lock.held && !order->given->yes)
        code = ask(order);
    if (code != 0)
        return code;
    hf_status status = hf_break(order->session.client, order->name, 0, &fence, &error);
    if (status == HF_ENOTHELD)
        return nobody(order);
    if (status != HF_OK)
        return session_fail(&order->session, "cannot break the lock", &error);
    return print(order, true, fence);
}

static int revoke_it(struct order *order)
{
    hf_error error;
    hf_status status = hf_revoke(order->session.client, order->name, 0, order->given->why, &error);
    if (status == HF_ENOTHELD)
        return nobody(order);
    if (status != HF_OK)
        return session_fail(&order->session, "cannot ask for the lock", &error);
    return print(order, true, 0);
}

static bool is_sensible(const struct revoke_options *given)
{
    if (given->force && given->why != NULL)
        say_error("--why is for the holder, who is not asked with --force");
    else if (given->force && !given->yes && isatty(STDIN_FILENO) != 1)
        say_error("to break a lock without a terminal to ask on, say --yes");
    else
        return true;
    return false;
}

static int run(void *arg, int count, char **words)
{
    static struct order order;
    struct revoke_options *given = arg;
    order.given = given;
    int code = session_take_name(count, words, false, &order.name);
    if (code == 0 && !is_sensible(given))
        code = EXIT_USAGE;
    if (code == 0)
        code = session_open(&given->session, 0, &order.session);
    if (code != 0)
        return code;
    show_name(order.shown, order.name, 0);
    code = given->force ? break_it(&order) : revoke_it(&order);
    session_close(&order.session);
    return code;
}

const struct verb verb_revoke = {
    .name = "revoke",
    .usage = "[options] NAME",
    .summary = "ask the holder to give up a lock, or break it",
    .details = "With --force the lock is taken away, and the new fence is printed: make the store\n"
               "know it before others work, for the old holder finds out late.\n"
               "Exit code 1: nobody holds it.\n",
    .table = {options, &session_table},
    .size = sizeof(struct revoke_options),
    .run = run,
    .mixed = true};
