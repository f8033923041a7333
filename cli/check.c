/* SPDX-License-Identifier: MIT */
/* Says how long the lock of a token lasts, and its fence. The question is a renewal for the
 * shortest lease there is, which makes no difference unless less than that is left. */
#include <inttypes.h>
#include <stdio.h>

#include "token.h"
#include "verb.h"

static const struct option options[] = {{0}};

static int check(const struct session_options *given, struct token_use *use)
{
    struct token_facts facts;
    int code = token_read(use, &facts);
    if (code != 0)
        return code;
    if (given->json)
        token_print_json(use, &facts, false);
    else
        printf("%" PRId64 " %" PRIu64 "\n", facts.remaining_ms, facts.fence);
    return token_finish(&facts, "still held");
}

static int run(void *arg, int count, char **words)
{
    struct token_use use;
    int code = token_open(arg, count, words, HF_LEASE_MIN_MS, &use);
    if (code != 0)
        return code;
    code = check(arg, &use);
    token_close(&use);
    return code;
}

const struct verb verb_check = {
    .name = "check",
    .usage = "[options] NAME [TOKEN]",
    .summary = "say how long the lock of a token lasts: remaining ms and fence",
    .details = "TOKEN is what acquire has printed; \"-\" reads it from standard input; left out,\n"
               "it is taken from HOLDFAST_TOKEN. Does not renew it. Exit code 122: it was lost.\n"
               "123: still held, but somebody asks for it.\n",
    .table = {options, &session_table},
    .size = sizeof(struct session_options),
    .run = run,
    .mixed = true};
