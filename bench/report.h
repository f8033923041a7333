/* SPDX-License-Identifier: MIT
 *
 * The outcome of one workload, and the two places where it is shown: a table for people and a file
 * of JSON lines for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#define PROBLEM_SIZE 384

/* NAN stands for "means nothing here" and becomes null or a dash. */
struct result {
    double value;
    double baseline;
    double ratio;
    double spread;       /* of the repetitions: (highest - lowest) / median, of the value */
    double ratio_spread; /* and of the ratio */
    double cpu_us;       /* processor time of client and server for one operation */
    double p50_us;
    double p99_us;
    double max_us;
    char problem[PROBLEM_SIZE]; /* empty unless the workload failed */
};

/* What passes: a ratio or a value that is at most, or at least, the gate, or a value strictly below
 * it. */
enum gate_kind {
    GATE_RATIO_AT_MOST,
    GATE_RATIO_AT_LEAST,
    GATE_VALUE_BELOW,
    GATE_VALUE_AT_MOST,
    GATE_VALUE_AT_LEAST
};

struct report_row {
    const char *workload;
    const char *unit;
    double gate;
    enum gate_kind gate_kind;
    bool quick;
    struct result result;
};

void result_clear(struct result *result);
/* Writes the problem and returns false, so that a failing function can end with it. */
bool result_fail(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool report_passed(const struct report_row *row);
void report_table_head(FILE *out);
void report_table_row(FILE *out, const struct report_row *row);
void report_json_line(FILE *out, const struct report_row *row);

#endif
