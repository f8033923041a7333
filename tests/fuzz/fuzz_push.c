/* SPDX-License-Identifier: MIT */
/* The connection for messages, fed with anything: raw bytes, and messages of any text. Whoever may
 * publish can send the latter. The core has holds of all kinds by then: held, waiting with and
 * without an answer, given up, released, and an observer.
 *
 * Checked, besides what machine.c checks after every step: nobody gets a lock by a message unless
 * one names this hold and a copy that was sent for it and counts, as a reading of the bytes by
 * other means finds; then it lasts from before that copy had left. A hold that is held gets neither
 * more time nor another fence. And memory stays bounded.
 *
 * Input: operations, one byte each and their arguments. */
#include <inttypes.h>
#include <string.h>

#include "core/name.h"
#include "core/state.h" /* the numbers of copies */
#include "machine.h"
#include "server.h"

enum {
    OPERATIONS_MAX = 500,
    HEARD_MAX = 256 * 1024,
    OUTPUT_MAX = 64 * 1024,
    MEMORY_MAX = 8 * 1024 * 1024,
    LEASE_MS = 10000
};

static struct {
    char bytes[HEARD_MAX]; /* all that was said on the present connection for messages */
    size_t count;
} heard;

static struct {
    const hf_hold *waiting[CALLS]; /* as m.calls, before the bytes came */
    hf__place places[CALLS];
    uint64_t numbers[CALLS];
    hf__span left[CALLS]; /* as m.holds */
    uint64_t fences[CALLS];
} before;

/* Of AddressSanitizer; without it there is none, and memory is not counted. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
    return __sanitizer_get_current_allocated_bytes != NULL
               ? __sanitizer_get_current_allocated_bytes()
               : 0;
}

/* ---- The check ---- */

/* Reads digits at *at; false: there are none, or too many for any number of ours. */
static bool read_digits(size_t *at, uint64_t *number)
{
    size_t first = *at;
    *number = 0;
    while (*at < heard.count && heard.bytes[*at] >= '0' && heard.bytes[*at] <= '9') {
        if (*number > UINT64_MAX / 100)
            return false;
        *number = *number * 10 + (uint64_t)(heard.bytes[(*at)++] - '0');
    }
    return *at > first;
}

/* Whether somebody has said "g <number> <copy> ", with a copy that counts. */
static bool was_granted(uint64_t number, const hf__place *place)
{
    for (size_t i = 0; i + 2 < heard.count; i++) {
        size_t at = i + 2;
        uint64_t named, copy;
        if (heard.bytes[i] != 'g' || heard.bytes[i + 1] != ' ' || !read_digits(&at, &named) ||
            at >= heard.count || heard.bytes[at++] != ' ' || !read_digits(&at, &copy))
            continue;
        if (named == number && place->base > 0 && copy >= place->base && copy <= place->copy)
            return true;
    }
    return false;
}

static void remember(void)
{
    memset(&before, 0, sizeof(before));
    for (int i = 0; i < CALLS; i++) {
        const hf__call *call = m.calls[i];
        if (call != NULL && call->kind == HF__CALL_ACQUIRE) {
            before.waiting[i] = call->hold;
            before.places[i] = call->hold->place;
            before.numbers[i] = call->hold->number;
        }
        if (m.holds[i].hold != NULL) {
            before.left[i] = hf__hold_remaining(m.holds[i].hold, m.now);
            before.fences[i] = hf__hold_fence(m.holds[i].hold);
        }
    }
}

static void check_grant(int place)
{
    const hf__place *was = &before.places[place];
    hf_hold *hold = NULL;
    for (int i = 0; i < CALLS && hold == NULL; i++)
        if (m.holds[i].hold == before.waiting[place])
            hold = m.holds[i].hold;
    if (hold == NULL)
        return; /* it has ended otherwise */
    hf__span since = hf__between(was->base_sent, m.now);
    REQUIRE(was_granted(before.numbers[place], was));
    REQUIRE(hf__hold_remaining(hold, m.now).ns + since.ns <= hf__hold_lease(hold).ns);
}

static void compare(void)
{
    for (int i = 0; i < CALLS; i++) {
        if (before.waiting[i] != NULL && m.calls[i] == NULL)
            check_grant(i);
        if (before.fences[i] > 0) {
            REQUIRE(hf__hold_remaining(m.holds[i].hold, m.now).ns <= before.left[i].ns);
            REQUIRE(hf__hold_fence(m.holds[i].hold) == before.fences[i]);
        }
    }
}

