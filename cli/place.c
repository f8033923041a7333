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
 * another. For the same reason a folder that cannot be used is an error, and not skipped: somebody
 * else can make /tmp/holdfast-UID before we do, and so keep us from it, but a second place that we
 * went to instead would part us from those who come when the first one is free again.
 *
 * The folder must be ours alone: whoever could write there could be the server. And nobody must be
 * able to put another one in its place, so the folder above it is looked at, too: that is ours or
 * root's, and where all may write there, nobody may rename what is others' (the sticky bit, as in
 * /tmp).
 *
 * What is in there may vanish with a reboot; so does everybody who could hold a lock. */
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

static bool trust_above(const struct local_status *place)
{
    char above[sizeof(place->folder)];
    struct stat found;
    memcpy(above, place->folder, sizeof(above));
    *strrchr(above, '/') = '\0';
    if (stat(above[0] != '\0' ? above : "/", &found) != 0 || !S_ISDIR(found.st_mode))
        return true; /* whoever makes the folder will say so */
    if (found.st_uid != 0 && found.st_uid != geteuid())
        say_error("the folder %s belongs to uid %u, who could put another server in place of the "
                  "private one: set XDG_RUNTIME_DIR to a folder of yours, for all your jobs",
                  above, (unsigned)found.st_uid);
    else if ((found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0)
        say_error("everybody can rename what is in the folder %s, and put another server in place "
                  "of the private one: chmod o-w it, or chmod +t",
                  above);
    else
        return true;
    return false;
}

bool place_trust(const struct local_status *place, bool *exists)
{
    struct stat found;
    *exists = lstat(place->folder, &found) == 0;
    if (!*exists && errno == ENOENT)
        return trust_above(place);
    if (!*exists)
        say_error("cannot use the folder %s: %s", place->folder, strerror(errno));
    else if (found.st_uid != geteuid())
        say_error("%s belongs to uid %u, who could read and change your locks: let that user or "
                  "root remove it, or set XDG_RUNTIME_DIR to a folder of yours, for all your jobs",
                  place->folder, (unsigned)found.st_uid);
    else if (!S_ISDIR(found.st_mode))
        say_error("%s should be a folder of the private server, and is something else: remove it",
                  place->folder);
    else if ((found.st_mode & 0777) != 0700)
        say_error("the folder %s is open to others: chmod 700 it if you trust what is in there",
                  place->folder);
    else
        return trust_above(place);
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
