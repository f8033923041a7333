/* SPDX-License-Identifier: MIT */
/* One lock, in full. The lines are "what: value", one for each fact, so that grep and cut find
 * their way; facts that there may be several of (holder, waiter) have a line each, in order. */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "exit.h"
#include "json.h"
#include "printable.h"
#include "say.h"
#include "text.h"

/* ---- How long ---- */

#define US_PER_S       INT64_C(1000000)
#define US_PLAUSIBLE_S (INT64_C(1500000000) * US_PER_S) /* fences from before are no times */

struct show_clock show_clock_of(hf_client *client)
{
    hf_examination server;
    bool known = false;
    for (int i = 0; i < hf_server_count(client) && !known; i++) /* their clocks are about alike */
        known = hf_examine_server(client, i, &server, NULL) == HF_OK;
    return (struct show_clock){known, known ? server.clock_ahead_us : 0};
}

int64_t show_held_ms(const struct show_clock *clock, const hf_inspection *lock)
{
    struct timespec now;
    if (!clock->known || !lock->held || lock->fence < (uint64_t)US_PLAUSIBLE_S ||
        lock->fence > INT64_MAX / 2 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    int64_t now_us = now.tv_sec * US_PER_S + now.tv_nsec / 1000 + clock->ahead_us;
    int64_t held_ms = (now_us - (int64_t)lock->fence) / 1000;
    if (held_ms < -1000)
        return -1; /* its clock was set back, and the fence went on from where it was */
    return held_ms > 0 ? held_ms : 0;
}

/* ---- Who ---- */

char *show_name(char place[SHOW_NAME_MAX], const char *name, size_t length)
{
    (void)printable(name, length != 0 ? length : strlen(name), place, SHOW_NAME_MAX);
    return place;
}

char *show_holder(char place[SHOW_HOLDER_MAX], const hf_holder *who)
{
    char label[4 * HF_LABEL_MAX + 1], host[4 * sizeof(who->host)];
    if (who->client_id[0] == '\0')
        (void)snprintf(place, SHOW_HOLDER_MAX, "a program that does not use holdfast");
    else
        (void)snprintf(place, SHOW_HOLDER_MAX, "%s pid %" PRIu64 " thread %" PRIu64 "%s%s",
                       printable(who->host, strlen(who->host), host, sizeof(host)), who->pid,
                       who->thread, who->label[0] != '\0' ? " label " : "",
                       printable(who->label, strlen(who->label), label, sizeof(label)));
    return place;
}

char *show_who(char place[SHOW_HOLDER_MAX], const hf_inspection *lock)
{
    static const hf_holder unknown;
    return show_holder(place, lock->holder_count > 0 ? &lock->holders[0] : &unknown);
}

/* ---- Lines ---- */

static const char *time_or(char place[TEXT_TIME_MAX], int64_t ms, const char *otherwise)
{
    return ms < 0 ? otherwise : text_time(place, ms);
}

static void print_holders(const hf_inspection *lock)
{
    char who[SHOW_HOLDER_MAX], left[TEXT_TIME_MAX];
    if (lock->holder_count == 0)
        printf("holder: %s\n", show_who(who, lock));
    for (size_t i = 0; i < lock->holder_count; i++)
        printf("holder: %s%s%s\n", show_holder(who, &lock->holders[i]),
               lock->shared ? ", time left " : "",
               lock->shared ? time_or(left, lock->holders[i].remaining_ms, "no limit") : "");
}

static void print_waiters(const hf_inspection *lock)
{
    char who[SHOW_HOLDER_MAX], waited[TEXT_TIME_MAX];
    printf("waiters: %" PRIu64 "\n", lock->queue_length);
    for (size_t i = 0; i < lock->waiter_count; i++)
        printf("waiter: %s, waits for %s\n", show_holder(who, &lock->waiters[i]),
               text_time(waited, lock->waiters[i].waited_ms));
}

void show_lines(const hf_inspection *lock, int64_t held_ms)
{
    char name[SHOW_NAME_MAX], owner[4 * HF_OWNER_MAX + 1], time[TEXT_TIME_MAX];
    printf("name: %s\n", show_name(name, lock->name, lock->name_length));
    if (lock->shared || lock->holder_count == 0 || lock->holders[0].client_id[0] == '\0')
        printf("owner: %s\n", printable(lock->owner, strlen(lock->owner), owner, sizeof(owner)));
    print_holders(lock);
    if (held_ms >= 0)
        printf("held for: about %s\n", text_time(time, held_ms));
    printf("time left: %s\n", time_or(time, lock->remaining_ms, "no limit"));
    if (lock->fence > 0)
        printf("fence: %" PRIu64 "\n", lock->fence);
    printf("holds: %" PRIu64 "\n", lock->hold_count);
    print_waiters(lock);
}

/* ---- JSON ---- */

static void put_time(const char *key, int64_t ms)
{
    if (ms < 0)
        json_null(key);
    else
        json_number(key, ms);
}

static void put_person(const hf_holder *who, const char *time_key, int64_t time_ms)
{
    json_begin_object(NULL);
    if (who->client_id[0] == '\0') {
        json_null("client_id");
    } else {
        json_text("client_id", who->client_id);
        json_text("host", who->host);
        json_unsigned("pid", who->pid);
        json_unsigned("thread", who->thread);
        json_text("label", who->label);
    }
    put_time(time_key, time_ms);
    json_end_object();
}

static void put_people(const hf_inspection *lock)
{
    json_begin_array("holders");
    for (size_t i = 0; i < lock->holder_count; i++)
        put_person(&lock->holders[i], "remaining_ms", lock->holders[i].remaining_ms);
    json_end_array();
    json_unsigned("queue_length", lock->queue_length);
    json_begin_array("waiters");
    for (size_t i = 0; i < lock->waiter_count; i++)
        put_person(&lock->waiters[i], "waited_ms", lock->waiters[i].waited_ms);
    json_end_array();
}

void show_json(const char *key, const hf_inspection *lock, int64_t held_ms)
{
    json_begin_object(key);
    json_bytes("name", lock->name, lock->name_length);
    json_bool("held", lock->held);
    if (lock->held) {
        json_text("owner", lock->owner);
        json_bool("shared", lock->shared);
        put_time("held_ms", held_ms);
        put_time("remaining_ms", lock->remaining_ms);
    }
    if (lock->fence > 0)
        json_unsigned("fence", lock->fence);
    else
        json_null("fence");
    json_unsigned("hold_count", lock->held ? lock->hold_count : 0);
    put_people(lock);
    json_end_object();
}

int show_finish(int code)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    say_error("cannot write to standard output");
    return EXIT_OWN;
}
