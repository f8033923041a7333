/* SPDX-License-Identifier: MIT */
/* Parses options as getopt_long() would, from tables that also make the help and the completion, so
 * that the three cannot differ. Unlike it, options must stand before the first other word: what
 * follows belongs to the command that is run. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <holdfast.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

enum { EXIT_CODE_MAX = 255 };

/* ---- Values ---- */

static bool is_unit(const char *text, double *ms)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) == 0) {
            *ms = units[i].ms;
            return true;
        }
    }
    return false;
}

bool options_read_time(const char *text, int64_t min_ms, int64_t max_ms, int64_t *ms)
{
    char *end;
    double unit;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    if (strpbrk(text, "xXpP") != NULL) /* hexadecimal, which strtod() takes too */
        return false;
    double number = strtod(text, &end);
    if (end == text || !is_unit(end, &unit) || number * unit > 1e15)
        return false;
    *ms = (int64_t)(number * unit + 0.5);
    if (*ms == 0 && number > 0)
        *ms = 1; /* a time that somebody gave is not none */
    return *ms >= min_ms && (max_ms == 0 || *ms <= max_ms);
}

bool options_take_time(const char *name, const char *text, int64_t *ms)
{
    if (text == NULL || options_read_time(text, 0, HF_MS_MAX, ms))
        return true;
    say_error("--%s: \"%s\" is not good: a time such as 5, 0.5, 250ms or 2m is expected", name,
              text);
    return false;
}

bool options_take_wait(bool try_once, const char *wait, int64_t *wait_ms)
{
    *wait_ms = try_once ? 0 : -1;
    if (!try_once || wait == NULL)
        return options_take_time("wait", wait, wait_ms);
    say_error("-n and -w exclude each other");
    return false;
}

bool options_read_exit_code(const char *text, int *code)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    *code = (int)number;
    if (isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && number <= EXIT_CODE_MAX)
        return true;
    say_error("-E: \"%s\" is not good: a number from 0 to 255 is expected", text);
    return false;
}

static bool read_number(const struct option *option, const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0)
        return false;
    return *number >= option->min && (option->max == 0 || *number <= option->max);
}

static bool read_choice(const struct option *option, const char *text, int *choice)
{
    for (*choice = 0; option->choices[*choice] != NULL; ++*choice)
        if (strcmp(option->choices[*choice], text) == 0)
            return true;
    return false;
}

/* From a file; on the command line a flag has no text. */
static bool read_flag(const char *text, bool *flag)
{
    *flag =
        text == NULL || text[0] == '\0' || strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;
    return *flag || strcmp(text, "no") == 0 || strcmp(text, "false") == 0;
}

static bool add_to_list(struct option_list *list, const char *text)
{
    if (list->count == OPTION_LIST_MAX)
        return false;
    list->texts[list->count++] = text;
    return true;
}

const char *options_shown(const char *word)
{
    return strstr(word, "://") != NULL ? "a URL" : word;
}

static const char *expected(const struct option *option)
{
    switch (option->kind) {
    case OPTION_TIME:
        return "a time such as 5, 0.5, 250ms or 2m, within its limits";
    case OPTION_NUMBER:
        return "a number within its limits";
    case OPTION_LIST:
        return "no more than 16 of them";
    case OPTION_FLAG:
        return "yes or no";
    default:
        return option->argument;
    }
}

static bool set(const struct option *option, void *place, const char *text, const char *where)
{
    void *at = (char *)place + option->offset;
    bool good = true;
    switch (option->kind) {
    case OPTION_FLAG:
        good = read_flag(text, at);
        break;
    case OPTION_TEXT:
        *(const char **)at = text;
        break;
    case OPTION_LIST:
        good = add_to_list(at, text);
        break;
    case OPTION_NUMBER:
        good = read_number(option, text, at);
        break;
    case OPTION_TIME:
        good = options_read_time(text, option->min, option->max, at);
        break;
    case OPTION_CHOICE:
        good = read_choice(option, text, at);
        break;
    }
    if (!good)
        say_error("%s%s: \"%s\" is not good: %s is expected", where, option->name,
                  options_shown(text), expected(option));
    return good;
}

/* ---- Finding ---- */

static const struct option *find(const struct option_table *table, const char *name, size_t length,
                                 char letter)
{
    for (; table != NULL; table = table->more)
        for (const struct option *o = table->options; o->name != NULL; o++)
            if (letter != '\0' ? o->letter == letter
                               : strlen(o->name) == length && memcmp(o->name, name, length) == 0)
                return o;
    return NULL;
}

bool options_set(const struct option_table *table, void *place, const char *name, const char *text,
                 const char *where)
{
    const struct option *option = find(table, name, strlen(name), '\0');
    if (option == NULL) {
        say_error("%sthere is no option \"%s\"", where, options_shown(name));
        return false;
    }
    if (option->kind != OPTION_FLAG && text[0] == '\0') {
        say_error("%s%s needs %s", where, name, option->argument);
        return false;
    }
    return set(option, place, text, where);
}

/* ---- Words ---- */

typedef struct parser {
    const struct option_table *table;
    void *place;
    int count, at;
    char *const *words;
} parser;

/* The argument of an option: what is attached to it, or the next word. */
static bool take(parser *p, const struct option *option, const char *attached)
{
    const char *text = attached;
    if (option->kind != OPTION_FLAG && attached == NULL) {
        if (p->at == p->count) {
            say_error("--%s needs %s", option->name, option->argument);
            return false;
        }
        text = p->words[p->at++];
    }
    return set(option, p->place, text, "--");
}

static bool parse_long(parser *p, const char *word)
{
    size_t length = strcspn(word, "=");
    const struct option *option = find(p->table, word, length, '\0');
    const char *attached = word[length] == '=' ? word + length + 1 : NULL;
    if (option == NULL) {
        say_error("there is no option --%.*s; see --help", (int)strcspn(word, "=:"), word);
        return false;
    }
    if (option->kind == OPTION_FLAG && attached != NULL) {
        say_error("--%s takes no value", option->name);
        return false;
    }
    return take(p, option, attached);
}

/* "-nv", "-w5" or "-w 5" */
static bool parse_short(parser *p, const char *word)
{
    for (; *word != '\0'; word++) {
        const struct option *option = find(p->table, NULL, 0, *word);
        if (option == NULL) {
            say_error("there is no option -%c; see --help", *word);
            return false;
        }
        if (option->kind != OPTION_FLAG)
            return take(p, option, word[1] != '\0' ? word + 1 : NULL);
        take(p, option, NULL);
    }
    return true;
}

bool options_check_words(const struct argument *arguments, int needed, int count, char **words,
                         const char *advice)
{
    int known = 0;
    while (known < count && arguments[known].name != NULL)
        known++;
    if (known < count && known > 0)
        say_error("\"%s\" is too much: nothing is expected behind %s; %s",
                  options_shown(words[known]), arguments[known - 1].name, advice);
    else if (known < count)
        say_error("\"%s\" is too much; %s", options_shown(words[known]), advice);
    else if (known < needed)
        say_error("%s is missing: %s; see --help", arguments[known].name, arguments[known].meaning);
    return known == count && known >= needed;
}

int options_parse(const struct option_table *table, void *place, int count, char *const *words)
{
    parser p = {table, place, count, 0, words};
    while (p.at < count && words[p.at][0] == '-' && words[p.at][1] != '\0') {
        const char *word = words[p.at++];
        if (strcmp(word, "--") == 0)
            return p.at;
        if (!(word[1] == '-' ? parse_long(&p, word + 2) : parse_short(&p, word + 1)))
            return -1;
    }
    return p.at;
}
