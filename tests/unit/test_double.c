/* SPDX-License-Identifier: MIT */
/* The node double against the scripts themselves: the same random script calls go to the double and
 * to the simulator's model of a server, which runs the files of src/lua (and is itself compared
 * with a real server). Replies must be the same byte for byte, and so must be what subscribers
 * hear. A double that differs from what it stands for would make the other unit tests prove
 * nothing. */
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
#include "node.h"
#include "resp/encode.h"
#include "server.h"

enum { SEEDS = 40, STEPS = 400, EARS = 2, COMMANDS = EARS, OWNED = 3 };
enum { WORDS = 16, TEXT = 160, HEARD_MAX = 64 };

static struct node node;
static sim_server *model;
static hf__buffer asked, answered, ear_in[EARS], ear_out[EARS];
static uint64_t chance;
static int calls_made; /* with the seed, tells where it went wrong */

typedef struct words {
    hf__slice all[WORDS];
    size_t count;
    char texts[WORDS][TEXT];
} words;

static uint64_t below(uint64_t limit)
{
    return hf__random_below(&chance, limit);
}

static void put(words *w, const char *text)
{
    snprintf(w->texts[w->count], TEXT, "%s", text);
    w->all[w->count] = hf__slice_text(w->texts[w->count]);
    w->count++;
}

static void put_number(words *w, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, number);
    put(w, text);
}

/* ---- Both servers ---- */

static void run(int connection, hf__buffer *in, hf__buffer *out, const words *w)
{
    hf__buffer bytes = {0};
    assert_true(hf__resp_encode(&bytes, w->all, w->count));
    const char *front = hf__buffer_front(&bytes);
    size_t length = hf__buffer_length(&bytes);
    sim_server_set_time(model, node.now_ms * 1000);
    sim_server_receive(model, connection, front, length);
    assert_true(hf__buffer_reserve(in, length));
    hf__buffer_append(in, front, length);
    node_work(&node, in, out);
    hf__buffer_free(&bytes);
}

static void fail_different(const words *w, hf__slice theirs, hf__slice ours)
{
    for (size_t i = 0; i < w->count; i++)
        print_error("%s ", w->texts[i]);
    fail_msg("\nscripts: %.*s\ndouble: %.*s", (int)theirs.length, theirs.bytes, (int)ours.length,
             ours.bytes);
}

static void expect_same_reply(const words *w)
{
    const char *bytes, *ours = hf__buffer_front(&answered);
    size_t length = sim_server_output(model, COMMANDS, &bytes);
    size_t our_length = hf__buffer_length(&answered);
    if (length != our_length || memcmp(bytes, ours, length) != 0)
        fail_different(w, (hf__slice){bytes, length}, (hf__slice){ours, our_length});
    sim_server_taken(model, COMMANDS, length);
    hf__buffer_clear(&answered);
}

static int compare_slices(const void *a, const void *b)
{
    const hf__slice *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->bytes, y->bytes, shorter);
    return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

/* Messages of one call may come in any order. */
static size_t sort_messages(const char *bytes, size_t length, hf__slice *messages)
{
    size_t count = 0;
    for (size_t at = 0; at < length; at++)
        if (length - at >= 4 && memcmp(bytes + at, "*3\r\n", 4) == 0 && count < HEARD_MAX)
            messages[count++] = (hf__slice){bytes + at, length - at};
    for (size_t i = 0; i + 1 < count; i++)
        messages[i].length = (size_t)(messages[i + 1].bytes - messages[i].bytes);
    qsort(messages, count, sizeof(messages[0]), compare_slices);
    return count;
}

static void expect_same_heard(int ear, const words *w)
{
    hf__slice theirs[HEARD_MAX], ours[HEARD_MAX];
    const char *bytes, *our_bytes = hf__buffer_front(&ear_out[ear]);
    size_t length = sim_server_output(model, ear, &bytes);
    size_t our_length = hf__buffer_length(&ear_out[ear]);
    size_t count = sort_messages(bytes, length, theirs);
    bool same = sort_messages(our_bytes, our_length, ours) == count;
    for (size_t i = 0; same && i < count; i++)
        same = compare_slices(&theirs[i], &ours[i]) == 0;
    if (!same)
        fail_different(w, (hf__slice){bytes, length}, (hf__slice){our_bytes, our_length});
    sim_server_taken(model, ear, length);
    hf__buffer_clear(&ear_out[ear]);
}

