/* SPDX-License-Identifier: MIT */
/* See stage.h. The stage plays the driver: it carries out the core's actions on wires that are two
 * byte queues each. `numbers` of calls are reused: a call slot may be used again when its call is
 * done; the hold of an acquire stays in the same slot until it is released. */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h" /* to have no subscription */
#include "gate.h"

stage the_stage;
stage_told stage_told_log[STAGE_TOLD];

static void step(hf__event event)
{
    event.now = the_stage.now;
    hf__core_step(the_stage.core, &event);
}

/* Each process has its own run_id, and the nodes of a quorum have names of their own. */
static void add_node(int index, const stage_setup *setup)
{
    stage *s = &the_stage;
    hf_error error;
    char named[32];
    const char *url = setup->url != NULL ? setup->url : "redis://node";
    if (s->server_count > 1) {
        snprintf(named, sizeof(named), "redis://node-%d", index);
        url = named;
    }
    assert_int_equal(hf__url_parse(url, &s->servers[index], &error), HF_OK);
    node_init(&s->nodes[index]);
    snprintf(s->nodes[index].run_id, sizeof(s->nodes[index].run_id), "%040d", 1 + 1000 * index);
    s->nodes[index].side_prefix = setup->side_prefix;
}

void stage_begin(const stage_setup *setup)
{
    stage *s = &the_stage;
    memset(s, 0, sizeof(*s));
    s->server_count = setup->servers > 0 ? setup->servers : 1;
    hf__config config = {
        .servers = s->servers, .server_count = s->server_count, .seed = 42, .links = setup->links};
    for (int i = 0; i < s->server_count; i++)
        add_node(i, setup);
    config.local_turns = setup->local_turns;
    if (config.links == 0)
        config.links = 1;
    config.connect_timeout =
        hf__span_ms(setup->connect_timeout_ms ? setup->connect_timeout_ms : 1000);
    config.reply_timeout = hf__span_ms(setup->reply_timeout_ms ? setup->reply_timeout_ms : 1000);
    config.call_timeout = hf__span_ms(setup->call_timeout_ms ? setup->call_timeout_ms : 3000);
    config.fence_keep = hf__span_ms(3600000);
    config.max_lease = hf__span_ms(setup->max_lease_ms ? setup->max_lease_ms : 60000);
    config.durable_servers = setup->durable;
    config.drift_ppm = setup->drift_ppm ? setup->drift_ppm : 10000;
    config.drift = hf__span_ms(setup->drift_ms ? setup->drift_ms : 2);
    config.side_prefix = hf__slice_text(setup->side_prefix != NULL ? setup->side_prefix : "");
    for (int i = 0; i < HF__CHECK_KINDS; i++)
        config.checks[i] = setup->checks;
    if (setup->checks == HF_CHECK_DEFAULT)
        config.checks[HF__CHECK_REPLICA] = HF_CHECK_REFUSE;
    snprintf(config.client_id, sizeof(config.client_id), STAGE_CLIENT);
    s->now = (hf__instant){1000000000};
    s->cut_after = STAGE_UNLIMITED;
    s->core = hf__core_new(&config);
    assert_non_null(s->core);
    s->link_count = hf__core_links(s->core);
    assert_true(s->link_count <= STAGE_WIRES);
    s->polls = !setup->messages;
    for (int i = 0; i < s->server_count; i++) {
        s->core->servers[i].push_denied = !setup->messages;
        s->core->servers[i].push_again = HF__NEVER;
    }
}

/* Also when the core is gone. */
static int node_of(int link)
{
    return link / (the_stage.link_count / the_stage.server_count);
}

static void free_wire(int link)
{
    stage_wire *wire = &the_stage.wires[link];
    node_forget(&the_stage.nodes[node_of(link)], &wire->to_client);
    hf__buffer_free(&wire->to_node);
    hf__buffer_free(&wire->to_client);
    wire->open = false;
}

