/* SPDX-License-Identifier: MIT */
/* The Lua host of the model server: what scripts see of Redis, and what becomes of what they
 * return. There is one Lua state in the process, shared by all servers, and each body is compiled
 * once; a script cannot leave anything behind in it. */
#ifndef HF_SIM_SCRIPT_H
#define HF_SIM_SCRIPT_H

#include "bytes.h"

typedef struct sim_function sim_function; /* compiled; lives as long as the process */

/* NULL: it does not compile, and `error` has the compiler's words. */
const sim_function *sim_script_compile(hf__slice body, char *error, size_t capacity);

/* Runs one command of a script and appends its reply. */
typedef void sim_script_command(void *arg, const hf__slice *words, int count, sim_buffer *reply);

typedef struct sim_script_call {
    const sim_function *function;
    const char *sha1; /* for the texts of errors */
    const hf__slice *keys;
    int key_count;
    const hf__slice *arguments;
    int argument_count;
    sim_script_command *command;
    void *arg;
    unsigned short *random; /* three of them: the state of math.random, which is the server's */
} sim_script_call;

/* Appends the script's reply, which may be an error, to `out`. Not to be called by a command. */
void sim_script_run(const sim_script_call *call, sim_buffer *out);

#endif
