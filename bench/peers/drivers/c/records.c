/* SPDX-License-Identifier: MIT
 *
 * Lists of records that grow by doubling. When memory runs out the record is dropped and an error
 * stands in its place: a driver that lost records must not look like one that did not.
 */
#include "records.h"

#include <inttypes.h>
#include <stdlib.h>

void records_error(struct records *records, const char *problem)
{
    if (records->error_count < ERRORS_KEPT)
        problem_set(records->errors[records->error_count++], "%s", problem);
}

void records_add(struct records *records, const struct record *record)
{
    if (records->count == records->capacity) {
        uint64_t capacity = records->capacity > 0 ? 2 * records->capacity : 4096;
        struct record *list = realloc(records->list, capacity * sizeof *list);
        if (list == NULL) {
            records_error(records, "out of memory for records");
            return;
        }
        records->list = list;
        records->capacity = capacity;
    }
    records->list[records->count++] = *record;
}

bool records_write(const struct records *tasks, int count, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    for (int task = 0; task < count; task++)
        for (uint64_t i = 0; i < tasks[task].count; i++) {
            const struct record *record = &tasks[task].list[i];
            fprintf(file, "%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", task,
                    record->asked_ns, record->entered_ns, record->leaving_ns, record->released_ns);
        }
    return fclose(file) == 0;
}

static void tell_text(const char *text)
{
    putchar('"');
    for (const unsigned char *byte = (const unsigned char *)text; *byte != '\0'; byte++)
        if (*byte < 0x20 || *byte >= 0x7f || *byte == '"' || *byte == '\\')
            printf("\\u%04x", *byte);
        else
            putchar(*byte);
    putchar('"');
}

void records_tell(const struct records *tasks, int count)
{
    uint64_t acquisitions = 0, refused = 0;
    for (int task = 0; task < count; task++) {
        acquisitions += tasks[task].count;
        refused += tasks[task].refused;
    }
    printf("{\"acquisitions\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"errors\": [", acquisitions,
           refused);
    int told = 0;
    for (int task = 0; task < count; task++)
        for (int i = 0; i < tasks[task].error_count && told < ERRORS_KEPT; i++) {
            fputs(told++ > 0 ? ", " : "", stdout);
            tell_text(tasks[task].errors[i]);
        }
    puts("]}");
    fflush(stdout);
}

void records_free(struct records *tasks, int count)
{
    for (int task = 0; task < count; task++)
        free(tasks[task].list);
    free(tasks);
}
