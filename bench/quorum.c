/* SPDX-License-Identifier: MIT */
/* See quorum.h. The servers are told that they have a vote, as they would have been long ago if
 * they were not so new: what a client does about new servers, and how it counts fences on for the
 * next seconds, is not what is measured.
 *
 * A delay is a process of its own, so that it costs the client that is measured no time of its
 * threads. It is forked off before there is such a client. */
#include "quorum.h"

#include <signal.h>
#include <string.h>

#include "info.h"

static bool give_vote(const struct server *server, struct result *result)
{
    redisContext *context;
    char vote[48];
    if (!info_open(&context, server, result))
        return false;
    bool given = info_run_id(context, vote, result);
    if (given) {
        strcat(vote, " 1"); /* the base of its fences, which time has passed */
        redisReply *reply = redisCommand(context, "SET hf:run %s", vote);
        given = (reply != NULL && reply->type == REDIS_REPLY_STATUS) ||
                result_fail(result, "a server does not take its vote");
        freeReplyObject(reply);
    }
    redisFree(context);
    return given;
}

bool quorum_start(struct quorum *quorum, int count, const cpu_set_t *cpus, struct result *result)
{
    *quorum = (struct quorum){0};
    for (int i = 0; i < count; i++) {
        bool started = server_start(&quorum->servers[i], cpus, result);
        quorum->count += started;
        if (!started || !give_vote(&quorum->servers[i], result)) {
            quorum_stop(quorum);
            return false;
        }
        quorum->doors[i] = quorum->servers[i];
    }
    return true;
}

bool quorum_start_far(struct quorum *quorum, int count, int64_t delay_ns, const cpu_set_t *cpus,
                      struct result *result)
{
    if (!quorum_start(quorum, count, cpus, result))
        return false;
    for (int i = 0; i < count; i++) {
        if (!delay_start(&quorum->delays[i], &quorum->servers[i], delay_ns, &quorum->doors[i],
                         result)) {
            quorum_stop(quorum);
            return false;
        }
    }
    return true;
}

void quorum_stop(struct quorum *quorum)
{
    for (int i = 0; i < quorum->count; i++) {
        delay_stop(&quorum->delays[i]);
        server_stop(&quorum->servers[i]);
    }
    quorum->count = 0;
}

static void signal_last(const struct quorum *quorum, int count, int number)
{
    for (int i = quorum->count - count; i < quorum->count; i++)
        kill(quorum->servers[i].pid, number);
}

void quorum_stall(const struct quorum *quorum, int count)
{
    signal_last(quorum, count, SIGSTOP);
}

void quorum_go_on(const struct quorum *quorum, int count)
{
    signal_last(quorum, count, SIGCONT);
}
