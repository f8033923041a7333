/* SPDX-License-Identifier: MIT */
/* See bell.h. Signals are read from a descriptor, so that nothing runs in a handler and none can
 * come between a question and the wait for its answer. A signal that was ignored when we were
 * started (nohup) stays so. */
#include "bell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "instant.h"
#include "say.h"

static void add_unless_ignored(sigset_t *set, int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(set, number);
}

bool bell_open(struct bell *bell)
{
    sigset_t set;
    sigemptyset(&set);
    add_unless_ignored(&set, SIGINT);
    add_unless_ignored(&set, SIGTERM);
    add_unless_ignored(&set, SIGHUP);
    add_unless_ignored(&set, SIGQUIT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    bell->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    bell->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->signals >= 0 && bell->news >= 0)
        return true;
    say_error("no descriptors are left: %s", strerror(errno));
    bell_close(bell);
    return false;
}

void bell_close(struct bell *bell)
{
    if (bell->signals >= 0)
        close(bell->signals);
    if (bell->news >= 0)
        close(bell->news);
    bell->signals = bell->news = -1;
}

void bell_ring(struct bell *bell)
{
    uint64_t one = 1;
    ssize_t written = write(bell->news, &one, sizeof(one));
    (void)written; /* it can only fail if it rings already */
}

static int left_ms(int64_t end_ms)
{
    int64_t left = end_ms - instant_now_ms();
    return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

int bell_wait(struct bell *bell, int64_t timeout_ms)
{
    struct pollfd ends[] = {{bell->signals, POLLIN, 0}, {bell->news, POLLIN, 0}};
    int64_t end_ms = instant_now_ms() + timeout_ms;
    struct signalfd_siginfo signal;
    uint64_t count;
    for (;;) {
        int ready = poll(ends, 2, timeout_ms < 0 ? -1 : left_ms(end_ms));
        if (read(bell->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
            return (int)signal.ssi_signo;
        if (read(bell->news, &count, sizeof(count)) == (ssize_t)sizeof(count))
            return BELL_NEWS;
        if (ready == 0 && timeout_ms >= 0 && left_ms(end_ms) == 0)
            return BELL_TIMEOUT;
    }
}