/* When an acquire is granted its hold is in our hands. */
static void collect(void)
{
    for (int i = 0; i < STAGE_CALLS; i++) {
        hf__call *call = &the_stage.calls[i];
        bool gives = call->kind == HF__CALL_ACQUIRE || call->kind == HF__CALL_ATTACH;
        if (gives && call->done && call->error.status == HF_OK)
            the_stage.holds[i] = call->hold;
    }
}

static void free_answer(hf__answer *answer)
{
    free(answer->inspection);
    hf__buffer_free(&answer->keys);
    hf__buffer_free(&answer->value);
    *answer = (hf__answer){0};
}

void stage_end(void)
{
    stage *s = &the_stage;
    collect();
    for (int i = 0; i < s->link_count; i++)
        free_wire(i);
    hf__core_free(s->core);
    for (int i = 0; i < STAGE_CALLS; i++) {
        if (s->holds[i] != NULL)
            hf__hold_abandon(s->holds[i]);
        free_answer(&s->answers[i]);
    }
    hf__buffer_free(&s->late);
    for (int i = 0; i < s->server_count; i++) {
        node_free(&s->nodes[i]);
        hf__url_free(&s->servers[i]);
    }
}

/* ---- The network ---- */

static void disconnect(int link, const char *reason)
{
    free_wire(link);
    step((hf__event){.kind = HF__EVENT_DISCONNECTED, .link = link, .reason = reason});
}

void stage_cut(void)
{
    for (int i = 0; i < the_stage.link_count; i++)
        if (the_stage.wires[i].open)
            disconnect(i, "cut");
    stage_run();
}

void stage_cut_link(int link)
{
    if (the_stage.wires[link].open)
        disconnect(link, "cut");
    stage_run();
}

void stage_kill(int node)
{
    the_stage.down |= 1U << node;
    for (int i = 0; i < the_stage.link_count; i++)
        if (the_stage.wires[i].open && node_of(i) == node)
            disconnect(i, "cut");
    stage_run();
}

void stage_revive(int node)
{
    the_stage.down &= ~(1U << node);
    the_stage.frozen &= ~(1U << node);
    stage_run();
}

void stage_stall(int node)
{
    the_stage.frozen |= 1U << node;
}

static bool is_still(int link)
{
    int node = node_of(link);
    return (the_stage.frozen >> node & 1) != 0 ||
           (link < 32 && (the_stage.stalled >> link & 1) != 0);
}

static bool is_muted(int link)
{
    return the_stage.mute || (link < 32 && (the_stage.muted >> link & 1) != 0);
}

void stage_say(int link, const char *bytes, size_t count)
{
    hf__buffer *place = &the_stage.wires[link].to_client;
    the_stage.own_memory = true;
    assert_true(hf__buffer_reserve(place, count));
    hf__buffer_append(place, bytes, count);
    the_stage.own_memory = false;
    stage_run();
}

void stage_publish_at(int node, const char *text, size_t length)
{
    the_stage.own_memory = true;
    node_publish(&the_stage.nodes[node], STAGE_CHANNEL, text, length);
    the_stage.own_memory = false;
    stage_run();
}

void stage_publish(const char *text, size_t length)
{
    stage_publish_at(0, text, length);
}

