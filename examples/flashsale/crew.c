/* SPDX-License-Identifier: MIT
 *
 * The processes of one run: started, watched, and waited for. One that a mishap has killed is
 * replaced at once; one that was stopped is continued after STOP_MS. This process has no threads
 * and no client of its own while it forks, for neither would be fit for use in a child.
 *
 * However this ends, no worker is left: they are killed by pid and waited for, and the kernel kills
 * them should this process be killed itself. */
#include "sale.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_LIMIT_S  120
#define RUN_LIMIT_US (RUN_LIMIT_S * 1000000LL)
#define LOOK_US      2000

volatile sig_atomic_t sale_interrupted;

struct member {
    pid_t pid;          /* 0: has done its work */
    int64_t wake_up_us; /* 0: is not stopped    */
};

static pid_t member_start(struct sale *sale, int worker)
{
    pid_t boss = getpid();
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the boss decides */
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != boss)
        _exit(1);
    exit(worker_run(sale, worker));
}

/* What has become of a worker; false if that was not foreseen. */
static bool member_look(struct sale *sale, struct member *member, int worker,
                        struct crew_report *report)
{
    int status;
    if (member->wake_up_us != 0 && now_us() >= member->wake_up_us) {
        member->wake_up_us = 0;
        kill(member->pid, SIGCONT);
    }
    if (waitpid(member->pid, &status, WNOHANG | WUNTRACED) <= 0)
        return true;
    if (WIFSTOPPED(status)) {
        report->stopped++;
        member->wake_up_us = now_us() + STOP_MS * 1000;
        return true;
    }
    member->pid = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && sale->options.chaos) {
        report->killed++;
        member->pid = member_start(sale, worker);
        return member->pid > 0;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool crew_look(struct sale *sale, struct member *members, int *working,
                      struct crew_report *report)
{
    bool good = true;
    *working = 0;
    for (int i = 0; i < sale->options.processes; i++) {
        if (members[i].pid > 0 && !member_look(sale, &members[i], i, report))
            good = false;
        *working += members[i].pid > 0;
    }
    return good;
}

static void crew_end(struct member *members, int count)
{
    for (int i = 0; i < count; i++) {
        if (members[i].pid <= 0)
            continue;
        kill(members[i].pid, SIGKILL);
        while (waitpid(members[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}

void crew_run(struct sale *sale, struct crew_report *report)
{
    int count = sale->options.processes, working = count;
    struct member *members = calloc((size_t)count, sizeof *members);
    int64_t began_us = now_us();
    memset(report, 0, sizeof *report);
    report->good = members != NULL;
    for (int i = 0; i < count && report->good; i++) {
        members[i].pid = member_start(sale, i);
        report->good = members[i].pid > 0;
    }
    while (report->good && working > 0 && !sale_interrupted) {
        report->good = crew_look(sale, members, &working, report);
        if (now_us() - began_us > RUN_LIMIT_US) {
            fprintf(stderr, "flashsale: no end after %d s\n", RUN_LIMIT_S);
            report->good = false;
        }
        screen_progress(sale, now_us() - began_us);
        if (working > 0)
            usleep(LOOK_US);
    }
    report->took_us = now_us() - began_us;
    if (members != NULL)
        crew_end(members, count);
    free(members);
}
