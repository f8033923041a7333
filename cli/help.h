/* SPDX-License-Identifier: MIT */
/* The help, from the tables of the verbs. All return the exit code. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "verb.h"

int help(void);
int help_for(const struct verb *verb);
int help_completion(void); /* a script for bash */

#endif
