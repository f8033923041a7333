/* SPDX-License-Identifier: MIT */
/* SHA-1, by which a Redis server knows its scripts. */
#ifndef HF_SIM_SHA1_H
#define HF_SIM_SHA1_H

#include "bytes.h"

void sim_sha1_hex(hf__slice text, char hex[41]);

#endif
