/* SPDX-License-Identifier: MIT */
/* The node double against the scripts themselves: the same random script calls go to the double and
 * to the simulator's model of a server, which runs the files of src/lua (and is itself compared
 * with a real server). Replies must be the same byte for byte, and so must be what subscribers
 * hear. With every other seed the calls are those of a quorum. A double that differs from what it
 * stands for would make the other unit tests prove nothing. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "core/name.h"
#include "lua/scripts.h"
#include "twins.h"

enum { SEEDS = 40, STEPS = 400, OWNED = 3 };

static uint64_t chance;
static bool of_quorum;

static uint64_t below(uint64_t limit)
{
    return hf__random_below(&chance, limit);
}

/* ---- Calls ---- */

static const char *const names[] = {"x", "{x}y"};
static int64_t copies;

static const char *choose_name(void)
{
    return names[below(2)];
}

/* A hold always has the same owner: one in four has one. Returns whether it does. */
static bool put_value(words *w, int number)
{
    char value[TEXT];
    snprintf(value, sizeof(value), "%032d:%d@host:1/1", (int)below(EARS), number);
    put(w, value);
    return number == OWNED;
}

static void put_script(words *w, int script, const char *name, const char *letters)
{
    size_t length = strlen(name);
    put(w, "EVAL");
    put(w, hf__scripts[script].name); /* for people: the body comes in its place */
    w->all[1] = (hf__slice){hf__scripts[script].body, hf__scripts[script].length};
    put_number(w, 1 + (int64_t)strlen(letters));
    put(w, name);
    for (size_t i = 0; letters[i] != '\0'; i++) {
        char *place = w->texts[w->count];
        unsigned slot = hf__slot(name, length);
        size_t made = letters[i] == 'm' ? hf__slot_key(place, HF__SLICE(""), hf__slot_tags[slot])
                                        : hf__side_key(place, HF__SLICE(""), letters[i],
                                                       (hf__slice){name, length}, slot);
        w->all[w->count++] = (hf__slice){place, made};
        place[made] = '\0';
    }
}

static int64_t choose_lease(void)
{
    static const int64_t leases[] = {100, 1000, 3000};
    return leases[below(3)];
}

/* Around the clock, and at times so far ahead that it is kept longer. */
static int64_t choose_proposal(void)
{
    int64_t clock = node.now_ms * 1000;
    return below(8) == 0 ? clock + 3000000 : clock - 500000 + (int64_t)below(1000000);
}

/* Few, so that some are the same; and some that are later than any fence. */
static int64_t choose_ticket(void)
{
    return (below(3) == 0 ? 2 * node.now_ms * 1000 : 1) + (int64_t)below(5);
}

/* A copy of a hold has no fence of its own. */
static void acquire_vote(words *w)
{
    put_script(w, HF__SCRIPT_ACQUIRE, choose_name(), "qfwh");
    bool owned = put_value(w, (int)below(4)), queues = below(3) > 0;
    put_number(w, choose_lease());
    put_number(w, 5000);
    put_number(w, below(2) == 0 ? 1 : below(2) == 0 && !owned ? 65 : 0);
    put_number(w, queues ? ++copies : 0);
    put(w, "");
    put(w, owned ? "me" : "");
    put_number(w, choose_proposal());
    put_number(w, queues ? choose_ticket() : 0);
}

static void acquire(words *w)
{
    if (of_quorum) {
        acquire_vote(w);
        return;
    }

    put_script(w, HF__SCRIPT_ACQUIRE, choose_name(), "qfwhm");
    bool owned = put_value(w, (int)below(4)), shortest = !owned && below(4) == 0;
    put_number(w, choose_lease());
    if (shortest && below(2) == 0)
        return;
    put_number(w, 5000);
    if (shortest)
        return;
    put_number(w, below(3) == 0 && !owned ? 65 : 1);
    put_number(w, below(3) == 0 ? 0 : ++copies);
    if (!owned && below(4) == 0)
        return;
    put(w, "");
    if (below(2) == 0) {
        w->count--;
        put_number(w, 4000);
    }
    if (owned || below(4) > 0)
        put(w, owned ? "me" : "");
}

static int64_t fence_of(const char *name)
{
    const node_key *kept = node_side(&node, 'f', name);
    return kept != NULL ? strtoll(kept->value.bytes, NULL, 10) : 0;
}

static void release(words *w)
{
    const char *name = choose_name();
    put_script(w, HF__SCRIPT_RELEASE, name, of_quorum ? "qfwh" : "qfwhm");
    bool owned = put_value(w, (int)below(4)), shortest = !owned && !of_quorum && below(3) == 0;
    if (shortest)
        return;
    put_number(w, below(4) == 0 ? 1000 : 0);
    put_number(w, 5000);
    if (owned || of_quorum || below(2) == 0)
        put(w, owned ? "me" : "");
    else
        return;
    if (of_quorum) {
        put_number(w, choose_proposal());
    } else if (below(2) == 0) {
        put(w, "");
        put_number(w, below(4) == 0 ? 0 : fence_of(name));
        put_number(w, below(2) == 0 ? 0 : 64);
    }
}

static void renew(words *w)
{
    bool owned = below(3) == 0;
    const char *name = choose_name();
    put_script(w, HF__SCRIPT_RENEW, name, owned ? "fwh" : "fw");
    put_value(w, owned ? OWNED : (int)below(OWNED));
    put_number(w, choose_lease());
    put_number(w, 5000);
    put(w, owned ? "me" : "");
    int64_t known = fence_of(name) + (int64_t)below(3000000);
    put_number(w, below(3) > 0 ? 0 : below(2) == 0 ? 1 : known); /* every fence is larger than 1 */
}

