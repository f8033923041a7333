/* SPDX-License-Identifier: MIT
 *
 * The demo of the library (examples/demo.sh): a few processes add to a counter in a file by reading
 * it, taking their time and writing it back. First without a lock, where updates get lost; then
 * with one, while a worker takes longer than its lease (which the library renews), another one is
 * killed and a third one stopped past its lease, where none may get lost. This file is the story;
 * it takes no part in the contest, so what it shows is what the workers report.
 *
 * Order never depends on sleeping and hoping: a worker that is to be killed or stopped first says
 * that it stands between its read and its write, and stays there. Times shown are the workers'.
 *
 * The story owns its workers: however it ends, they are killed by pid and waited for, and the
 * kernel kills them should the story itself be killed.
 *
 *     holdfast-demo URL FOLDER       exit code 0: all as promised; 1: not; 130: interrupted
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MS      8000 /* for anything that the story waits for */
#define NO_LOCK_MS    2000
#define QUIET_MS      2500 /* of undisturbed work at the beginning and the end */
#define RECOVERY_MS   1500 /* of work after a mishap, to show that it goes on */
#define OUTLAST_MS    (DEMO_LEASE_MS + DEMO_LEASE_MS / 2) /* of a turn that is renewed */
#define WORKER_SLOW   0 /* index of the one that takes long, is killed, is stopped */
#define WORKER_KILLED 2
#define WORKER_PAUSED 4

volatile sig_atomic_t demo_interrupted;

static void on_signal(int number)
{
    (void)number;
    demo_interrupted = 1;
}

#define SAY(stage, colour, ...) say_at(stage, colour, demo_now_us(), __VA_ARGS__)

/* ---- Verbs of the story ---------------------------------------------------------------------- */

/* False when the story cannot go on, which it says unless that was said already. */
static bool can_go_on(const struct stage *stage)
{
    if (stage->everybody_left && !demo_interrupted && !stage->failed)
        SAY(stage, RED, "the workers are gone: this is a fault");
    return !demo_interrupted && !stage->failed && !stage->everybody_left;
}

static bool follow_for(struct stage *stage, int64_t duration_ms)
{
    struct event event;
    int64_t until_us = demo_now_us() + duration_ms * 1000;
    follow_until(stage, ANYBODY, EVENT_FAILED, 0, until_us, &event);
    return can_go_on(stage);
}

static bool wait_for(struct stage *stage, int worker, enum event_kind kind, int64_t since_us,
                     struct event *event)
{
    if (follow_until(stage, worker, kind, since_us, demo_now_us() + LIMIT_MS * 1000, event))
        return true;
    if (can_go_on(stage))
        SAY(stage, RED, "waited %d s in vain: this is a fault", LIMIT_MS / 1000);
    return false;
}

static void order(const struct stage *stage, int worker, char byte)
{
    /* A worker that is gone cannot obey; its absence is noticed through the event pipe. */
    ssize_t written = write(stage->workers[worker].order_fd, &byte, 1);
    (void)written;
}

static bool halt_inside(struct stage *stage, int worker)
{
    struct event event;
    order(stage, worker, ORDER_HALT);
    return wait_for(stage, worker, EVENT_HALTED, 0, &event);
}