static void connect_wire(int link)
{
    the_stage.connects++;
    if (the_stage.swallows)
        return;
    int node = node_of(link);
    if (the_stage.refuses || (the_stage.down >> node & 1) != 0) {
        step((hf__event){.kind = HF__EVENT_DISCONNECTED, .link = link, .reason = "refused"});
        return;
    }
    the_stage.wires[link].open = true;
    hf_credentials credentials = {.user = ""};
    const hf__url *server = &the_stage.servers[node];
    snprintf(credentials.user, sizeof(credentials.user), "%s", server->user ? server->user : "");
    snprintf(credentials.password, sizeof(credentials.password), "%s",
             server->password ? server->password : "");
    step((hf__event){.kind = HF__EVENT_CONNECTED,
                     .link = link,
                     .wall = {STAGE_WALL_S * 1000000},
                     .credentials = server->password != NULL ? &credentials : NULL});
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
    the_stage.writes++;
    the_stage.own_memory = true;
    hf__buffer *place = the_stage.delays ? &the_stage.late : &wire->to_node;
    if (!the_stage.deaf && passed > 0) {
        assert_true(hf__buffer_reserve(place, passed));
        hf__buffer_append(place, bytes, passed);
    }
    hf__core_written(the_stage.core, link, count);
    node_work(&the_stage.nodes[node_of(link)], &wire->to_node, &wire->to_client);
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
    if (!wire->open || count == 0 || is_muted(link))
        return false;
    size_t passed = allowance(the_stage.trickles ? 1 : count);
    if (passed == 0)
        return false;
    char *bytes = test_malloc(passed); /* of exactly this size, so that reading beyond is seen */
    memcpy(bytes, hf__buffer_front(&wire->to_client), passed);
    hf__buffer_take(&wire->to_client, passed);
    step((hf__event){.kind = HF__EVENT_BYTES, .link = link, .bytes = bytes, .count = passed});
    step((hf__event){.kind = HF__EVENT_TICK}); /* as drivers do when they have read */
    test_free(bytes);
    return true;
}

static void carry_out(const hf__action *action)
{
    switch (action->kind) {
    case HF__ACTION_CLOSE:
        free_wire(action->link);
        break;
    case HF__ACTION_CONNECT:
        connect_wire(action->link);
        break;
    case HF__ACTION_DONE:
        break;
    case HF__ACTION_LOG:
        the_stage.logged++;
        snprintf(the_stage.last_log, sizeof(the_stage.last_log), "%s", action->text);
        if (action->level >= HF_LOG_WARNING) {
            the_stage.warnings++;
            snprintf(the_stage.last_warning, sizeof(the_stage.last_warning), "%s", action->text);
        }
        break;
    }
}

/* What every on_event does: writes down what it is told. Its hold must be one that we have. */
static void hear(void *arg, const hf_event *event)
{
    int call = (int)((hf_hold **)arg - the_stage.holds);
    assert_true(the_stage.told_count < STAGE_TOLD);
    assert_ptr_equal(event->hold, stage_hold(call));
    assert_non_null(event->text);
    assert_int_equal(event->state, hf__hold_state(stage_hold(call), the_stage.now));
    assert_int_equal(event->remaining_ms, stage_remaining_ms(call));
    stage_told *told = &stage_told_log[the_stage.told_count++];
    *told = (stage_told){.call = call, .state = event->state, .reason = event->reason};
    told->remaining_ms = event->remaining_ms;
    snprintf(told->text, sizeof(told->text), "%s", event->text);
}

