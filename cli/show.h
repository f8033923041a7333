/* SPDX-License-Identifier: MIT */
/* A lock as people and programs see it: lines, a row of a table, or JSON. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <holdfast.h>

enum { SHOW_HOLDER_MAX = 512, SHOW_NAME_MAX = 4 * HF_NAME_MAX + 1 };

/* How long a lock has been held can be told from its fence, which is the server's time at the
 * grant, if that time is known here. */
struct show_clock {
    bool known;
    int64_t ahead_us; /* the server's, of ours */
};

struct show_clock show_clock_of(hf_client *client); /* asks the server */
int64_t show_held_ms(const struct show_clock *clock, const hf_inspection *lock); /* -1: unknown */

/* "web-1 pid 4711 thread 1 label nightly" */
char *show_holder(char place[SHOW_HOLDER_MAX], const hf_holder *who);
/* The first holder of a lock, or who it is if that is not one of ours. */
char *show_who(char place[SHOW_HOLDER_MAX], const hf_inspection *lock);
char *show_name(char place[SHOW_NAME_MAX], const char *name, size_t length); /* 0: to the NUL */

void show_lines(const hf_inspection *lock, int64_t held_ms);
void show_json(const char *key, const hf_inspection *lock, int64_t held_ms);

/* Writes out what was printed. Returns the code, or 125 if standard output cannot take it. */
int show_finish(int code);

#endif
