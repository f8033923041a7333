/* SPDX-License-Identifier: MIT */
/* The one place where the clock is read. */
#ifndef HF_NET_CLOCK_H
#define HF_NET_CLOCK_H

#include "base/instant.h"

hf__instant hf__clock_now(void);
hf__wall hf__clock_wall(void);
/* Cheap, a few ms behind, and stands still while the machine is suspended: not to be compared with
 * hf__clock_now(). */
hf__instant hf__clock_coarse(void);

#endif
