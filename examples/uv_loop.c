/* SPDX-License-Identifier: MIT
 *
 * Locks in libuv's loop, without any thread: three jobs want the same lock. Each gets it in turn,
 * works for a while (a timer, here), and gives it back. The library needs one uv_poll_t and no
 * timer: its descriptor becomes readable when its time has come, too.
 */
#include <holdfast.h>
#include <stdio.h>
#include <uv.h>

enum { JOBS = 3, WORK_MS = 100 };

struct job {
    int number;
    uv_timer_t timer; /* the work; expires when it is done */
    hf_hold *hold;
};

static uv_poll_t locks; /* its data: the client */
static int jobs_left = JOBS;
static int failures;

/* With the last job, nothing keeps the loop any more. */
static void end_job(struct job *job, const hf_error *error)
{
    printf("job %d: %s %s\n", job->number, hf_status_name(error->status), error->text);
    failures += error->status != HF_OK;
    uv_close((uv_handle_t *)&job->timer, NULL);
    if (--jobs_left == 0)
        uv_close((uv_handle_t *)&locks, NULL);
}

static void on_released(void *arg, const hf_error *error)
{
    end_job(arg, error);
}

static void on_work_done(uv_timer_t *timer)
{
    struct job *job = timer->data;
    hf_error error;
    if (hf_release_async(&job->hold, on_released, job, &error) != HF_OK)
        end_job(job, &error);
}

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    struct job *job = arg;
    if (hold == NULL) {
        end_job(job, error);
        return;
    }
    printf("job %d: works, fence %llu\n", job->number, (unsigned long long)hf_fence(hold));
    job->hold = hold;
    uv_timer_start(&job->timer, on_work_done, WORK_MS, 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    hf_error error;
    (void)status;
    (void)events;
    hf_process(poll->data, &error);
}

static void start_job(hf_client *client, struct job *job, int number)
{
    hf_error error;
    job->number = number;
    uv_timer_init(uv_default_loop(), &job->timer);
    job->timer.data = job;
    if (hf_acquire_async(client, "order:42", HF_ACQUIRE(.wait_ms = 5000), on_acquired, job, NULL,
                         &error) != HF_OK)
        end_job(job, &error);
}

int main(int argc, char **argv)
{
    static struct job jobs[JOBS];
    hf_client *client;
    hf_error error;
    const char *url = argc > 1 ? argv[1] : "redis://localhost";
    if (hf_open(url, HF_CLIENT(.own_loop = true), &client, &error) != HF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    uv_poll_init(uv_default_loop(), &locks, hf_loop_descriptor(client));
    locks.data = client;
    uv_poll_start(&locks, UV_READABLE, on_readable);
    for (int i = 0; i < JOBS; i++)
        start_job(client, &jobs[i], i + 1);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    hf_status closed = hf_close(client);
    uv_loop_close(uv_default_loop());
    return closed == HF_OK && failures == 0 ? 0 : 1;
}
