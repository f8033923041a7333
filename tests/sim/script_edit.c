/* SPDX-License-Identifier: MIT */
/* How the mutants of scripts are made, for both simulators. */
#include "script_edit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text with a fragment replaced, newly allocated. */
static char *edited(const char *text, const sim_edit *edit)
{
    const char *at = strstr(text, edit->fragment);
    if (at == NULL || strstr(at + 1, edit->fragment) != NULL) {
        fprintf(stderr, "not exactly once in %s.lua: %s\n", edit->script, edit->fragment);
        exit(2);
    }
    size_t before = (size_t)(at - text), cut = strlen(edit->fragment);
    size_t put = strlen(edit->instead), after = strlen(at + cut);
    char *whole = malloc(before + put + after + 1);
    if (whole == NULL)
        abort();
    memcpy(whole, text, before);
    memcpy(whole + before, edit->instead, put);
    memcpy(whole + before + put, at + cut, after + 1);
    return whole;
}

/* What acquire, release and break have in common is edited in all of them, and the same with stock.
 */
static bool is_for(const sim_edit *edit, const char *name)
{
    if (strcmp(edit->script, "stock_item") == 0)
        return strncmp(name, "stock_", 6) == 0;
    if (strcmp(edit->script, "hand_on") == 0)
        return strcmp(name, "acquire") == 0 || strcmp(name, "release") == 0 ||
               strcmp(name, "break") == 0;
    return strcmp(edit->script, name) == 0;
}

char *script_edited(const sim_edit edits[EDITS_MAX], const char *name, const char *body)
{
    char *made = NULL;
    for (int i = 0; i < EDITS_MAX && edits[i].script != NULL; i++) {
        if (!is_for(&edits[i], name))
            continue;
        char *next = edited(made != NULL ? made : body, &edits[i]);
        free(made);
        made = next;
    }
    return made;
}
