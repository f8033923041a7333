/* SPDX-License-Identifier: MIT */
/* Starting the command, and what a shell would do for it. It leads a process group of its own, so
 * that a signal for it also reaches those whom it has started. If we are in front on a terminal, it
 * is put in front instead, or it could not read from there; when it stops, we take the terminal
 * back and stop too, and the shell that waits for us takes notice.
 *
 * We ask the kernel to be given the orphans below us. Those of the group that outlive the command
 * become our children then: we are told when they end, also where nobody else would bury them. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exit.h"
#include "group.h"
#include "guard.h"
#include "say.h"
#include "signals.h"

static struct {
    pid_t pid;
    bool group;    /* it leads one */
    bool terminal; /* it was put in front of ours */
    bool ended;
    int stopped; /* by this signal, and nobody has asked yet; 0: it has not */
    int failure; /* why it could not be run; 0: it could */
    int code;
    int report; /* where it says so */
} child = {.report = -1};

/* ---- Starting it ---- */

static void set_number(const char *name, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    (void)setenv(name, text, 1);
}

static void set_environment(const struct child_plan *plan)
{
    (void)setenv("HOLDFAST_NAME", plan->name, 1);
    (void)setenv("HOLDFAST_OWNER", plan->owner, 1);
    set_number("HOLDFAST_FENCE", plan->fence);
    set_number("HOLDFAST_TTL_MS", (uint64_t)plan->ttl_ms);
    set_number("HOLDFAST_WAITED_MS", (uint64_t)plan->waited_ms);
}

/* Our end of the guard's pipe and of the report close by themselves when it becomes the command. */
static _Noreturn void become(const struct child_plan *plan, int report)
{
    if (child.group)
        (void)setpgid(0, 0);
    if (child.terminal)
        (void)tcsetpgrp(STDIN_FILENO, getpid());
    guard_watch_me();
    signals_restore();
    execvp(plan->words[0], plan->words);
    int failure = errno;
    (void)!write(report, &failure, sizeof(failure));
    _exit(EXIT_NOT_FOUND);
}

static bool are_in_front(void)
{
    return isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool child_start(const struct child_plan *plan)
{
    int report[2];
    child.group = !plan->foreground;
    child.terminal = child.group && are_in_front();
    set_environment(
        plan); /* here: after fork() memory is not to be had in a program with threads */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0 || (child.pid = fork()) < 0) {
        say_error("cannot start a process: %s", strerror(errno));
        return false;
    }
    if (child.pid == 0)
        become(plan, report[1]);
    if (child.group)
        (void)setpgid(child.pid, child.pid); /* whoever comes first */
    (void)close(report[1]);
    child.report = report[0];
    return true;
}

/* ---- While it runs ---- */

bool child_signal(int number)
{
    if (child.pid <= 0 || (!child.group && child.ended))
        return true;
    return group_signal(child.pid, child.group, number);
}

void child_view(struct group_view *view)
{
    *view = (struct group_view){.lives = false};
    if (child.pid > 0 && (child.group || !child.ended))
        group_look(child.pid, child.group, view);
}

bool child_has_terminal(void)
{
    return child.terminal;
}

static void take_terminal_back(void)
{
    if (child.terminal && tcgetpgrp(STDIN_FILENO) == child.pid)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
}

void child_stop_with_us(void)
{
    take_terminal_back();
    (void)kill(getpid(), SIGSTOP);
    if (child.terminal && tcgetpgrp(STDIN_FILENO) == getpgrp())
        (void)tcsetpgrp(STDIN_FILENO, child.pid);
    (void)child_signal(SIGCONT);
}

int child_takes_stop(void)
{
    int number = child.stopped;
    child.stopped = 0;
    return number;
}

/* ---- Its end ---- */

static void read_report(void)
{
    if (read(child.report, &child.failure, sizeof(child.failure)) != sizeof(child.failure))
        child.failure = 0;
    (void)close(child.report);
}

static void end(int status)
{
    child.ended = true;
    child.code = WIFSIGNALED(status) ? EXIT_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
    read_report();
    take_terminal_back();
    if (child.failure != 0)
        child.code = child.failure == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static void take_note(pid_t pid, int status)
{
    if (WIFSTOPPED(status)) {
        if (pid == child.pid)
            child.stopped = WSTOPSIG(status);
        return;
    }
    if (guard_was(pid) && WIFSIGNALED(status))
        say_note("the guard process was ended by somebody: if holdfast is killed now, the command "
                 "goes on without its lock");
    if (pid == child.pid)
        end(status);
}

void child_look(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;)
        take_note(pid, status);
}

bool child_has_ended(void)
{
    return child.ended;
}

int child_exit_code(void)
{
    return child.code;
}

bool child_could_not_run(void)
{
    return child.failure != 0;
}

const char *child_failure(void)
{
    return strerror(child.failure);
}

/* A zombie holds nobody up: it does nothing any more, and its parent may never wait for it. */
bool child_left_others(void)
{
    struct group_view view;
    if (!child.group || !child.ended)
        return false;
    group_look(child.pid, true, &view);
    return view.lives;
}