/* Waits for a worker that has ended or is about to; true if it ended in order. */
static bool bury(struct worker_view *view)
{
    int status = 0;
    while (view->pid > 0 && waitpid(view->pid, &status, 0) < 0 && errno == EINTR)
        ;
    view->pid = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* One that works for longer than its lease keeps the lock, because its lease is renewed. */
static bool outlast_the_lease(struct stage *stage, int worker)
{
    struct event event;
    int64_t start_us = demo_now_us();
    SAY(stage, YELLOW, "worker %d takes %.1f s for its turn, longer than its lease", worker + 1,
        seconds(OUTLAST_MS * 1000));
    if (follow_until(stage, ANYBODY, EVENT_ENTERED, start_us, start_us + OUTLAST_MS * 1000,
                     &event)) {
        SAY(stage, RED, "worker %d got in meanwhile: this is a fault", event.worker + 1);
        return false;
    }
    order(stage, worker, ORDER_GO);
    if (!can_go_on(stage) || !wait_for(stage, worker, EVENT_WROTE, start_us, &event))
        return false;
    say_at(stage, GREEN, event.at_us,
           "worker %d still held the lock, renewed in the background, and wrote", worker + 1);
    return true;
}

static int64_t kill_inside(struct stage *stage, int worker)
{
    struct worker_view *view = &stage->workers[worker];
    int64_t killed_us = demo_now_us();
    pid_t pid = view->pid;
    kill(pid, SIGKILL);
    bury(view);
    view->state = KILLED;
    SAY(stage, RED, "worker %d (pid %d) was SIGKILLed while it held the lock; lease: %.2f s left",
        worker + 1, (int)pid, seconds(view->hold_end_us - killed_us));
    return killed_us;
}

/* Returns when the kernel has confirmed that the worker is stopped. It finds the order to go on
 * when it is continued. */
static int64_t stop_inside(struct stage *stage, int worker)
{
    struct worker_view *view = &stage->workers[worker];
    int64_t stopped_us = demo_now_us();
    kill(view->pid, SIGSTOP);
    while (waitpid(view->pid, NULL, WUNTRACED) < 0 && errno == EINTR)
        ;
    order(stage, worker, ORDER_GO);
    view->state = STOPPED;
    SAY(stage, YELLOW,
        "worker %d (pid %d) was SIGSTOPped while it held the lock; lease: %.2f s left", worker + 1,
        (int)view->pid, seconds(view->hold_end_us - stopped_us));
    return stopped_us;
}

/* Nobody may enter before the hold of the one that is dead or asleep has ended. */
static bool see_next_holder(struct stage *stage, int loser, int64_t since_us, const char *mishap)
{
    struct event event;
    if (!wait_for(stage, ANYBODY, EVENT_ENTERED, since_us, &event))
        return false;
    if (event.at_us < stage->workers[loser].hold_end_us) {
        SAY(stage, RED, "worker %d got the lock TOO EARLY: this is a fault", event.worker + 1);
        return false;
    }
    if (event.fence <= stage->workers[loser].fence) {
        SAY(stage, RED, "its fence is not larger: this is a fault");
        return false;
    }
    say_at(stage, GREEN, event.at_us,
           "worker %d got the lock, and a larger fence, when the lease had run out, %.2f s after "
           "the %s",
           event.worker + 1, seconds(event.at_us - since_us), mishap);
    return true;
}

static bool continue_and_see_it_lose(struct stage *stage, int worker)
{
    struct worker_view *view = &stage->workers[worker];
    struct event event;
    int64_t continued_us = demo_now_us();
    SAY(stage, YELLOW, "worker %d is continued (SIGCONT) in the middle of its turn", worker + 1);
    view->state = INSIDE;
    kill(view->pid, SIGCONT);
    if (!wait_for(stage, worker, EVENT_LEFT, continued_us, &event))
        return false;
    if (event.status == HF_ELOST && view->skipped)
        return true;
    SAY(stage, RED, "it should have skipped its write and learned HF_ELOST: this is a fault");
    return false;
}

/* ---- Acts ------------------------------------------------------------------------------------ */

static bool worker_start(struct stage *stage, int worker, int event_fd)
{
    int order_pipe[2];
    if (pipe2(order_pipe, O_CLOEXEC) != 0)
        return false;
    pid_t story = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        struct worker_setup setup = {worker, stage->url, stage->counter_path, event_fd,
                                     order_pipe[0]};
        signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the story decides */
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != story)
            _exit(1);
        close(order_pipe[1]);
        worker_run(&setup);
    }
    close(order_pipe[0]);
    stage->workers[worker] = (struct worker_view){
        .pid = pid > 0 ? pid : 0, .order_fd = order_pipe[1], .since_us = demo_now_us()};
    return pid > 0;
}

static bool act_begin(struct stage *stage, const char *url)
{
    int event_pipe[2];
    memset(stage->workers, 0, sizeof stage->workers);
    for (int i = 0; i < DEMO_WORKERS; i++)
        stage->workers[i].order_fd = -1;
    stage->url = url;
    stage->everybody_left = false;
    stage->act_start_us = demo_now_us();
    stage->next_frame_us = stage->act_start_us;
    if (!counter_write(stage->counter_path, 0) || pipe2(event_pipe, O_CLOEXEC) != 0) {
        SAY(stage, RED, "cannot begin: %s", strerror(errno));
        return false;
    }
    stage->event_fd = event_pipe[0];
    bool started = true;
    for (int i = 0; i < DEMO_WORKERS && started; i++)
        started = worker_start(stage, i, event_pipe[1]);
    /* Ours must go, or the pipe would never end. */
    close(event_pipe[1]);
    if (!started)
        SAY(stage, RED, "cannot start a worker: %s", strerror(errno));
    return started;
}

/* Lets the workers finish their turns and hears them out, so that the sums are final. */
static bool act_finish(struct stage *stage)
{
    struct event event;
    for (int i = 0; i < DEMO_WORKERS; i++)
        order(stage, i, ORDER_QUIT);
    follow_until(stage, ANYBODY, EVENT_FAILED, 0, demo_now_us() + LIMIT_MS * 1000, &event);
    if (screen_is_live())
        draw_live(stage);
    for (int i = 0; i < DEMO_WORKERS && stage->everybody_left; i++) {
        if (bury(&stage->workers[i]))
            continue;
        SAY(stage, RED, "worker %d did not end in order: this is a fault", i + 1);
        stage->failed = true;
    }
    return stage->everybody_left && !stage->failed;
}

