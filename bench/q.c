/* SPDX-License-Identifier: MIT
 *
 * Q: an acquire on a majority of five servers that are 20 ms away, there and back, in units of such
 * a round trip, which is that of a PING to one of them. All servers are asked at once, so it should
 * be one:
 *
 *   q-latency   all of them answer
 *   q-stalled   two of them stand still: they accept, and never answer
 *
 * A step is an acquire and a release that is not waited for, which costs nothing against a round
 * trip, and behind which the next acquire goes at once on the same connections.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "bench.h"
#include "info.h"
#include "measure.h"
#include "quorum.h"
#include "subject.h"

#define SERVERS  5
#define DELAY_NS 10000000

static const char *ping(void *arg)
{
    redisContext *context = arg;
    redisReply *reply = redisCommand(context, "PING");
    bool pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return pong ? NULL : "PING: no answer";
}

static bool compare(const struct bench *bench, struct subject *subject, redisContext *context,
                    struct result *result)
{
    struct side *sides = calloc(2, sizeof *sides);
    if (sides == NULL)
        return result_fail(result, "out of memory");
    sides[0].step = subject_pair;
    sides[0].arg = subject;
    sides[1].step = ping;
    sides[1].arg = context;
    bool measured = measure_in_turns(bench, sides, 2, result);
    if (measured)
        measure_compare(bench, &sides[0], &sides[1], result);
    free(sides);
    return measured;
}

/* Those that stand still do so once the client knows them, and not any more when it closes, which
 * waits for what they have to say. */
static bool run_stalled(const struct bench *bench, const struct quorum *quorum, int stalled,
                        struct subject *subject, redisContext *context, struct result *result)
{
    const char *problem = subject_pair(subject);
    if (problem != NULL)
        return result_fail(result, "%s", problem);
    quorum_stall(quorum, stalled);
    bool measured = compare(bench, subject, context, result);
    quorum_go_on(quorum, stalled);
    return measured;
}

static bool run_on_servers(const struct bench *bench, const struct quorum *quorum, int stalled,
                           struct result *result)
{
    redisContext *context;
    struct subject subject;
    bool measured = false;
    if (!info_open(&context, &quorum->doors[0], result))
        return false;
    if (subject_open_quorum(&subject, quorum->doors, quorum->count, OVER_UNIX, result)) {
        subject.nowait = true;
        measured = run_stalled(bench, quorum, stalled, &subject, context, result);
        struct result closing = {0};
        if (!subject_close(&subject, &closing) && measured)
            measured = result_fail(result, "%s", closing.problem);
    }
    redisFree(context);
    return measured;
}

static bool run(const struct bench *bench, const struct workload *workload, int stalled,
                struct result *result)
{
    struct quorum quorum;
    if (!bench_move_to(bench, workload->placement, result) ||
        !quorum_start_far(&quorum, SERVERS, DELAY_NS, bench_cpus(bench, workload->placement),
                          result))
        return false;
    bool measured = run_on_servers(bench, &quorum, stalled, result);
    quorum_stop(&quorum);
    return measured;
}

bool run_q_latency(const struct bench *bench, const struct workload *workload,
                   struct result *result)
{
    return run(bench, workload, 0, result);
}

bool run_q_stalled(const struct bench *bench, const struct workload *workload,
                   struct result *result)
{
    return run(bench, workload, 2, result);
}
