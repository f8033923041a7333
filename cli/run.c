/* SPDX-License-Identifier: MIT */
/* holdfast run: what its options mean. What it does is in job.c (the lock), watch.c (the command
 * while it runs), survivors.c (what cannot be ended), child.c (its process), guard.c (if we die)
 * and live.c (while we wait). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exit.h"
#include "guard.h"
#include "instant.h"
#include "job.h"
#include "json.h"
#include "printable.h"
#include "program.h"
#include "say.h"
#include "session.h"
#include "signals.h"
#include "verb.h"

enum { KILL_AFTER_DEFAULT_MS = 5000, MARGIN_MIN_MS = 20, MARGIN_MAX_MS = 250 };

/* Where "not given" and 0 differ, the text is kept. */
struct run_options {
    struct session_options session;
    bool no_wait, fair, skip_ok, foreground;
    const char *wait, *busy_code, *kill_after;
    const char *command, *owner, *label;
    int64_t ttl_ms, max_hold_ms, min_hold_ms, replicas;
    int on_lost;
};

#define PLACE(field) offsetof(struct run_options, field)

static const char *const on_lost_words[] = {"term", "kill", "ignore", NULL};

static const struct option options[] = {
    {'n', "nonblock", OPTION_FLAG, PLACE(no_wait), 0, "do not wait if it is held", 0, 0, 0},
    {'w', "wait", OPTION_TEXT, PLACE(wait), "TIME", "wait at most so long (default: no limit)", 0,
     0, 0},
    {'E', "conflict-exit-code", OPTION_TEXT, PLACE(busy_code), "CODE",
     "exit code if it is held by others (75)", 0, 0, 0},
    {0, "skip-ok", OPTION_FLAG, PLACE(skip_ok), 0, "the same as -E 0", 0, 0, 0},
    {'c', "command", OPTION_TEXT, PLACE(command), "TEXT", "run a command of the shell", 0, 0, 0},
    {0, "ttl", OPTION_TIME, PLACE(ttl_ms), "TIME", "the lease, which is renewed (30)",
     HF_LEASE_MIN_MS, HF_MS_MAX, 0},
    {0, "fair", OPTION_FLAG, PLACE(fair), 0, "strictly first come, first served", 0, 0, 0},
    {0, "replicas", OPTION_NUMBER, PLACE(replicas), "K", "so many replicas must have it too (0)", 0,
     SESSION_REPLICAS_MAX, 0},
    {0, "owner", OPTION_TEXT, PLACE(owner), "ID", "share the lock with all who name the same", 0, 0,
     0},
    {0, "label", OPTION_TEXT, PLACE(label), "TEXT", "shown to others who look at the lock", 0, 0,
     0},
    {0, "max-hold", OPTION_TIME, PLACE(max_hold_ms), "TIME", "end the command after this time", 1,
     HF_MS_MAX, 0},
    {0, "min-hold", OPTION_TIME, PLACE(min_hold_ms), "TIME", "keep the lock at least so long", 1,
     HF_MS_MAX, 0},
    {0, "on-lost", OPTION_CHOICE, PLACE(on_lost), "term|kill|ignore",
     "what happens to the command if the lock is lost (term)", 0, 0, on_lost_words},
    {0, "kill-after", OPTION_TEXT, PLACE(kill_after), "TIME",
     "from TERM to KILL (5, at most a third of the lease)", 0, 0, 0},
    {0, "foreground", OPTION_FLAG, PLACE(foreground), 0,
     "leave the command in our process group; signal it alone", 0, 0, 0},
    {0}};

/* ---- Options ---- */

static bool read_busy_code(const struct run_options *given, int *code)
{
    *code = given->skip_ok ? EXIT_OK : EXIT_BUSY;
    return given->busy_code == NULL || options_read_exit_code(given->busy_code, code);
}

static bool read_lease(const struct run_options *given, struct job_plan *plan)
{
    plan->ttl_ms = given->ttl_ms > 0 ? given->ttl_ms : SESSION_TTL_MS;
    plan->kill_after_ms = plan->ttl_ms / 3;
    if (plan->kill_after_ms > KILL_AFTER_DEFAULT_MS)
        plan->kill_after_ms = KILL_AFTER_DEFAULT_MS;
    if (!options_take_time("kill-after", given->kill_after, &plan->kill_after_ms))
        return false;
    if (plan->kill_after_ms > plan->ttl_ms / 3) {
        say_error("--kill-after must be at most a third of the lease: give --ttl %.1f or more",
                  (double)plan->kill_after_ms * 3 / 1000 + 0.1);
        return false;
    }
    return true;
}

