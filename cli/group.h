/* SPDX-License-Identifier: MIT */
/* The processes of the command: which of them live, and which of them we may not signal. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { GROUP_WHO_MAX = 320 };

struct group_view {
    bool lives;              /* a member lives, or may live where /proc does not tell */
    bool refuses;            /* a member that lives may not be signalled by us */
    char who[GROUP_WHO_MAX]; /* those who refuse or, if none does, all who live; for people */
};

/* A process group, or a single process. */
void group_look(pid_t leader, bool whole_group, struct group_view *view);

/* Sends a signal. False: somebody who should get it may not be signalled by us. */
bool group_signal(pid_t leader, bool whole_group, int number);

#endif
