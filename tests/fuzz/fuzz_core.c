/* SPDX-License-Identifier: MIT */
/* The core, fed with any sequence of events that its contract (core.h) allows: an application that
 * starts, cancels and releases whenever it likes, a network that connects, cuts and is silent, and
 * a server that answers right, wrong, twice or with garbage, while memory runs out at times. What
 * is checked stands in machine.c.
 *
 * Input: a few bytes of configuration, then operations (`operations` below), one byte each and
 * their arguments. New operations go to the end of the table: the hand-made inputs of the corpus
 * use small bytes, and those keep their meaning. */
#include <inttypes.h>
#include <string.h>

#include "machine.h"

enum { OPERATIONS_MAX = 2000, REPLY_SIZE = 512 };

/* ---- Choices ---- */

static int64_t choose_ms(void)
{
    static const int64_t usual[] = {HF_LEASE_MIN_MS, 1000, 10000, HF_MS_MAX};
    uint8_t byte = input_byte(&m.in);
    return byte < 4 ? usual[byte] : HF_LEASE_MIN_MS + byte * 40;
}

/* A link in that state, or -1. */
static int choose_link(port state)
{
    int first = input_byte(&m.in) % m.config.links;
    for (int i = 0; i < m.config.links; i++)
        if (m.ports[(first + i) % m.config.links] == state)
            return (first + i) % m.config.links;
    return -1;
}

static held *choose_hold(void)
{
    int first = input_byte(&m.in) % CALLS;
    for (int i = 0; i < CALLS; i++)
        if (m.holds[(first + i) % CALLS].hold != NULL)
            return &m.holds[(first + i) % CALLS];
    return NULL;
}

static hf__call **free_place(void)
{
    for (int i = 0; i < CALLS; i++)
        if (m.calls[i] == NULL)
            return &m.calls[i];
    return NULL;
}

/* ---- The application ---- */

/* Hands the call to the core, which has promised an end within that time whatever happens. */
static void start(hf__call **place, hf__instant due)
{
    m.due[place - m.calls] = due;
    machine_step((hf__event){.kind = HF__EVENT_START, .call = *place});
}

static hf_hold *make_hold(void)
{
    static const char *const usual[] = {"a", "b", "{a}c"};
    static char longest[HF_NAME_MAX];
    hf__identity who = {.client_id = "client", .host = "host", .pid = 1, .thread = 1};
    hf__span lease = hf__span_ms(choose_ms());
    uint8_t choice = input_byte(&m.in);
    input name = {(const uint8_t *)longest, sizeof(longest)};
    if (choice < 128)
        name = (input){(const uint8_t *)usual[choice % 3], strlen(usual[choice % 3])};
    else if (choice < 255)
        name = input_take(&m.in, (size_t)choice % 16 + 1);
    if (name.left == 0 || m.numbers == CALLS)
        return NULL;
    who.number = ++m.numbers;
    return hf__hold_new(&who, "", 0, (const char *)name.at, name.left, lease);
}

static void start_acquire(void)
{
    hf__call **place = free_place();
    uint8_t choice = input_byte(&m.in);
    hf_hold *hold = place != NULL ? make_hold() : NULL;
    if (hold == NULL)
        return;
    hf__call *call = *place = machine_allocate(sizeof(*call));
    *call = (hf__call){.kind = HF__CALL_ACQUIRE, .hold = hold, .max_retries = choice >> 2 & 7};
    call->wait_ms = (choice & 3) == 0 ? 0 : (choice & 3) == 1 ? -1 : choose_ms();
    call->retry_interval = hf__span_ms(10 + (choice >> 5) * 50);
    m.due[place - m.calls] = HF__NEVER;
    if (choice == 255)
        machine_step((hf__event){.kind = HF__EVENT_CANCEL, .call = call});
    start(place, call->wait_ms > 0 ? hf__after(m.now, hf__span_ms(call->wait_ms)) : HF__NEVER);
}

static void start_on_hold(hf__call_kind kind)
{
    hf__call **place = free_place();
    held *chosen = choose_hold();
    if (place == NULL || chosen == NULL)
        return;
    hf__call *call = *place = machine_allocate(sizeof(*call));
    *call = (hf__call){.kind = kind, .hold = chosen->hold};
    if (kind == HF__CALL_EXTEND)
        call->lease = hf__span_ms(choose_ms());
    else
        *chosen = (held){0};
    bool bounded = kind == HF__CALL_RELEASE; /* an extend ends with its hold */
    start(place, bounded ? hf__after(m.now, m.config.call_timeout) : HF__NEVER);
}

static void start_extend(void)
{
    start_on_hold(HF__CALL_EXTEND);
}

static void start_release(void)
{
    start_on_hold(HF__CALL_RELEASE);
}

static void let_go(void)
{
    held *chosen = choose_hold();
    if (chosen == NULL)
        return;
    hf_hold *hold = chosen->hold;
    bool over = hf__hold_remaining(hold, m.now).ns == 0;
    *chosen = (held){0};
    hf_status status = machine_step((hf__event){.kind = HF__EVENT_LET_GO, .hold = hold});
    REQUIRE(status == (m.closing ? HF_ECLOSED : over ? HF_ELOST : HF_OK));
}

static void cancel_call(void)
{
    hf__call *call = m.calls[input_byte(&m.in) % CALLS];
    if (call != NULL && call->kind == HF__CALL_ACQUIRE)
        machine_step((hf__event){.kind = HF__EVENT_CANCEL, .call = call});
}

/* Once, and not at every chance: little happens after it. */
static void start_close(void)
{
    hf__call **place = free_place();
    if (input_byte(&m.in) < 128 || place == NULL || m.closing)
        return;
    m.closing = true;
    *place = machine_allocate(sizeof(**place));
    (*place)->kind = HF__CALL_CLOSE;
    start(place, hf__after(m.now, m.config.call_timeout));
}

