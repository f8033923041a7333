/* SPDX-License-Identifier: MIT */
/* Whether a server is fit to keep locks: one function for each thing that it says about itself in
 * the greeting. False: it was refused, and the connection has failed. */
#ifndef HF_CORE_CHECKS_H
#define HF_CORE_CHECKS_H

#include "core/state.h"

bool hf__check_server(hf__link *link, const hf__reply *reply);      /* INFO server */
bool hf__check_replication(hf__link *link, const hf__reply *reply); /* INFO replication */
bool hf__check_memory(hf__link *link, const hf__reply *reply);      /* INFO memory */
bool hf__check_persistence(hf__link *link, const hf__reply *reply); /* INFO persistence */
bool hf__check_clock(hf__link *link, const hf__reply *reply);       /* TIME */

bool hf__check_read_time(const hf__reply *reply, hf__wall *wall); /* of TIME; false: malformed */
/* All of INFO; false: malformed. */
bool hf__examine_read(const hf__reply *reply, hf_examination *examination);

#endif