static bool tell(void)
{
    hf__tell news;
    if (the_stage.listens_by_hand || !hf__core_next_tell(the_stage.core, &news))
        return false;
    assert_ptr_equal(news.hold, news.event.hold);
    assert_true(hf__core_is_telling(the_stage.core, news.hold));
    if (news.function != NULL)
        news.function(news.arg, &news.event);
    hf__core_told(the_stage.core);
    return true;
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
        moved = tell() ? true : moved;
        for (int i = 0; i < the_stage.link_count; i++) {
            if (is_still(i))
                continue;
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

static void set_clocks(hf__instant now)
{
    hf__instant from = {the_stage.now.ns / 1000000 * 1000000};
    hf__instant to = {now.ns / 1000000 * 1000000};
    for (int i = 0; i < the_stage.server_count; i++)
        the_stage.nodes[i].now_ms += hf__span_to_ms(hf__between(from, to));
    the_stage.now = now;
}

void stage_pause_ms(int64_t ms)
{
    set_clocks(hf__after(the_stage.now, hf__span_ms(ms)));
}

void stage_advance_ms(int64_t ms)
{
    stage *s = &the_stage;
    hf__instant end = hf__after(s->now, hf__span_ms(ms));
    for (;;) {
        hf__instant wake = hf__core_wake(s->core);
        set_clocks(hf__before(wake, end) ? hf__later(wake, s->now) : end);
        step((hf__event){.kind = HF__EVENT_TICK});
        stage_run();
        if (!hf__before(s->now, end))
            return;
    }
}

void stage_settle(int call)
{
    for (int i = 0; i < 300 && !the_stage.calls[call].done; i++)
        stage_advance_ms(100);
    assert_true(the_stage.calls[call].done);
}

/* ---- The application ---- */

static hf__call *fresh_call(int number, hf__call_kind kind)
{
    hf__call *call = &the_stage.calls[number];
    collect();
    *call = (hf__call){.kind = kind};
    return call;
}

static hf__slice slice_of(const char *text)
{
    return text != NULL ? hf__slice_text(text) : (hf__slice){"", 0};
}

static hf__span span_or(int64_t ms, int64_t otherwise_ms)
{
    return hf__span_ms(ms != 0 ? ms : otherwise_ms);
}

static hf__wish make_wish(int number, const stage_acquire *options)
{
    the_stage.numbers += the_stage.server_count > 1 ? HF__NUMBER_STEP : 1; /* as the api does */
    hf__wish wish = {
        .who = {.client_id = STAGE_CLIENT, .host = "host", .pid = 1, .number = the_stage.numbers},
        .name = slice_of(options->name),
        .owner = slice_of(options->owner),
        .label = slice_of(options->label),
        .reenters = options->reenters,
        .lease = span_or(options->lease_ms, 10000),
        .renew_interval = hf__span_ms(options->renew_interval_ms),
        .renew_timeout = span_or(options->renew_timeout_ms, 500),
        .max_hold = hf__span_ms(options->max_hold_ms),
        .warn = hf__span_ms(options->warn_ms),
        .on_event = options->deaf ? NULL : hear,
        .arg = &the_stage.holds[number],
        .listens_later = options->listens_later,
        .replicas = options->replicas};
    wish.prefix = slice_of("");
    wish.who.thread = options->thread != 0 ? options->thread : 1;
    if (options->name_length != 0)
        wish.name.length = options->name_length;
    return wish;
}

bool stage_start_acquire(int number, const stage_acquire *options)
{
    hf__call *call = fresh_call(number, HF__CALL_ACQUIRE);
    int64_t interval_ms = options->retry_interval_ms != 0 ? options->retry_interval_ms : 100;
    hf__wish wish = make_wish(number, options);
    call->hold = hf__hold_new(&wish);
    if (call->hold == NULL)
        return false;
    call->wait_ms = options->wait_ms;
    call->max_retries = options->max_retries;
    call->polls = the_stage.polls || options->max_retries > 0 || options->retry_interval_ms != 0;
    call->fair = options->fair;
    call->retry_interval = hf__span_ms(interval_ms);
    step((hf__event){.kind = HF__EVENT_START, .call = call});
    stage_run();
    return true;
}

hf_hold *stage_hold(int number)
{
    collect();
    hf_hold *hold = the_stage.holds[number];
    assert_non_null(hold);
    return hold;
}

void stage_start(int number, hf__call_kind kind, int64_t lease_ms)
{
    hf_hold *hold = kind != HF__CALL_CLOSE ? stage_hold(number) : NULL;
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
    hf__event event = {.kind = HF__EVENT_LET_GO, .hold = stage_hold(number), .now = the_stage.now};
    fresh_call(number, HF__CALL_EXTEND); /* any kind that leaves no hold behind */
    the_stage.holds[number] = NULL;
    hf__core_step(the_stage.core, &event);
    stage_run();
    return event.status;
}

static void write_down(const hf_hold *hold, stage_token *token)
{
    hf__slice value = hf__hold_value_text(hold), owner = hf__hold_owner_text(hold);
    *token = (stage_token){.fence = hf__hold_fence(hold),
                           .fence_top = hf__hold_fence_top(hold),
                           .lease_ms = hf__span_to_ms(hf__hold_lease(hold))};
    snprintf(token->value, sizeof(token->value), "%.*s", (int)value.length, value.bytes);
    snprintf(token->owner, sizeof(token->owner), "%.*s", (int)owner.length, owner.bytes);
}

hf_status stage_detach(int number, stage_token *token)
{
    hf_hold *hold = stage_hold(number);
    hf__event event = {.kind = HF__EVENT_DETACH, .hold = hold, .now = the_stage.now};
    write_down(hold, token);
    hf__core_step(the_stage.core, &event);
    token->late = event.late;
    if (event.status != HF_EINVAL) {
        fresh_call(number, HF__CALL_EXTEND); /* any kind that leaves no hold behind */
        the_stage.holds[number] = NULL;
    }
    stage_run();
    return event.status;
}

bool stage_start_attach(int number, const stage_token *token, const stage_acquire *options)
{
    hf__call *call = fresh_call(number, HF__CALL_ATTACH);
    hf__wish wish = make_wish(number, options);
    if (options->lease_ms == 0)
        wish.lease = hf__span_ms(token->lease_ms);
    wish.value = slice_of(token->value);
    wish.owner = slice_of(token->owner);
    wish.fence = token->fence;
    wish.fence_top = token->fence_top;
    wish.lease_before = hf__span_ms(token->lease_ms);
    wish.late = token->late;
    call->hold = hf__hold_new(&wish);
    if (call->hold == NULL)
        return false;
    call->lease = wish.lease;
    step((hf__event){.kind = HF__EVENT_START, .call = call});
    stage_run();
    return true;
}

void stage_cancel(int number)
{
    step((hf__event){.kind = HF__EVENT_CANCEL, .call = &the_stage.calls[number]});
    stage_run();
}

bool stage_start_query(int number, hf__query_kind kind, const char *name, const char *text,
                       uint64_t argument)
{
    hf__call *call = fresh_call(number, HF__CALL_QUERY);
    hf__answer *answer = &the_stage.answers[number];
    free_answer(answer);
    answer->inspection = kind == HF__QUERY_INSPECT ? calloc(1, sizeof(hf_inspection)) : NULL;
    answer->examination = kind == HF__QUERY_INFO ? &the_stage.examination : NULL;
    call->answer = answer;
    call->query = hf__query_new(kind, slice_of(""), slice_of(name), slice_of(text), argument);
    if (call->query == NULL)
        return false;
    step((hf__event){.kind = HF__EVENT_START, .call = call});
    stage_run();
    return true;
}

bool stage_start_errand(int number, const hf__errand *errand, int release)
{
    hf__call *call = fresh_call(number, HF__CALL_QUERY);
    free_answer(&the_stage.answers[number]);
    memset(the_stage.by_server, 0, sizeof(the_stage.by_server));
    call->answer = &the_stage.answers[number];
    call->answer->by_server = the_stage.by_server;
    call->query = hf__query_new_errand(errand);
    if (call->query == NULL)
        return false;
    hf__call *started = call;
    if (release != 0) {
        hf_hold *hold = stage_hold(release);
        started = fresh_call(release, HF__CALL_RELEASE);
        started->hold = hold;
        started->ahead = call;
        the_stage.holds[release] = NULL;
    }
    step((hf__event){.kind = HF__EVENT_START, .call = started});
    stage_run();
    return true;
}

/* ---- What is known ---- */

int64_t stage_remaining_ms(int number)
{
    return hf__span_to_ms(hf__hold_remaining(stage_hold(number), the_stage.now));
}

uint64_t stage_fence_at(int node, const char *name)
{
    const node_key *key = node_side(&the_stage.nodes[node], 'f', name);
    return key != NULL ? strtoull(key->value.bytes, NULL, 10) : 0;
}

uint64_t stage_fence_of(const char *name)
{
    return stage_fence_at(0, name);
}

const stage_told *stage_next_told(int number)
{
    for (int i = 0; i < the_stage.told_count; i++)
        if (stage_told_log[i].call == number && !stage_told_log[i].read)
            return &stage_told_log[i];
    return NULL;
}

static bool stage_works(void)
{
    return the_stage.own_memory;
}

void stage_install_gate(void)
{
    gate_exempt = stage_works;
    gate_install();
}
