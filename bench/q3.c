/* SPDX-License-Identifier: MIT
 *
 * Q3: W1 on a majority of three servers: one thread, a lock that nobody else wants, acquire and
 * release, against a bare loop that runs the same scripts on the same three. The loop writes to all
 * before it reads from the first, and waits for all: so it needs nothing but blocking reads. The
 * library goes on with two answers and reads the third when it has come; it could not do with less,
 * for one of them may stand still.
 */
#include <stdlib.h>

#include "bare.h"
#include "bench.h"
#include "measure.h"
#include "quorum.h"
#include "subject.h"

#define SERVERS 3

struct loop { /* the bare one */
    int count;
    struct bare bares[SERVERS];
};

static const char *loop_half(struct loop *loop, enum bare_verb verb)
{
    const char *problem = NULL;
    for (int i = 0; i < loop->count; i++) {
        bare_append(&loop->bares[i], verb);
        bare_write(&loop->bares[i]);
    }
    for (int i = 0; i < loop->count && problem == NULL; i++)
        problem = bare_take(&loop->bares[i], verb);
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
                      struct result *result)
{
    loop->count = 0;
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
                           const struct quorum *quorum, struct result *result)
{
    struct loop loop;
    struct subject subject;
    bool measured = false;
    if (!loop_open(&loop, quorum, workload->transport, result))
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

bool run_q3_pair(const struct bench *bench, const struct workload *workload, struct result *result)
{
    struct quorum quorum;
    if (!bench_move_to(bench, workload->placement, result) ||
        !quorum_start(&quorum, SERVERS, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_servers(bench, workload, &quorum, result);
    quorum_stop(&quorum);
    return measured;
}
