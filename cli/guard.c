/* SPDX-License-Identifier: MIT */
/* The guard is forked before the lock is asked for. It has a session of its own, so that no signal
 * for a group or terminal reaches it, takes no signal, and keeps no file open but standard error
 * and one end of a pipe. We hold the other end: when we are gone, however that came, the pipe
 * tells. What it must know lies in memory that both share: who the child is, and until when the
 * lock is ours. Each renewal moves that deadline; if it comes near and does not move, we hang or
 * are stopped, and the guard does what we would have done a little earlier.
 *
 * No child escapes it. The child itself writes down who it is, before it becomes another program,
 * and until then it holds our end of the pipe too: so the pipe cannot end before the guard knows.
 *
 * It never hits a stranger who was given the number of a child that is gone. The number of a group
 * stays taken for as long as the group has a member or its leader was not waited for; we dismiss
 * the guard as soon as we have seen that neither is so, and after us the guard looks every few
 * milliseconds. For a single process it uses a descriptor of that process; without such descriptors
 * nothing is started.
 *
 * A command that has changed its user is out of its reach, as it is out of ours. Then the guard
 * says so, if we cannot: nobody else is left to tell. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "instant.h"
#include "say.h"

enum { OUR_PIPE = 3, FILES_LIKELY = 1024, LOOK_MS = 5, LAST_LOOKS = 200 };

/* What both can see. */
struct board {
    _Atomic int64_t deadline; /* INSTANT_NEVER: there is no lock yet */
    _Atomic pid_t child;      /* 0: none */
    atomic_bool told;
    atomic_bool acted; /* the guard has, before we did */
};

static struct board *board;
static struct guard_plan plan;
static pid_t guard_pid;
static bool dismissed;
static int pipe_end = -1; /* ours: to be closed by our death */

/* ---- In the guard ---- */

static int process_descriptor = -1; /* of a child without a group of its own */
static bool alone;                  /* we have died */

/* False: somebody who should get it may not be signalled. */
static bool signal_child(int number)
{
    if (plan.group)
        return group_signal(atomic_load(&board->child), true, number);
    return process_descriptor < 0 ||
           syscall(SYS_pidfd_send_signal, process_descriptor, number, NULL, 0) == 0 ||
           errno != EPERM;
}

static bool child_lives(void)
{
    if (plan.group)
        return kill(-atomic_load(&board->child), 0) == 0 || errno == EPERM;
    return process_descriptor >= 0 &&
           (syscall(SYS_pidfd_send_signal, process_descriptor, 0, NULL, 0) == 0 || errno == EPERM);
}

/* As long as we are there and know of it, we say it ourselves. */
static void say_that_it_lives(void)
{
    static bool said;
    struct group_view view;
    group_look(atomic_load(&board->child), plan.group, &view);
    if (said || !view.lives || (!alone && atomic_load(&board->told)))
        return;
    said = true;
    say_error("holdfast %s, and its guard cannot end the command%s: %s; it RUNS ON WITHOUT THE "
              "LOCK when the lease is over",
              alone ? "has died" : "stands still",
              view.refuses ? ", which runs as another user" : "", view.who);
}

static void wait_for_death(int64_t until)
{
    while (instant_now() < until && child_lives())
        (void)poll(NULL, 0, LOOK_MS);
}

static _Noreturn void end_child(void)
{
    if (atomic_load(&board->child) == 0)
        _exit(0); /* nothing was started */
    int64_t kill_at = instant_now() + plan.kill_after_ns;
    if (!atomic_load(&board->told)) {
        atomic_store(&board->acted, true);
        if (!signal_child(SIGTERM))
            say_that_it_lives();
        (void)signal_child(SIGCONT);
    }
    int64_t last = atomic_load(&board->deadline) - plan.margin_ns / 2;
    wait_for_death(instant_earlier(kill_at, last));
    for (int i = 0; i < LAST_LOOKS && child_lives(); i++) {
        (void)signal_child(SIGKILL);
        (void)poll(NULL, 0, LOOK_MS);
    }
    if (child_lives())
        say_that_it_lives();
    _exit(0);
}

