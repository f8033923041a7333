/* SPDX-License-Identifier: MIT */
/* Makes the lock of a token last for another while. A lock that somebody has asked for is renewed
 * all the same, but the exit code says so: its holder should come to an end. */
#include <inttypes.h>
#include <stdio.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "show.h"
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

static void print(const struct token_use *use, int64_t remaining_ms, uint64_t fence, bool asked_for)
{
    json_begin_object(NULL);
    json_text("name", use->name);
    json_number("remaining_ms", remaining_ms);
    json_unsigned("fence", fence);
    json_bool("revoked", asked_for);
    json_text("token", use->token);
    json_end_object();
    (void)json_finish();
}

static int renew(const struct renew_options *given, struct token_use *use)
{
    int64_t remaining_ms = hf_remaining_ms(use->hold);
    uint64_t fence = hf_fence(use->hold);
    bool asked_for = token_is_asked_for(use);
    int code = token_let_go(use);
    if (code != 0)
        return code;
    if (given->session.json)
        print(use, remaining_ms, fence, asked_for);
    else if (given->session.verbose)
        printf("%" PRId64 "\n", remaining_ms);
    if (asked_for)
        say_note("renewed, but somebody asks for the lock: finish soon and release it");
    return show_finish(asked_for ? EXIT_REVOKED : EXIT_OK);
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
