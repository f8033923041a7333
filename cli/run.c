/* SPDX-License-Identifier: MIT */
#include "exit.h"
#include "say.h"
#include "session.h"
#include "verb.h"

static const struct option options[] = {{0}};

static int run(void *arg, int count, char **words)
{
    (void)arg;
    (void)count;
    (void)words;
    say_error("not written yet");
    return EXIT_OWN;
}

const struct verb verb_run = {.name = "run",
                              .usage = "[options] NAME",
                              .summary = "not written yet",
                              .details = "",
                              .table = {options, &session_table},
                              .size = sizeof(struct session_options),
                              .run = run};
