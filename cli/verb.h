/* SPDX-License-Identifier: MIT */
/* A verb of the command: its name, its help and its options stand in one place, its own file. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include "options.h"

struct verb {
    const char *name;
    const char *usage; /* what follows the name */
    const char *summary;
    const char *details; /* behind the options in the help; may be "" */
    struct option_table table;
    size_t size; /* of the struct that the options go into; it begins with a session_options */
    /* The words behind the options. Returns the exit code. */
    int (*run)(void *options, int count, char **words);
    bool mixed; /* options may stand behind the words too */
};

extern const struct verb verb_run, verb_acquire, verb_renew, verb_release, verb_check, verb_wait,
    verb_status, verb_ls, verb_revoke, verb_id, verb_stock, verb_doctor, verb_server;

extern const struct verb *const verbs[]; /* ends with NULL */

#endif
