/* SPDX-License-Identifier: MIT */
/* Gives back the lock of a token. On the way it is asked for with the shortest lease, which makes
 * no difference to one that lasts longer: should we end in between, it ends when it would have. */
#include "exit.h"
#include "json.h"
#include "say.h"
#include "show.h"
#include "token.h"
#include "verb.h"

static const struct option options[] = {{0}};

static int release(const struct session_options *given, struct token_use *use)
{
    hf_error error;
    uint64_t fence = hf_fence(use->hold);
    hf_status status = hf_release(&use->hold, &error);
    if (status == HF_ELOST)
        say_error("the lock had ended before: %s", error.text);
    if (status != HF_OK)
        return status == HF_ELOST ? EXIT_LOST
                                  : session_fail(&use->session, "cannot release the lock", &error);
    if (!given->json)
        return EXIT_OK;
    json_begin_object(NULL);
    json_text("name", use->name);
    json_bool("released", true);
    json_unsigned("fence", fence);
    json_end_object();
    (void)json_finish();
    return show_finish(EXIT_OK);
}

static int run(void *arg, int count, char **words)
{
    struct token_use use;
    int code = token_open(arg, count, words, HF_LEASE_MIN_MS, &use);
    if (code != 0)
        return code;
    code = release(arg, &use);
    token_close(&use);
    return code;
}

const struct verb verb_release = {
    .name = "release",
    .usage = "[options] NAME [TOKEN]",
    .summary = "give back the lock of a token",
    .details = "TOKEN is what acquire has printed; \"-\" reads it from standard input; left out,\n"
               "it is taken from HOLDFAST_TOKEN. Exit code 122: it had ended before.\n",
    .table = {options, &session_table},
    .size = sizeof(struct session_options),
    .run = run,
    .mixed = true};
