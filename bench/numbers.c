/* SPDX-License-Identifier: MIT
 *
 * The arithmetic under the stopwatches. Adding a sample is one increment in a table of fixed size;
 * a histogram belongs to one thread while it is added to, and is merged when that thread rests.
 */
#include "numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Values below 64 have a bucket each; above, each power of two is cut into 64 buckets. */
static size_t bucket_of(uint64_t value_ns)
{
    if (value_ns < 1u << HISTOGRAM_SUB_BITS)
        return (size_t)value_ns;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value_ns) - HISTOGRAM_SUB_BITS;
    return ((size_t)shift << HISTOGRAM_SUB_BITS) + (size_t)(value_ns >> shift);
}

static double bucket_middle_ns(size_t bucket)
{
    if (bucket < 1u << HISTOGRAM_SUB_BITS)
        return (double)bucket;
    size_t shift = (bucket >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t lowest = (uint64_t)(bucket - (shift << HISTOGRAM_SUB_BITS)) << shift;
    return (double)lowest + (double)(UINT64_C(1) << shift) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t value_ns)
{
    histogram->total++;
    histogram->count[bucket_of(value_ns)]++;
    if (value_ns > histogram->max_ns)
        histogram->max_ns = value_ns;
}

double histogram_quantile_us(const struct histogram *histogram, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)histogram->total);
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += histogram->count[bucket];
        if (seen > rank)
            return bucket_middle_ns(bucket) / 1e3;
    }
    return (double)histogram->max_ns / 1e3;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->total += from->total;
    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
        into->count[bucket] += from->count[bucket];
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
}

void result_take_histogram(struct result *result, const struct histogram *histogram)
{
    result->p50_us = histogram_quantile_us(histogram, 0.50);
    result->p99_us = histogram_quantile_us(histogram, 0.99);
    result->max_us = (double)histogram->max_ns / 1e3;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double median(const double *values, int count)
{
    double sorted[MEDIAN_MAX];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double spread(const double *values, int count)
{
    double lowest = values[0], highest = values[0];
    for (int i = 1; i < count; i++) {
        lowest = values[i] < lowest ? values[i] : lowest;
        highest = values[i] > highest ? values[i] : highest;
    }
    return count > 1 ? (highest - lowest) / median(values, count) : NAN;
}

void result_take_runs(struct result *result, const double *values, const double *baselines,
                      int count)
{
    double ratios[MEDIAN_MAX];
    result->value = median(values, count);
    result->spread = spread(values, count);
    if (baselines == NULL)
        return;
    for (int i = 0; i < count; i++)
        ratios[i] = values[i] / baselines[i];
    result->baseline = median(baselines, count);
    result->ratio = median(ratios, count);
    result->ratio_spread = spread(ratios, count);
}