static void act_clean_up(struct stage *stage)
{
    for (int i = 0; i < DEMO_WORKERS; i++) {
        struct worker_view *view = &stage->workers[i];
        if (view->pid > 0)
            kill(view->pid, SIGKILL);
        bury(view);
        if (view->order_fd >= 0)
            close(view->order_fd);
    }
    if (stage->event_fd >= 0)
        close(stage->event_fd);
    stage->event_fd = -1;
    screen_keep();
}

static bool act_without_lock(struct stage *stage)
{
    screen_say(PLAIN, "\nFor contrast, %d s WITHOUT a lock: %d processes read, work, write.",
               NO_LOCK_MS / 1000, DEMO_WORKERS);
    bool done = act_begin(stage, NULL) && follow_for(stage, NO_LOCK_MS) && act_finish(stage);
    act_clean_up(stage);
    if (!done)
        return false;
    long made = sum_of_increments(stage);
    long counted = counter_read(stage->counter_path);
    screen_say(RED, "Without a lock: %ld updates made, %ld in the file: %ld of %ld were lost.",
               made, counted, made - counted, made);
    return true;
}

static bool act_with_lock(struct stage *stage, const char *url)
{
    screen_say(PLAIN,
               "\nThe same WITH a lock (lease %d s). One worker will take longer than its lease,\n"
               "one will be killed while it holds the lock, one stopped until after its lease.",
               DEMO_LEASE_MS / 1000);
    if (!act_begin(stage, url) || !follow_for(stage, QUIET_MS))
        return false;
    if (!halt_inside(stage, WORKER_SLOW) || !outlast_the_lease(stage, WORKER_SLOW))
        return false;
    if (!halt_inside(stage, WORKER_KILLED) ||
        !see_next_holder(stage, WORKER_KILLED, kill_inside(stage, WORKER_KILLED), "kill") ||
        !follow_for(stage, RECOVERY_MS))
        return false;
    if (!halt_inside(stage, WORKER_PAUSED) ||
        !see_next_holder(stage, WORKER_PAUSED, stop_inside(stage, WORKER_PAUSED), "stop") ||
        !follow_for(stage, RECOVERY_MS) || !continue_and_see_it_lose(stage, WORKER_PAUSED))
        return false;
    return follow_for(stage, QUIET_MS) && act_finish(stage);
}

static bool show_outcome(const struct stage *stage)
{
    screen_say(PLAIN, "\n  worker  updates  longest wait");
    for (int i = 0; i < DEMO_WORKERS; i++) {
        const struct worker_view *view = &stage->workers[i];
        const char *fate = "";
        if (view->state == KILLED)
            fate = "killed while it held the lock";
        else if (view->skipped)
            fate = "stopped past its lease: HF_ELOST, did not write";
        screen_say(PLAIN, "  %6d  %7ld  %10.2f s  %s", i + 1, view->increments,
                   seconds(view->longest_wait_us), fate);
    }
    long made = sum_of_increments(stage);
    long counted = counter_read(stage->counter_path);
    bool whole = made == counted && made > 0;
    screen_say(whole ? GREEN : RED, "\nWith the lock: %ld updates made, %ld in the file: %s.", made,
               counted, whole ? "no update was lost" : "UPDATES WERE LOST");
    return whole;
}

/* A client that waits for its server also waits for one that is still starting. Closed before the
 * workers are forked: a client belongs to one process. */
static bool server_is_there(const char *url)
{
    hf_client *client;
    hf_hold *hold;
    hf_error error;
    hf_status status = hf_open(url, NULL, &client, &error);
    if (status == HF_OK)
        status = hf_acquire(client, "demo:hello", HF_ACQUIRE(.wait_ms = 5000), &hold, &error);
    if (status == HF_OK)
        status = hf_release(&hold, &error);
    hf_close(client);
    if (status != HF_OK)
        screen_say(RED, "%s: %s: %s", url, hf_status_name(status), error.text);
    return status == HF_OK;
}

static void signals_catch(void)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        sigaction(caught[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* an order to a worker that has just ended */
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: holdfast-demo URL FOLDER\n");
        return 2;
    }
    screen_open();
    signals_catch();
    struct stage stage = {.event_fd = -1};
    snprintf(stage.counter_path, sizeof stage.counter_path, "%s/counter", argv[2]);
    bool good = server_is_there(argv[1]) && act_without_lock(&stage);
    if (good) {
        good = act_with_lock(&stage, argv[1]);
        act_clean_up(&stage);
        good = good && show_outcome(&stage);
    }
    if (demo_interrupted)
        screen_say(PLAIN, "interrupted; everything is cleaned up");
    return demo_interrupted ? 130 : good ? 0 : 1;
}