static void starve(void)
{
    m.allocations_left = input_byte(&m.in) % 16;
}

/* ---- The network ---- */

static void connect_link(void)
{
    int link = choose_link(PORT_CONNECTING);
    if (link < 0)
        return;
    m.ports[link] = PORT_OPEN;
    machine_step((hf__event){.kind = HF__EVENT_CONNECTED, .link = link});
}

static void cut_link(void)
{
    int link = choose_link(input_byte(&m.in) % 2 == 0 ? PORT_OPEN : PORT_CONNECTING);
    if (link >= 0)
        machine_disconnect(link);
}

static void write_some(void)
{
    const char *bytes;
    int link = choose_link(PORT_OPEN);
    size_t wanted = (size_t)input_byte(&m.in) * 16;
    if (link < 0)
        return;
    size_t count = hf__core_output(m.core, link, &bytes);
    hf__core_written(m.core, link, wanted < count ? wanted : count);
    machine_check();
}

/* Time of which the core hears only with the next event. */
static void dawdle(void)
{
    hf__span span = {(int64_t)1000 << input_byte(&m.in) % 40}; /* a microsecond to six days */
    m.now = hf__after(m.now, span);
}

static void pass_time(void)
{
    dawdle();
    machine_step((hf__event){.kind = HF__EVENT_TICK});
}

static void sleep_till_wake(void)
{
    hf__instant wake = hf__core_wake(m.core);
    if (hf__is_never(wake))
        return;
    m.now = hf__later(m.now, wake);
    machine_step((hf__event){.kind = HF__EVENT_TICK});
}

/* ---- The server ---- */

/* In a block of exactly this size, so that reading beyond it is seen. */
static void feed(int link, const void *bytes, size_t count)
{
    if (link < 0 || count == 0)
        return;
    char *exact = machine_allocate(count);
    memcpy(exact, bytes, count);
    machine_step(
        (hf__event){.kind = HF__EVENT_BYTES, .link = link, .bytes = exact, .count = count});
    free(exact);
}

static void feed_text(const char *text)
{
    feed(choose_link(PORT_OPEN), text, strlen(text));
}

static void say_anything(void)
{
    int link = choose_link(PORT_OPEN);
    input bytes = input_take(&m.in, (size_t)input_byte(&m.in) % 64 + 1);
    m.said_ms = HF_MS_MAX; /* who knows */
    feed(link, bytes.at, bytes.left);
}

/* The answers to a whole greeting: one for each thing that is asked. */
static void say_greeting(void)
{
    char text[REPLY_SIZE], info[64];
    uint8_t choice = input_byte(&m.in);
    snprintf(info, sizeof(info), "run_id:%d\r\nrole:%s\r\n", choice % 4,
             choice >= 240 ? "slave" : "master");
    size_t length = strlen(info);
    snprintf(text, sizeof(text), "%s+OK\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n+1\r\n+2\r\n+3\r\n",
             m.server.password != NULL ? "+OK\r\n+OK\r\n" : "", length, info, length, info);
    feed_text(text);
}

static int64_t choose_integer(void)
{
    static const int64_t usual[] = {10000, 0, 1, -1, -2, 100, HF_MS_MAX, INT64_MAX, INT64_MIN};
    uint8_t byte = input_byte(&m.in);
    int64_t integer = byte < 9 ? usual[byte] : byte * 40;
    int64_t believed = integer < HF_MS_MAX ? integer : HF_MS_MAX;
    if (believed > m.said_ms)
        m.said_ms = believed;
    return integer;
}

static void say_integer(void)
{
    char text[32];
    snprintf(text, sizeof(text), ":%" PRId64 "\r\n", choose_integer());
    feed_text(text);
}

/* Held by a stranger, or by one of our own holds. */
static void say_busy(void)
{
    char text[REPLY_SIZE], holder[64];
    snprintf(holder, sizeof(holder), "client:%d@host:1/1", input_byte(&m.in) % CALLS);
    snprintf(text, sizeof(text), "*2\r\n:%" PRId64 "\r\n$%zu\r\n%s\r\n", choose_integer(),
             strlen(holder), holder);
    feed_text(text);
}

static void say_error(void)
{
    static const char *const errors[] = {
        "-NOSCRIPT No matching script.\r\n",
        "-LOADING x\r\n",
        "-BUSY x\r\n",
        "-OOM x\r\n",
        "-READONLY x\r\n",
        "-MASTERDOWN x\r\n",
        "-ERR max number of clients reached\r\n",
        "-WRONGTYPE x\r\n",
        "-NOAUTH x\r\n",
        "-NOPERM x\r\n",
        "-MOVED 1 x\r\n",
        "-\r\n",
        "-ERR Error running script (call to f_1): @user_script:5: -OOM x\r\n",
        "-ERR unknown\r\n"};
    feed_text(errors[input_byte(&m.in) % (sizeof(errors) / sizeof(errors[0]))]);
}

/* ---- All of it ---- */

static void (*const operations[])(void) = {
    start_acquire, start_extend,    start_release, let_go,       cancel_call, start_close,
    starve,        connect_link,    cut_link,      write_some,   pass_time,   sleep_till_wake,
    say_anything,  say_greeting,    say_integer,   say_busy,     say_error,   start_acquire,
    say_integer,   sleep_till_wake, connect_link,  say_greeting, dawdle,      start_extend,
};

enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    machine_begin(bytes, count);
    for (int i = 0; i < OPERATIONS_MAX && m.in.left > 0; i++)
        operations[input_byte(&m.in) % OPERATIONS]();
    machine_end();
    return 0;
}
