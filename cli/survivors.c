/* SPDX-License-Identifier: MIT */
/* Processes of the command that outlive its end: those that have changed their user, which we may
 * not signal, and those that are dead but for the kernel, which lets nobody end them while they
 * wait for a disk. Nobody but their user, or root, can do something about them, so they are named
 * at once.
 *
 * The lock is not released while one of them lives: it is renewed for as long as the server lets
 * us. If it is lost nevertheless, they work without it, and that is said too. */
#include <signal.h>
#include <string.h>

#include "child.h"
#include "exit.h"
#include "group.h"
#include "instant.h"
#include "job.h"
#include "say.h"
#include "signals.h"

enum { PATIENCE_MS = 2000 }; /* from KILL to the moment at which a survivor is one */

void job_signal(struct job *job, int number)
{
    const char *name = sigabbrev_np(number);
    struct group_view view;
    if (child_signal(number) || !signals_end_us(number))
        return;
    child_view(&view);
    if (view.refuses)
        say_error("cannot send %s to the command, for part of it runs as another user: %s",
                  name != NULL ? name : "a signal", view.who);
    job->refused = job->refused || view.refuses;
}

void job_kill(struct job *job)
{
    if (job->killed_at != 0) {
        (void)child_signal(SIGKILL);
        return;
    }
    job_signal(job, SIGKILL);
    job->killed_at = instant_now();
}

/* The library stops to renew at --max-hold, on the understanding that the work ends then. */
static void renew_beyond_max_hold(struct job *job)
{
    int64_t ttl_ms = job->plan->ttl_ms;
    if (job->told == HF_REASON_MAX_HOLD && hf_is_valid(job->hold) &&
        hf_remaining_ms(job->hold) < ttl_ms - ttl_ms / 3)
        (void)hf_extend(job->hold, ttl_ms, NULL);
}

static void say_lost(struct job *job, const struct group_view *view)
{
    say_error("the command RUNS ON WITHOUT THE LOCK %s, which others can get now: %s; end it%s",
              job->name, view->who, view->refuses ? " as its user or as root" : "");
    job->survivors = SURVIVORS_WITHOUT_LOCK;
    if (job->plan->on_lost != ON_LOST_IGNORE) {
        job->outcome = JOB_LOST;
        job->exit_code = EXIT_LOST;
    }
}

static void say_kept(struct job *job, const struct group_view *view)
{
    say_error("the command could not be ended: %s; %s is kept until it has ended, so end it%s",
              view->who, job->name, view->refuses ? " as its user or as root" : "");
    job->survivors = SURVIVORS_WITH_LOCK;
}

void job_look_at_survivors(struct job *job)
{
    struct group_view view;
    bool waited = instant_now() - job->killed_at >= PATIENCE_MS * NS_PER_MS;
    if (job->killed_at == 0 || (!waited && !job->refused))
        return;
    child_view(&view);
    if (!view.lives)
        return;
    renew_beyond_max_hold(job);
    if (!hf_is_valid(job->hold) && job->survivors != SURVIVORS_WITHOUT_LOCK)
        say_lost(job, &view);
    else if (job->survivors == SURVIVORS_NONE && hf_remaining_ms(job->hold) > job->plan->ttl_ms / 3)
        say_kept(job, &view);
}
