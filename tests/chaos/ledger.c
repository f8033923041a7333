/* SPDX-License-Identifier: MIT */
/* See ledger.h. One write(2) to a file opened with O_APPEND places a record whole and after all
 * others, without any agreement between the writers, and the kernel keeps it when the writer is
 * killed. A worker writes its own records in order, so sorting by (client, hold) and place in the
 * file puts the record that counts last.
 */
#include "ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
    belief belief;
    size_t place;
};

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

bool ledger_write(int ledger, const belief *held)
{
    return write(ledger, held, sizeof(*held)) == (ssize_t)sizeof(*held);
}

static int by_hold_and_place(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    if (a->belief.client != b->belief.client)
        return a->belief.client < b->belief.client ? -1 : 1;
    if (a->belief.hold != b->belief.hold)
        return a->belief.hold < b->belief.hold ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static bool same_hold(const struct entry *a, const struct entry *b)
{
    return a->belief.client == b->belief.client && a->belief.hold == b->belief.hold;
}

/* NULL: unreadable, or its length is not that of whole records. */
static struct entry *read_entries(int file, size_t *count)
{
    struct stat status;
    if (fstat(file, &status) != 0 || status.st_size % (off_t)sizeof(belief) != 0)
        return NULL;
    *count = (size_t)status.st_size / sizeof(belief);
    struct entry *entries = calloc(*count + 1, sizeof(*entries));
    for (size_t i = 0; entries != NULL && i < *count; i++) {
        entries[i].place = i;
        off_t offset = (off_t)(i * sizeof(belief));
        if (pread(file, &entries[i].belief, sizeof(belief), offset) != (ssize_t)sizeof(belief)) {
            free(entries);
            return NULL;
        }
    }
    return entries;
}

static bool add_last_of_each(history *told, const struct entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count || !same_hold(&entries[i], &entries[i + 1]);
        if (last && !history_add(told, &entries[i].belief))
            return false;
    }
    return true;
}

history *ledger_read(const char *folder)
{
    size_t count = 0;
    int file = open_in(folder, O_RDONLY);
    struct entry *entries = file >= 0 ? read_entries(file, &count) : NULL;
    history *told = entries != NULL ? history_new() : NULL;
    if (told != NULL) {
        qsort(entries, count, sizeof(*entries), by_hold_and_place);
        if (!add_last_of_each(told, entries, count)) {
            history_free(told);
            told = NULL;
        }
    }
    free(entries);
    if (file >= 0)
        (void)close(file);
    return told;
}
