/* SPDX-License-Identifier: MIT */
/* Counting, for hf_stats_read(). A hold is counted as ended once: by its release, its loss or the
 * end of the client, whichever comes first. */
#include "core/state.h"

void hf__histogram_add(hf_histogram *histogram, hf__span span)
{
    uint64_t us = span.ns > 0 ? (uint64_t)span.ns / 1000 : 0;
    int bucket = 0;
    for (uint64_t rest = us; rest > 0 && bucket < HF_BUCKETS - 1; rest >>= 1)
        bucket++;
    histogram->count++;
    histogram->total_us += us;
    histogram->bucket[bucket]++;
}

void hf__stats_granted(hf_hold *hold, const hf__call *call)
{
    hf_stats *stats = &hold->core->stats;
    if (hold->vote != NULL)
        return; /* what counts is what its votes come to */
    stats->acquisitions++;
    stats->held++;
    hold->counted = true;
    hf__histogram_add(&stats->wait, hf__between(call->started, hold->core->now));
}

void hf__stats_released(hf_hold *hold, bool released, hf_reason otherwise)
{
    hf_stats *stats = &hold->core->stats;
    if (hold->vote != NULL || hold->fence == 0 || atomic_load(&hold->state) == HF_LOST)
        return; /* it was never granted, or its loss has been counted */
    if (released)
        stats->releases++;
    else
        stats->losses[otherwise]++;
}

void hf__stats_ended(hf_hold *hold)
{
    if (!hold->counted)
        return;
    hold->counted = false;
    hold->core->stats.held--;
    hf__histogram_add(&hold->core->stats.hold, hf__between(hold->granted, hold->core->now));
}
