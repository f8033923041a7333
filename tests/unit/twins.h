/* SPDX-License-Identifier: MIT */
/* Two servers that must not differ, for the test of the node double: one is the double, the other
 * the simulator's model, which runs the scripts. The same words go to both; replies, messages and
 * keys are compared. */
#ifndef HF_TESTS_TWINS_H
#define HF_TESTS_TWINS_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node.h"
#include "resp/encode.h"
#include "server.h"

enum { EARS = 2, COMMANDS = EARS };
enum { WORDS = 20, TEXT = 160, HEARD_MAX = 64 };

static struct node node;
static sim_server *model;
static hf__buffer asked, answered, ear_in[EARS], ear_out[EARS];
static int calls_made; /* with the seed, tells where it went wrong */

typedef struct words {
    hf__slice all[WORDS];
    size_t count;
    char texts[WORDS][TEXT];
} words;

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

static bool is_named(const char *name, const char *key, size_t length)
{
    return length == strlen(name) && memcmp(name, key, length) == 0;
}

/* What the double keeps in fields of its own; false: another key. */
static bool expect_standing(const char *key, size_t length)
{
    char vote[96];
    const char *theirs = sim_server_get(model, key, length);
    snprintf(vote, sizeof(vote), "%s %" PRId64, node.run_id, node.base);
    if (is_named("hf:run", key, length))
        assert_int_equal(strcmp(theirs, vote) == 0, node.votes);
    else if (is_named("hf:floor", key, length))
        assert_int_equal(strtoll(theirs, NULL, 10), node.floor);
    else
        return false;
    return true;
}

/* Each key of the model must be there, with the same members and time. */
static void expect_key(void *arg, const char *key, size_t length, const char *type,
                       int64_t remaining_ms)
{
    node_key *ours = node_find(&node, key, length);
    size_t *count = arg;
    if (expect_standing(key, length))
        return;
    (*count)++;
    if (ours == NULL)
        fail_msg("call %d: the double has no %s %.*s, scripts %" PRId64 " ms", calls_made, type,
                 (int)length, key, remaining_ms);
    int64_t our_ms = ours->expires_ms < 0 ? -1 : ours->expires_ms - node.now_ms;
    if (strcmp(type, "zset") == 0)
        sim_server_members(model, key, length, expect_member, ours);
    if (strcmp(type, "string") == 0 &&
        strcmp(sim_server_get(model, key, length), ours->value.bytes))
        fail_msg("call %d: %.*s: scripts %s, double %s", calls_made, (int)length, key,
                 sim_server_get(model, key, length), ours->value.bytes);
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

#endif
