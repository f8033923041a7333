/* SPDX-License-Identifier: MIT
 *
 * holdfast-bench: runs the workloads of the table below, all of them or those that are named, and
 * reports each as soon as it is done. Speeds are judged as ratios within one run, against the gates
 * that stand next to the names.
 *
 * Exit code: 0 when everything could be measured, also if gates were missed (that is news, not a
 * fault, on a busy machine) unless --strict; 1 when a workload failed, which means that a call gave
 * a wrong answer or no server could be started; 2 for bad arguments; 130 when interrupted.
 */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

#define LATENCY(name, run, gate, transport, placement)                     \
    {                                                                      \
        name, run, gate, GATE_RATIO_AT_MOST, "us", transport, placement, 1 \
    }
#define THROUGHPUT(name, run, gate, threads)                                     \
    {                                                                            \
        name, run, gate, GATE_RATIO_AT_LEAST, "k/s", OVER_TCP, UNPINNED, threads \
    }
#define HOLDING(name, run, gate, unit)                                 \
    {                                                                  \
        name, run, gate, GATE_VALUE_BELOW, unit, OVER_TCP, UNPINNED, 1 \
    }

#define TURNS(name, run, gate, gate_kind, unit, placement)        \
    {                                                             \
        name, run, gate, gate_kind, unit, OVER_TCP, placement, 16 \
    }
#define PROCESSES(name, run, gate, gate_kind, unit, processes)          \
    {                                                                   \
        name, run, gate, gate_kind, unit, OVER_TCP, UNPINNED, processes \
    }

#define IDS(name, run, gate, gate_kind, unit, threads)                 \
    {                                                                  \
        name, run, gate, gate_kind, unit, OVER_UNIX, UNPINNED, threads \
    }

#define SCALE(name, run, gate, gate_kind, unit, count)              \
    {                                                               \
        name, run, gate, gate_kind, unit, OVER_TCP, UNPINNED, count \
    }
#define FLAT(name, run, unit, count) SCALE(name, run, 1.5, GATE_RATIO_AT_MOST, unit, count)
#define HOLDS(name, count)                                                  \
    FLAT("scale-holds-" name, run_scale_holds, "us", count),                \
        FLAT("scale-holds-" name "-client", run_scale_client, "us", count), \
        FLAT("scale-holds-" name "-server", run_scale_server, "us", count), \
        FLAT("scale-holds-" name "-bytes", run_scale_bytes, "B", count)

