/* SPDX-License-Identifier: MIT */
/* Replies in RESP2, written into a buffer. */
#ifndef HF_SIM_REPLY_H
#define HF_SIM_REPLY_H

#include "bytes.h"

#define SIM_WRONG_TYPE    "WRONGTYPE Operation against a key holding the wrong kind of value"
#define SIM_NOT_INTEGER   "ERR value is not an integer or out of range"
#define SIM_NOT_FLOAT     "ERR value is not a valid float"
#define SIM_SYNTAX        "ERR syntax error"
#define SIM_SCRIPT_DENIED "ERR The user executing the script can't run this command or subcommand"

/* Of a status and of an error, line ends within become blanks. */
void sim_reply_status(sim_buffer *out, const char *text);
void sim_reply_ok(sim_buffer *out);
void sim_reply_error(sim_buffer *out, const char *text);
void sim_reply_errorf(sim_buffer *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_reply_integer(sim_buffer *out, int64_t number);
void sim_reply_bulk(sim_buffer *out, hf__slice slice);
void sim_reply_text(sim_buffer *out, const char *text); /* as a bulk */
void sim_reply_double(sim_buffer *out, double number);
void sim_reply_nil(sim_buffer *out);
void sim_reply_nil_array(sim_buffer *out);
void sim_reply_array(sim_buffer *out, size_t count);

/* Reads one complete reply for people: numbers in decimal, "(nil)", texts as they are, errors with
 * their '-', arrays as "[a b]". Returns what comes after it. */
const char *sim_reply_show(const char *reply, sim_buffer *shown);

#endif
