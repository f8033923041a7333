/* SPDX-License-Identifier: MIT */
/* We may signal a process only if its real or saved user is ours, or if we are root. A command that
 * changes its user (sudo, su, a set-user-ID program) is out of our reach, with all that it starts.
 *
 * kill(2) on a group does not tell: it succeeds as soon as it has reached one member, so the shell
 * that has started sudo hides sudo. Only a look at each member shows who was left out. /proc has
 * the members. Where it hides the processes of other users (hidepid), kill(2) still says EPERM once
 * nobody else is left in the group.
 *
 * Users are told by number: to look up a name may ask a directory server, and our time is short. */
#include "group.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "printable.h"

enum { NAMED_MAX = 4, LINE_MAX_BYTES = 256 };

struct member {
    pid_t pid;
    bool lives;
    bool refuses;
    char name[40];
    char user[16];
};

/* A list of people's words: the first few members, and how many more there are. */
struct list {
    int count;
    size_t used;
    char text[GROUP_WHO_MAX];
};

static void add(struct list *list, const struct member *member)
{
    size_t room = sizeof(list->text) - list->used;
    if (list->count++ >= NAMED_MAX)
        return;
    int length =
        snprintf(list->text + list->used, room, "%spid %d (%s, uid %s)",
                 list->count > 1 ? ", " : "", (int)member->pid, member->name, member->user);
    list->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void finish(struct list *list, char place[GROUP_WHO_MAX])
{
    if (list->count > NAMED_MAX)
        (void)snprintf(list->text + list->used, sizeof(list->text) - list->used, " and %d more",
                       list->count - NAMED_MAX);
    memcpy(place, list->text, GROUP_WHO_MAX);
}

/* ---- One process ---- */

/* A process whose first thread has ended looks like a zombie, but has others. */
static void read_line(const char *line, struct member *member)
{
    char state;
    int threads;
    if (strncmp(line, "Name:\t", 6) == 0)
        (void)printable(line + 6, strcspn(line + 6, "\n"), member->name, sizeof(member->name));
    else if (sscanf(line, "State: %c", &state) == 1)
        member->lives = state != 'Z' && state != 'X';
    else if (sscanf(line, "Threads: %d", &threads) == 1)
        member->lives = member->lives || threads > 1;
    else
        (void)sscanf(line, "Uid: %15[0-9]", member->user);
}

/* One that /proc lists without its particulars may live. */
static void read_member(pid_t pid, struct member *member)
{
    char path[32], line[LINE_MAX_BYTES];
    *member = (struct member){.pid = pid, .lives = true, .name = "?", .user = "?"};
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        read_line(line, member);
    if (file != NULL)
        (void)fclose(file);
    int failure = kill(pid, 0) == 0 ? 0 : errno;
    member->lives = member->lives && failure != ESRCH;
    member->refuses = member->lives && failure == EPERM;
}

/* ---- All of them ---- */

struct sighting {
    bool any; /* at least a zombie */
    struct list living;
    struct list refusing;
};

static void see(pid_t pid, struct sighting *seen)
{
    struct member member;
    read_member(pid, &member);
    seen->any = true;
    if (member.lives)
        add(&seen->living, &member);
    if (member.refuses)
        add(&seen->refusing, &member);
}

static void see_all(pid_t group, struct sighting *seen)
{
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && getpgid(pid) == group)
            see(pid, seen);
    }
    (void)closedir(folder);
}

/* Somebody whom kill(2) finds and /proc does not show counts as living. */
void group_look(pid_t leader, bool whole_group, struct group_view *view)
{
    struct sighting seen = {.any = false};
    int failure = kill(whole_group ? -leader : leader, 0) == 0 ? 0 : errno;
    *view = (struct group_view){.lives = false};
    if (failure != 0 && failure != EPERM)
        return;
    if (whole_group)
        see_all(leader, &seen);
    else
        see(leader, &seen);
    view->refuses = seen.refusing.count > 0 || (failure == EPERM && !seen.any);
    view->lives = seen.living.count > 0 || !seen.any;
    finish(view->refuses ? &seen.refusing : &seen.living, view->who);
    if (!seen.any)
        (void)snprintf(view->who, sizeof(view->who), "process group %d", (int)leader);
}

bool group_signal(pid_t leader, bool whole_group, int number)
{
    struct group_view view;
    if (kill(whole_group ? -leader : leader, number) != 0)
        return errno != EPERM;
    if (!whole_group)
        return true;
    group_look(leader, true, &view);
    return !view.refuses;
}
