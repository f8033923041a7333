/* SPDX-License-Identifier: MIT */
/* Settings that do not stand on the command line: the configuration file, and the environment. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "options.h"

/* Reads a configuration file into the place that the table describes: the given one (NULL: none is
 * given), or else that of HOLDFAST_CONFIG, or else the user's, or else that of the machine; one
 * only. False: it is not good, or one that was asked for is not there; it has been said. */
bool config_read(const struct option_table *table, void *place, const char *path);

/* An environment variable, or NULL; one that is empty says nothing. */
const char *config_environment(const char *name);

#endif
