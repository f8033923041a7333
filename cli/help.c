/* SPDX-License-Identifier: MIT */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "exit.h"

enum { COLUMN = 28 };

static int finish(void)
{
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_OWN;
}

static void print_option(const struct option *option)
{
    char left[80];
    char letter[8] = "    ";
    if (option->letter != '\0')
        (void)snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    (void)snprintf(left, sizeof(left), "  %s--%s%s%s", letter, option->name,
                   option->argument != NULL ? " " : "",
                   option->argument != NULL ? option->argument : "");
    printf("%-*s %s\n", COLUMN, left, option->help);
}

static void print_table(const struct option_table *table)
{
    for (const struct option *option = table->options; option->name != NULL; option++)
        print_option(option);
}

int help_for(const struct verb *verb)
{
    printf("holdfast %s %s\n%s\n", verb->name, verb->usage, verb->summary);
    if (verb->table.options->name != NULL)
        printf("\nOptions:\n");
    print_table(&verb->table);
    if (verb->table.more != NULL) {
        printf("\nServer and output:\n");
        print_table(verb->table.more);
    }
    if (verb->details[0] != '\0')
        printf("\n%s", verb->details);
    return finish();
}

int help(void)
{
    printf("holdfast VERB [options] ...\nLocks on the Redis that you already run.\n\nVerbs:\n");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        printf("  %-*s %s\n", 10, (*verb)->name, (*verb)->summary);
    printf("\nholdfast VERB --help tells more. Exit codes:\n");
#define PRINT_EXIT(name, value, text) printf("  %3d  %s\n", value, text);
    EXIT_MAP(PRINT_EXIT)
    return finish();
}

static void print_words(const struct verb *verb)
{
    printf("    %s) words=\"--help", verb->name);
    for (const struct option_table *table = &verb->table; table != NULL; table = table->more)
        for (const struct option *option = table->options; option->name != NULL; option++)
            printf(" --%s", option->name);
    printf("\" ;;\n");
}

int help_completion(void)
{
    printf("# bash completion for holdfast, made by holdfast --completion\n"
           "_holdfast()\n{\n    local words=\"\" current=${COMP_WORDS[COMP_CWORD]}\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"--help --version");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        printf(" %s", (*verb)->name);
    printf("\"\n    else\n    case ${COMP_WORDS[1]} in\n");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        print_words(*verb);
    printf("    esac\n    fi\n    case $current in\n"
           "    -*|\"\") mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\") ;;\n"
           "    *) [ \"$COMP_CWORD\" -eq 1 ] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
           "\"$current\") ;;\n    esac\n}\n"
           "complete -o default -F _holdfast holdfast\n");
    return finish();
}
