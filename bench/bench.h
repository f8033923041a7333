/* SPDX-License-Identifier: MIT
 *
 * What every workload sees: the settings of this run, its own row of the table in main.c, and the
 * result that it fills. A new workload is one function of this type and one row there.
 */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "report.h"

#define BENCH_LEASE_MS 10000
#define LOCK_NAME_SIZE 32

enum transport { OVER_TCP, OVER_UNIX, OVER_TLS };
enum placement { UNPINNED, PINNED, SPLIT }; /* SPLIT: clients on one cpu, the server elsewhere */

struct bench {
    bool quick; /* one short repetition: shows that it runs, not how fast */
    int repetitions;
    int64_t warm_up_ns;   /* before each measured stretch, of each side */
    int64_t stretch_ns;   /* how long each side is measured in one repetition */
    cpu_set_t all_cpus;   /* what we were started with */
    cpu_set_t pinned_cpu; /* the first of these */
    cpu_set_t other_cpus; /* and the others, if there are any */
};

struct workload;

/* False when nothing could be measured or a call went wrong; result->problem then says what. */
typedef bool workload_function(const struct bench *bench, const struct workload *workload,
                               struct result *result);

struct workload {
    const char *name;
    workload_function *run;
    double gate;
    enum gate_kind gate_kind;
    const char *unit;
    enum transport transport;
    enum placement placement;
    int threads; /* or processes, holds or names */
};

workload_function run_w1_same_scripts;
workload_function run_w1_canonical;
workload_function run_w1_nowait;
workload_function run_w1_memory;
workload_function run_w2;
workload_function run_w2a;
workload_function run_w3_changes;
workload_function run_w3_fairness;
workload_function run_w4_commands;
workload_function run_w4_p50;
workload_function run_w4_p99;
workload_function run_w4h_rate;
workload_function run_w4h_wait;
workload_function run_w6;
workload_function run_w7;
workload_function run_server_time;
workload_function run_q_latency;
workload_function run_q_stalled;
workload_function run_q3_pair;
workload_function run_q3_all;
workload_function run_ids_leased;
workload_function run_ids_by_thread;
workload_function run_ids_ordered;
workload_function run_ids_ordered_16;
workload_function run_stock_take;
workload_function run_w5_commands;
workload_function run_w5_slowest;
workload_function run_w5_processor;
workload_function run_w5_memory;
workload_function run_w5_threads;
workload_function run_scale_holds;
workload_function run_scale_client;
workload_function run_scale_server;
workload_function run_scale_bytes;
workload_function run_scale_busy;
workload_function run_scale_names;

/* Set by SIGINT and SIGTERM; long loops look at it so that servers and folders are cleaned up. */
extern volatile sig_atomic_t bench_interrupted;

/* The cpus of a placement, for clients and servers, and moving the calling thread to the clients'.
 * Threads started later inherit it, so this comes before hf_open(). */
const cpu_set_t *bench_cpus(const struct bench *bench, enum placement placement);
const cpu_set_t *bench_server_cpus(const struct bench *bench, enum placement placement);
bool bench_move_to(const struct bench *bench, enum placement placement, struct result *result);

#endif
