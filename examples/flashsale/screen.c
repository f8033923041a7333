/* SPDX-License-Identifier: MIT
 *
 * What the sale shows: on a terminal a line that is rewritten in place, elsewhere one for each run;
 * then the table. */
#include "sale.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAME_US  100000
#define SPARSE_US 5000000

static bool is_live;
static bool has_colours;
static const struct strategy *shown; /* by the last line of progress */
static int64_t next_us;

static const char *colour(const char *code)
{
    return has_colours ? code : "";
}

void screen_begin(const struct options *options)
{
    is_live = isatty(STDOUT_FILENO);
    has_colours = is_live && getenv("NO_COLOR") == NULL;
    printf("A flash sale: %d buyers, who click twice, for %d items; %d processes of %d threads%s\n",
           options->buyers, options->stock, options->processes, options->threads,
           options->chaos ? ",\nsome of which are killed or stopped in the middle." : ".");
    fflush(stdout);
}

void screen_progress(const struct sale *sale, int64_t took_us)
{
    if (shown != sale->strategy)
        next_us = is_live ? 0 : SPARSE_US;
    shown = sale->strategy;
    if (took_us < next_us)
        return;
    next_us = took_us + (is_live ? FRAME_US : SPARSE_US);
    if (is_live)
        printf("\r  %-24s %6d of %d requests answered, %d sold\033[K", sale->strategy->name,
               atomic_load(&sale->decided), sale->requests_count, atomic_load(&sale->sold));
    else
        printf("  %-24s %6d of %d requests answered\n", sale->strategy->name,
               atomic_load(&sale->decided), sale->requests_count);
    fflush(stdout);
}

void screen_end_run(const struct sale *sale, const struct result *result)
{
    printf("%s  %-24s %6" PRId64 " sold in %.2f s", is_live ? "\r\033[K" : "", sale->strategy->name,
           result->ledger.sold, (double)result->crew.took_us / 1e6);
    if (result->crew.killed + result->crew.stopped > 0)
        printf(", %d workers killed, %d stopped", result->crew.killed, result->crew.stopped);
    if (result->stale > 0)
        printf(", %d writes with an old fence refused", result->stale);
    printf("\n");
    fflush(stdout);
}

static const char *colour_of(const struct result *result)
{
    if (result->ledger.oversold > 0 || result->ledger.duplicates > 0)
        return colour("\033[31m");
    return colour(result->in_vain > 0 ? "\033[33m" : "\033[32m");
}

void screen_table(const struct options *options, const struct result *results)
{
    printf("\n%26s %6s %9s %11s %15s\n", "", "", "", "", "refused though");
    printf("%26s %6s %9s %11s %15s %10s %7s %7s\n", "", "sold", "oversold", "duplicates",
           "stock was left", "answers/s", "p50 ms", "p99 ms");
    for (int i = 0; i < STRATEGIES; i++) {
        const struct result *result = &results[i];
        const struct ledger *ledger = &result->ledger;
        if (!options->chosen[i])
            continue;
        printf("%s%d %-24s %6" PRId64 " %9" PRId64 " %11" PRId64, colour_of(result), i + 1,
               strategies[i].name, ledger->sold, ledger->oversold, ledger->duplicates);
        printf(" %15d %10.0f %7.1f %7.1f%s\n", result->in_vain, result->per_second, result->p50_ms,
               result->p99_ms, colour("\033[0m"));
    }
    printf("\n");
}

void screen_check(bool good, const char *format, ...)
{
    va_list arguments;
    printf("%s  %s  ", colour(good ? "\033[32m" : "\033[31m"), good ? "yes" : "NO ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("%s\n", colour("\033[0m"));
}
