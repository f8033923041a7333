/* SPDX-License-Identifier: MIT
 *
 * holdfast-bench-holder URL COUNT LEASE_MS: acquires COUNT locks, says "ready", and holds them
 * until it reads a line; then it says what it has used in between, releases them and ends. A
 * program of its own, so that its memory, threads and processor time are the library's and nobody
 * else's.
 *
 *     ready
 *     <processor time in us> <resident KiB> <threads> <holds lost>
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int64_t processor_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

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

static int hold_until_told(hf_hold **holds, long count)
{
    char line[16];
    int64_t before_us = processor_us();
    puts("ready");
    fflush(stdout);
    bool told = fgets(line, sizeof line, stdin) != NULL;
    int64_t used_us = processor_us() - before_us;
    long lost = 0;
    for (long i = 0; i < count; i++)
        lost += !hf_is_valid(holds[i]);
    printf("%" PRId64 " %ld %ld %ld\n", used_us, status_field("VmRSS:"), status_field("Threads:"),
           lost);
    fflush(stdout);
    return told ? 0 : 1;
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_error error;
    if (argc != 4)
        return 2;
    long count = strtol(argv[2], NULL, 10);
    int64_t lease_ms = strtoll(argv[3], NULL, 10);
    hf_hold **holds = calloc((size_t)count, sizeof *holds);
    if (holds == NULL || hf_open(argv[1], NULL, &client, &error) != HF_OK)
        return fail("hf_open", &error);
    for (long i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "bench:lock:%ld", i);
        if (hf_acquire(client, name, HF_ACQUIRE(.lease_ms = lease_ms), &holds[i], &error) != HF_OK)
            return fail("hf_acquire", &error);
    }
    int code = hold_until_told(holds, count);
    for (long i = 0; i < count; i++)
        hf_release_nowait(&holds[i]);
    hf_close(client);
    free(holds);
    return code;
}