static const struct workload workloads[] = {
    LATENCY("w1-tcp-pinned", run_w1_same_scripts, 1.10, OVER_TCP, PINNED),
    LATENCY("w1-unix-pinned", run_w1_same_scripts, 1.10, OVER_UNIX, PINNED),
    LATENCY("w1-tcp-unpinned", run_w1_same_scripts, 1.10, OVER_TCP, UNPINNED),
    LATENCY("w1-unix-unpinned", run_w1_same_scripts, 1.10, OVER_UNIX, UNPINNED),
    LATENCY("w1-tls-pinned", run_w1_same_scripts, 1.10, OVER_TLS, PINNED),
    LATENCY("w1-tls-unpinned", run_w1_same_scripts, 1.10, OVER_TLS, UNPINNED),
    LATENCY("w1c-tcp-pinned", run_w1_canonical, 1.30, OVER_TCP, PINNED),
    LATENCY("w1c-unix-pinned", run_w1_canonical, 1.30, OVER_UNIX, PINNED),
    LATENCY("w1c-tcp-unpinned", run_w1_canonical, 1.30, OVER_TCP, UNPINNED),
    LATENCY("w1c-unix-unpinned", run_w1_canonical, 1.30, OVER_UNIX, UNPINNED),
    LATENCY("w1n-tcp-pinned", run_w1_nowait, 1.00, OVER_TCP, PINNED),
    LATENCY("w1n-unix-pinned", run_w1_nowait, 1.00, OVER_UNIX, PINNED),
    LATENCY("w1n-tcp-unpinned", run_w1_nowait, 0.75, OVER_TCP, UNPINNED),
    LATENCY("w1n-unix-unpinned", run_w1_nowait, 0.75, OVER_UNIX, UNPINNED),
    {"w1-memory", run_w1_memory, 1024, GATE_VALUE_BELOW, "KiB", OVER_UNIX, PINNED, 1},
    THROUGHPUT("w2-2", run_w2, 0.90, 2),
    THROUGHPUT("w2-4", run_w2, 0.80, 4),
    THROUGHPUT("w2-8", run_w2, 1.00, 8),
    THROUGHPUT("w2-32", run_w2, 1.50, 32),
    THROUGHPUT("w2a-own-loop", run_w2a, 0.60, 1),
    LATENCY("server-time", run_server_time, 4.00, OVER_UNIX, PINNED),
    TURNS("w3-unpinned", run_w3_changes, 6, GATE_RATIO_AT_LEAST, "k/s", UNPINNED),
    TURNS("w3-unpinned-fair", run_w3_fairness, 2, GATE_VALUE_AT_MOST, "", UNPINNED),
    TURNS("w3-split", run_w3_changes, 12, GATE_RATIO_AT_LEAST, "k/s", SPLIT),
    TURNS("w3-split-fair", run_w3_fairness, 2, GATE_VALUE_AT_MOST, "", SPLIT),
    PROCESSES("w4-8-commands", run_w4_commands, 2.1, GATE_VALUE_AT_MOST, "", 8),
    PROCESSES("w4-8-p50", run_w4_p50, 1.6, GATE_RATIO_AT_MOST, "us", 8),
    PROCESSES("w4-8-p99", run_w4_p99, 2.5, GATE_RATIO_AT_MOST, "us", 8),
    PROCESSES("w4-64-commands", run_w4_commands, 2.1, GATE_VALUE_AT_MOST, "", 64),
    PROCESSES("w4-64-p50", run_w4_p50, 1.6, GATE_RATIO_AT_MOST, "us", 64),
    PROCESSES("w4-64-p99", run_w4_p99, 2.5, GATE_RATIO_AT_MOST, "us", 64),
    PROCESSES("w4h-rate", run_w4h_rate, 450, GATE_VALUE_AT_LEAST, "1/s", 8),
    PROCESSES("w4h-wait", run_w4h_wait, 2, GATE_RATIO_AT_MOST, "us", 8),
    PROCESSES("w6", run_w6, 20, GATE_VALUE_AT_MOST, "ms", 2),
    LATENCY("w7", run_w7, 3.00, OVER_UNIX, UNPINNED),
    LATENCY("q-latency", run_q_latency, 1.50, OVER_UNIX, UNPINNED),
    LATENCY("q-stalled", run_q_stalled, 2.00, OVER_UNIX, UNPINNED),
    LATENCY("q3-pair-tcp-pinned", run_q3_pair, 1.25, OVER_TCP, PINNED),
    LATENCY("q3-pair-unix-pinned", run_q3_pair, 1.25, OVER_UNIX, PINNED),
    LATENCY("q3-pair-tcp-unpinned", run_q3_pair, 1.25, OVER_TCP, UNPINNED),
    LATENCY("q3-pair-unix-unpinned", run_q3_pair, 1.25, OVER_UNIX, UNPINNED),
    LATENCY("q3-all-unpinned", run_q3_all, 1.25, OVER_TCP, UNPINNED),
    IDS("ids-leased", run_ids_leased, 20, GATE_VALUE_AT_LEAST, "M/s", 1),
    IDS("ids-leased-two", run_ids_leased, 30, GATE_VALUE_AT_LEAST, "M/s", 2),
    IDS("ids-by-thread", run_ids_by_thread, 1.5, GATE_RATIO_AT_LEAST, "M/s", 2),
    IDS("ids-ordered", run_ids_ordered, 0.8, GATE_RATIO_AT_LEAST, "k/s", 8),
    IDS("ids-ordered-16", run_ids_ordered_16, 0.8, GATE_RATIO_AT_LEAST, "k/s", 8),
    {"stock-take-1-pinned", run_stock_take, 0.8, GATE_RATIO_AT_LEAST, "k/s", OVER_UNIX, PINNED, 1},
    IDS("stock-take-1", run_stock_take, 0.8, GATE_RATIO_AT_LEAST, "k/s", 1),
    IDS("stock-take-8", run_stock_take, 0.8, GATE_RATIO_AT_LEAST, "k/s", 8),
    HOLDING("w5-commands", run_w5_commands, 50, "1/s"),
    HOLDING("w5-slowest", run_w5_slowest, 500, "us"),
    HOLDING("w5-processor", run_w5_processor, 0.3, "%"),
    HOLDING("w5-memory", run_w5_memory, 10, "MiB"),
    HOLDING("w5-threads", run_w5_threads, 3, ""),
    HOLDS("10k", 10000),
    HOLDS("100k", 100000),
    HOLDS("300k", 300000),
    HOLDS("1m", 1000000),
    SCALE("scale-holds-busy-300k", run_scale_busy, 0, GATE_VALUE_AT_MOST, "lost", 300000),
    SCALE("scale-names", run_scale_names, 8, GATE_VALUE_AT_MOST, "MiB", 1000000),
};

