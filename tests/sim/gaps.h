/* SPDX-License-Identifier: MIT */
/* Fields of INFO that a server does not tell, for the worlds of one server and of a quorum. Some
 * proxies and services leave fields out, and an upgrade may change which. In one run of eight
 * servers hide some: each process that is started, and now and then one that runs.
 *
 * The draws come from a stream of their own, so that whatever else a seed draws stays what it was.
 */
#ifndef HF_SIM_GAPS_H
#define HF_SIM_GAPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GAP_RUN_ID = 1,
    GAP_UPTIME = 2,
    GAP_VERSION = 4,
    GAP_ROLE = 8,
    GAP_MEMORY = 16,
    GAP_APPEND_ONLY = 32
};

typedef struct sim_gaps {
    bool in_run;
    bool for_good; /* they do not end with the faults */
    uint64_t random;
} sim_gaps;

void gaps_begin(sim_gaps *gaps, uint64_t seed);
unsigned gaps_draw(sim_gaps *gaps); /* what a process hides that is started now */
bool gaps_change(sim_gaps *gaps);   /* one occasion: whether a process that runs hides others */
void gaps_cut(char *info, unsigned hidden); /* takes these fields out of a text */

#endif
