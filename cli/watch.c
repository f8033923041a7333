/* SPDX-License-Identifier: MIT */
/* While the command runs: signals are passed on to it, and it is ended in time if its lock will not
 * last.
 *
 * In time means: before the lease can end, whatever the server does. The library renews the lease
 * early and often; when what is left of it is no more than the command may take to end, it gets
 * TERM, and KILL before the rest is over. What the server says itself (that the lock is gone, that
 * somebody asks for it) counts at once. Once the command has been told there is no way back: a
 * renewal that succeeds after all only gives it its full time.
 *
 * The lock outlives the command and all of its group: whoever is left over when the command has
 * ended would work without the lock, so they get TERM and KILL too, before it is released. Those
 * who cannot be ended are waited for, with the lock as long as it lasts (survivors.c). */
#include <signal.h>
#include <string.h>

#include "child.h"
#include "exit.h"
#include "guard.h"
#include "instant.h"
#include "job.h"
#include "printable.h"
#include "say.h"
#include "signals.h"

enum { SWEEP_LOOK_MS = 10, SURVIVORS_LOOK_MS = 200 };

/* ---- What the library tells ---- */

static bool is_final(hf_reason reason)
{
    return reason == HF_REASON_GONE || reason == HF_REASON_BROKEN || reason == HF_REASON_EXPIRED;
}

void job_on_event(void *arg, const hf_event *event)
{
    struct job *job = arg;
    if (event->state == HF_JEOPARDY && event->reason == HF_REASON_LATE)
        say_more("%s: %s", job->name, event->text);
    bool matters = is_final(event->reason) || event->reason == HF_REASON_MAX_HOLD ||
                   event->reason == HF_REASON_REVOKED;
    if (!matters || is_final(job->told))
        return;
    job->told = event->reason;
    if (event->reason == HF_REASON_REVOKED)
        printable(event->text, strlen(event->text), job->words, sizeof(job->words));
}

/* ---- Ending the command ---- */

static int64_t left_of_lease(const struct job *job)
{
    return hf_remaining_ms(job->hold) * NS_PER_MS;
}

/* When KILL must come, if TERM comes now. A lock that the server has already taken away cannot be
 * saved any more, so the command gets its time. */
static int64_t time_to_kill(const struct job *job, int64_t now)
{
    int64_t kill_at = now + job->plan->kill_after_ms * NS_PER_MS;
    if (job->plan->on_lost == ON_LOST_KILL && job->outcome != JOB_NONE)
        return now;
    if (job->told == HF_REASON_GONE || job->told == HF_REASON_BROKEN)
        return kill_at;
    return instant_earlier(kill_at, now + left_of_lease(job) - job->margin);
}

static void tell(struct job *job)
{
    int64_t now = instant_now();
    job->kill_at = time_to_kill(job, now);
    guard_set_deadline(job->kill_at + job->margin);
    guard_set_told();
    if (job->kill_at > now) {
        job_signal(job, SIGTERM);
        (void)child_signal(SIGCONT); /* a stopped process would not notice */
    }
}

static void end_command(struct job *job, job_outcome outcome, int exit_code)
{
    job->ending = true;
    if (job->plan->on_lost == ON_LOST_IGNORE) {
        guard_dismiss();
        return;
    }
    job_end(job, outcome, exit_code);
    tell(job);
}

static const char *what_now(const struct job *job)
{
    static const char *const words[] = {"the command is told to end", "the command is killed",
                                        "the command goes on without it"};
    return words[job->plan->on_lost];
}

/* What must be left of the lease for the command to be ended in it. */
static int64_t needed_to_end(const struct job *job)
{
    return job->plan->kill_after_ms * NS_PER_MS + job->margin;
}

static void look_at_hold(struct job *job)
{
    if (is_final(job->told)) {
        say_error("%s is lost, %s: %s", job->name, hf_reason_text(job->told), what_now(job));
        end_command(job, JOB_LOST, EXIT_LOST);
    } else if (job->told == HF_REASON_REVOKED) {
        say_error("somebody asks for %s%s%s: %s", job->name, job->words[0] != '\0' ? ", " : "",
                  job->words, what_now(job));
        end_command(job, JOB_REVOKED, EXIT_REVOKED);
    } else if (job->told == HF_REASON_MAX_HOLD) {
        say_error("%s was held for --max-hold: %s", job->name, what_now(job));
        end_command(job, JOB_MAX_HOLD, EXIT_LOST);
    } else if (left_of_lease(job) <= needed_to_end(job)) {
        say_error("%s could not be renewed and ends in %.1f s: %s", job->name,
                  (double)left_of_lease(job) / 1e9, what_now(job));
        end_command(job, JOB_LOST, EXIT_LOST);
    }
}

