/* SPDX-License-Identifier: MIT */
/* See register.h. The file is opened anew for every use, because flock(2) excludes open files, and
 * so threads too. A process that is killed inside gives the flock back with its descriptor; one
 * that is stopped inside lets the others wait until the driver lets it go on. A record is written
 * by one pwrite(2), which is done or not when its writer is killed. */
#include "register.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

struct record {
    uint64_t fence;
    int64_t value;
};

static int open_file(const char *folder, int lock, int flags)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/register-%d", folder, lock);
    return open(path, O_RDWR | O_CLOEXEC | flags, 0600);
}

static bool load(int file, struct record *record)
{
    return pread(file, record, sizeof(*record), 0) == (ssize_t)sizeof(*record);
}

static bool save(int file, const struct record *record)
{
    return pwrite(file, record, sizeof(*record), 0) == (ssize_t)sizeof(*record);
}

bool register_make(const char *folder, int lock)
{
    int file = open_file(folder, lock, O_CREAT | O_EXCL);
    bool made = file >= 0 && save(file, &(struct record){0});
    if (file >= 0)
        (void)close(file);
    return made;
}

/* Reads if `written` is NULL. */
static enum register_answer use(const char *folder, int lock, uint64_t fence,
                                const int64_t *written, int64_t *value)
{
    struct record record;
    int file = open_file(folder, lock, 0);
    if (file < 0)
        return REGISTER_BROKEN;
    enum register_answer answer = REGISTER_BROKEN;
    if (flock(file, LOCK_EX) == 0 && load(file, &record)) {
        bool late = fence < record.fence;
        record.fence = fence;
        if (written != NULL)
            record.value = *written;
        *value = record.value;
        answer = late ? REGISTER_REFUSED : save(file, &record) ? REGISTER_DONE : REGISTER_BROKEN;
    }
    (void)close(file);
    return answer;
}

enum register_answer register_read(const char *folder, int lock, uint64_t fence, int64_t *value)
{
    return use(folder, lock, fence, NULL, value);
}

enum register_answer register_write(const char *folder, int lock, uint64_t fence, int64_t value)
{
    int64_t unused;
    return use(folder, lock, fence, &value, &unused);
}

bool register_look(const char *folder, int lock, int64_t *value)
{
    struct record record = {0};
    int file = open_file(folder, lock, 0);
    bool known = file >= 0 && load(file, &record);
    if (file >= 0)
        (void)close(file);
    *value = record.value;
    return known;
}
