/* SPDX-License-Identifier: MIT */
/* A line that is written over once a second. It asks through a client of its own, which gives up
 * after a short while: so looking delays neither the wait for the lock nor a signal by more than
 * that, and a server that does not answer is asked less often.
 *
 * For how long a lock has been held follows from its fence, which is the server's time of the grant
 * in microseconds (docs/wire.md), as far as its clock and ours agree. Where they plainly do not,
 * nothing is said about it. */
#include "live.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "instant.h"
#include "printable.h"
#include "say.h"

enum {
    FIRST_LOOK_MS = 200,
    LOOK_TIMEOUT_MS = 300,
    PAUSE_MS = 1000,
    PAUSE_AFTER_FAILURE_MS = 5000,
    TEXT_MAX = 256
};

static struct {
    struct session session;
    const char *name;
    int64_t began;
    int64_t next;
} live = {.next = INSTANT_NEVER};

/* ---- Words ---- */

static void put_span(int64_t ms, char *place, size_t capacity)
{
    int64_t seconds = ms / 1000;
    if (seconds < 60)
        (void)snprintf(place, capacity, "%" PRId64 " s", seconds);
    else if (seconds < 3600)
        (void)snprintf(place, capacity, "%" PRId64 " min %" PRId64 " s", seconds / 60,
                       seconds % 60);
    else
        (void)snprintf(place, capacity, "%" PRId64 " h %" PRId64 " min", seconds / 3600,
                       seconds / 60 % 60);
}

/* -1: unknown. */
static int64_t held_ms(const hf_inspection *seen)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - (int64_t)seen->fence;
    if (us < -2000000 || us / 1000 > HF_MS_MAX)
        return -1;
    return us < 0 ? 0 : us / 1000;
}

void live_describe_holder(const hf_inspection *seen, char *place, size_t capacity)
{
    char host[TEXT_MAX] = "a program without holdfast", label[TEXT_MAX] = "", pid[32] = "";
    char span[48] = "";
    const hf_holder *holder = &seen->holders[0];
    bool known = seen->holder_count > 0 && holder->client_id[0] != '\0';
    if (known) {
        printable(holder->host, strlen(holder->host), host, sizeof(host));
        (void)snprintf(pid, sizeof(pid), ", pid %" PRIu64, holder->pid);
    }
    if (known && holder->label[0] != '\0') {
        label[0] = ' ';
        label[1] = '(';
        printable(holder->label, strlen(holder->label), label + 2, sizeof(label) - 3);
        (void)snprintf(label + strlen(label), 2, ")");
    }
    if (known && held_ms(seen) >= 0) {
        (void)snprintf(span, sizeof(span), " for ");
        put_span(held_ms(seen), span + 5, sizeof(span) - 5);
    }
    (void)snprintf(place, capacity, "%s%s%s%s", host, pid, label, span);
}

/* Those before us: all of the queue, if we are not in it (yet). */
static uint64_t count_before(const hf_inspection *seen)
{
    struct utsname machine;
    bool known = uname(&machine) == 0;
    for (size_t i = 0; known && i < seen->waiter_count; i++)
        if (seen->waiters[i].pid == (uint64_t)getpid() &&
            strncmp(seen->waiters[i].host, machine.nodename, sizeof(seen->waiters[i].host) - 1) ==
                0)
            return i;
    return seen->queue_length;
}

static void show(const hf_inspection *seen)
{
    char name[TEXT_MAX], who[TEXT_MAX * 3], waited[32], line[TEXT_MAX * 5];
    printable(live.name, strlen(live.name), name, sizeof(name));
    live_describe_holder(seen, who, sizeof(who));
    put_span((instant_now() - live.began) / NS_PER_MS, waited, sizeof(waited));
    (void)snprintf(line, sizeof(line),
                   "waiting for %s (%s): held by %s, %" PRIu64 " waiting before us", name, waited,
                   seen->held ? who : "nobody", count_before(seen));
    say_live(line);
}

/* ---- When ---- */

void live_begin(const struct session_options *options, const struct session *waiting,
                const char *name)
{
    struct session_options mine = *options;
    if (options->quiet || !say_has_terminal() || live.session.client != NULL)
        return;
    if (waiting->local) { /* it runs; looking must not start another one */
        mine.local = false;
        mine.urls = (struct option_list){{waiting->url}, 1};
    }
    mine.timeout_ms = LOOK_TIMEOUT_MS;
    mine.own_loop = true;
    mine.silent = true;
    if (session_open(&mine, 0, &live.session) != 0)
        return;
    live.name = name;
    live.began = instant_now();
    live.next = live.began + FIRST_LOOK_MS * NS_PER_MS; /* most waits are over by then */
}

int64_t live_next(void)
{
    return live.next;
}

void live_show(void)
{
    static hf_inspection seen;
    hf_error error;
    int64_t now = instant_now();
    if (now < live.next)
        return;
    bool answered = hf_inspect(live.session.client, live.name, 0, &seen, &error) == HF_OK;
    if (answered)
        show(&seen);
    else
        say_live("waiting: the server does not answer");
    live.next = now + (answered ? PAUSE_MS : PAUSE_AFTER_FAILURE_MS) * NS_PER_MS;
}

void live_end(void)
{
    live.next = INSTANT_NEVER;
    say_live(NULL);
    if (live.session.client != NULL)
        session_close(&live.session);
}
