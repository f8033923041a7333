/* SPDX-License-Identifier: MIT */
/* What is shown while we wait for a lock: who holds it, for how long, how many come before us. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include "session.h"

/* Only where somebody can see it: on a terminal, unless quiet. The session is the one that waits.
 */
void live_begin(const struct session_options *options, const struct session *waiting,
                const char *name);
int64_t live_next(void); /* when to show again; INSTANT_NEVER: not at all */
void live_show(void);
void live_end(void);

/* "host, pid 12 (label) for 3 s". */
void live_describe_holder(const hf_inspection *seen, char *place, size_t capacity);

#endif
