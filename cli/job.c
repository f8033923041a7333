/* SPDX-License-Identifier: MIT */
/* Getting the lock and giving it back. Everything is one loop without threads: signals, the
 * library's descriptor and the clock. So a signal is seen between any two steps and never lost: if
 * it comes while we wait, we leave the queue; if it comes with the grant, the command is not
 * started and the lock goes back; if it comes while we release, the release is finished first,
 * which has its limit. */
#include "job.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exit.h"
#include "guard.h"
#include "instant.h"
#include "live.h"
#include "local.h"
#include "printable.h"
#include "say.h"
#include "signals.h"

enum { RELEASE_GRACE_MS = 500, TIMEOUT_DEFAULT_MS = 3000, LOOK_MS = 500, REVIVE_MS = 3000 };

/* A private server that has died is started anew, or a lone holder would lose its lock, and one who
 * waits would do so for ever. By a process of its own: that may take seconds, and we have signals
 * and deadlines to heed. Returns when to look again. */
static int64_t revive_server(const struct job *job)
{
    static int64_t next;
    char url[sizeof(job->session->url)];
    int64_t now = instant_now();
    if (!job->session->local)
        return INSTANT_NEVER;
    if (now < next)
        return next;
    next = now + LOOK_MS * NS_PER_MS;
    if (!local_has_died())
        return next;
    next = now + REVIVE_MS * NS_PER_MS;
    if (fork() == 0) {
        guard_forget();
        signals_restore();
        _exit(local_start(url, sizeof(url)) ? EXIT_OK : EXIT_NO_SERVER);
    }
    return next;
}

void job_turn(struct job *job, int64_t until)
{
    hf_client *client = job->session->client;
    until = instant_earlier(until, revive_server(job));
    struct pollfd set[] = {{.fd = signals_descriptor(), .events = POLLIN},
                           {.fd = hf_loop_descriptor(client), .events = POLLIN}};
    int timeout = instant_timeout_ms(until, instant_now()), theirs = hf_loop_timeout_ms(client);
    if (timeout < 0 || (theirs >= 0 && theirs < timeout))
        timeout = theirs;
    (void)poll(set, 2, timeout);
    (void)hf_process(client, NULL);
}

void job_end(struct job *job, job_outcome outcome, int exit_code)
{
    if (job->outcome == JOB_NONE) {
        job->outcome = outcome;
        job->exit_code = exit_code;
    }
}

static int fail(struct job *job, const char *what)
{
    char text[300];
    (void)snprintf(text, sizeof(text), "%s %s", what, job->name);
    return session_fail(job->session, text, &job->answer);
}

/* ---- Acquire ---- */

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    struct job *job = arg;
    job->hold = hold;
    job->answer = *error;
    job->answered = true;
}

static void begin_acquire(struct job *job, int64_t wait_ms)
{
    const struct job_plan *plan = job->plan;
    hf_acquire_options options = {.size = sizeof(options),
                                  .lease_ms = plan->ttl_ms,
                                  .wait_ms = wait_ms,
                                  .max_hold_ms = plan->max_hold_ms,
                                  .on_event = job_on_event,
                                  .arg = job,
                                  .owner = plan->owner,
                                  .label = plan->label,
                                  .fair = plan->fair,
                                  .replicas = plan->replicas};
    job->answered = hf_acquire_async(job->session->client, plan->name, &options, on_acquired, job,
                                     &job->operation, &job->answer) != HF_OK;
}

static void on_signal_while_waiting(struct job *job, int number)
{
    if (number == SIGTSTP) {
        say_live(NULL);
        (void)kill(getpid(), SIGSTOP); /* the place in the queue may be lost meanwhile */
    } else if (signals_end_us(number) && job->signal == 0) {
        job->signal = number;
        if (!job->answered)
            (void)hf_cancel_operation(job->session->client, job->operation);
    }
}

static void read_signals(struct job *job)
{
    for (int number; (number = signals_next()) != 0;)
        on_signal_while_waiting(job, number);
}

static void await_answer(struct job *job)
{
    while (!job->answered) {
        job_turn(job, live_next());
        read_signals(job);
        if (!job->answered && job->signal == 0)
            live_show();
    }
}

/* Waiting for a lock that a command above us holds, and holds until we are done, has no end. */
static bool waits_for_ourselves(struct job *job)
{
    static hf_inspection seen;
    const char *outer = getenv("HOLDFAST_NAME"), *owner = getenv("HOLDFAST_OWNER");
    return outer != NULL && owner != NULL && strcmp(outer, job->plan->name) == 0 &&
           hf_inspect(job->session->client, outer, 0, &seen, NULL) == HF_OK && seen.held &&
           strcmp(seen.owner, owner) == 0;
}

/* A wait without limit begins with a single try: a server that is not there is said at once instead
 * of being waited for, too. */
