/* SPDX-License-Identifier: MIT */
/* Credentials are fetched for each new connection, so that a password that was changed is picked up
 * by the next one. Nothing here is kept, and nothing that is read stays in memory: the file is read
 * without a buffer of anybody else's. (The environment is the exception: it is read once.) */
#include "net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/fail.h"

const char *hf__secret_environment(const char *name)
{
    return getenv(name);
}

/* Fills the space as far as there are bytes; the number of them, or -1. */
static ssize_t read_all(int descriptor, char *space, size_t capacity)
{
    size_t filled = 0;
    ssize_t count = 1;
    while (filled < capacity && count > 0) {
        count = read(descriptor, space + filled, capacity - filled);
        if (count < 0 && errno == EINTR)
            count = 1;
        else if (count > 0)
            filled += (size_t)count;
    }
    return count < 0 ? -1 : (ssize_t)filled;
}

static hf_status cannot_read(const char *file, int failure, hf_error *error)
{
    char name[120], reason[80];
    hf__printable(name, sizeof(name), file, strlen(file));
    return hf__fail(error, HF_EDENIED, "no password: cannot read %s: %s", name,
                    strerror_r(failure, reason, sizeof(reason)));
}

/* Up to the first line break. Longer than a password can be: not one. */
static hf_status read_file(const char *file, hf_credentials *credentials, hf_error *error)
{
    int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return cannot_read(file, errno, error);
    ssize_t count = read_all(descriptor, credentials->password, sizeof(credentials->password));
    int failure = errno;
    close(descriptor);
    if (count < 0)
        return cannot_read(file, failure, error);
    size_t length = (size_t)count;
    char *end = memchr(credentials->password, '\n', length);
    if (end != NULL)
        length = (size_t)(end - credentials->password);
    if (length > 0 && credentials->password[length - 1] == '\r')
        length--;
    if (length > HF_PASSWORD_MAX || memchr(credentials->password, '\0', length) != NULL)
        return cannot_read(file, EMSGSIZE, error);
    if (length == 0)
        return cannot_read(file, ENODATA, error);
    hf__wipe(credentials->password + length, sizeof(credentials->password) - length);
    return HF_OK;
}

static void put(char *place, size_t capacity, const char *text)
{
    hf__format(place, capacity, "%s", text != NULL ? text : "");
}

hf_status hf__secret_fetch(const hf__secret *secret, const hf__url *server,
                           hf_credentials *credentials, bool *given, hf_error *error)
{
    *credentials = (hf_credentials){.user = ""};
    *given = server->password != NULL || secret->file != NULL || secret->function != NULL;
    put(credentials->user, sizeof(credentials->user), server->user);
    put(credentials->password, sizeof(credentials->password), server->password);
    if (secret->file != NULL)
        return read_file(secret->file, credentials, error);
    if (secret->function != NULL && !secret->function(secret->arg, credentials))
        return hf__fail(error, HF_EDENIED, "no password: the credentials function has none");
    if (memchr(credentials->user, '\0', sizeof(credentials->user)) == NULL ||
        memchr(credentials->password, '\0', sizeof(credentials->password)) == NULL)
        return hf__fail(error, HF_EDENIED, "no password: credentials without a NUL at their end");
    return HF_OK;
}
