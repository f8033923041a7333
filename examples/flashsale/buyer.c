/* SPDX-License-Identifier: MIT
 *
 * A process of the shop. Each of its threads has a desk, whose number outlives the process, and a
 * database session of its own; the Redis client is shared.
 *
 * A thread goes once through all requests and serves those that nobody else has; it makes them its
 * own in one atomic step. One that it finds to be its own already was begun by a predecessor at the
 * same desk, who was killed: it is served again. So a request is passed over only if it has an
 * answer, or somebody at whose desk it is. */
#include "sale.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS_MAX 1000

int64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

void complain(const struct buyer *buyer, const char *what, const char *why)
{
    fprintf(stderr, "flashsale: %s: %s: %s\n", buyer->sale->strategy->name, what, why);
}

/* ---- Trouble --------------------------------------------------------------------------------- */

/* Whoever comes to the critical point of a mishap is struck by it, with all threads of its process,
 * wherever these are. A stopped process is continued by the crew, and goes on from here. */
void critical_point(struct buyer *buyer)
{
    int point = atomic_fetch_add(&buyer->sale->points, 1) + 1;
    for (int i = 0; i < MISHAPS_MAX; i++)
        if (buyer->sale->mishaps[i].at == point)
            kill(getpid(), buyer->sale->mishaps[i].signal);
}

void think(struct buyer *buyer)
{
    critical_point(buyer);
    usleep(THINK_US);
}

/* ---- Serving --------------------------------------------------------------------------------- */

static bool request_is_mine(struct request *request, int desk)
{
    int owner = NOBODY;
    return atomic_compare_exchange_strong(&request->desk, &owner, desk) || owner == desk;
}

enum answer trouble_with_redis(const struct buyer *buyer, const hf_error *error)
{
    if (error->status == HF_EUNAVAILABLE || error->status == HF_EUNKNOWN)
        return AGAIN;
    complain(buyer, hf_status_name(error->status), error->text);
    return FAILED;
}

static enum answer attempt(struct buyer *buyer)
{
    hf_error error;
    buyer->request->attempts++;
    if (hf_ids_next(buyer->ids, &buyer->order_id, &error) != HF_OK)
        return trouble_with_redis(buyer, &error);
    return buyer->sale->strategy->serve(buyer);
}

static bool serve(struct buyer *buyer, int number)
{
    struct request *request = &buyer->sale->requests[number];
    buyer->request = request;
    buyer->number = number + 1;
    snprintf(buyer->user, sizeof buyer->user, "user-%" PRId64, request->user);
    snprintf(buyer->request_name, sizeof buyer->request_name, "request-%" PRId64, buyer->number);
    if (request->began_us == 0)
        request->began_us = now_us();
    enum answer answer = AGAIN;
    while (answer == AGAIN && request->attempts < ATTEMPTS_MAX)
        answer = attempt(buyer);
    if (answer == AGAIN)
        complain(buyer, buyer->request_name, "too many attempts");
    if (answer == AGAIN || answer == FAILED)
        return false;
    request->took_us = now_us() - request->began_us;
    atomic_fetch_add(&buyer->sale->sold, answer == SOLD);
    atomic_store(&request->answer, (int)answer);
    atomic_fetch_add(&buyer->sale->decided, 1);
    return true;
}

static void *desk_run(void *arg)
{
    struct buyer *buyer = arg;
    char why[256];
    buyer->db = db_open(buyer->sale->options.db_url, why, sizeof why);
    if (buyer->db == NULL) {
        complain(buyer, "the database", why);
        return NULL;
    }
    bool good = true;
    for (int i = 0; i < buyer->sale->requests_count && good; i++) {
        struct request *request = &buyer->sale->requests[i];
        if (atomic_load(&request->answer) == UNDECIDED && request_is_mine(request, buyer->desk))
            good = serve(buyer, i);
    }
    db_close(buyer->db);
    return good ? buyer : NULL;
}

/* ---- The process ----------------------------------------------------------------------------- */

static bool desks_run(struct sale *sale, int worker, hf_client *client, hf_ids *ids)
{
    int threads = sale->options.threads;
    pthread_t *running = calloc((size_t)threads, sizeof *running);
    struct buyer *buyers = calloc((size_t)threads, sizeof *buyers);
    int started = 0;
    bool good = running != NULL && buyers != NULL;
    while (good && started < threads) {
        buyers[started] = (struct buyer){
            .sale = sale, .client = client, .ids = ids, .desk = worker * threads + started};
        good = pthread_create(&running[started], NULL, desk_run, &buyers[started]) == 0;
        started += good;
    }
    for (int i = 0; i < started; i++) {
        void *came_through = NULL;
        pthread_join(running[i], &came_through);
        good = good && came_through != NULL;
    }
    free(buyers);
    free(running);
    return good;
}

int worker_run(struct sale *sale, int worker)
{
    hf_client *client = NULL;
    hf_ids *ids = NULL;
    hf_error error;
    bool good =
        hf_open(sale->options.redis_url, HF_CLIENT(.prefix = PREFIX), &client, &error) == HF_OK &&
        hf_ids_open(client, "order", NULL, &ids, &error) == HF_OK;
    if (!good)
        fprintf(stderr, "flashsale: %s: %s\n", sale->options.redis_url, error.text);
    good = good && desks_run(sale, worker, client, ids);
    hf_ids_close(ids);
    hf_close(client);
    return good ? 0 : 1;
}