#define WORKLOAD_COUNT (sizeof workloads / sizeof workloads[0])

struct options {
    bool list;
    bool quick;
    bool strict;
    int repetitions; /* 0: as many as usual */
    const char *json_path;
    char **names; /* of workloads; none: all */
    int name_count;
};

struct tally {
    int passed;
    int missed;
    int failed;
};

volatile sig_atomic_t bench_interrupted;

static void on_signal(int number)
{
    (void)number;
    bench_interrupted = 1;
}

static void signals_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

const cpu_set_t *bench_cpus(const struct bench *bench, enum placement placement)
{
    return placement == UNPINNED ? &bench->all_cpus : &bench->pinned_cpu;
}

const cpu_set_t *bench_server_cpus(const struct bench *bench, enum placement placement)
{
    return placement == SPLIT ? &bench->other_cpus : bench_cpus(bench, placement);
}

bool bench_move_to(const struct bench *bench, enum placement placement, struct result *result)
{
    if (sched_setaffinity(0, sizeof(cpu_set_t), bench_cpus(bench, placement)) == 0)
        return true;
    return result_fail(result, "sched_setaffinity: %s", strerror(errno));
}

static void bench_prepare(struct bench *bench, bool quick, int repetitions)
{
    if (repetitions == 0)
        repetitions = quick ? 1 : REPETITIONS_MAX;
    *bench = (struct bench){.quick = quick,
                            .repetitions = repetitions,
                            .warm_up_ns = quick ? 10000000 : 200000000,
                            .stretch_ns = quick ? 50000000 : 1000000000};
    if (sched_getaffinity(0, sizeof bench->all_cpus, &bench->all_cpus) != 0)
        CPU_SET(0, &bench->all_cpus);
    size_t cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &bench->all_cpus))
        cpu++;
    CPU_SET(cpu, &bench->pinned_cpu);
    bench->other_cpus = bench->all_cpus;
    if (CPU_COUNT(&bench->all_cpus) > 1)
        CPU_CLR(cpu, &bench->other_cpus);
}

static void usage(FILE *out)
{
    fputs("usage: holdfast-bench [--quick] [--strict] [--repeat N] [--json PATH] [WORKLOAD...]\n"
          "       holdfast-bench --list\n"
          "\n"
          "  WORKLOAD     a name of --list, or the part before a dash: w1n is all of w1n-*;\n"
          "               without any: all but scale-*\n"
          "  --quick      one short repetition: a smoke test, no measurement\n"
          "  --repeat N   each measurement so often, 1 to 5; default 5, with --quick 1\n"
          "  --strict     exit with 1 if a gate was missed\n"
          "  --json PATH  append a line per workload to PATH; without WORKLOAD, start it anew\n",
          out);
}

