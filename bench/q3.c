/* SPDX-License-Identifier: MIT
 *
 * Q3: W1 on a majority of three servers: one thread, a lock that nobody else wants, acquire and
 * release, against a bare loop that runs the same scripts on the same three. The loop makes each
 * command once, and writes it to all before it waits for the first:
 *
 *   q3-pair   it goes on as soon as two have answered, as the library does, and reads the third
 *             answer when it has come: the same work
 *   q3-all    it waits for all three, as one does who writes such a loop in a hurry
 *
 * It knows nothing of servers that refuse, stand still or go away.
 */
#include <poll.h>
#include <stdlib.h>

#include "bare.h"
#include "bench.h"
#include "measure.h"
#include "quorum.h"
#include "subject.h"

#define SERVERS  3
#define MAJORITY 2

struct loop { /* the bare one */
    int count;
    int needed; /* answers, to go on */
    struct bare bares[SERVERS];
    int owed[SERVERS]; /* answers, of this half of a pair and of those before it */
};

/* What has come from one server. Its answers take turns as the halves do. */
static const char *loop_read(struct loop *loop, int i, enum bare_verb verb)
{
    const char *problem = NULL;
    bool taken = true;
    bare_read(&loop->bares[i]);
    while (taken && problem == NULL && loop->owed[i] > 0) {
        enum bare_verb other = verb == BARE_ACQUIRE ? BARE_RELEASE : BARE_ACQUIRE;
        problem = bare_take_read(&loop->bares[i], loop->owed[i] % 2 == 1 ? verb : other, &taken);
        loop->owed[i] -= taken;
    }
    return problem;
}

static const char *loop_wait(struct loop *loop, enum bare_verb verb, int *answered)
{
    struct pollfd entries[SERVERS];
    const char *problem = NULL;
    for (int i = 0; i < loop->count; i++)
        entries[i] = (struct pollfd){.fd = loop->bares[i].context->fd, .events = POLLIN};
    (void)poll(entries, (nfds_t)loop->count, -1);
    *answered = 0;
    for (int i = 0; i < loop->count && problem == NULL; i++) {
        if (entries[i].revents != 0)
            problem = loop_read(loop, i, verb);
        *answered += loop->owed[i] == 0;
    }
    return problem;
}

static const char *loop_half(struct loop *loop, enum bare_verb verb)
{
    const char *problem = NULL;
    int answered = 0;
    bare_append_all(loop->bares, loop->count, verb);
    for (int i = 0; i < loop->count; i++) {
        bare_write(&loop->bares[i]);
        loop->owed[i]++;
    }
    while (answered < loop->needed && problem == NULL && !bench_interrupted)
        problem = loop_wait(loop, verb, &answered);
    return problem;
}

static const char *loop_pair(void *arg)
{
    const char *problem = loop_half(arg, BARE_ACQUIRE);
    return problem != NULL ? problem : loop_half(arg, BARE_RELEASE);
}

static void loop_close(struct loop *loop)
{
    for (int i = 0; i < loop->count; i++)
        bare_close(&loop->bares[i]);
    loop->count = 0;
}

static bool loop_open(struct loop *loop, const struct quorum *quorum, enum transport transport,
                      int needed, struct result *result)
{
    *loop = (struct loop){.needed = needed};
    for (int i = 0; i < quorum->count; i++) {
        if (!bare_open_vote(&loop->bares[i], &quorum->doors[i], transport, "bench:control",
                            result)) {
            loop_close(loop);
            return false;
        }
        loop->count++;
    }
    return true;
}

static bool compare(const struct bench *bench, struct subject *subject, struct loop *loop,
                    struct result *result)
{
    struct side *sides = calloc(2, sizeof *sides);
    if (sides == NULL)
        return result_fail(result, "out of memory");
    sides[0].step = subject_pair;
    sides[0].arg = subject;
    sides[1].step = loop_pair;
    sides[1].arg = loop;
    bool measured = measure_in_turns(bench, sides, 2, result);
    if (measured)
        measure_compare(bench, &sides[0], &sides[1], result);
    free(sides);
    return measured;
}

static bool run_on_servers(const struct bench *bench, const struct workload *workload,
                           const struct quorum *quorum, int needed, struct result *result)
{
    struct loop loop;
    struct subject subject;
    bool measured = false;
    if (!loop_open(&loop, quorum, workload->transport, needed, result))
        return false;
    if (subject_open_quorum(&subject, quorum->doors, quorum->count, workload->transport, result)) {
        measured = compare(bench, &subject, &loop, result);
        /* A close that fails spoils a good run, but must not hide why a bad one failed. */
        struct result closing = {0};
        if (!subject_close(&subject, &closing) && measured)
            measured = result_fail(result, "%s", closing.problem);
    }
    loop_close(&loop);
    return measured;
}

static bool run(const struct bench *bench, const struct workload *workload, int needed,
                struct result *result)
{
    struct quorum quorum;
    if (!bench_move_to(bench, workload->placement, result) ||
        !quorum_start(&quorum, SERVERS, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_servers(bench, workload, &quorum, needed, result);
    quorum_stop(&quorum);
    return measured;
}

bool run_q3_pair(const struct bench *bench, const struct workload *workload, struct result *result)
{
    return run(bench, workload, MAJORITY, result);
}

bool run_q3_all(const struct bench *bench, const struct workload *workload, struct result *result)
{
    return run(bench, workload, SERVERS, result);
}
