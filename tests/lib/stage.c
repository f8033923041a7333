/* SPDX-License-Identifier: MIT */
/* See stage.h. The stage plays the driver: it carries out the core's actions on wires that are two
 * byte queues each. `numbers` of calls are reused: a call slot may be used again when its call is
 * done; the hold of an acquire stays in the same slot until it is released. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

stage the_stage;

static void step(hf__event event)
{
    event.now = the_stage.now;
    hf__core_step(the_stage.core, &event);
}

void stage_begin(const stage_setup *setup)
{
    stage *s = &the_stage;
    hf_error error;
    const char *url = setup->url != NULL ? setup->url : "redis://node";
    memset(s, 0, sizeof(*s));
    assert_int_equal(hf__url_parse(url, &s->server, &error), HF_OK);
    hf__config config = {.server = &s->server, .seed = 42, .links = setup->links};
    if (config.links == 0)
        config.links = 1;
    config.connect_timeout =
        hf__span_ms(setup->connect_timeout_ms ? setup->connect_timeout_ms : 1000);
    config.reply_timeout = hf__span_ms(setup->reply_timeout_ms ? setup->reply_timeout_ms : 1000);
    config.call_timeout = hf__span_ms(setup->call_timeout_ms ? setup->call_timeout_ms : 3000);
    snprintf(config.client_id, sizeof(config.client_id), "%032d", 7);
    s->now = (hf__instant){1000000000};
    s->cut_after = STAGE_UNLIMITED;
    node_init(&s->node);
    s->core = hf__core_new(&config);
    assert_non_null(s->core);
}

static void free_wire(stage_wire *wire)
{
    hf__buffer_free(&wire->to_node);
    hf__buffer_free(&wire->to_client);
    wire->open = false;
}

/* When an acquire is granted its hold is in our hands. */
static void collect(void)
{
    for (int i = 0; i < STAGE_CALLS; i++) {
        hf__call *call = &the_stage.calls[i];
        if (call->kind == HF__CALL_ACQUIRE && call->done && call->error.status == HF_OK)
            the_stage.holds[i] = call->hold;
    }
}

void stage_end(void)
{
    stage *s = &the_stage;
    collect();
    hf__core_free(s->core);
    for (int i = 0; i < STAGE_CALLS; i++)
        if (s->holds[i] != NULL)
            hf__hold_abandon(s->holds[i]);
    for (int i = 0; i < HF_LINKS_MAX; i++)
        free_wire(&s->wires[i]);
    hf__buffer_free(&s->late);
    hf__url_free(&s->server);
}

/* ---- The network ---- */

static void disconnect(int link, const char *reason)
{
    free_wire(&the_stage.wires[link]);
    step((hf__event){.kind = HF__EVENT_DISCONNECTED, .link = link, .reason = reason});
}

void stage_cut(void)
{
    for (int i = 0; i < HF_LINKS_MAX; i++)
        if (the_stage.wires[i].open)
            disconnect(i, "cut");
    stage_run();
}

static void connect_wire(int link)
{
    the_stage.connects++;
    if (the_stage.swallows)
        return;
    if (the_stage.refuses) {
        step((hf__event){.kind = HF__EVENT_DISCONNECTED, .link = link, .reason = "refused"});
        return;
    }
    the_stage.wires[link].open = true;
    step((hf__event){.kind = HF__EVENT_CONNECTED, .link = link});
}

/* How many of `count` bytes may pass before the wires are cut. */
static size_t allowance(size_t count)
{
    if (the_stage.cut_after == STAGE_UNLIMITED)
        return count;
    size_t left = (size_t)the_stage.cut_after;
    size_t passed = count < left ? count : left;
    the_stage.cut_after -= (long)passed;
    return passed;
}

static bool carry_to_node(int link)
{
    stage_wire *wire = &the_stage.wires[link];
    const char *bytes;
    size_t count = hf__core_output(the_stage.core, link, &bytes);
    if (count == 0 || !wire->open)
        return false;
    size_t passed = allowance(count);
    the_stage.own_memory = true;
    hf__buffer *place = the_stage.delays ? &the_stage.late : &wire->to_node;
    if (!the_stage.deaf && passed > 0) {
        assert_true(hf__buffer_reserve(place, passed));
        hf__buffer_append(place, bytes, passed);
    }
    hf__core_written(the_stage.core, link, count);
    node_work(&the_stage.node, &wire->to_node, &wire->to_client);
    the_stage.own_memory = false;
    return true;
}

void stage_deliver_late(void)
{
    hf__buffer nobody = {0};
    node_work(&the_stage.node, &the_stage.late, &nobody);
    hf__buffer_free(&nobody);
}

