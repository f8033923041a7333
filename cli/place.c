/* SPDX-License-Identifier: MIT */
/* All processes of a user must find the same private server, or two of them hold the same lock; so
 * its folder depends on as little as possible:
 *
 *     $XDG_RUNTIME_DIR/holdfast    if that was set to a folder of one's own
 *     /run/holdfast                for root
 *     /tmp/holdfast-UID            for others
 *
 * The folder that logind makes, /run/user/UID, is not used although XDG_RUNTIME_DIR names it: it
 * comes with the first login and is removed after the last logout, while jobs of cron run on. A job
 * that began before would hold its lock at one server, and a job that begins later would ask
 * another. For the same reason a folder that cannot be used is an error, and not skipped.
 *
 * The folder must be ours alone: whoever could write there could be the server. What is in there
 * may vanish with a reboot; so does everybody who could hold a lock. */
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

static bool is_of_logind(const char *folder)
{
    return strncmp(folder, "/run/user/", strlen("/run/user/")) == 0;
}

bool place_name(struct local_status *place)
{
    static const char too_long[] =
        "the path of the private server's socket, %s/holdfast/redis.sock, has more than %d bytes; "
        "set XDG_RUNTIME_DIR to a shorter folder";
    const char *own = getenv("XDG_RUNTIME_DIR");
    size_t size = sizeof(place->folder);
    int length = 0;
    if (own != NULL && own[0] == '/' && !is_of_logind(own))
        length = snprintf(place->folder, size, "%s/holdfast", own);
    else if (geteuid() == 0)
        (void)snprintf(place->folder, size, "/run/holdfast");
    else
        (void)snprintf(place->folder, size, "/tmp/holdfast-%u", (unsigned)geteuid());
    if ((size_t)length < size)
        length = snprintf(place->socket, size, "%s/redis.sock", place->folder);
    if ((size_t)length >= size) {
        say_error(too_long, own, LOCAL_SOCKET_MAX);
        return false;
    }
    if (strpbrk(place->folder, "?%,") != NULL) {
        say_error("'?', '%%' and ',' cannot be in XDG_RUNTIME_DIR: in a URL they mean something "
                  "else");
        return false;
    }
    return true;
}

bool place_trust(const struct local_status *place, bool *exists)
{
    struct stat found;
    *exists = lstat(place->folder, &found) == 0;
    if (!*exists && errno == ENOENT)
        return true;
    if (!*exists)
        say_error("cannot use the folder %s: %s", place->folder, strerror(errno));
    else if (!S_ISDIR(found.st_mode))
        say_error("%s should be a folder of the private server, and is something else: remove it",
                  place->folder);
    else if (found.st_uid != geteuid())
        say_error("the folder %s belongs to somebody else, who could read and change locks: remove "
                  "it, or set XDG_RUNTIME_DIR",
                  place->folder);
    else if ((found.st_mode & 0777) != 0700)
        say_error("the folder %s is open to others: chmod 700 it if you trust what is in there",
                  place->folder);
    else
        return true;
    return false;
}

bool place_make(const struct local_status *place)
{
    bool exists;
    if (mkdir(place->folder, 0700) != 0 && errno != EEXIST) {
        say_error("cannot make the folder %s: %s; set XDG_RUNTIME_DIR to a folder of yours",
                  place->folder, strerror(errno));
        return false;
    }
    return place_trust(place, &exists);
}
