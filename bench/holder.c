/* SPDX-License-Identifier: MIT
 *
 * holdfast-bench-holder URL COUNT LEASE_MS UNDER_WAY: acquires COUNT locks, at most UNDER_WAY of
 * them at the same time, and holds them. With UNDER_WAY 0 it acquires them with calls that wait,
 * and the client has one thread less: the one that runs the functions of operations. A program of
 * its own, so that its memory, threads and processor time are the library's and nobody else's.
 * holding.c starts it and talks with it: each line that it reads makes it say the next one, and the
 * end of its input ends it.
 *
 *     ready <resident KiB before the first lock>        when all are acquired
 *     <resident KiB> <threads> <holds lost>
 *     <releases that failed>                            when all are released
 *
 * Whatever goes wrong is said in a line of words instead, and then it ends with 1.
 */
#include <errno.h>
#include <holdfast.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of operations, for a lock that is held: so the client keeps what it keeps for those who wait. */
#define WAIT_MS 30000

/* Callbacks run one at a time; the semaphore hands over what they have written. */
static sem_t room; /* for operations under way */
static long failures;
static hf_error first_failure;

static long status_field(const char *field)
{
    char line[256];
    long number = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && number < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            number = strtol(line + strlen(field), NULL, 10);
    if (file != NULL)
        fclose(file);
    return number;
}

static int fail(const char *what, const hf_error *error)
{
    printf("%s: %s: %s\n", what, hf_status_name(error->status), error->text);
    return 1;
}

static void enter(long count)
{
    for (long i = 0; i < count; i++)
        while (sem_wait(&room) != 0 && errno == EINTR)
            continue;
}

static void leave(const hf_error *error)
{
    if (error->status != HF_OK && failures++ == 0)
        first_failure = *error;
    sem_post(&room);
}

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    *(hf_hold **)arg = hold;
    leave(error);
}

static void on_released(void *arg, const hf_error *error)
{
    (void)arg;
    leave(error);
}

static void acquire_all(hf_client *client, hf_hold **holds, long count, int64_t lease_ms,
                        bool waits)
{
    for (long i = 0; i < count; i++) {
        char name[32];
        hf_error error;
        const hf_acquire_options *options =
            HF_ACQUIRE(.lease_ms = lease_ms, .wait_ms = waits ? 0 : WAIT_MS);
        snprintf(name, sizeof name, "bench:lock:%ld", i);
        enter(1);
        hf_status status =
            waits ? hf_acquire(client, name, options, &holds[i], &error)
                  : hf_acquire_async(client, name, options, on_acquired, &holds[i], NULL, &error);
        if (waits || status != HF_OK)
            leave(&error);
    }
}

static void release_all(hf_hold **holds, long count)
{
    for (long i = 0; i < count; i++) {
        hf_error error;
        enter(1);
        if (hf_release_async(&holds[i], on_released, NULL, &error) != HF_OK)
            leave(&error);
    }
}

static long count_lost(hf_hold **holds, long count)
{
    long lost = 0;
    for (long i = 0; i < count; i++)
        lost += holds[i] != NULL && !hf_is_valid(holds[i]);
    return lost;
}

static bool told(void)
{
    char line[16];
    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL;
}

static int hold(hf_client *client, hf_hold **holds, long count, int64_t lease_ms, long under_way)
{
    long empty_kib = status_field("VmRSS:"), rooms = under_way > 0 ? under_way : 1;
    sem_init(&room, 0, (unsigned)rooms);
    acquire_all(client, holds, count, lease_ms, under_way == 0);
    enter(rooms);
    if (failures > 0) {
        printf("%ld of %ld acquires failed, %ld of the others were lost; the first: ", failures,
               count, count_lost(holds, count));
        return fail("hf_acquire_async", &first_failure);
    }
    printf("ready %ld\n", empty_kib);
    bool go_on = told();
    printf("%ld %ld %ld\n", status_field("VmRSS:"), status_field("Threads:"),
           count_lost(holds, count));
    go_on = told() && go_on;
    for (long i = 0; i < rooms; i++)
        sem_post(&room);
    release_all(holds, count);
    enter(rooms);
    printf("%ld\n", failures);
    return go_on ? 0 : 1;
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_error error;
    if (argc != 5)
        return 2;
    long count = strtol(argv[2], NULL, 10), under_way = strtol(argv[4], NULL, 10);
    hf_hold **holds = calloc((size_t)count, sizeof *holds);
    if (holds == NULL)
        return 2;
    if (hf_open(argv[1], NULL, &client, &error) != HF_OK)
        return fail("hf_open", &error);
    int code = hold(client, holds, count, strtoll(argv[3], NULL, 10), under_way);
    hf_close(client);
    free(holds);
    return code;
}
