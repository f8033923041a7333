/* SPDX-License-Identifier: MIT */
/* Says how long the lock of a token lasts, and its fence. The question is a renewal for the
 * shortest lease there is, which makes no difference unless less than that is left. */
#include <inttypes.h>
#include <stdio.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "show.h"
#include "token.h"
#include "verb.h"

static const struct option options[] = {{0}};

static void print(const struct session_options *given, const struct token_use *use,
                  int64_t remaining_ms, uint64_t fence, bool asked_for)
{
    if (!given->json) {
        printf("%" PRId64 " %" PRIu64 "\n", remaining_ms, fence);
        return;
    }
    json_begin_object(NULL);
    json_text("name", use->name);
    json_number("remaining_ms", remaining_ms);
    json_unsigned("fence", fence);
    json_bool("revoked", asked_for);
    json_end_object();
    (void)json_finish();
}

static int check(const struct session_options *given, struct token_use *use)
{
    int64_t remaining_ms = hf_remaining_ms(use->hold);
    uint64_t fence = hf_fence(use->hold);
    bool asked_for = token_is_asked_for(use);
    int code = token_let_go(use);
    if (code != 0)
        return code;
    print(given, use, remaining_ms, fence, asked_for);
    if (asked_for)
        say_note("still held, but somebody asks for the lock: finish soon and release it");
    return show_finish(asked_for ? EXIT_REVOKED : EXIT_OK);
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
