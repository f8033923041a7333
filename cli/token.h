/* SPDX-License-Identifier: MIT */
/* What the verbs that are given a token share: "NAME TOKEN" becomes a hold. */
#ifndef CLI_TOKEN_H
#define CLI_TOKEN_H

#include "session.h"

struct token_use {
    struct session session;
    const char *name;
    char token[HF_TOKEN_MAX]; /* of the hold; a new one when it is let go */
    hf_hold *hold;
};

/* Takes up the lock of a token, which is a word, "-" (then it is read from standard input), or in
 * HOLDFAST_TOKEN. lease_ms 0: as it was acquired. Returns 0, or the exit code, and has said why. */
int token_open(struct session_options *options, int count, char **words, int64_t lease_ms,
               struct token_use *use);
void token_close(struct token_use *use);

struct token_facts {
    int64_t remaining_ms;
    uint64_t fence;
    bool asked_for; /* somebody has asked for the lock, as far as the server has told us */
};

/* What is known of the lock, which is left in the token's hands again; returns as token_open(). */
int token_read(struct token_use *use, struct token_facts *facts);

/* As JSON; the token too if it is a new one. */
void token_print_json(const struct token_use *use, const struct token_facts *facts, bool renewed);

/* What the command ends with: says if somebody asks for the lock, though it was "renewed", say. */
int token_finish(const struct token_facts *facts, const char *what);

#endif
