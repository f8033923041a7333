/* SPDX-License-Identifier: MIT */
/* See capacity.h. A piece of bytes begins with a command, because a client sends all that it has as
 * one piece; the last command of a piece that was cut may have an end that never comes. */
#include "capacity.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_OF_ONE = 16 /* the most that a call about one lock has */ };

typedef struct sim_command {
    size_t length;
    int64_t words;
    bool is_script;
} sim_command;

/* The number in a line such as "*3\r\n" or "$5\r\n"; -1: the line is not complete. */
static int64_t read_line(const sim_event *e, size_t *at)
{
    const char *end = *at < e->count ? memchr(e->bytes + *at, '\n', e->count - *at) : NULL;
    if (end == NULL)
        return -1;
    int64_t number = strtoll(e->bytes + *at + 1, NULL, 10);
    *at = (size_t)(end - e->bytes) + 1;
    return number;
}

static sim_command read_command(const sim_event *e, size_t from)
{
    sim_command command = {.length = e->count - from};
    size_t at = from;
    command.words = read_line(e, &at);
    if (command.words < 0)
        return command;
    for (int64_t i = 0; i < command.words; i++) {
        int64_t length = read_line(e, &at);
        if (length < 0 || e->count - at < (size_t)length + 2)
            return command;
        if (i == 0)
            command.is_script = length >= 4 && memcmp(e->bytes + at, "EVAL", 4) == 0;
        at += (size_t)length + 2;
    }
    command.length = at - from;
    return command;
}

static int64_t cost_ns(const sim_capacity *c, const sim_command *command, int64_t begins_ns)
{
    if (!command->is_script)
        return 0;
    int64_t more = command->words > WORDS_OF_ONE ? command->words - WORDS_OF_ONE : 0;
    int64_t took_ns = c->call_ns + more * c->word_ns;
    bool slow = c->slow > 0 && begins_ns % c->phase_ns > c->phase_ns / 2;
    return slow ? took_ns * c->slow : took_ns;
}

static void schedule_part(world *w, const sim_event *whole, size_t from, size_t length,
                          int64_t done_ns)
{
    sim_event part = *whole;
    part.worked = true;
    part.count = length;
    part.bytes = malloc(length);
    if (part.bytes == NULL)
        abort();
    memcpy(part.bytes, whole->bytes + from, length);
    world_schedule(w, part, done_ns - world_clockwork(w)->now_ns);
}

int64_t capacity_queue(world *w, sim_capacity *c, const sim_event *e)
{
    int64_t now_ns = world_clockwork(w)->now_ns;
    for (size_t at = 0; at < e->count;) {
        sim_command command = read_command(e, at);
        if (c->free_ns < now_ns)
            c->free_ns = now_ns;
        c->free_ns += cost_ns(c, &command, c->free_ns);
        schedule_part(w, e, at, command.length, c->free_ns);
        at += command.length;
    }
    return c->free_ns;
}

void capacity_end(sim_capacity *c)
{
    c->call_ns = c->word_ns = 0;
}
