/* SPDX-License-Identifier: MIT */
/* Makes the lock of a token last for another while. A lock that somebody has asked for is renewed
 * all the same, but the exit code says so: its holder should come to an end. */
#include <inttypes.h>
#include <stdio.h>

#include "token.h"
#include "verb.h"

struct renew_options {
    struct session_options session;
    int64_t ttl_ms;
};

static const struct option options[] = {
    {0, "ttl", OPTION_TIME, offsetof(struct renew_options, ttl_ms), "TIME",
     "how long it lasts from now on (as it was acquired)", HF_LEASE_MIN_MS, HF_MS_MAX, 0},
    {0}};

static int renew(const struct renew_options *given, struct token_use *use)
{
    struct token_facts facts;
    int code = token_read(use, &facts);
    if (code != 0)
        return code;
    if (given->session.json)
        token_print_json(use, &facts, true);
    else if (given->session.verbose)
        printf("%" PRId64 "\n", facts.remaining_ms);
    return token_finish(&facts, "renewed");
}

static int run(void *arg, int count, char **words)
{
    struct renew_options *given = arg;
    struct token_use use;
    int code = token_open(&given->session, count, words, given->ttl_ms, &use);
    if (code != 0)
        return code;
    code = renew(given, &use);
    token_close(&use);
    return code;
}

const struct verb verb_renew = {
    .name = "renew",
    .usage = "[options] NAME [TOKEN]",
    .summary = "make the lock of a token last longer",
    .details = "TOKEN is what acquire has printed; \"-\" reads it from standard input; left out,\n"
               "it is taken from HOLDFAST_TOKEN. Prints nothing; with -v the ms that are left.\n"
               "Exit code 122: it was lost. 123: renewed, but somebody asks for it.\n",
    .table = {options, &session_table},
    .size = sizeof(struct renew_options),
    .run = run,
    .mixed = true};
