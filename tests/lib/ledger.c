/* SPDX-License-Identifier: MIT */
/* See ledger.h. One write(2) to a file opened with O_APPEND places a record whole and after all
 * others, without any agreement between the writers, and the kernel keeps it when the writer is
 * killed. A worker writes its own records in order, so sorting by (client, hold) and place in the
 * file puts the record that counts last. The place is the record's address, because what is sorted
 * is pointers into a copy of the file.
 */
#include "ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_in(const char *folder, int flags)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/ledger", folder);
    return open(path, flags | O_CLOEXEC, 0600);
}

int ledger_open(const char *folder)
{
    return open_in(folder, O_WRONLY | O_CREAT | O_APPEND);
}

bool ledger_write(int ledger, const void *record, size_t size)
{
    return write(ledger, record, size) == (ssize_t)size;
}

static bool same_hold(const belief *a, const belief *b)
{
    return a->client == b->client && a->hold == b->hold;
}

static int by_hold_and_place(const void *left, const void *right)
{
    const belief *a = *(const belief *const *)left;
    const belief *b = *(const belief *const *)right;
    if (a->client != b->client)
        return a->client < b->client ? -1 : 1;
    if (a->hold != b->hold)
        return a->hold < b->hold ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool read_all(int file, char *place, size_t length)
{
    while (length > 0) {
        ssize_t got = read(file, place, length);
        if (got <= 0)
            return false;
        place += got;
        length -= (size_t)got;
    }
    return true;
}

/* NULL: unreadable, or its length is not that of whole records. */
static char *read_file(const char *folder, size_t size, size_t *count)
{
    struct stat status;
    char *bytes = NULL;
    int file = open_in(folder, O_RDONLY);
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size % (off_t)size == 0) {
        *count = (size_t)status.st_size / size;
        bytes = calloc(*count + 1, size);
        if (bytes != NULL && !read_all(file, bytes, *count * size)) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file >= 0)
        (void)close(file);
    return bytes;
}

static size_t copy_last_of_each(char *place, belief *const *sorted, size_t count, size_t size)
{
    size_t copied = 0;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || !same_hold(sorted[i], sorted[i + 1]))
            memcpy(place + size * copied++, sorted[i], size);
    return copied;
}

void *ledger_records(const char *folder, size_t size, size_t *count)
{
    size_t written = 0;
    char *bytes = read_file(folder, size, &written);
    belief **sorted = bytes != NULL ? calloc(written + 1, sizeof(*sorted)) : NULL;
    char *records = sorted != NULL ? calloc(written + 1, size) : NULL;
    if (records != NULL) {
        for (size_t i = 0; i < written; i++)
            sorted[i] = (belief *)(void *)(bytes + i * size);
        qsort(sorted, written, sizeof(*sorted), by_hold_and_place);
        *count = copy_last_of_each(records, sorted, written, size);
    }
    free(sorted);
    free(bytes);
    return records;
}

history *ledger_read(const char *folder)
{
    size_t count = 0;
    belief *beliefs = ledger_records(folder, sizeof(belief), &count);
    history *told = beliefs != NULL ? history_new() : NULL;
    for (size_t i = 0; told != NULL && i < count; i++) {
        if (!history_add(told, &beliefs[i])) {
            history_free(told);
            told = NULL;
        }
    }
    free(beliefs);
    return told;
}
