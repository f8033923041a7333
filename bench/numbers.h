/* SPDX-License-Identifier: MIT
 *
 * Time, histograms and medians, for whatever measures.
 */
#ifndef BENCH_NUMBERS_H
#define BENCH_NUMBERS_H

#include <stdint.h>

#include "report.h"

/* Times from 1 ns up, in buckets that are at most 1/64 of their value wide. */
#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_BUCKETS  ((64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
    uint64_t total;
    uint64_t max_ns;
    uint64_t count[HISTOGRAM_BUCKETS];
};

int64_t now_ns(void); /* only differences mean something */

void histogram_add(struct histogram *histogram, uint64_t value_ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
double histogram_quantile_us(const struct histogram *histogram, double quantile);
/* Fills the percentiles. */
void result_take_histogram(struct result *result, const struct histogram *histogram);

#define MEDIAN_MAX 25

double median(const double *values, int count); /* of at most MEDIAN_MAX */
/* Fills value, baseline and ratio with medians of the repetitions, and says how far the repetitions
 * are apart. The ratio is the median of their ratios. baselines may be NULL. */
void result_take_runs(struct result *result, const double *values, const double *baselines,
                      int count);

#endif
