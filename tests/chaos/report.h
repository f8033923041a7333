/* SPDX-License-Identifier: MIT */
/* The judgement of a live run, and its summary. */
#ifndef HOLDFAST_TESTS_REPORT_H
#define HOLDFAST_TESTS_REPORT_H

#include "chaos.h"

struct verdict {
    bool overlap;
    bool passed;
};

/* Prints the summary and the judgement. `leftovers`: keys that should have been gone. */
struct verdict report(const struct chaos *chaos, const char *program, const char *leftovers);

#endif
