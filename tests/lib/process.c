/* SPDX-License-Identifier: MIT */
/* See process.h. The children of a test are in one table, so that a teardown that knows nothing of
 * the test can end them all. A child never returns into cmocka: it leaves by _exit(), which also
 * keeps it from running the sanitizer's leak check on memory that belongs to the parent.
 *
 * The line is a SOCK_SEQPACKET pair: messages keep their borders, and the end of either process is
 * seen by the other as the end of the line.
 */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 32 };

static struct process processes[PROCESSES_MAX];
static size_t process_count;

/* ---- Time ------------------------------------------------------------------------------------ */

int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(int64_t duration_ms)
{
    struct timespec rest = {.tv_sec = (time_t)(duration_ms / 1000),
                            .tv_nsec = (long)(duration_ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

int64_t longest_pause_ms(int64_t duration_ms)
{
    int64_t before = now_ms();
    int64_t until = before + duration_ms;
    int64_t longest = 0;
    while (before < until) {
        sleep_ms(2);
        int64_t now = now_ms();
        longest = now - before > longest ? now - before : longest;
        before = now;
    }
    return longest;
}

/* ---- Statuses -------------------------------------------------------------------------------- */

void expect_status(hf_status wanted, hf_status got, const hf_error *error, const char *call,
                   const char *file, int line)
{
    const char *text = error != NULL ? error->text : "";
    if (got != wanted) {
        print_error("%s\n    returned %s, not %s. %s\n", call, hf_status_name(got),
                    hf_status_name(wanted), text);
        _fail(file, line);
    }
    if (error != NULL && (error->status != got || (text[0] == '\0') != (got == HF_OK))) {
        print_error("%s\n    returned %s, but its error says %s: \"%s\"\n", call,
                    hf_status_name(got), hf_status_name(error->status), text);
        _fail(file, line);
    }
}

/* ---- Child processes ------------------------------------------------------------------------- */

void die_with_parent(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(127);
}

bool reap(pid_t pid, int *status, int64_t bound_ms)
{
    int64_t give_up = now_ms() + bound_ms;
    for (;;) {
        pid_t reaped = waitpid(pid, status, WNOHANG);
        if (reaped == pid)
            return true;
        if ((reaped < 0 && errno != EINTR) || now_ms() > give_up)
            return false;
        sleep_ms(1);
    }
}

struct process *process_start(process_body *body, void *arg)
{
    int ends[2];
    assert_true(process_count < PROCESSES_MAX);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        die_with_parent(parent);
        (void)close(ends[0]);
        body(ends[1], arg);
        _exit(0);
    }
    (void)close(ends[1]);
    if (pid < 0)
        (void)close(ends[0]);
    assert_true(pid > 0);
    struct process *process = &processes[process_count++];
    *process = (struct process){.pid = pid, .line = ends[0]};
    return process;
}

void process_kill(struct process *process)
{
    if (process->pid == 0)
        return;
    int status;
    (void)kill(process->pid, SIGKILL);
    (void)waitpid(process->pid, &status, 0);
    process->pid = 0;
}

void process_freeze(struct process *process)
{
    int status = 0;
    assert_int_equal(kill(process->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(process->pid, &status, WUNTRACED), process->pid);
    if (!WIFSTOPPED(status))
        process->pid = 0;
    assert_true(WIFSTOPPED(status));
}

void process_thaw(struct process *process)
{
    assert_int_equal(kill(process->pid, SIGCONT), 0);
}

bool process_finish(struct process *process, int64_t bound_ms)
{
    int status = 0;
    if (!reap(process->pid, &status, bound_ms))
        return false;
    process->pid = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void process_end_all(void)
{
    for (size_t i = 0; i < process_count; i++) {
        process_kill(&processes[i]);
        (void)close(processes[i].line);
    }
    process_count = 0;
}

void line_say(int line, const char *format, ...)
{
    char text[LINE_MAX_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    /* When the other end is gone nobody is left to tell, and it finds the line at its end. */
    (void)send(line, text, strlen(text), MSG_NOSIGNAL);
}

bool line_hear(int line, char text[LINE_MAX_TEXT], int64_t bound_ms)
{
    struct pollfd readable = {.fd = line, .events = POLLIN};
    int64_t give_up = now_ms() + bound_ms;
    for (;;) {
        int64_t left = give_up - now_ms();
        int ready = poll(&readable, 1, left > 0 ? (int)left : 0);
        if (ready > 0)
            break;
        if (ready == 0 || errno != EINTR)
            return false;
    }
    ssize_t length = recv(line, text, LINE_MAX_TEXT - 1, 0);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return true;
}

/* ---- Calls on another thread ----------------------------------------------------------------- */

static void *attempt_run(void *arg)
{
    struct attempt *attempt = arg;
    int64_t start = now_ms();
    attempt->status = hf_acquire(attempt->client, attempt->name, &attempt->options, &attempt->hold,
                                 &attempt->error);
    attempt->took_ms = now_ms() - start;
    atomic_store(&attempt->over, true);
    return NULL;
}

void attempt_begin(struct attempt *attempt, hf_client *client, const char *name,
                   const hf_acquire_options *options)
{
    attempt->client = client;
    attempt->name = name;
    attempt->options = *options;
    attempt->hold = NULL;
    atomic_store(&attempt->over, false);
    assert_int_equal(pthread_create(&attempt->thread, NULL, attempt_run, attempt), 0);
}

bool attempt_is_over(const struct attempt *attempt)
{
    return atomic_load(&attempt->over);
}

hf_status attempt_end(struct attempt *attempt)
{
    assert_int_equal(pthread_join(attempt->thread, NULL), 0);
    assert_int_equal(attempt->status, attempt->error.status);
    return attempt->status;
}

/* ---- What the system says about this process ------------------------------------------------- */

/* The descriptor of the listing itself is in /proc/self/fd, each time, so it cancels out. No
 * assertion here: children count too. */
static int entries_in(const char *path)
{
    int entries = -2; /* "." and ".." */
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        entries++;
    (void)closedir(folder);
    return entries;
}

int open_descriptors(void)
{
    return entries_in("/proc/self/fd");
}

int running_threads(void)
{
    return entries_in("/proc/self/task");
}

int64_t resident_kib(void)
{
    long long size = 0;
    long long resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    assert_non_null(statm);
    int fields = fscanf(statm, "%lld %lld", &size, &resident);
    (void)fclose(statm);
    assert_int_equal(fields, 2);
    return (int64_t)resident * sysconf(_SC_PAGESIZE) / 1024;
}
