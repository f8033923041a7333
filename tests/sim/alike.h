/* SPDX-License-Identifier: MIT */
/* Whether a real server and the model said the same. */
#ifndef HF_SIM_ALIKE_H
#define HF_SIM_ALIKE_H

#include <hiredis/hiredis.h>

#include "bytes.h"

enum { TOLERANCE_MS = 2, ALIKE_TEXT_MAX = 4096 };

/* The replies to a command. `slack_ms` is what the two servers' clocks may be apart. */
bool alike_replies(int64_t slack_ms, const hf__slice *words, int count, const redisReply *real,
                   const redisReply *model);
/* Without times other than those in texts. */
bool alike(int64_t slack_ms, const redisReply *real, const redisReply *model);

/* For people, with the type and without unprintable bytes. */
void alike_show(const redisReply *reply, char text[ALIKE_TEXT_MAX]);
/* Appends at *at, which moves on; leaves room at the end. */
void alike_show_bytes(char **at, const char *end, const char *bytes, size_t count);

#endif
