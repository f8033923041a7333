/* SPDX-License-Identifier: MIT */
/* Mutants of scripts: the scripts themselves with a fragment replaced, so that they keep up. */
#ifndef HF_SIM_SCRIPT_EDIT_H
#define HF_SIM_SCRIPT_EDIT_H

typedef struct sim_edit { /* of a script: one fragment, which is there exactly once, by another */
    const char *script;   /* NULL: no more; "hand_on", "stock_item": those that include it */
    const char *fragment;
    const char *instead;
} sim_edit;

enum { EDITS_MAX = 4 };

#define EDIT(script, fragment, instead) \
    {                                   \
        script, fragment, instead       \
    }

/* What all edits together make of a script, newly allocated; NULL: none is of this one. A fragment
 * that is not there exactly once ends the program. */
char *script_edited(const sim_edit edits[EDITS_MAX], const char *name, const char *body);

#endif