static bool read_plan(const struct run_options *given, struct job_plan *plan)
{
    *plan = (struct job_plan){.max_hold_ms = given->max_hold_ms,
                              .min_hold_ms = given->min_hold_ms,
                              .owner = given->owner,
                              .label = given->label,
                              .on_lost = given->on_lost,
                              .fair = given->fair,
                              .replicas = (int)given->replicas,
                              .foreground = given->foreground};
    if (given->max_hold_ms > 0 && given->min_hold_ms > given->max_hold_ms) {
        say_error("--min-hold is longer than --max-hold");
        return false;
    }
    return options_take_wait(given->no_wait, given->wait, &plan->wait_ms) &&
           read_lease(given, plan);
}

/* ---- Words ---- */

static bool use_shell(const char *command, struct job_plan *plan)
{
    static char *words[4];
    char *shell = getenv("SHELL");
    words[0] = shell != NULL && shell[0] != '\0' ? shell : "/bin/sh";
    words[1] = "-c";
    words[2] = (char *)command;
    plan->words = words;
    return true;
}

static bool wrong_words(const char *word, const char *text)
{
    if (word != NULL)
        say_error("\"%s\" %s; see holdfast run --help", options_shown(word), text);
    else
        say_error("%s; see holdfast run --help", text);
    return false;
}

static const char too_much[] = "is too much: -c takes one TEXT, which is the whole command";

/* NAME [--] COMMAND..., or NAME -c TEXT, or NAME alone if -c came before. */
static bool read_words(const struct run_options *given, int count, char **words,
                       struct job_plan *plan)
{
    if (count == 0)
        return wrong_words(NULL, "NAME is missing: the name of the lock");
    plan->name = words[0];
    if (given->command != NULL)
        return count == 1 ? use_shell(given->command, plan) : wrong_words(words[1], too_much);
    if (count > 1 && (strcmp(words[1], "-c") == 0 || strcmp(words[1], "--command") == 0))
        return count == 3   ? use_shell(words[2], plan)
               : count == 2 ? wrong_words(words[1], "needs TEXT")
                            : wrong_words(words[3], too_much);
    bool marked = count > 1 && strcmp(words[1], "--") == 0;
    plan->words = words + (marked ? 2 : 1);
    if (plan->words[0] == NULL || plan->words[0][0] == '\0')
        return wrong_words(NULL, "COMMAND is missing: what to run");
    if (!marked && plan->words[0][0] == '-')
        return wrong_words(words[1], "is in the wrong place: options stand before the name, and -- "
                                     "before a command that begins with a dash");
    return true;
}

/* ---- The end ---- */

static const char *outcome_word(job_outcome outcome)
{
#define OUTCOME_WORD(name, word) word,
    static const char *const words[] = {JOB_OUTCOME_MAP(OUTCOME_WORD)};
    return words[outcome];
}

/* Standard output was the command's, so this goes where we speak. */
static void print_summary(const struct job *job)
{
    bool held = job->granted != 0;
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    json_begin_object(NULL);
    json_text("name", job->plan->name);
    json_text("outcome", outcome_word(job->outcome));
    json_number("exit_code", job->exit_code);
    json_number("waited_ms", ((held ? job->granted : job->finished) - job->began) / NS_PER_MS);
    if (held) {
        json_unsigned("fence", job->fence);
        json_number("held_ms", (job->finished - job->granted) / NS_PER_MS);
    }
    json_end_object();
    (void)json_finish();
}

/* A release that got no answer would be waited for again, and so would that of a lost lock. */
static void close_session(struct job *job)
{
    hf_status status = job->answer.status;
    if (status == HF_EUNKNOWN || status == HF_EUNAVAILABLE || status == HF_ELOST)
        return;
    session_close(job->session);
}

/* ---- All together ---- */

static bool start_guard(const struct job *job)
{
    if (job->plan->on_lost == ON_LOST_IGNORE)
        return true;
    int64_t kill_after_ms = job->plan->on_lost == ON_LOST_KILL ? 0 : job->plan->kill_after_ms;
    return guard_start(&(struct guard_plan){.kill_after_ns = kill_after_ms * NS_PER_MS,
                                            .margin_ns = job->margin,
                                            .group = !job->plan->foreground});
}

