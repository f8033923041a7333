/* SPDX-License-Identifier: MIT */
/* A set-user-ID program can become its owner for good, as sudo does. It need not: one that keeps
 * its real user, as ping does, can still be signalled. So this is a warning, and a shell script
 * that calls sudo is not found at all; what cannot be signalled when it matters is found by
 * group.c. Set-group-ID does not matter, for kill(2) looks at users only. */
#include "program.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

enum { PATH_MAX_BYTES = 4096 };

static bool is_program(const char *path, struct stat *file)
{
    return stat(path, file) == 0 && S_ISREG(file->st_mode) && access(path, X_OK) == 0;
}

/* The first of its name in a folder of PATH. */
static bool search(const char *name, char place[PATH_MAX_BYTES], struct stat *file)
{
    const char *at = getenv("PATH");
    for (at = at != NULL ? at : "/bin:/usr/bin"; at != NULL; at = strchr(at, ':')) {
        at += *at == ':';
        int length = (int)strcspn(at, ":");
        int size =
            snprintf(place, PATH_MAX_BYTES, "%.*s%s%s", length, at, length > 0 ? "/" : "", name);
        if (size < PATH_MAX_BYTES && is_program(place, file))
            return true;
    }
    return false;
}

void program_warn_of_other_user(const char *word)
{
    char path[PATH_MAX_BYTES];
    struct stat file;
    (void)snprintf(path, sizeof(path), "%s", word);
    bool found = strchr(word, '/') != NULL ? is_program(word, &file) : search(word, path, &file);
    if (!found || (file.st_mode & S_ISUID) == 0 || geteuid() == 0 || file.st_uid == geteuid())
        return;
    say_note("%s can become another user (uid %u), whose processes holdfast cannot end if the lock "
             "is lost; start holdfast as that user instead (sudo holdfast run ...), or say "
             "--on-lost ignore",
             path, (unsigned)file.st_uid);
}
