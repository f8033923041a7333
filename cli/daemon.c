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

enum { KEPT = STDERR_FILENO + 1, ABOVE_STANDARD = 10 };

struct program {
    char *const *words;
    const char *folder;
    const char *output;
    int keep;
    int report;
};

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

static bool redirect(const struct program *program)
{
    int nothing = open("/dev/null", O_RDWR);
    int file = open(program->output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    return nothing >= 0 && file >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
           dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0 &&
           dup2(program->keep, KEPT) >= 0;
}

static void close_others(const struct program *program)
{
    (void)close_range(KEPT + 1, (unsigned)program->report - 1, 0);
    (void)close_range((unsigned)program->report + 1, UINT_MAX, 0);
}

static _Noreturn void become(const struct program *program)
{
    (void)umask(077);
    reset_signals();
    if (put_number(program->report, getpid()) && chdir(program->folder) == 0 && redirect(program)) {
        close_others(program);
        (void)execvp(program->words[0], program->words);
    }
    (void)put_number(program->report, errno);
    _exit(1);
}

static _Noreturn void stand_between(const struct program *program)
{
    (void)setsid();
    pid_t pid = fork();
    if (pid == 0)
        become(program);
    _exit(pid > 0 ? 0 : 1);
}

/* A copy that cannot be taken for standard input or output, should those be closed, nor for what is
 * kept. */
static int move_up(int descriptor)
{
    return fcntl(descriptor, F_DUPFD_CLOEXEC, ABOVE_STANDARD);
}

/* What the pipe says, until its end. */
static int read_report(int report, pid_t *pid)
{
    int trouble;
    if (!get_number(report, pid))
        return EAGAIN; /* the second fork failed */
    return get_number(report, &trouble) ? trouble : 0;
}

static int start(struct program *program, const int ends[2], pid_t *pid)
{
    int problem = 0;
    pid_t middle = program->keep >= 0 && program->report >= 0 ? fork() : -1;
    if (middle == 0)
        stand_between(program);
    if (middle < 0)
        problem = errno;
    (void)close(ends[1]);
    if (program->report >= 0)
        (void)close(program->report);
    if (problem == 0)
        problem = read_report(ends[0], pid);
    while (middle > 0 && waitpid(middle, NULL, 0) < 0 && errno == EINTR)
        ;
    return problem;
}

int daemon_start(char *const *words, const char *folder, const char *output, int keep, pid_t *pid)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    struct program program = {words, folder, output, move_up(keep), move_up(ends[1])};
    int problem = start(&program, ends, pid);
    (void)close(ends[0]);
    if (program.keep >= 0)
        (void)close(program.keep);
    return problem;
}