static void expect_member(void *arg, const char *member, double score)
{
    const node_member *ours = node_member_of(arg, member);
    if (ours == NULL || ours->score != (int64_t)score)
        fail_msg("call %d: %s: scripts %.0f, double %" PRId64, calls_made, member, score,
                 ours != NULL ? ours->score : 0);
}

/* Each key of the model must be there, with the same members and time. */
static void expect_key(void *arg, const char *key, size_t length, const char *type,
                       int64_t remaining_ms)
{
    node_key *ours = node_find(&node, key, length);
    size_t *count = arg;
    (*count)++;
    if (ours == NULL)
        fail_msg("call %d: the double has no %s %.*s, scripts %" PRId64 " ms", calls_made, type,
                 (int)length, key, remaining_ms);
    int64_t our_ms = ours->expires_ms < 0 ? -1 : ours->expires_ms - node.now_ms;
    if (strcmp(type, "zset") == 0)
        sim_server_members(model, key, length, expect_member, ours);
    if (our_ms != remaining_ms)
        fail_msg("%.*s: scripts %" PRId64 " ms, double %" PRId64 " ms", (int)length, key,
                 remaining_ms, our_ms);
}

static void expect_same_keys(const words *w)
{
    size_t theirs = 0, ours = 0;
    sim_server_keys(model, expect_key, &theirs);
    for (size_t i = 0; i < node.places; i++)
        if (node.keys[i] != NULL)
            ours += node_find(&node, node.keys[i]->name.bytes, node.keys[i]->name.length) != NULL;
    if (ours != theirs)
        fail_msg("after %s: scripts %zu keys, double %zu", w->texts[1], theirs, ours);
}

static void run_both(const words *w)
{
    calls_made++;
    run(COMMANDS, &asked, &answered, w);
    expect_same_reply(w);
    expect_same_keys(w);
    for (int i = 0; i < EARS; i++)
        expect_same_heard(i, w);
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
        size_t made = hf__side_key(place, HF__SLICE(""), letters[i], (hf__slice){name, length},
                                   hf__slot(name, length));
        w->all[w->count++] = (hf__slice){place, made};
        place[made] = '\0';
    }
}

static int64_t choose_lease(void)
{
    static const int64_t leases[] = {100, 1000, 3000};
    return leases[below(3)];
}

static void acquire(words *w)
{
    put_script(w, HF__SCRIPT_ACQUIRE, choose_name(), "qfwh");
    bool owned = put_value(w, (int)below(4));
    put_number(w, choose_lease());
    put_number(w, 5000);
    put_number(w, below(3) == 0 && !owned ? 65 : 1);
    put_number(w, below(3) == 0 ? 0 : ++copies);
    if (owned)
        put(w, "me");
}

static void release(words *w)
{
    put_script(w, HF__SCRIPT_RELEASE, choose_name(), "qfwh");
    bool owned = put_value(w, (int)below(4));
    put_number(w, below(4) == 0 ? 1000 : 0);
    put_number(w, 5000);
    if (owned)
        put(w, "me");
}

static void renew(words *w)
{
    bool owned = below(3) == 0;
    put_script(w, HF__SCRIPT_RENEW, choose_name(), owned ? "fwh" : "fw");
    put_value(w, owned ? OWNED : (int)below(OWNED));
    put_number(w, choose_lease());
    put_number(w, 5000);
    put(w, owned ? "me" : "");
    put_number(w, below(3) == 0 ? 1 : 0); /* every fence is larger */
}

static void refresh(words *w)
{
    put_script(w, HF__SCRIPT_REFRESH, choose_name(), "w");
    put_value(w, (int)below(OWNED));
    put_number(w, choose_lease());
}

static int64_t fence_of(const char *name)
{
    const node_key *kept = node_side(&node, 'f', name);
    return kept != NULL ? strtoll(kept->value.bytes, NULL, 10) : 0;
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
    put_script(w, HF__SCRIPT_BREAK, name, "qfwh");
    put(w, held != NULL && below(4) > 0 ? held : "nobody");
    put_number(w, fence_of(name));
    put_number(w, 5000);
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
    calls_made = 0;
    node_init(&node);
    node.now_ms = INT64_C(1700000000000);
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
