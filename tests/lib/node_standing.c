/* SPDX-License-Identifier: MIT */
/* See node.h: what the double knows of itself as one of a quorum, which is src/lua/join.lua in C.
 * The keys are fields of the node: a process that is not named in hf:run has no vote, whatever else
 * is written there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "node_scripts.h"

static bool is_key(const struct node *node, hf__slice key, const char *name)
{
    char text[256];
    const char *prefix = node->side_prefix != NULL ? node->side_prefix : "";
    int length = snprintf(text, sizeof(text), "%s%s", prefix, name);
    return slice_is(key, (hf__slice){text, (size_t)length});
}

void node_run_mget(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    char text[96];
    node_expect(count == 2 && is_key(node, words[1], "hf:run"), "a strange MGET");
    snprintf(text, sizeof(text), "%s %" PRId64, node->run_id, node->base);
    say_array(out, 1);
    if (node->votes)
        say_bulk(out, hf__slice_text(text));
    else
        say(out, "$-1\r\n");
}

/* ---- Join: who has a vote, the floor; run id, least floor, base or '' ---- */

void script_run_join(script *s)
{
    struct node *node = s->node;
    node_expect(s->key_count == 2 && s->argument_count == 3, "join takes two keys and three");
    node_expect(is_key(node, s->keys[0], "hf:run") && is_key(node, s->keys[1], "hf:floor"),
                "not the keys of join");
    bool hidden = node->run_id[0] == '\0'; /* a test finds out what its client made of that */
    node_expect(hidden || slice_is(s->arguments[0], hf__slice_text(node->run_id)),
                "another process joins");
    bool may_vote = s->arguments[2].length > 0;
    int64_t base = may_vote ? script_number_of(s->arguments[2]) : 0;
    node->joins++;
    node->floor = script_larger(node->floor, script_number_of(s->arguments[1]));
    node->floor = script_larger(node->floor, base);
    if (!node->votes && may_vote) {
        node->votes = true;
        node->base = base;
    }
    say_array(s->out, 4);
    say_number(s->out, node->votes);
    say_number(s->out, node->votes ? node->base : 0);
    say_number(s->out, node->floor);
    say_number(s->out, node->now_ms * 1000);
}
