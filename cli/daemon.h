/* SPDX-License-Identifier: MIT */
/* A program that outlives us: the private server. */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include <sys/types.h>

/* Starts a program, found in PATH, with nothing of ours: its own session, the folder as its working
 * directory, its output appended to the file. Only the descriptor `keep` stays open in it for as
 * long as it lives. Returns 0 and the process's id, or an errno: ENOENT if there is no such
 * program. */
int daemon_start(char *const *words, const char *folder, const char *output, int keep, pid_t *pid);

#endif
