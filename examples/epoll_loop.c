/* SPDX-License-Identifier: MIT
 *
 * Locks in a plain epoll loop, without any thread: three jobs want the same lock. Each gets it in
 * turn, works for a while (a timer, here), and gives it back; the loop never stands still. What it
 * takes is one descriptor, one timeout and one call: hf_process().
 */
#include <holdfast.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { JOBS = 3, WORK_MS = 100 };

struct job {
    int number;
    int timer; /* the work; expires when it is done */
    hf_hold *hold;
};

static int jobs_left = JOBS;
static int failures;

static void end_job(struct job *job, const hf_error *error)
{
    printf("job %d: %s %s\n", job->number, hf_status_name(error->status), error->text);
    failures += error->status != HF_OK;
    jobs_left--;
}

static void on_released(void *arg, const hf_error *error)
{
    end_job(arg, error);
}

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    struct job *job = arg;
    const struct itimerspec work = {.it_value = {.tv_nsec = WORK_MS * 1000000L}};
    if (hold == NULL) {
        end_job(job, error);
        return;
    }
    printf("job %d: works, fence %llu\n", job->number, (unsigned long long)hf_fence(hold));
    job->hold = hold;
    timerfd_settime(job->timer, 0, &work, NULL);
}

static void on_work_done(struct job *job)
{
    hf_error error;
    unsigned long long expirations;
    if (read(job->timer, &expirations, sizeof(expirations)) > 0 &&
        hf_release_async(&job->hold, on_released, job, &error) != HF_OK)
        end_job(job, &error);
}

static void watch(int set, int descriptor, void *what)
{
    struct epoll_event entry = {.events = EPOLLIN, .data.ptr = what};
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &entry);
}

static void start_job(hf_client *client, struct job *job, int number, int set)
{
    hf_error error;
    job->number = number;
    job->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    watch(set, job->timer, job);
    if (hf_acquire_async(client, "order:42", HF_ACQUIRE(.wait_ms = 5000), on_acquired, job, NULL,
                         &error) != HF_OK)
        end_job(job, &error);
}

int main(int argc, char **argv)
{
    struct job jobs[JOBS] = {{0}};
    hf_client *client;
    hf_error error;
    const char *url = argc > 1 ? argv[1] : "redis://localhost";
    if (hf_open(url, HF_CLIENT(.own_loop = true), &client, &error) != HF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int set = epoll_create1(EPOLL_CLOEXEC);
    watch(set, hf_loop_descriptor(client), client);
    for (int i = 0; i < JOBS; i++)
        start_job(client, &jobs[i], i + 1, set);
    while (jobs_left > 0) {
        struct epoll_event event;
        int count = epoll_wait(set, &event, 1, hf_loop_timeout_ms(client));
        if (count == 1 && event.data.ptr != client)
            on_work_done(event.data.ptr);
        else
            hf_process(client, &error);
    }
    close(set);
    for (int i = 0; i < JOBS; i++)
        close(jobs[i].timer);
    return hf_close(client) == HF_OK && failures == 0 ? 0 : 1;
}