static void say(const void *bytes, size_t count)
{
    int link = machine_push_link(PORT_OPEN);
    if (link < 0 || count == 0 || heard.count + count > HEARD_MAX)
        return;
    char *exact = machine_allocate(count); /* so that a byte read beyond it is seen */
    memcpy(exact, bytes, count);
    memcpy(heard.bytes + heard.count, bytes, count);
    heard.count += count;
    remember();
    machine_step(
        (hf__event){.kind = HF__EVENT_BYTES, .link = link, .bytes = exact, .count = count});
    compare();
    free(exact);
}

static void say_framed(const char *word, const char *channel, size_t channel_length,
                       const void *text, size_t length)
{
    char message[512];
    int header = snprintf(message, sizeof(message), "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%.*s\r\n$%zu\r\n",
                          strlen(word), word, channel_length, (int)channel_length, channel, length);
    REQUIRE(header > 0 && (size_t)header + length + 2 < sizeof(message));
    if (length > 0)
        memcpy(message + header, text, length);
    memcpy(message + header + length, "\r\n", 2);
    say(message, (size_t)header + length + 2);
}

/* ---- The beginning ---- */

static void answer_yes(void)
{
    machine_step((hf__event){.kind = HF__EVENT_BYTES, .bytes = ":1\r\n", .count = 4});
}

static void acquire(const char *name, int64_t wait_ms)
{
    int place = 0;
    hf__wish wish = {.lease = hf__span_ms(LEASE_MS), .name = hf__slice_text(name)};
    while (place < CALLS && m.calls[place] != NULL)
        place++;
    if (place == CALLS || m.numbers == CALLS)
        return;
    wish.who = (hf__identity){.client_id = "client", .host = "host", .pid = 1, .thread = 1};
    wish.who.number = ++m.numbers;
    wish.renew_interval = hf__span_ms(LEASE_MS / 3);
    wish.renew_timeout = hf__span_ms(1000);
    wish.on_event = machine_on_event;
    wish.arg = &m;
    hf__call *call = m.calls[place] = machine_allocate(sizeof(*call));
    *call = (hf__call){.kind = HF__CALL_ACQUIRE, .hold = hf__hold_new(&wish), .wait_ms = wait_ms};
    REQUIRE(call->hold != NULL);
    call->retry_interval = hf__span_ms(100);
    m.due[place] = HF__NEVER;
    machine_step((hf__event){.kind = HF__EVENT_START, .call = call});
}

static void release_first(void)
{
    for (int i = 0; i < CALLS; i++) {
        if (m.holds[i].hold == NULL)
            continue;
        hf_hold *hold = m.holds[i].hold;
        m.holds[i] = (held){0};
        machine_step((hf__event){.kind = HF__EVENT_LET_GO, .hold = hold});
        return;
    }
}

/* Whatever waits for a connection gets it, and a server that answers as it should at first. */
static void revive(void)
{
    int push = m.config.links;
    input rest = m.in;
    m.in = (input){NULL, 0}; /* the usual answers */
    for (int link = 0; link <= push; link++) {
        if (m.ports[link] != PORT_CONNECTING)
            continue;
        machine_connect(link);
        if (link == push) {
            heard.count = 0;
            say_push_greeting();
        } else {
            say_greeting();
        }
    }
    m.in = rest;
}

static void observe(void)
{
    m.observers[0] =
        hf__observer_new(HF__SLICE(""), HF__SLICE("a"), machine_on_sight, &m.observers[0]);
    REQUIRE(m.observers[0] != NULL);
    machine_step((hf__event){.kind = HF__EVENT_OBSERVE, .observer = m.observers[0]});
    answer_yes();
    say_to_query(); /* what it sees then */
}

/* 1 is held, 2 released, 3 and 4 wait in the queue, 5 has given up, 6 has not been answered. */
static void set_scene(void)
{
    m.in = (input){NULL, 0};
    m.said_ms = HF_MS_MAX;
    acquire("gone", 0);
    revive();
    say_integer();
    release_first();
    answer_yes();
    acquire("a", 0);
    say_integer();
    acquire("b", -1);
    say_busy();
    revive();
    say_queued();
    acquire("c", -1);
    say_queued();
    acquire("d", -1);
    say_queued();
    machine_step((hf__event){.kind = HF__EVENT_CANCEL, .call = m.calls[2]});
    observe();
    acquire("e", -1);
    REQUIRE(machine_push_link(PORT_OPEN) >= 0 && m.core->servers[0].waiters.count >= 2);
}

