/* SPDX-License-Identifier: MIT
 *
 * Reads the processor clocks of this process and of its children. Linux lets us read the clock of
 * any process (clock_getcpuclockid), exactly and for the price of a system call, so a stretch of
 * milliseconds can be measured. INFO cpu would be a command at the server that we measure, and
 * /proc/<pid>/stat counts in units of 10 ms.
 *
 * Only the main thread of the benchmark starts and ends children, so the list needs no lock.
 */
#include "cpu.h"

#include <math.h>
#include <sys/resource.h>
#include <time.h>

#define CHILDREN_MAX 128 /* a team (team.h), and several servers with a delay each */

static pid_t children[CHILDREN_MAX]; /* 0: a free place */

static void replace(pid_t from, pid_t to)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (children[i] == from) {
            children[i] = to;
            return;
        }
    }
}

void cpu_watch(pid_t pid)
{
    replace(0, pid);
}

void cpu_forget(pid_t pid)
{
    replace(pid, 0);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec used = {0};
    (void)clock_gettime(clock, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int64_t cpu_of_ns(pid_t pid)
{
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

static int64_t ended_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return ((int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
            usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) *
           1000;
}

int64_t cpu_all_ns(void)
{
    int64_t sum = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ended_ns();
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (children[i] != 0)
            sum += cpu_of_ns(children[i]);
    return sum;
}

void cpu_begin(struct cpu_meter *meter)
{
    meter->began_ns = cpu_all_ns();
}

void cpu_end(struct cpu_meter *meter, uint64_t operations)
{
    meter->used_ns += cpu_all_ns() - meter->began_ns;
    meter->operations += operations;
}

double cpu_per_operation_us(const struct cpu_meter *meter)
{
    if (meter->operations == 0)
        return NAN;
    return (double)meter->used_ns / 1e3 / (double)meter->operations;
}