static bool carry_to_client(int link)
{
    stage_wire *wire = &the_stage.wires[link];
    size_t count = hf__buffer_length(&wire->to_client);
    if (!wire->open || count == 0 || the_stage.mute)
        return false;
    size_t passed = allowance(the_stage.trickles ? 1 : count);
    if (passed == 0)
        return false;
    char *bytes = test_malloc(passed); /* of exactly this size, so that reading beyond is seen */
    memcpy(bytes, hf__buffer_front(&wire->to_client), passed);
    hf__buffer_take(&wire->to_client, passed);
    step((hf__event){.kind = HF__EVENT_BYTES, .link = link, .bytes = bytes, .count = passed});
    test_free(bytes);
    return true;
}

static void carry_out(const hf__action *action)
{
    switch (action->kind) {
    case HF__ACTION_CLOSE:
        free_wire(&the_stage.wires[action->link]);
        break;
    case HF__ACTION_CONNECT:
        connect_wire(action->link);
        break;
    case HF__ACTION_DONE:
        break;
    case HF__ACTION_LOG:
        snprintf(the_stage.last_log, sizeof(the_stage.last_log), "%s", action->text);
        break;
    }
}

void stage_run(void)
{
    hf__action action;
    bool moved = true;
    while (moved) {
        moved = false;
        while (hf__core_next(the_stage.core, &action)) {
            carry_out(&action);
            moved = true;
        }
        for (int i = 0; i < HF_LINKS_MAX; i++) {
            moved = the_stage.wires[i].open && carry_to_node(i) ? true : moved;
            moved = the_stage.wires[i].open && carry_to_client(i) ? true : moved;
            if (the_stage.cut_after == 0 && the_stage.wires[i].open) {
                the_stage.cut_after = STAGE_UNLIMITED;
                disconnect(i, "cut");
                moved = true;
            }
        }
    }
}

void stage_advance_ms(int64_t ms)
{
    stage *s = &the_stage;
    hf__instant end = hf__after(s->now, hf__span_ms(ms));
    for (;;) {
        hf__instant wake = hf__core_wake(s->core);
        hf__instant next = hf__before(wake, end) ? hf__later(wake, s->now) : end;
        s->node.now_ms += hf__span_to_ms(hf__between((hf__instant){s->now.ns / 1000000 * 1000000},
                                                     (hf__instant){next.ns / 1000000 * 1000000}));
        s->now = next;
        step((hf__event){.kind = HF__EVENT_TICK});
        stage_run();
        if (!hf__before(s->now, end))
            return;
    }
}

/* ---- The application ---- */

static hf__call *fresh_call(int number, hf__call_kind kind)
{
    hf__call *call = &the_stage.calls[number];
    collect();
    *call = (hf__call){.kind = kind};
    return call;
}

bool stage_start_acquire(int number, const stage_acquire *options)
{
    hf__call *call = fresh_call(number, HF__CALL_ACQUIRE);
    hf__identity who = {.client_id = "client", .host = "host", .pid = 1, .thread = 1};
    who.number = ++the_stage.numbers;
    int64_t lease_ms = options->lease_ms != 0 ? options->lease_ms : 10000;
    int64_t interval_ms = options->retry_interval_ms != 0 ? options->retry_interval_ms : 100;
    size_t length = options->name_length != 0 ? options->name_length : strlen(options->name);
    call->hold = hf__hold_new(&who, "", 0, options->name, length, hf__span_ms(lease_ms));
    if (call->hold == NULL)
        return false;
    call->wait_ms = options->wait_ms;
    call->max_retries = options->max_retries;
    call->retry_interval = hf__span_ms(interval_ms);
    step((hf__event){.kind = HF__EVENT_START, .call = call});
    stage_run();
    return true;
}

static hf_hold *take_hold(int number)
{
    collect();
    hf_hold *hold = the_stage.holds[number];
    assert_non_null(hold);
    return hold;
}

void stage_start(int number, hf__call_kind kind, int64_t lease_ms)
{
    hf_hold *hold = kind != HF__CALL_CLOSE ? take_hold(number) : NULL;
    hf__call *call = fresh_call(number, kind);
    call->hold = hold;
    call->lease = hf__span_ms(lease_ms);
    if (kind == HF__CALL_RELEASE)
        the_stage.holds[number] = NULL;
    step((hf__event){.kind = HF__EVENT_START, .call = call});
    stage_run();
}

hf_status stage_let_go(int number)
{
    hf__event event = {.kind = HF__EVENT_LET_GO, .hold = take_hold(number), .now = the_stage.now};
    fresh_call(number, HF__CALL_EXTEND); /* any kind that leaves no hold behind */
    the_stage.holds[number] = NULL;
    hf__core_step(the_stage.core, &event);
    stage_run();
    return event.status;
}

void stage_cancel(int number)
{
    step((hf__event){.kind = HF__EVENT_CANCEL, .call = &the_stage.calls[number]});
    stage_run();
}

int64_t stage_remaining_ms(int number)
{
    collect();
    return hf__span_to_ms(hf__hold_remaining(the_stage.holds[number], the_stage.now));
}
