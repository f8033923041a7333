/* SPDX-License-Identifier: MIT
 *
 * Processor time of the client and the server together: this process, the children that it has
 * started (process.h), and those children that have ended.
 */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdint.h>
#include <sys/types.h>

/* For process.c: a child counts from its fork until somebody has waited for it. From then on the
 * kernel adds its time to that of our ended children. */
void cpu_watch(pid_t pid);
void cpu_forget(pid_t pid);

int64_t cpu_of_ns(pid_t pid); /* of one process; 0: there is none */
int64_t cpu_all_ns(void);     /* only differences mean something */

/* Adds up what several measured stretches have used. Begins as zeros. */
struct cpu_meter {
    int64_t began_ns;
    int64_t used_ns;
    uint64_t operations;
};

void cpu_begin(struct cpu_meter *meter);
void cpu_end(struct cpu_meter *meter, uint64_t operations);
double cpu_per_operation_us(const struct cpu_meter *meter); /* NAN: there was no operation */

#endif