static void try_and_wait(struct job *job)
{
    bool limited = job->plan->wait_ms > 0;
    if (limited)
        live_begin(job->options, job->session, job->plan->name);
    begin_acquire(job, limited ? job->plan->wait_ms : 0);
    await_answer(job);
    if (job->plan->wait_ms >= 0 || job->answer.status != HF_EBUSY || job->signal != 0)
        return;
    if (waits_for_ourselves(job)) {
        say_error("this runs inside a command that holds %s and would wait for itself for ever: "
                  "use another name, or give both the same --owner",
                  job->name);
        job_end(job, JOB_FAILED, EXIT_USAGE);
        return;
    }
    live_begin(job->options, job->session, job->plan->name);
    begin_acquire(job, -1);
    await_answer(job);
}

static void say_busy(struct job *job)
{
    static hf_inspection seen;
    char who[800] = "somebody else";
    if (job->options->quiet)
        return;
    if (hf_inspect(job->session->client, job->plan->name, 0, &seen, NULL) == HF_OK && seen.held)
        live_describe_holder(&seen, who, sizeof(who));
    say_note("%s is held by %s%s", job->name, who,
             job->plan->wait_ms == 0 ? "" : ", and was for as long as we waited");
}

static void take_answer(struct job *job)
{
    job->granted = job->hold != NULL ? job->finished : 0;
    job->fence = hf_fence(job->hold);
    if (job->signal != 0) {
        job_end(job, JOB_INTERRUPTED, EXIT_SIGNALLED + job->signal);
    } else if (job->answer.status == HF_EBUSY) {
        say_busy(job);
        job_end(job, JOB_BUSY, job->plan->busy_code);
    } else if (job->hold == NULL) {
        job_end(job, JOB_FAILED, fail(job, "cannot get the lock"));
    }
}

void job_acquire(struct job *job)
{
    job->began = instant_now();
    try_and_wait(job);
    live_end();
    job->finished = instant_now();
    if (job->outcome != JOB_NONE)
        return;
    take_answer(job);
    if (job->outcome == JOB_NONE)
        say_more("got %s%s after %.3f s, with fence %llu", job->name,
                 job->session->local ? " (this machine only)" : "",
                 (double)(job->granted - job->began) / 1e9, (unsigned long long)job->fence);
}

/* ---- Release ---- */

static void on_released(void *arg, const hf_error *error)
{
    struct job *job = arg;
    job->answer = *error;
    job->answered = true;
}

/* The server may still have something of a lost lock, and is told; but there is nothing to wait
 * for.
 */
static void release_lost(struct job *job)
{
    (void)hf_release_nowait(&job->hold);
    (void)hf_process(job->session->client, NULL);
    job->answer.status = HF_ELOST;
}

/* Signals that come now change nothing any more: the command has ended, and this has a limit. */
static void release(struct job *job)
{
    int64_t limit = job->options->timeout_ms > 0 ? job->options->timeout_ms : TIMEOUT_DEFAULT_MS;
    int64_t left = hf_remaining_ms(job->hold); /* then it ends by itself */
    limit += RELEASE_GRACE_MS;
    int64_t until = instant_now() + (limit < left ? limit : left) * NS_PER_MS;
    hf_error refusal;
    job->answered = hf_release_async(&job->hold, on_released, job, &refusal) != HF_OK;
    job->answer = refusal;
    if (!job->answered)
        job->answer.status = HF_EUNKNOWN; /* until there is one */
    while (!job->answered && instant_now() < until)
        job_turn(job, until);
}

/* The lock must last for a while after the command: it is left to run out by itself. */
static void leave(struct job *job, int64_t left_ms)
{
    char token[HF_TOKEN_MAX];
    hf_status status = HF_OK;
    if (hf_remaining_ms(job->hold) < left_ms)
        status = hf_extend(job->hold, left_ms, &job->answer);
    if (status != HF_OK)
        say_note("%s could not be kept for --min-hold: %s", job->name, job->answer.text);
    status = hf_detach(&job->hold, token, &job->answer);
    job->answer.status = status;
    say_more("%s is left to end by itself", job->name);
}

static void judge_release(struct job *job)
{
    bool fine = job->outcome == JOB_DONE || job->outcome == JOB_MAX_HOLD;
    if (job->answer.status == HF_ELOST && fine) {
        say_error("%s was lost before the command had ended: somebody else's work may have "
                  "overlapped with it",
                  job->name);
        job->outcome = JOB_LOST;
        if (job->plan->on_lost != ON_LOST_IGNORE)
            job->exit_code = EXIT_LOST;
    } else if (job->answer.status != HF_OK && job->answer.status != HF_ELOST) {
        say_note("the release of %s is not confirmed: %s; if it is still held, it ends with its "
                 "lease, in %.1f s at the latest",
                 job->name, job->answer.text[0] != '\0' ? job->answer.text : "no answer",
                 (double)job->plan->ttl_ms / 1000);
    }
}

void job_release(struct job *job)
{
    int64_t now = instant_now();
    int64_t left_ms = job->plan->min_hold_ms - (now - job->granted) / NS_PER_MS;
    if (job->hold == NULL)
        return;
    if (job->outcome == JOB_DONE && left_ms > 0 && hf_is_valid(job->hold))
        leave(job, left_ms);
    else if (hf_is_valid(job->hold))
        release(job);
    else
        release_lost(job);
    job->finished = now;
    judge_release(job);
}
