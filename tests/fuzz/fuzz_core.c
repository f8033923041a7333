/* SPDX-License-Identifier: MIT */
/* The core, fed with any sequence of events that its contract (core.h) allows: an application that
 * starts, cancels and releases whenever it likes, a network that connects, cuts and is silent, and
 * a server that answers right, wrong, twice or with garbage, while memory runs out at times. What
 * the server says stands in server.c, and what is checked in machine.c.
 *
 * Input: a few bytes of configuration, then operations (`operations` below), one byte each and
 * their arguments. Bytes below LATER choose from the first table, those below LAST from the second,
 * which keep their order, so that the inputs of the corpus keep their meaning; the others choose
 * from the third, where new operations go to the end. */
#include <string.h>

#include "machine.h"
#include "server.h"

enum { OPERATIONS_MAX = 2000 };

/* ---- Choices ---- */

static int64_t choose_ms(void)
{
    static const int64_t usual[] = {HF_LEASE_MIN_MS, 1000, 10000, HF_MS_MAX};
    uint8_t byte = input_byte(&m.in);
    return byte < 4 ? usual[byte] : HF_LEASE_MIN_MS + byte * 40;
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

static void add_wishes(hf__wish *wish)
{
    wish->reenters = (m.wish & WISH_REENTERS) != 0;
    if (m.wish & WISH_RENEWED)
        wish->renew_interval = (hf__span){wish->lease.ns / 3};
    wish->renew_timeout = (hf__span){wish->lease.ns / 10};
    if (m.wish & WISH_OWNER)
        wish->owner = HF__SLICE("owner");
    if (m.wish & WISH_LABEL)
        wish->label = HF__SLICE("label");
    if (m.wish & WISH_WARNED)
        wish->warn = (hf__span){wish->lease.ns / 2};
    if (m.wish & WISH_LIMITED)
        wish->max_hold = (hf__span){wish->lease.ns * 2};
    if (m.wish & WISH_SECOND_THREAD)
        wish->who.thread = 2;
    wish->on_event = m.wish & WISH_DEAF ? NULL : machine_on_event;
    wish->arg = &m;
}

static hf_hold *make_hold(void)
{
    static const char *const usual[] = {"a", "b", "{a}c"};
    static char longest[HF_NAME_MAX];
    hf__wish wish = {.lease = hf__span_ms(choose_ms())};
    uint8_t choice = input_byte(&m.in);
    input name = {(const uint8_t *)longest, sizeof(longest)};
    if (choice < 128)
        name = (input){(const uint8_t *)usual[choice % 3], strlen(usual[choice % 3])};
    else if (choice < 255)
        name = input_take(&m.in, (size_t)choice % 16 + 1);
    if (name.left == 0 || m.numbers == CALLS)
        return NULL;
    wish.who = (hf__identity){.client_id = "client", .host = "host", .pid = 1, .thread = 1};
    wish.who.number = ++m.numbers;
    wish.name = (hf__slice){(const char *)name.at, name.left};
    add_wishes(&wish);
    return hf__hold_new(&wish);
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
    call->polls = (m.patience & PATIENCE_QUEUES) == 0;
    call->fair = (m.patience & PATIENCE_FAIR) != 0;
    if (!call->polls)
        call->max_retries = 0;
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

static void choose_wish(void)
{
    m.wish = input_byte(&m.in);
}

static void choose_patience(void)
{
    m.patience = input_byte(&m.in);
}

static void start_query(void)
{
    static const char *const names[] = {"a", "b", "{a}c"};
    hf__call **place = free_place();
    uint8_t choice = input_byte(&m.in);
    hf__slice name = hf__slice_text(names[choice % 3]);
    hf__slice text = choice & 128 ? HF__SLICE("client:1@host:1/1") : HF__SLICE("");
    if (place == NULL)
        return;
    hf__query *query = hf__query_new((hf__query_kind)(choice >> 2 & 3), HF__SLICE(""), name, text,
                                     (uint64_t)m.fence);
    if (query == NULL)
        return;
    query_call *asked = machine_allocate(sizeof(*asked));
    asked->call = (hf__call){.kind = HF__CALL_QUERY, .query = query, .answer = &asked->answer};
    asked->answer.inspection = &asked->inspection;
    *place = &asked->call;
    start(place, hf__after(m.now, m.config.call_timeout));
}

static void start_observer(void)
{
    static const char *const names[] = {"a", "b"};
    uint8_t choice = input_byte(&m.in);
    int place = choice % OBSERVERS;
    hf__slice name = hf__slice_text(names[choice >> 4 & 1]);
    if (m.observers[place] != NULL)
        return;
    hf_observer *observer =
        hf__observer_new(HF__SLICE(""), name, machine_on_sight, &m.observers[place]);
    if (observer == NULL)
        return;
    m.observers[place] = observer;
    machine_step((hf__event){.kind = HF__EVENT_OBSERVE, .observer = observer});
}

static void end_observer(void)
{
    machine_end_observer(input_byte(&m.in) % OBSERVERS);
}

/* From now on, or not: who is told something takes their time. */
static void tell_slowly(void)
{
    m.tells_slowly = true;
}

static void return_from_callback(void)
{
    m.tells_slowly = false;
    machine_end_telling();
    machine_step((hf__event){.kind = HF__EVENT_TICK});
}

static void starve(void)
{
    m.allocations_left = input_byte(&m.in) % 16;
}

/* ---- The network ---- */

static void connect_link(void)
{
    int link = machine_choose_link(PORT_CONNECTING);
    if (link < 0)
        return;
    machine_connect(link);
}

static void cut_link(void)
{
    int link = machine_choose_link(input_byte(&m.in) % 2 == 0 ? PORT_OPEN : PORT_CONNECTING);
    if (link >= 0)
        machine_disconnect(link);
}

static void write_some(void)
{
    const char *bytes;
    int link = machine_choose_link(PORT_OPEN);
    size_t wanted = (size_t)input_byte(&m.in) * 16;
    if (link < 0)
        return;
    size_t count = hf__core_output(m.core, link, &bytes);
    hf__core_written(m.core, link, wanted < count ? wanted : count);
    machine_check();
}

/* The same for the link of messages. */
static void connect_push(void)
{
    int link = machine_push_link(PORT_CONNECTING);
    if (link < 0)
        return;
    machine_connect(link);
}

static void cut_push(void)
{
    int link = machine_push_link(input_byte(&m.in) % 2 == 0 ? PORT_OPEN : PORT_CONNECTING);
    if (link >= 0)
        machine_disconnect(link);
}

static void write_push(void)
{
    const char *bytes;
    int link = machine_push_link(PORT_OPEN);
    if (link < 0)
        return;
    size_t count = hf__core_output(m.core, link, &bytes);
    hf__core_written(m.core, link, count);
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

/* ---- All of it ---- */

static void (*const operations[])(void) = {
    start_acquire, start_extend,    start_release, let_go,       cancel_call, start_close,
    starve,        connect_link,    cut_link,      write_some,   pass_time,   sleep_till_wake,
    say_anything,  say_greeting,    say_integer,   say_busy,     say_error,   start_acquire,
    say_integer,   sleep_till_wake, connect_link,  say_greeting, dawdle,      start_extend,
};

static void (*const later_operations[])(void) = {
    choose_wish,  start_query, tell_slowly, return_from_callback, say_batch,
    say_to_query, let_go,      start_query, say_bare_integer,     sleep_till_wake,
};

/* What came with queues. */
static void (*const last_operations[])(void) = {
    choose_patience, connect_push,  say_push_greeting, say_queued,
    say_message,     start_acquire, say_granted,       cut_push,
    write_push,      say_pong,      say_push_anything, start_release,
    start_observer,  say_sight,     end_observer,      say_to_query,
};

enum {
    LATER = 192,
    LAST = 232,
    OPERATIONS = sizeof(operations) / sizeof(operations[0]),
    LATER_OPERATIONS = sizeof(later_operations) / sizeof(later_operations[0]),
    LAST_OPERATIONS = sizeof(last_operations) / sizeof(last_operations[0])
};

static void operate(uint8_t byte)
{
    if (byte < LATER)
        operations[byte % OPERATIONS]();
    else if (byte < LAST)
        later_operations[(byte - LATER) % LATER_OPERATIONS]();
    else
        last_operations[(byte - LAST) % LAST_OPERATIONS]();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    machine_begin(bytes, count);
    for (int i = 0; i < OPERATIONS_MAX && m.in.left > 0; i++)
        operate(input_byte(&m.in));
    machine_end();
    return 0;
}