static void go_on_ending(struct job *job)
{
    int64_t now = instant_now();
    if (job->plan->on_lost == ON_LOST_IGNORE || job->killed_at != 0)
        return;
    if (job->told != HF_REASON_GONE && job->told != HF_REASON_BROKEN)
        job->kill_at = instant_earlier(job->kill_at, now + left_of_lease(job) - job->margin);
    guard_set_deadline(job->kill_at + job->margin);
    if (now >= job->kill_at)
        job_kill(job);
}

/* When there is something to decide next, if nothing comes. */
static int64_t next_decision(const struct job *job)
{
    if (job->killed_at != 0)
        return instant_now() + SURVIVORS_LOOK_MS * NS_PER_MS;
    if (job->ending)
        return job->plan->on_lost == ON_LOST_IGNORE ? INSTANT_NEVER : job->kill_at;
    return instant_now() + left_of_lease(job) - needed_to_end(job);
}

/* ---- Signals ---- */

/* One that is stopped would not notice that it is to end. */
static bool means_the_end(int number)
{
    return number == SIGTERM || number == SIGHUP || number == SIGINT || number == SIGQUIT;
}

static void pass_signals_on(struct job *job, bool *asked_to_stop)
{
    for (int number; (number = signals_next()) != 0;) {
        if (number == SIGCHLD)
            child_look();
        else
            job_signal(job, number);
        if (means_the_end(number))
            (void)child_signal(SIGCONT);
        if (number == SIGTSTP)
            *asked_to_stop = true;
        else if (number == SIGCONT)
            *asked_to_stop = false;
    }
}

static void stop_if_it_stopped(bool *asked_to_stop)
{
    int number = child_takes_stop();
    if (number != 0 && (child_has_terminal() || *asked_to_stop)) {
        *asked_to_stop = false;
        child_stop_with_us();
    } else if (number == SIGTTIN || number == SIGTTOU) {
        say_note("the command has stopped because it wants the terminal: use --foreground");
    }
}

/* ---- From start to end ---- */

/* Signals and time that came between the grant and now. */
static bool may_start(struct job *job)
{
    for (int number; (number = signals_next()) != 0;)
        if (signals_end_us(number))
            job_end(job, JOB_INTERRUPTED, EXIT_SIGNALLED + number);
    if (job->outcome == JOB_NONE && left_of_lease(job) <= needed_to_end(job)) {
        say_error("%s is as good as over: holdfast stood still when it got it; the command was not "
                  "started",
                  job->name);
        job_end(job, JOB_LOST, EXIT_LOST);
    }
    return job->outcome == JOB_NONE;
}

static bool start(struct job *job)
{
    char owner[HF_OWNER_MAX + 1];
    const struct job_plan *plan = job->plan;
    (void)hf_owner(job->hold, owner, sizeof(owner));
    struct child_plan wanted = {.words = plan->words,
                                .foreground = plan->foreground,
                                .name = plan->name,
                                .owner = owner,
                                .fence = job->fence,
                                .ttl_ms = plan->ttl_ms,
                                .waited_ms = (job->granted - job->began) / NS_PER_MS};
    guard_set_deadline(instant_now() + left_of_lease(job));
    if (may_start(job) && !child_start(&wanted))
        job_end(job, JOB_FAILED, EXIT_OWN);
    return job->outcome == JOB_NONE;
}

static void watch(struct job *job)
{
    bool asked_to_stop = false;
    while (!child_has_ended()) {
        if (job->ending)
            go_on_ending(job);
        else
            look_at_hold(job);
        if (!job->ending)
            guard_set_deadline(instant_now() + left_of_lease(job));
        job_look_at_survivors(job);
        job_turn(job, next_decision(job));
        pass_signals_on(job, &asked_to_stop);
        stop_if_it_stopped(&asked_to_stop);
    }
}

static void sweep(struct job *job)
{
    bool ignored;
    if (!child_left_others())
        return;
    say_more("the command has ended and left others behind: they are told to end too");
    if (!job->ending || job->plan->on_lost == ON_LOST_IGNORE)
        tell(job);
    while (child_left_others()) {
        if (instant_now() >= job->kill_at)
            job_kill(job);
        job_look_at_survivors(job);
        int pause_ms = job->survivors != SURVIVORS_NONE ? SURVIVORS_LOOK_MS : SWEEP_LOOK_MS;
        job_turn(job, instant_now() + pause_ms * NS_PER_MS);
        pass_signals_on(job, &ignored);
    }
}

void job_run(struct job *job)
{
    if (!start(job)) {
        guard_dismiss();
        return;
    }
    watch(job);
    sweep(job);
    guard_dismiss();
    if (guard_has_acted() && job->outcome == JOB_NONE) {
        say_error("%s was not renewed, for holdfast itself stood still: the guard has ended the "
                  "command",
                  job->name);
        job_end(job, JOB_LOST, EXIT_LOST);
    }
    if (child_could_not_run()) {
        say_error("cannot run %s: %s", job->plan->words[0], child_failure());
        job_end(job, JOB_NOT_STARTED, child_exit_code());
    }
    job_end(job, JOB_DONE, child_exit_code());
}
