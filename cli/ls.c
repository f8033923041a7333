/* SPDX-License-Identifier: MIT */
/* The names of the locks that are held, one on each line, in the order of their bytes. */
#include <stdio.h>

#include "exit.h"
#include "json.h"
#include "names.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "verb.h"

static const struct option options[] = {{0}};

static bool see(void *arg, const hf_inspection *lock)
{
    struct names *names = arg;
    (void)names_add(names, lock->name, lock->name_length);
    return !names->out_of_memory;
}

static void print(const struct session_options *given, const struct names *names)
{
    char shown[SHOW_NAME_MAX];
    if (given->json)
        json_begin_array(NULL);
    for (size_t i = 0; i < names->count; i++) {
        const struct name *name = &names->items[i];
        if (given->json)
            json_bytes(NULL, name->bytes, name->length);
        else
            printf("%s\n", show_name(shown, name->bytes, name->length));
    }
    if (given->json) {
        json_end_array();
        (void)json_finish();
    }
}

static int list(const struct session_options *given, struct session *session, const char *pattern)
{
    struct names names = {NULL, 0, 0, false};
    hf_error error;
    int code = EXIT_OK;
    if (hf_list(session->client, pattern, see, &names, &error) != HF_OK) {
        code = session_fail(session, "cannot list the locks", &error);
    } else if (names.out_of_memory) {
        say_error("out of memory");
        code = EXIT_OWN;
    } else {
        print(given, &names);
        code = show_finish(names.count > 0 ? EXIT_OK : EXIT_NO);
    }
    names_free(&names);
    return code;
}

static int run(void *arg, int count, char **words)
{
    struct session session;
    static const struct argument arguments[] = {{"PATTERN", "which locks"}, {0}};
    if (!options_check_words(arguments, 0, count, words, "quote a pattern"))
        return EXIT_USAGE;
    int code = session_open(arg, 0, &session);
    if (code != 0)
        return code;
    code = list(arg, &session, count == 1 ? words[0] : NULL);
    session_close(&session);
    return code;
}

const struct verb verb_ls = {
    .name = "ls",
    .usage = "[options] [PATTERN]",
    .summary = "print the names of the locks that are held",
    .details = "In PATTERN * stands for any text, ? for one character, [ab] for one of these.\n"
               "Exit code 1: there are none.\n",
    .table = {options, &session_table},
    .size = sizeof(struct session_options),
    .run = run,
    .mixed = true};
