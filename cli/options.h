/* SPDX-License-Identifier: MIT */
/* Options of verbs: one table says what they are called, where they go and what the help says. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct option_list: may be given several times */
    OPTION_NUMBER, /* int64_t */
    OPTION_TIME,   /* int64_t, in ms; written in seconds, with fractions, or with a unit */
    OPTION_CHOICE  /* int: the index in `choices` */
} option_kind;

enum { OPTION_LIST_MAX = 16 };

struct option_list {
    const char *texts[OPTION_LIST_MAX];
    size_t count;
};

struct option {
    char letter; /* 0: none */
    const char *name;
    option_kind kind;
    size_t offset;        /* of the place in the verb's struct */
    const char *argument; /* what the help calls it */
    const char *help;
    int64_t min, max;           /* of a number or time; both 0: 0 and up */
    const char *const *choices; /* ends with NULL */
};

struct option_table {
    const struct option *options;    /* ends with one that has no name */
    const struct option_table *more; /* a table for the same struct; NULL: none */
};

/* Parses what stands before the first word that is not an option. Returns the index of that word,
 * or of the end; -1: wrong, and it has been said. "--" ends the options too. */
int options_parse(const struct option_table *table, void *place, int count, char *const *words);

/* One option by its name, as a configuration file gives it; a flag takes yes and no, and nothing
 * means yes. `where` is for the message. */
bool options_set(const struct option_table *table, void *place, const char *name, const char *text,
                 const char *where);

/* "1.5", "250ms", "2m" ... as ms; false: it is not a time within the limits. */
bool options_read_time(const char *text, int64_t min_ms, int64_t max_ms, int64_t *ms);

/* The same for an option that was kept as text, NULL: not given; false: it has been said. */
bool options_take_time(const char *name, const char *text, int64_t *ms);

/* What -n and -w TIME mean: 0, a time, or -1 if neither was given. False: it has been said. */
bool options_take_wait(bool try_once, const char *wait, int64_t *wait_ms);

/* From 0 to 255; false: it has been said what is wrong. */
bool options_read_exit_code(const char *text, int *code);

/* What the words behind the options are called in the usage, and what they mean. */
struct argument {
    const char *name; /* NULL: the end */
    const char *meaning;
};

/* Whether these are the words that a verb takes, of which the first `needed` must be there. False:
 * it has been said which one is missing, or which one is too much, with the advice. */
bool options_check_words(const struct argument *arguments, int needed, int count, char **words,
                         const char *advice);

/* A word of the user's for a message: never one that could have a password in it. */
const char *options_shown(const char *word);

#endif
