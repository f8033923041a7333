/* SPDX-License-Identifier: MIT
 *
 * W1: one thread, one lock that nobody else wants, acquire and release: what the library costs when
 * it has nothing to do but the two round trips. Three questions, each for TCP and unix sockets
 * (the first also for TLS), pinned to one core (path length, stable) and not (with wake-ups across
 * cores, noisy):
 *
 *   w1    against a bare loop that runs the same scripts: the price of the client
 *   w1c   against SET NX PX and compare-and-delete: the price of client and scripts together
 *   w1n   the same, but the release's answer is not waited for
 *
 * Every workload has a server of its own and owns everything it opens.
 */
#include <stdlib.h>

#include "bare.h"
#include "bench.h"
#include "measure.h"
#include "server.h"
#include "subject.h"

typedef bool bare_open_function(struct bare *bare, const struct server *server,
                                enum transport transport, const char *lock, struct result *result);

/* The sides hold their histograms, which is why they are not on the stack. */
static bool compare_sides(const struct bench *bench, struct subject *subject, struct bare *bare,
                          struct result *result)
{
    struct side *sides = calloc(2, sizeof *sides);
    if (sides == NULL)
        return result_fail(result, "out of memory");
    sides[0].step = subject_pair;
    sides[0].arg = subject;
    sides[1].step = bare_pair;
    sides[1].arg = bare;
    bool measured = measure_in_turns(bench, sides, 2, result);
    if (measured)
        measure_compare(bench, &sides[0], &sides[1], result);
    free(sides);
    return measured;
}

static bool run_on_server(const struct bench *bench, const struct workload *workload,
                          const struct server *server, bool nowait, bare_open_function *bare_open,
                          struct result *result)
{
    struct bare bare;
    if (!bare_open(&bare, server, workload->transport, "bench:control", result))
        return false;
    struct subject subject;
    bool measured = false;
    if (subject_open(&subject, server, workload->transport, result)) {
        subject.nowait = nowait;
        measured = compare_sides(bench, &subject, &bare, result);
        /* A close that fails spoils a good run, but must not hide why a bad one failed. */
        struct result closing = {0};
        if (!subject_close(&subject, &closing) && measured)
            measured = result_fail(result, "%s", closing.problem);
    }
    bare_close(&bare);
    return measured;
}

static bool run_pairs(const struct bench *bench, const struct workload *workload, bool nowait,
                      bare_open_function *bare_open, struct result *result)
{
    struct server server;
    bool with_tls = workload->transport == OVER_TLS;
    if (!bench_move_to(bench, workload->placement, result) ||
        !(with_tls ? server_start_with_tls
                   : server_start)(&server, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_server(bench, workload, &server, nowait, bare_open, result);
    server_stop(&server);
    return measured;
}

bool run_w1_same_scripts(const struct bench *bench, const struct workload *workload,
                         struct result *result)
{
    return run_pairs(bench, workload, false, bare_open_same_scripts, result);
}

bool run_w1_canonical(const struct bench *bench, const struct workload *workload,
                      struct result *result)
{
    return run_pairs(bench, workload, false, bare_open_canonical, result);
}

bool run_w1_nowait(const struct bench *bench, const struct workload *workload,
                   struct result *result)
{
    return run_pairs(bench, workload, true, bare_open_canonical, result);
}