/* ---- Operations ---- */

static void say_raw(void)
{
    input bytes = input_take(&m.in, (size_t)input_byte(&m.in) % 64 + 1);
    say(bytes.at, bytes.left);
}

static void say_text(void)
{
    input text = input_take(&m.in, (size_t)input_byte(&m.in) % 128);
    say_framed("message", "c", 1, text.at, text.left);
}

/* Nearly right: a hold that exists or existed, and a copy that it has sent, or a neighbour. */
static void say_nearly_right(void)
{
    static const int64_t others[] = {0, 1, LEASE_MS, HF_MS_MAX, INT64_MAX};
    char text[160];
    uint8_t choice = input_byte(&m.in);
    uint64_t number = 1 + input_byte(&m.in) % 8;
    const hf_hold *hold = hf__queue_find(&m.core->servers[0], number);
    uint64_t copy = hold != NULL ? hold->place.copy : m.core->copies;
    if (hold != NULL && (choice & 1) != 0)
        copy = hold->place.base;
    copy = copy - 2 + input_byte(&m.in) % 5;
    uint64_t fence = input_byte(&m.in) % 4 == 0 ? 0 : (uint64_t)(m.fence += 3);
    int length = snprintf(
        text, sizeof(text), "%c %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %d",
        "gggggirx"[choice >> 1 & 7], number, copy, fence, others[choice >> 4 & 3], choice >> 7);
    say_framed("message", "c", 1, text, (size_t)length);
}

static void say_sight_text(void)
{
    char channel[64];
    size_t length = (size_t)snprintf(channel, sizeof(channel), "hf:e:");
    length += hf__side_key(channel + length, HF__SLICE(""), 'f', HF__SLICE("a"), hf__slot("a", 1));
    input text = input_take(&m.in, (size_t)input_byte(&m.in) % 128);
    say_framed("message", channel, length, text.at, text.left);
}

static void say_word(void)
{
    static const char *const words[] = {"subscribe", "unsubscribe", "pong", "pmessage", "message"};
    static const char *const channels[] = {"c", "hf:e:hf:f:{1}a", "hf:c:client", ""};
    uint8_t choice = input_byte(&m.in);
    const char *channel = channels[choice >> 4 & 3];
    say_framed(words[choice % 5], channel, strlen(channel), "1", 1);
}

static void pong(void)
{
    static const char text[] = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
    say(text, sizeof(text) - 1);
}

/* A few milliseconds, or up to the next thing to do. */
static void pass_time(void)
{
    uint8_t choice = input_byte(&m.in);
    hf__instant wake = hf__core_wake(m.core);
    hf__instant soon = hf__after(m.now, hf__span_ms(choice));
    m.now = choice == 255 && !hf__is_never(wake) ? hf__later(m.now, wake) : soon;
    machine_step((hf__event){.kind = HF__EVENT_TICK});
}

static void wait_again(void)
{
    static const char *const names[] = {"a", "b", "c", "f"};
    acquire(names[input_byte(&m.in) % 4], -1);
}

static void (*const operations[])(void) = {
    say_raw,   say_text, say_nearly_right, say_sight_text, say_word,      pong,
    pass_time, revive,   wait_again,       say_queued,     release_first, say_nearly_right,
};

/* The network takes what there is. */
static void write_all(void)
{
    const char *bytes;
    for (int link = 0; link < hf__core_links(m.core); link++) {
        size_t count = m.ports[link] == PORT_OPEN ? hf__core_output(m.core, link, &bytes) : 0;
        REQUIRE(count <= OUTPUT_MAX);
        if (count > 0)
            hf__core_written(m.core, link, count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const uint8_t settings[] = {0, 100, 100, 150, 8};
    machine_begin(settings, sizeof(settings));
    set_scene();
    write_all();
    m.in = (input){bytes, count};
    size_t at_first = allocated();
    for (int i = 0; i < OPERATIONS_MAX && m.in.left > 0; i++) {
        operations[input_byte(&m.in) % (sizeof(operations) / sizeof(operations[0]))]();
        write_all();
        REQUIRE(allocated() <= at_first + MEMORY_MAX);
    }
    machine_end();
    return 0;
}