static bool repetitions_parse(const char *text, int *repetitions)
{
    char *end;
    long number = strtol(text, &end, 10);
    *repetitions = (int)number;
    return *end == '\0' && number >= 1 && number <= REPETITIONS_MAX;
}

static void options_parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"list", no_argument, NULL, 'l'},
                                          {"quick", no_argument, NULL, 'q'},
                                          {"strict", no_argument, NULL, 's'},
                                          {"repeat", required_argument, NULL, 'r'},
                                          {"json", required_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (letter == 'l')
            options->list = true;
        else if (letter == 'q')
            options->quick = true;
        else if (letter == 's')
            options->strict = true;
        else if (letter == 'j')
            options->json_path = optarg;
        else if (letter == 'r' && repetitions_parse(optarg, &options->repetitions))
            continue;
        else {
            usage(letter == 'h' ? stdout : stderr);
            exit(letter == 'h' ? 0 : 2);
        }
    }
    options->names = argv + optind;
    options->name_count = argc - optind;
}

static bool name_matches(const char *wanted, const char *workload_name)
{
    size_t length = strlen(wanted);
    if (strncmp(wanted, workload_name, length) != 0)
        return false;
    return workload_name[length] == '\0' || workload_name[length] == '-';
}

static bool is_selected(const struct options *options, const struct workload *workload)
{
    for (int i = 0; i < options->name_count; i++)
        if (name_matches(options->names[i], workload->name))
            return true;
    return options->name_count == 0 && !name_matches("scale", workload->name);
}

/* A name that selects nothing is a typing error, and silence would look like success. */
static bool names_are_known(const struct options *options)
{
    for (int i = 0; i < options->name_count; i++) {
        bool known = false;
        for (size_t row = 0; row < WORKLOAD_COUNT; row++)
            known = known || name_matches(options->names[i], workloads[row].name);
        if (!known) {
            fprintf(stderr, "holdfast-bench: no workload %s; see --list\n", options->names[i]);
            return false;
        }
    }
    return true;
}

static void run_one(const struct bench *bench, const struct workload *workload, FILE *json,
                    struct tally *tally)
{
    struct report_row row = {.workload = workload->name,
                             .unit = workload->unit,
                             .gate = workload->gate,
                             .gate_kind = workload->gate_kind,
                             .quick = bench->quick};
    result_clear(&row.result);
    bool measured = workload->run(bench, workload, &row.result);
    report_table_row(stdout, &row);
    fflush(stdout);
    if (json != NULL) {
        report_json_line(json, &row);
        fflush(json);
    }
    if (!measured)
        tally->failed++;
    else if (report_passed(&row))
        tally->passed++;
    else
        tally->missed++;
}

static int run_selected(const struct bench *bench, const struct options *options, FILE *json)
{
    struct tally tally = {0};
    report_table_head(stdout);
    for (size_t row = 0; row < WORKLOAD_COUNT && !bench_interrupted; row++)
        if (is_selected(options, &workloads[row]))
            run_one(bench, &workloads[row], json, &tally);
    printf("%d passed, %d missed their gate, %d failed%s\n", tally.passed, tally.missed,
           tally.failed, bench->quick ? " (quick: numbers mean little)" : "");
    if (bench_interrupted)
        return 130;
    return tally.failed > 0 || (options->strict && tally.missed > 0) ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    options_parse(argc, argv, &options);
    if (options.list) {
        for (size_t row = 0; row < WORKLOAD_COUNT; row++)
            puts(workloads[row].name);
        return 0;
    }
    if (!names_are_known(&options))
        return 2;
    FILE *json = NULL;
    if (options.json_path != NULL) {
        json = fopen(options.json_path, options.name_count == 0 ? "we" : "ae");
        if (json == NULL) {
            fprintf(stderr, "holdfast-bench: %s: %s\n", options.json_path, strerror(errno));
            return 2;
        }
    }
    signals_catch();
    struct bench bench;
    bench_prepare(&bench, options.quick, options.repetitions);
    int code = run_selected(&bench, &options, json);
    if (json != NULL && fclose(json) != 0)
        code = 1;
    return code;
}
