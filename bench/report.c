/* SPDX-License-Identifier: MIT
 *
 * Shows results. A missed gate is a result like any other: it is printed, never hidden, and it is
 * main.c that decides whether it matters for the exit code. A workload that failed has no numbers
 * and never passes.
 *
 * Nothing here allocates or keeps state; rows are printed as they are finished, so that a run that
 * is interrupted has shown everything it learned. Columns have fixed widths for the same reason.
 */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void result_clear(struct result *result)
{
    *result = (struct result){.value = NAN,
                              .baseline = NAN,
                              .ratio = NAN,
                              .spread = NAN,
                              .ratio_spread = NAN,
                              .cpu_us = NAN,
                              .p50_us = NAN,
                              .p99_us = NAN,
                              .max_us = NAN};
}

bool result_fail(struct result *result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->problem, sizeof result->problem, format, arguments);
    va_end(arguments);
    return false;
}

bool report_passed(const struct report_row *row)
{
    if (row->result.problem[0] != '\0')
        return false;
    switch (row->gate_kind) {
    case GATE_RATIO_AT_MOST:
        return row->result.ratio <= row->gate;
    case GATE_RATIO_AT_LEAST:
        return row->result.ratio >= row->gate;
    case GATE_VALUE_BELOW:
        return row->result.value < row->gate;
    case GATE_VALUE_AT_MOST:
        return row->result.value <= row->gate;
    case GATE_VALUE_AT_LEAST:
        return row->result.value >= row->gate;
    }
    return false;
}

void report_table_head(FILE *out)
{
    fprintf(out, "%-24s %10s %-4s %10s %6s %9s  %-6s %9s %9s %9s %9s\n", "workload", "value",
            "unit", "baseline", "ratio", "gate", "", "cpu us", "p50 us", "p99 us", "max us");
}

static void table_cell(FILE *out, int width, int decimals, double number)
{
    if (isnan(number))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, decimals, number);
}

static const char *gate_sign(enum gate_kind kind)
{
    static const char *const signs[] = {[GATE_RATIO_AT_MOST] = "<=",
                                        [GATE_RATIO_AT_LEAST] = ">=",
                                        [GATE_VALUE_BELOW] = "<",
                                        [GATE_VALUE_AT_MOST] = "<=",
                                        [GATE_VALUE_AT_LEAST] = ">="};
    return signs[kind];
}

void report_table_row(FILE *out, const struct report_row *row)
{
    const struct result *result = &row->result;
    if (result->problem[0] != '\0') {
        fprintf(out, "%-24s FAILED: %s\n", row->workload, result->problem);
        return;
    }
    fprintf(out, "%-24s", row->workload);
    table_cell(out, 10, 2, result->value);
    fprintf(out, " %-4s", row->unit);
    table_cell(out, 10, 2, result->baseline);
    table_cell(out, 6, 3, result->ratio);
    fprintf(out, " %2s%7.2f", gate_sign(row->gate_kind), row->gate);
    fprintf(out, "  %-6s", report_passed(row) ? "pass" : "MISSED");
    table_cell(out, 9, 2, result->cpu_us);
    table_cell(out, 9, 1, result->p50_us);
    table_cell(out, 9, 1, result->p99_us);
    table_cell(out, 9, 1, result->max_us);
    fputc('\n', out);
}

static void json_number(FILE *out, const char *key, double number)
{
    if (isnan(number))
        fprintf(out, ",\"%s\":null", key);
    else
        fprintf(out, ",\"%s\":%.3f", key, number);
}

/* Problems carry texts of the server and of the system, so they may hold any byte. */
static void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *byte = (const unsigned char *)text; *byte != '\0'; byte++) {
        if (*byte == '"' || *byte == '\\')
            fprintf(out, "\\%c", *byte);
        else if (*byte < 0x20 || *byte >= 0x7f)
            fprintf(out, "\\u%04x", *byte);
        else
            fputc(*byte, out);
    }
    fputc('"', out);
}

static bool more_is_better(enum gate_kind kind)
{
    return kind == GATE_RATIO_AT_LEAST || kind == GATE_VALUE_AT_LEAST;
}

/* The same keys as the rows of bench/peers, so that one program reads both. */
void report_json_line(FILE *out, const struct report_row *row)
{
    const struct result *result = &row->result;
    fprintf(out, "{\"workload\":\"%s\"", row->workload);
    json_number(out, "value", result->value);
    fprintf(out, ",\"unit\":\"%s\"", row->unit);
    json_number(out, "baseline", result->baseline);
    json_number(out, "ratio", result->ratio);
    json_number(out, "spread", result->spread);
    json_number(out, "ratio_spread", result->ratio_spread);
    json_number(out, "cpu_us", result->cpu_us);
    fprintf(out, ",\"better\":\"%s\"", more_is_better(row->gate_kind) ? "more" : "less");
    fprintf(out, ",\"gate\":%.2f,\"pass\":%s", row->gate, report_passed(row) ? "true" : "false");
    json_number(out, "p50", result->p50_us);
    json_number(out, "p99", result->p99_us);
    json_number(out, "max", result->max_us);
    if (row->quick)
        fputs(",\"quick\":true", out);
    if (result->problem[0] != '\0') {
        fputs(",\"problem\":", out);
        json_string(out, result->problem);
    }
    fputs("}\n", out);
}
