/* SPDX-License-Identifier: MIT
 *
 * W2a: a thousand asynchronous acquires outstanding, each on a lock of its own, each followed by an
 * asynchronous release: what the library costs where round trips do not count. One client with an
 * own loop and its default links, one thread, poll() and hf_process(); against a bare hiredis loop
 * that keeps 32 commands under way on one connection, and runs the same scripts. The value is a
 * throughput, so higher is better.
 *
 * The baseline has a window that slides: for each reply that it takes from hiredis' buffer it
 * appends the next command of that lock, and writes when the buffer is empty. Deeper pipelines are
 * not faster: the server is busy all the time. A step is some thousand pairs, and ends when all are
 * answered, so that nothing of one side is left for the server to do when the other has its turn.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "bare.h"
#include "bench.h"
#include "measure.h"
#include "server.h"
#include "subject.h"

enum { OUTSTANDING = 1000, DEPTH = 32, PAIRS_PER_STEP = 2048 };

/* ---- The subject ---- */

struct loop;

struct lane { /* one lock */
    struct loop *loop;
    char lock[LOCK_NAME_SIZE];
};

struct loop {
    hf_client *client;
    int left;     /* pairs of this step to be started */
    int finished; /* pairs of this step */
    char problem[PROBLEM_SIZE];
    struct lane lanes[OUTSTANDING];
};

static void note_problem(struct loop *loop, const char *call, const hf_error *error)
{
    if (loop->problem[0] == '\0')
        snprintf(loop->problem, sizeof loop->problem, "%s: %s: %s", call,
                 hf_status_name(error->status), error->text);
}

static void pair_start(struct lane *lane);

static void on_released(void *arg, const hf_error *error)
{
    struct lane *lane = arg;
    if (error->status != HF_OK)
        note_problem(lane->loop, "hf_release_async", error);
    lane->loop->finished++;
    pair_start(lane);
}

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    struct lane *lane = arg;
    hf_error trouble = *error;
    if (hold == NULL || hf_release_async(&hold, on_released, lane, &trouble) != HF_OK)
        note_problem(lane->loop, "hf_acquire_async", &trouble);
}

static void pair_start(struct lane *lane)
{
    hf_error error;
    if (lane->loop->left == 0)
        return;
    lane->loop->left--;
    if (hf_acquire_async(lane->loop->client, lane->lock, HF_ACQUIRE(.lease_ms = BENCH_LEASE_MS),
                         on_acquired, lane, NULL, &error) != HF_OK)
        note_problem(lane->loop, "hf_acquire_async", &error);
}

static const char *loop_step(void *arg)
{
    struct loop *loop = arg;
    loop->left = PAIRS_PER_STEP;
    loop->finished = 0;
    for (int i = 0; i < OUTSTANDING; i++)
        pair_start(&loop->lanes[i]);
    while (loop->finished < PAIRS_PER_STEP && loop->problem[0] == '\0') {
        struct pollfd wanted = {.fd = hf_loop_descriptor(loop->client), .events = POLLIN};
        poll(&wanted, 1, hf_loop_timeout_ms(loop->client));
        hf_error error;
        if (hf_process(loop->client, &error) != HF_OK)
            note_problem(loop, "hf_process", &error);
    }
    return loop->problem[0] == '\0' ? NULL : loop->problem;
}

static bool loop_open(struct loop *loop, const struct server *server, struct result *result)
{
    char url[64];
    hf_error error;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", server->port);
    memset(loop, 0, sizeof *loop);
    for (int i = 0; i < OUTSTANDING; i++) {
        loop->lanes[i].loop = loop;
        snprintf(loop->lanes[i].lock, sizeof loop->lanes[i].lock, "bench:subject-%03d", i);
    }
    if (hf_open(url, HF_CLIENT(.own_loop = true), &loop->client, &error) == HF_OK)
        return true;
    return result_fail(result, "hf_open: %s", error.text);
}

/* ---- The baseline ---- */

struct window {
    struct bare bares[DEPTH]; /* one for each lock; they share one connection */
    int open;
};

static const char *window_step(void *arg)
{
    struct window *window = arg;
    const char *problem = NULL;
    int sent = 0;
    for (; sent < DEPTH; sent++)
        bare_append(&window->bares[sent], BARE_ACQUIRE);
    for (int taken = 0; taken < 2 * PAIRS_PER_STEP && problem == NULL; taken++) {
        enum bare_verb verb = taken / DEPTH % 2 == 0 ? BARE_ACQUIRE : BARE_RELEASE;
        struct bare *bare = &window->bares[taken % DEPTH];
        problem = bare_take(bare, verb);
        if (sent++ < 2 * PAIRS_PER_STEP)
            bare_append(bare, verb == BARE_ACQUIRE ? BARE_RELEASE : BARE_ACQUIRE);
    }
    return problem;
}

_Static_assert(2 * PAIRS_PER_STEP % (2 * DEPTH) == 0, "a step of the baseline ends released");

static void window_close(struct window *window)
{
    if (window->open > 0)
        bare_close(&window->bares[0]);
}

static bool window_open(struct window *window, const struct server *server, struct result *result)
{
    window->open = 0;
    for (bool opened = true; opened && window->open < DEPTH; window->open += opened) {
        char lock[LOCK_NAME_SIZE];
        snprintf(lock, sizeof lock, "bench:control-%03d", window->open);
        struct bare *bare = &window->bares[window->open];
        opened = bare_open_same_scripts(bare, server, OVER_TCP, lock, result);
        if (opened && window->open > 0) {
            bare_close(bare);
            bare->context = window->bares[0].context;
        }
    }
    if (window->open == DEPTH)
        return true;
    window_close(window);
    return false;
}

/* ---- Both ---- */

/* Times of steps become thousands of pairs per second. */
static bool compare(const struct bench *bench, struct loop *loop, struct window *window,
                    struct result *result)
{
    static struct side sides[2]; /* histograms are large */
    memset(sides, 0, sizeof sides);
    sides[0].step = loop_step;
    sides[0].arg = loop;
    sides[1].step = window_step;
    sides[1].arg = window;
    if (!measure_in_turns(bench, sides, 2, result))
        return false;
    double rates[2][REPETITIONS_MAX];
    for (int i = 0; i < 2; i++)
        for (int repetition = 0; repetition < bench->repetitions; repetition++)
            rates[i][repetition] = PAIRS_PER_STEP * 1e3 / sides[i].step_us[repetition];
    result_take_runs(result, rates[0], rates[1], bench->repetitions);
    result->cpu_us = cpu_per_operation_us(&sides[0].cpu) / PAIRS_PER_STEP;
    return true;
}

static bool run_on_server(const struct bench *bench, const struct server *server,
                          struct result *result)
{
    static struct loop loop;
    static struct window window;
    if (!window_open(&window, server, result))
        return false;
    bool measured = loop_open(&loop, server, result);
    if (measured) {
        measured = compare(bench, &loop, &window, result);
        hf_status closed = hf_close(loop.client);
        if (measured && closed != HF_OK)
            measured = result_fail(result, "hf_close: %s", hf_status_name(closed));
    }
    window_close(&window);
    return measured;
}

bool run_w2a(const struct bench *bench, const struct workload *workload, struct result *result)
{
    struct server server;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_server(bench, &server, result);
    server_stop(&server);
    return measured;
}
