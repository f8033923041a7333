/* SPDX-License-Identifier: MIT */
/* See daemon.h. The program must not keep anything of ours: with our standard output it would keep
 * a reader of our pipe waiting for ever, with our lock file it would keep the lock, with our
 * terminal it would die at hang-up, and as our child it would be waited for. So there are two
 * forks: the one in the middle leads a new session and ends at once, and its child, which has no
 * way back to a terminal, becomes the program.
 *
 * A pipe tells how it went: first the id of that child, then an errno if there was trouble. It is
 * closed by exec(), so its end says that all went well. Between fork() and exec() only functions
 * are called that are safe there, also if we have threads. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ABOVE_STANDARD = 10 };

static bool put_number(int report, int number)
{
    return write(report, &number, sizeof(number)) == (ssize_t)sizeof(number);
}

static bool get_number(int report, int *number)
{
    ssize_t got;
    do
        got = read(report, number, sizeof(*number));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(*number);
}

static void reset_signals(void)
{
    sigset_t none;
    (void)sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL); /* fails for some, which cannot be changed anyway */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool redirect(const char *output)
{
    int nothing = open("/dev/null", O_RDWR);
    int file = open(output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    return nothing >= 0 && file >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
           dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0;
}

static void close_all_but(int report)
{
    (void)close_range(STDERR_FILENO + 1, (unsigned)report - 1, 0);
    (void)close_range((unsigned)report + 1, UINT_MAX, 0);
}

static _Noreturn void become(char *const *words, const char *folder, const char *output, int report)
{
    (void)umask(077);
    reset_signals();
    if (put_number(report, getpid()) && chdir(folder) == 0 && redirect(output)) {
        close_all_but(report);
        (void)execvp(words[0], words);
    }
    (void)put_number(report, errno);
    _exit(1);
}

static _Noreturn void stand_between(char *const *words, const char *folder, const char *output,
                                    int report)
{
    (void)setsid();
    pid_t pid = fork();
    if (pid == 0)
        become(words, folder, output, report);
    _exit(pid > 0 ? 0 : 1);
}

/* A pipe whose writing end cannot be taken for standard input or output, should those be closed. */
static bool open_report(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    int high = fcntl(ends[1], F_DUPFD_CLOEXEC, ABOVE_STANDARD);
    int problem = errno;
    (void)close(ends[1]);
    ends[1] = high;
    if (high >= 0)
        return true;
    (void)close(ends[0]);
    errno = problem;
    return false;
}

int daemon_start(char *const *words, const char *folder, const char *output, pid_t *pid)
{
    int report[2], problem = 0;
    if (!open_report(report))
        return errno;
    pid_t middle = fork();
    if (middle == 0)
        stand_between(words, folder, output, report[1]);
    if (middle < 0)
        problem = errno;
    (void)close(report[1]);
    if (middle > 0 && !get_number(report[0], pid))
        problem = EAGAIN; /* the second fork failed */
    int trouble;
    if (problem == 0 && get_number(report[0], &trouble))
        problem = trouble;
    (void)close(report[0]);
    while (middle > 0 && waitpid(middle, NULL, 0) < 0 && errno == EINTR)
        ;
    return problem;
}
