/* SPDX-License-Identifier: MIT */
/* Every signal that can be passed on is blocked and read from a descriptor instead, in the same
 * loop as everything else. So a signal never falls between two steps: one that comes between the
 * grant of the lock and the start of the command is found before the command is started, and one
 * that comes later is found when there is somebody to pass it on to.
 *
 * Left alone are signals that the program itself causes when it is broken, and those that whoever
 * started us had ignored or blocked. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "say.h"

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

/* What we set otherwise than we found it: a closed pipe must not end us, our children must be there
 * to be waited for, and a background process may touch its terminal. */
static struct {
    int number;
    void (*wanted)(int);
    struct sigaction inherited;
} changed[] = {{.number = SIGPIPE, .wanted = SIG_IGN},
               {.number = SIGCHLD, .wanted = SIG_DFL},
               {.number = SIGTTOU, .wanted = SIG_IGN}};

enum { CHANGED = sizeof(changed) / sizeof(changed[0]) };

static sigset_t inherited_mask;
static int descriptor = -1;

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_IGN;
}

static void choose(sigset_t *set)
{
    sigemptyset(set);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (!is_ignored(number) && sigismember(&inherited_mask, number) == 0)
            sigaddset(set, number);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(set, faults[i]);
    sigdelset(set, SIGTTIN);
    sigaddset(set, SIGCHLD);
}

static void change(void)
{
    for (size_t i = 0; i < CHANGED; i++) {
        struct sigaction wanted = {.sa_handler = changed[i].wanted};
        sigaction(changed[i].number, &wanted, &changed[i].inherited);
    }
}

bool signals_begin(void)
{
    sigset_t ours;
    sigprocmask(SIG_SETMASK, NULL, &inherited_mask);
    change();
    choose(&ours);
    descriptor = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0 || sigprocmask(SIG_BLOCK, &ours, NULL) != 0) {
        say_error("cannot watch for signals: %s", strerror(errno));
        return false;
    }
    return true;
}

int signals_descriptor(void)
{
    return descriptor;
}

int signals_next(void)
{
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

bool signals_end_us(int number)
{
    switch (number) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGTSTP:
        return false;
    default:
        return true;
    }
}

void signals_restore(void)
{
    for (size_t i = 0; i < CHANGED; i++)
        sigaction(changed[i].number, &changed[i].inherited, NULL);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}