static void forget_the_rest(int end)
{
    sigset_t all;
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "holdfast-guard");
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(nothing, STDOUT_FILENO);
    say_in_a_hurry(); /* a reader who does not read must not hold up the guard */
    if (end != OUR_PIPE)
        (void)dup2(end, OUR_PIPE);
    if (close_range(OUR_PIPE + 1, ~0U, 0) != 0) /* an old kernel */
        for (int i = OUR_PIPE + 1; i < FILES_LIKELY; i++)
            (void)close(i);
    (void)!chdir("/");
}

/* The moment to act if nothing moves it. Also KILL alone takes a while to be felt. */
static int64_t last_call(void)
{
    int64_t deadline = atomic_load(&board->deadline), half = plan.margin_ns / 2;
    int64_t needed = plan.kill_after_ns > half ? plan.kill_after_ns : half;
    return deadline == INSTANT_NEVER ? INSTANT_NEVER : deadline - needed;
}

static void set_timer(int timer, int64_t when)
{
    struct itimerspec at = {.it_value = {when / 1000 / NS_PER_MS, when % (1000 * NS_PER_MS)}};
    if (when == INSTANT_NEVER)
        at = (struct itimerspec){0};
    else if (when <= 0)
        at.it_value = (struct timespec){0, 1};
    (void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* False: whom we watch over has died. */
static bool listen_to_pipe(void)
{
    char bytes[8];
    if (read(OUR_PIPE, bytes, sizeof(bytes)) == 0)
        return false;
    if (!plan.group)
        process_descriptor = (int)syscall(SYS_pidfd_open, atomic_load(&board->child), 0);
    return true;
}

/* The pipe is told when there is a deadline first, with the child; renewals are found by looking at
 * the moment when the one before would have counted. */
static _Noreturn void stand_guard(void)
{
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    while (!alone) {
        set_timer(timer, last_call());
        struct pollfd set[] = {{.fd = OUR_PIPE, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
        (void)poll(set, 2, -1);
        if (set[0].revents != 0)
            alone = !listen_to_pipe();
        else if (instant_now() >= last_call())
            break;
    }
    end_child();
}

/* ---- In the process that it watches over ---- */

/* A number alone could be a stranger's by the time the guard needs it. */
static bool can_watch_one(void)
{
    int itself = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (itself >= 0)
        (void)close(itself);
    else
        say_error("--foreground needs pidfd_open(2), without which nobody could end the command "
                  "if holdfast died: %s; leave it out, or say --on-lost ignore",
                  strerror(errno));
    return itself >= 0;
}

bool guard_start(const struct guard_plan *wanted)
{
    int ends[2];
    plan = *wanted;
    if (!plan.group && !can_watch_one())
        return false;
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || pipe2(ends, O_CLOEXEC) != 0) {
        board = NULL;
        say_error("cannot start the guard: %s", strerror(errno));
        return false;
    }
    atomic_store(&board->deadline, INSTANT_NEVER);
    guard_pid = fork();
    if (guard_pid == 0) {
        forget_the_rest(ends[0]);
        stand_guard();
    }
    (void)close(ends[0]);
    pipe_end = ends[1];
    if (guard_pid < 0)
        say_error("cannot start the guard: %s", strerror(errno));
    return guard_pid > 0;
}

void guard_set_deadline(int64_t deadline)
{
    if (board != NULL)
        atomic_store(&board->deadline, deadline);
}

void guard_set_told(void)
{
    if (board != NULL)
        atomic_store(&board->told, true);
}

bool guard_has_acted(void)
{
    return board != NULL && atomic_load(&board->acted);
}

void guard_watch_me(void)
{
    if (board == NULL)
        return;
    atomic_store(&board->child, getpid());
    (void)!write(pipe_end, "", 1);
}

void guard_forget(void)
{
    if (pipe_end >= 0)
        (void)close(pipe_end);
}

/* It has nothing to finish, so it need not be asked: what could keep it from listening does not
 * keep it from this. */
void guard_dismiss(void)
{
    if (board == NULL)
        return;
    atomic_store(&board->child, 0);
    if (guard_pid > 0)
        (void)kill(guard_pid, SIGKILL);
    dismissed = true;
}

void guard_bury(void)
{
    guard_dismiss();
    if (guard_pid > 0)
        (void)waitpid(guard_pid, NULL, 0);
    guard_pid = 0;
}

bool guard_was(pid_t pid)
{
    if (guard_pid == 0 || pid != guard_pid)
        return false;
    guard_pid = 0; /* its number may be somebody else's from now on */
    return !dismissed;
}
