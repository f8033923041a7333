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

/* Leaves the lock in the token's hands again; returns as token_open() does. */
int token_let_go(struct token_use *use);

/* Whether somebody has asked for the lock, as far as the server has told us. */
bool token_is_asked_for(struct token_use *use);

#endif