static int64_t margin_for(int64_t ttl_ms)
{
    int64_t ms = ttl_ms / 20;
    ms = ms < MARGIN_MIN_MS ? MARGIN_MIN_MS : ms > MARGIN_MAX_MS ? MARGIN_MAX_MS : ms;
    return ms * NS_PER_MS;
}

static int work(struct job *job, struct session_options *session_options)
{
    int64_t longest =
        job->plan->ttl_ms > job->plan->min_hold_ms ? job->plan->ttl_ms : job->plan->min_hold_ms;
    int code = session_open(session_options, longest, job->session);
    if (code != 0)
        return code;
    /* Only now: a server that was started must not inherit what we do about signals. */
    if (!signals_begin() || !start_guard(job)) {
        session_close(job->session);
        return EXIT_OWN;
    }
    say_in_a_hurry();
    if (job->plan->on_lost != ON_LOST_IGNORE)
        program_warn_of_other_user(job->plan->words[0]);
    job_acquire(job);
    if (job->outcome == JOB_NONE)
        job_run(job);
    guard_dismiss();
    job_release(job);
    close_session(job);
    if (session_options->json)
        print_summary(job);
    return job->exit_code;
}

static int run(void *arg, int count, char **words)
{
    static struct session session;
    static struct job job;
    struct run_options *given = arg;
    struct job_plan plan;
    if (!read_plan(given, &plan) || !read_busy_code(given, &plan.busy_code) ||
        !read_words(given, count, words, &plan))
        return EXIT_USAGE;
    job.plan = &plan;
    job.options = &given->session;
    job.session = &session;
    job.margin = margin_for(plan.ttl_ms);
    printable(plan.name, strlen(plan.name), job.name, sizeof(job.name));
    given->session.own_loop = true;
    int code = work(&job, &given->session);
    guard_bury();
    return code;
}

static const char details[] =
    "Waits for the lock, without a limit unless -n or -w is given, runs the command, releases the\n"
    "lock and exits with the code of the command, or 128 and the number of the signal that ended\n"
    "it. TIME is in seconds, with fractions, or with a unit: 0.5, 250ms, 2m.\n"
    "\n"
    "The command sees HOLDFAST_NAME, HOLDFAST_FENCE, HOLDFAST_OWNER, HOLDFAST_TTL_MS and\n"
    "HOLDFAST_WAITED_MS. It has a process group of its own and gets every signal that holdfast\n"
    "gets. When it has ended, others that it left in its group get TERM, and KILL after\n"
    "--kill-after, before the lock is released (not with --foreground). A signal while we wait, "
    "or\n"
    "before the command is started, leaves the queue and exits with 128 and its number; one that\n"
    "comes during the release changes nothing.\n"
    "\n"
    "If the lock cannot be renewed, the command gets TERM early enough that KILL comes before the\n"
    "lease ends: exit code 122, whatever its own was. The same after --max-hold and, with exit\n"
    "code 123, if somebody asks for the lock (holdfast revoke). With --on-lost ignore this is "
    "only\n"
    "said, and the code of the command counts. A guard process does the same if holdfast itself "
    "is\n"
    "killed, hangs or is stopped: a stopped holdfast does not renew, so a command that is stopped\n"
    "from the terminal for longer than the lease is ended.\n"
    "\n"
    "A command that changes its user (sudo, su) cannot be ended unless holdfast runs as root: use\n"
    "sudo holdfast run, not holdfast run sudo. holdfast says so, and keeps the lock until such a\n"
    "command has ended by itself, if it can.\n"
    "\n"
    "--min-hold leaves a lock whose command was faster to end by itself: that may be later than\n"
    "asked for, by up to --ttl. --json prints a summary on standard error, for standard output is\n"
    "the command's: name, outcome (done, busy, interrupted, not_started, failed, max_hold,\n"
    "revoked, lost), exit_code, waited_ms and, if the lock was held, fence and held_ms.\n"
    "\n"
    "Exit codes of its own: 64 usage, 69 no server, 75 (or -E) held by others, 77 refused by the\n"
    "server, 78 unsafe server, 122 lost, 123 revoked, 125 holdfast failed, 126 and 127 the "
    "command\n"
    "cannot be run or was not found.\n";

const struct verb verb_run = {
    .name = "run",
    .usage = "[options] NAME [--] COMMAND...\nholdfast run [options] NAME -c 'shell command'",
    .summary = "run a command while holding a lock",
    .details = details,
    .table = {options, &session_table},
    .size = sizeof(struct run_options),
    .run = run};