static void refresh(words *w)
{
    put_script(w, HF__SCRIPT_REFRESH, choose_name(), "w");
    put_value(w, (int)below(OWNED));
    put_number(w, choose_lease());
}

static void revoke(words *w)
{
    const char *name = choose_name();
    put_script(w, HF__SCRIPT_REVOKE, name, "fwh");
    put(w, "please");
    put_number(w, fence_of(name));
    put_number(w, 5000);
}

static void break_it(words *w)
{
    const char *name = choose_name();
    const char *held = node_get(&node, name);
    put_script(w, HF__SCRIPT_BREAK, name, of_quorum ? "qfwh" : "qfwhm");
    put(w, held != NULL && below(4) > 0 ? held : "nobody");
    put_number(w, fence_of(name));
    put_number(w, 5000);
    if (of_quorum)
        put_number(w, choose_proposal());
}

static void inspect(words *w)
{
    put_script(w, HF__SCRIPT_INSPECT, choose_name(), "fhqw");
    put_number(w, 2);
    put_number(w, 3);
}

static void observe(words *w)
{
    put_script(w, HF__SCRIPT_OBSERVE, choose_name(), "fw");
    put_number(w, 2000);
}

/* Asks, raises the floor, or says that it has a vote. */
static void join(words *w)
{
    put(w, "EVAL");
    put(w, hf__scripts[HF__SCRIPT_JOIN].name);
    w->all[1] = (hf__slice){hf__scripts[HF__SCRIPT_JOIN].body, hf__scripts[HF__SCRIPT_JOIN].length};
    put(w, "2");
    put(w, "hf:run");
    put(w, "hf:floor");
    put(w, node.run_id);
    put_number(w, below(2) == 0 ? 0 : choose_proposal());
    put(w, "");
    if (below(2) == 0) {
        w->count--;
        put_number(w, choose_proposal());
    }
}

static void ask_standing(words *w)
{
    put(w, "MGET");
    put(w, "hf:run");
}

/* ---- Everything else ---- */

static void subscribe(int ear, const char *channel)
{
    words w = {.count = 0};
    put(&w, "SUBSCRIBE");
    put(&w, channel);
    run(ear, &ear_in[ear], &ear_out[ear], &w);
    expect_same_heard(ear, &w);
}

static void hang_up(int ear)
{
    sim_server_disconnect(model, ear);
    sim_server_connect(model, ear);
    node_forget(&node, &ear_out[ear]);
    hf__buffer_clear(&ear_out[ear]);
}

static void listen_all(void)
{
    for (int i = 0; i < EARS; i++) {
        char channel[TEXT];
        hang_up(i);
        snprintf(channel, sizeof(channel), "hf:c:%032d", i);
        subscribe(i, channel);
        size_t length = (size_t)snprintf(channel, sizeof(channel), "hf:e:");
        length +=
            hf__side_key(channel + length, HF__SLICE(""), 'f', HF__SLICE("x"), hf__slot("x", 1));
        channel[length] = '\0';
        subscribe(i, channel);
    }
}

static void act_as_somebody(const char *name)
{
    if (below(2) == 0) {
        sim_server_run(model, 2, (const char *[]){"DEL", name});
        node_delete(&node, name);
    } else if (node_get(&node, name) == NULL) {
        sim_server_run(model, 5, (const char *[]){"SET", name, "somebody", "PX", "700"});
        node_set(&node, name, "somebody", 700);
    }
}

/* With the same data: what it has in hf:run names the old one. */
static void change_process(void)
{
    snprintf(node.run_id, sizeof(node.run_id), "%040d", 1 + calls_made);
    node.votes = false;
}

static void step(void)
{
    static void (*const calls[])(words *) = {acquire, acquire, acquire, acquire, acquire, release,
                                             release, release, renew,   refresh, revoke,  break_it,
                                             inspect, inspect, observe, release};
    words w = {.count = 0};
    node.now_ms += below(3) == 0 ? (int64_t)below(400) : 0;
    sim_server_set_time(model, node.now_ms * 1000);
    if (below(40) == 0)
        hang_up((int)below(EARS));
    if (below(40) == 0)
        listen_all();
    if (below(30) == 0)
        act_as_somebody(choose_name());
    if (of_quorum && below(100) == 0)
        change_process();
    if (of_quorum && below(10) == 0)
        (node.votes && below(2) == 0 ? ask_standing : join)(&w);
    else
        calls[below(sizeof(calls) / sizeof(calls[0]))](&w);
    run_both(&w);
}

static void free_all(void)
{
    sim_server_free(model);
    node_free(&node);
    hf__buffer_free(&asked);
    hf__buffer_free(&answered);
    for (int i = 0; i < EARS; i++) {
        hf__buffer_free(&ear_in[i]);
        hf__buffer_free(&ear_out[i]);
    }
}

static void begin(uint64_t seed)
{
    chance = seed;
    of_quorum = seed % 2 == 0;
    calls_made = 0;
    node_init(&node);
    node.now_ms = INT64_C(1700000000000);
    node.votes = false;
    model = sim_server_new();
    assert_non_null(model);
    sim_server_set_time(model, node.now_ms * 1000);
    for (int i = 0; i <= EARS; i++)
        sim_server_connect(model, i);
    listen_all();
}

static void the_double_does_what_the_scripts_do(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        for (int i = 0; i < STEPS; i++)
            step();
        free_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_double_does_what_the_scripts_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
