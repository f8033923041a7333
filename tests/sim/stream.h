/* SPDX-License-Identifier: MIT */
/* Random commands for the comparison of the model with a real server, from a seed. */
#ifndef HF_SIM_STREAM_H
#define HF_SIM_STREAM_H

#include "bytes.h"

enum { STREAM_WORDS_MAX = 24, STREAM_KEYS = 92, STREAM_TEXT_MAX = 4096, STREAM_CLIENTS = 3 };

typedef struct sim_stream {
    uint64_t random;
    int64_t now_ms; /* for instants */
    int lock, item; /* those that the command being made is about */
    char text[STREAM_TEXT_MAX];
    size_t text_length;
    hf__slice words[STREAM_WORDS_MAX];
    int count;
} sim_stream;

/* Makes a command in words and count, valid until the next one. */
void stream_next(sim_stream *stream); /* any command; expiries are far away */
void stream_next_script(sim_stream *stream, const char *body); /* EVAL of this body */
/* A command that gives this key an expiry of 5 to 30 ms. */
void stream_next_short(sim_stream *stream, int key);
void stream_channel(int client, char channel[48]); /* 0 to STREAM_CLIENTS - 1 */
void stream_key(int key, char name[16]);           /* all keys there are: 0 to STREAM_KEYS - 1 */

extern const char *const stream_templates[], *const stream_lock_templates[],
                                                 *const stream_store_templates[];
extern const char *const stream_short_templates[]; /* with a key and ms */
extern const size_t stream_template_count, stream_lock_template_count, stream_store_template_count,
    stream_short_template_count;
extern const char *const stream_scripts[];
extern const size_t stream_script_count;

#endif
