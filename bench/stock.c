/* SPDX-License-Identifier: MIT
 *
 * Stock: takes of one unit, each by a request of its own, by users who may have as many as there
 * are, against the shortest script that does the same: sells once for each request, never below
 * zero and never too many to one user. It remembers requests for ever and knows no reservations.
 * Both are synchronous. Of one thread the time of a call counts, of eight the throughput.
 */
#include <holdfast_stock.h>
#include <stdio.h>

#include "bench.h"
#include "crowd.h"
#include "errand.h"
#include "server.h"
#include "subject.h"

#define UNITS    1000000000
#define PER_USER "1000000000"

static const char shortest[] = "if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 1 end\n"
                               "local n = tonumber(ARGV[3])\n"
                               "if tonumber(redis.call('GET', KEYS[1])) < n then return -1 end\n"
                               "if tonumber(redis.call('HGET', KEYS[3], ARGV[2]) or 0) + n >\n"
                               "    tonumber(ARGV[4]) then return -2 end\n"
                               "redis.call('DECRBY', KEYS[1], n)\n"
                               "redis.call('HINCRBY', KEYS[3], ARGV[2], n)\n"
                               "redis.call('HSET', KEYS[2], ARGV[1], 1)\n"
                               "return 1\n";

struct buyer {
    hf_client *client;
    char user[24];
    char problem[PROBLEM_SIZE];
};

static const char *buy(void *arg)
{
    struct buyer *buyer = arg;
    hf_error error;
    if (hf_stock_take(buyer->client, "bench", 1, HF_TAKE(.user = buyer->user), NULL, &error) ==
        HF_OK)
        return NULL;
    snprintf(buyer->problem, sizeof buyer->problem, "hf_stock_take: %s", error.text);
    return buyer->problem;
}

static bool bare_buyer_open(struct errand *errand, const struct server *server, int number,
                            enum transport transport, struct result *result)
{
    if (!errand_open(errand, server, transport, result))
        return false;
    snprintf(errand->request, sizeof errand->request, "bare-%02d:0000000000000", number);
    redisReply *reply = redisCommand(errand->context, "SET bench:units %d", UNITS);
    bool set = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (!set || !errand_load(errand, shortest, result)) {
        errand_close(errand);
        return set ? false : result_fail(result, "SET failed");
    }
    errand_fill(errand,
                (const char *[]){"EVALSHA", errand->sha1, "3", "bench:units", "bench:requests",
                                 "bench:users", errand->request, "user", "1", PER_USER, NULL});
    return true;
}

static bool compare(const struct bench *bench, const struct workload *workload,
                    struct buyer *buyers, struct errand *errands, struct result *result)
{
    void *buyer_args[CROWD_MAX], *errand_args[CROWD_MAX];
    for (int i = 0; i < workload->threads; i++) {
        buyer_args[i] = &buyers[i];
        errand_args[i] = &errands[i];
    }
    struct crowd *subject = crowd_start(buy, buyer_args, workload->threads, result);
    struct crowd *baseline =
        subject != NULL ? crowd_start(errand_step, errand_args, workload->threads, result) : NULL;
    bool measured = baseline != NULL && crowd_compare(bench, subject, baseline, result);
    crowd_end(baseline);
    crowd_end(subject);
    return measured;
}

static bool run_client(const struct bench *bench, const struct workload *workload,
                       const struct server *server, struct errand *errands, struct result *result)
{
    struct subject subject;
    struct buyer buyers[CROWD_MAX];
    hf_error error;
    if (!subject_open(&subject, server, workload->transport, result))
        return false;
    for (int i = 0; i < workload->threads; i++) {
        buyers[i] = (struct buyer){.client = subject.client};
        snprintf(buyers[i].user, sizeof buyers[i].user, "user-%02d", i);
    }
    bool measured =
        hf_stock_set(subject.client, "bench", UNITS, HF_STOCK(.per_user = UNITS), &error) == HF_OK;
    if (measured)
        measured = compare(bench, workload, buyers, errands, result);
    else
        result_fail(result, "hf_stock_set: %s", error.text);
    struct result closing = {0};
    if (!subject_close(&subject, &closing) && measured)
        measured = result_fail(result, "%s", closing.problem);
    return measured;
}

bool run_stock_take(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    struct server server;
    struct errand errands[CROWD_MAX];
    int open = 0;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_cpus(bench, workload->placement), result))
        return false;
    for (bool opened = true; opened && open < workload->threads; open += opened)
        opened = bare_buyer_open(&errands[open], &server, open, workload->transport, result);
    bool measured =
        open == workload->threads && run_client(bench, workload, &server, errands, result);
    while (open > 0)
        errand_close(&errands[--open]);
    server_stop(&server);
    return measured;
}
