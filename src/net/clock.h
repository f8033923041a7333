/* SPDX-License-Identifier: MIT */
/* The one place where the clock is read. */
#ifndef HF_NET_CLOCK_H
#define HF_NET_CLOCK_H

#include "base/instant.h"

hf__instant hf__clock_now(void);
hf__wall hf__clock_wall(void);

#endif
