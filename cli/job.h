/* SPDX-License-Identifier: MIT */
/* One run of a command under a lock, from the wait for the lock to its release. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include <holdfast.h>

#include "session.h"

enum { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_IGNORE };

/* What the user wants, with all defaults filled in. */
struct job_plan {
    const char *name;
    char **words;    /* the command */
    int64_t wait_ms; /* 0: do not wait; -1: for ever */
    int64_t ttl_ms;
    int64_t kill_after_ms;
    int64_t max_hold_ms; /* 0: no limit */
    int64_t min_hold_ms;
    const char *owner, *label; /* may be NULL */
    int on_lost;
    int busy_code; /* to exit with if others hold it */
    bool fair, foreground;
    int replicas;
};

/* How it ended. The map feeds the enum and the words of --json. */
#define JOB_OUTCOME_MAP(X)                                                        \
    X(NONE, "running")                                                            \
    X(DONE, "done")               /* the command has ended by itself */           \
    X(BUSY, "busy")               /* somebody else holds the lock */              \
    X(INTERRUPTED, "interrupted") /* a signal came before it was started */       \
    X(NOT_STARTED, "not_started") /* it could not be run */                       \
    X(FAILED, "failed")           /* no server, or it refuses, or no memory... */ \
    X(MAX_HOLD, "max_hold")                                                       \
    X(REVOKED, "revoked")                                                         \
    X(LOST, "lost")

#define JOB_OUTCOME_ENUM(name, word) JOB_##name,
typedef enum job_outcome { JOB_OUTCOME_MAP(JOB_OUTCOME_ENUM) } job_outcome;

struct job {
    const struct job_plan *plan;
    const struct session_options *options;
    struct session *session;
    char name[256]; /* for people */

    hf_hold *hold;
    hf_operation operation;
    hf_error answer; /* of the acquire or release that was asked for last */
    bool answered;

    int64_t margin; /* KILL comes so long before the lease ends; ns, as all below */
    int64_t began, granted, finished;
    uint64_t fence;
    int signal; /* that came before the command was started; 0: none */

    hf_reason told;                /* by the library: why the hold is, or will be, over */
    char words[HF_REASON_MAX + 1]; /* of whoever asked for the lock */
    bool ending;                   /* the command is being ended */
    int64_t kill_at;
    int64_t killed_at; /* 0: not yet */
    bool refused;      /* part of it cannot be signalled by us */
    enum {
        SURVIVORS_NONE,
        SURVIVORS_WITH_LOCK,
        SURVIVORS_WITHOUT_LOCK
    } survivors; /* said so far */

    job_outcome outcome;
    int exit_code;
};

/* Each leaves job->outcome NONE if the next one may come. */
void job_acquire(struct job *job);
void job_run(struct job *job);
void job_release(struct job *job); /* also after a command that was not started */

/* One round of the loop: sleeps until something has come, at the latest until then. */
void job_turn(struct job *job, int64_t until);
void job_end(struct job *job, job_outcome outcome, int exit_code);
void job_on_event(void *job, const hf_event *event);

/* Sends a signal to the command, and says so if part of it cannot be signalled by us. */
void job_signal(struct job *job, int number);
void job_kill(struct job *job); /* the same with KILL; may be repeated */

/* Says what becomes of the lock if some of the command live on after KILL; to be called again and
 * again. */
void job_look_at_survivors(struct job *job);

#endif
