/* SPDX-License-Identifier: MIT */
/* Times are types. An instant is a point on the one clock of the process (src/net/clock.c reads
 * it; tests make it up); a span is a length of time. They do not mix by accident: the compiler
 * refuses an instant where a span belongs. Nanoseconds in 64 bits last for 292 years, and every
 * span that enters is bounded by HF_MS_MAX, so sums cannot overflow except with `never`, which
 * saturates. */
#ifndef HF_BASE_INSTANT_H
#define HF_BASE_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hf__instant {
    int64_t ns;
} hf__instant;

typedef struct hf__span {
    int64_t ns;
} hf__span;

/* What time it is, in microseconds since 1970: only to be compared with another machine's. */
typedef struct hf__wall {
    int64_t us;
} hf__wall;

#define HF__NEVER ((hf__instant){INT64_MAX})

static inline hf__span hf__span_ms(int64_t ms)
{
    return (hf__span){ms * 1000000};
}

/* Whole milliseconds, rounded towards zero: a remaining time is never overstated. */
static inline int64_t hf__span_to_ms(hf__span span)
{
    return span.ns / 1000000;
}

static inline bool hf__is_never(hf__instant at)
{
    return at.ns == INT64_MAX;
}

static inline hf__instant hf__after(hf__instant from, hf__span span)
{
    return hf__is_never(from) ? HF__NEVER : (hf__instant){from.ns + span.ns};
}

static inline hf__span hf__between(hf__instant from, hf__instant to)
{
    return (hf__span){to.ns - from.ns};
}

static inline bool hf__before(hf__instant a, hf__instant b)
{
    return a.ns < b.ns;
}

static inline hf__instant hf__earlier(hf__instant a, hf__instant b)
{
    return hf__before(a, b) ? a : b;
}

static inline hf__instant hf__later(hf__instant a, hf__instant b)
{
    return hf__before(a, b) ? b : a;
}

#endif
