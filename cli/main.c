/* SPDX-License-Identifier: MIT */
/* The command: finds the verb, parses its options, runs it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast.h>

#include "exit.h"
#include "help.h"
#include "say.h"
#include "verb.h"

static const struct verb *find_verb(const char *name)
{
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
    return NULL;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return word != NULL && (strcmp(word, a) == 0 || strcmp(word, b) == 0);
}

/* --help counts before anything that could be wrong, up to the first word that is not an option. */
static bool asks_for_help(const struct verb *verb, int count, char **words)
{
    for (int i = 0; i < count && (words[i][0] == '-' || verb->mixed); i++) {
        if (strcmp(words[i], "--") == 0)
            return false;
        if (is_one_of(words[i], "--help", "-h"))
            return true;
    }
    return false;
}

/* Parses the options; those behind words too if the verb allows it, then the words are moved to the
 * end. Returns the index of the first word; -1: wrong. */
static int parse(const struct verb *verb, void *options, int count, char **words)
{
    int first = options_parse(&verb->table, options, count, words);
    int kept = 0; /* how many words stand at the front by now */
    if (first < 0 || !verb->mixed)
        return first;
    for (int at = first; at < count;) {
        if (at > 0 && strcmp(words[at - 1], "--") == 0)
            break; /* the rest are words, whatever they look like */
        words[kept++] = words[at++];
        int more = options_parse(&verb->table, options, count - at, words + at);
        if (more < 0)
            return -1;
        at += more;
        first = at;
    }
    memmove(words + first - kept, words, (size_t)kept * sizeof(*words));
    return first - kept;
}

static int run_verb(const struct verb *verb, int count, char **words)
{
    if (asks_for_help(verb, count, words))
        return help_for(verb);
    void *options = calloc(1, verb->size);
    if (options == NULL) {
        say_error("out of memory");
        return EXIT_OWN;
    }
    int first = parse(verb, options, count, words);
    int code = first < 0 ? EXIT_USAGE : verb->run(options, count - first, words + first);
    free(options);
    return code;
}

/* Pipes and sockets of ours must not take the places of standard files that were closed. What
 * stands there instead is opened the wrong way round, so that we and the command fail to use it, as
 * if it were closed still: a token that nobody can read must not count as printed. */
static void fill_standard_files(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0)
            (void)!open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int count, char **words)
{
    fill_standard_files();
    const char *word = count > 1 ? words[1] : NULL;
    const struct verb *verb = word != NULL ? find_verb(word) : NULL;
    if (verb != NULL)
        return run_verb(verb, count - 2, words + 2);
    if (is_one_of(word, "--help", "-h") || is_one_of(word, "help", "help"))
        return count > 2 && find_verb(words[2]) != NULL ? help_for(find_verb(words[2])) : help();
    if (is_one_of(word, "--version", "-V")) {
        printf("holdfast %s\n", hf_version());
        return fflush(stdout) == 0 ? EXIT_OK : EXIT_OWN;
    }
    if (is_one_of(word, "--completion", "--completion"))
        return help_completion();
    if (word == NULL)
        say_error("a verb is missing; try holdfast --help");
    else
        say_error("there is no verb \"%s\"; try holdfast --help", options_shown(word));
    return EXIT_USAGE;
}
