/* SPDX-License-Identifier: MIT */
/* See rival.h. What it hears on its subscription is kept as text. */
#include "rival.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/name.h"
#include "lua/scripts.h"
#include "stage.h"

enum { WORDS = 20, NUMBER = 24, VALUE = 100 };

static hf__buffer asked, answered; /* of its commands */
static hf__buffer waits, heard;    /* of its subscription */

static int where; /* the node at which it is */

static struct node *here(void)
{
    return &the_stage.nodes[where];
}

void rival_go(int node)
{
    where = node;
}

static void run(hf__buffer *in, hf__buffer *out, const hf__slice *words, size_t count)
{
    the_stage.own_memory = true;
    assert_true(hf__resp_encode(in, words, count));
    node_work(here(), in, out);
    the_stage.own_memory = false;
}

void rival_begin(void)
{
    const hf__slice words[] = {HF__SLICE("SUBSCRIBE"), HF__SLICE("hf:c:" RIVAL_CLIENT)};
    for (where = 0; where < the_stage.server_count; where++) {
        run(&waits, &heard, words, 2);
        here()->subscribes--; /* that counts those of the client that is tested */
    }
    where = 0;
}

void rival_hang_up(void)
{
    for (int i = 0; i < the_stage.server_count; i++)
        node_forget(&the_stage.nodes[i], &heard);
}

void rival_end(void)
{
    rival_hang_up();
    hf__buffer_free(&asked);
    hf__buffer_free(&answered);
    hf__buffer_free(&waits);
    hf__buffer_free(&heard);
}

/* ---- Scripts ---- */

typedef struct words {
    hf__slice all[WORDS];
    size_t count;
    char side[5][HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    char value[VALUE];
    char numbers[6][NUMBER];
    size_t number_count;
} words;

static void put(words *w, hf__slice word)
{
    w->all[w->count++] = word;
}

static void put_number(words *w, int64_t number)
{
    char *place = w->numbers[w->number_count++];
    snprintf(place, NUMBER, "%" PRId64, number);
    put(w, hf__slice_text(place));
}

static void put_value(words *w, int number)
{
    snprintf(w->value, VALUE, RIVAL_CLIENT ":%d@rival:2/1", number);
    put(w, hf__slice_text(w->value));
}

static void put_head(words *w, int script, const char *name, const char *letters)
{
    static const char *const counts[] = {"1", "2", "3", "4", "5", "6"};
    size_t length = strlen(name);
    put(w, HF__SLICE("EVAL"));
    put(w, (hf__slice){hf__scripts[script].body, hf__scripts[script].length});
    put(w, hf__slice_text(counts[strlen(letters)]));
    put(w, hf__slice_text(name));
    for (size_t i = 0; letters[i] != '\0'; i++) {
        unsigned slot = hf__slot(name, length);
        size_t made =
            letters[i] == 'm'
                ? hf__slot_key(w->side[i], HF__SLICE(""), hf__slot_tags[slot])
                : hf__side_key(w->side[i], HF__SLICE(""), letters[i], hf__slice_text(name), slot);
        put(w, (hf__slice){w->side[i], made});
    }
}

/* It counts among nobody's calls, and is not served a canned reply. */
static void run_script(const words *w)
{
    struct node *node = here();
    struct node before = *node;
    node->canned_count = 0;
    node->always = NULL;
    hf__buffer_clear(&answered);
    run(&asked, &answered, w->all, w->count);
    node->canned_count = before.canned_count;
    node->always = before.always;
    node->acquires = before.acquires;
    node->releases = before.releases;
    node->revokes = before.revokes;
    node->breaks = before.breaks;
    node->evals = before.evals;
    node->tomb_count = before.tomb_count;
    node->last_copy = before.last_copy;
    node->last_range = before.last_range;
    node->last_proposal = before.last_proposal;
    node->last_ticket = before.last_ticket;
    stage_run();
}

static bool answer_begins(const char *text)
{
    size_t length = strlen(text);
    return hf__buffer_length(&answered) >= length &&
           memcmp(hf__buffer_front(&answered), text, length) == 0;
}

static bool of_quorum(void)
{
    return the_stage.server_count > 1;
}

/* For scripts that take all keys of a lock, and of one server the mark of its slot. */
static void put_whole_head(words *w, int script, const char *name)
{
    put_head(w, script, name, of_quorum() ? "qfwh" : "qfwhm");
}

bool rival_acquire(const rival_wish *wish)
{
    words w = {.count = 0};
    put_whole_head(&w, HF__SCRIPT_ACQUIRE, wish->name);
    put_value(&w, wish->number);
    put_number(&w, wish->lease != 0 ? wish->lease : 10000);
    put_number(&w, 3600000);
    put_number(&w, wish->range != 0 ? wish->range : 1);
    put_number(&w, wish->copy);
    put(&w, HF__SLICE(""));
    put(&w, hf__slice_text(wish->owner != NULL ? wish->owner : ""));
    if (of_quorum()) {
        put_number(&w, 1);
        put_number(&w, wish->ticket);
    }
    run_script(&w);
    return !answer_begins("*3\r\n:0\r\n") && !answer_begins("*4\r\n:0\r\n") &&
           !answer_begins("*5\r\n:0\r\n");
}

void rival_release(const char *name, int number)
{
    words w = {.count = 0};
    put_whole_head(&w, HF__SCRIPT_RELEASE, name);
    put_value(&w, number);
    put_number(&w, 0);
    put_number(&w, 3600000);
    if (of_quorum()) {
        put(&w, HF__SLICE(""));
        put_number(&w, 1);
    }
    run_script(&w);
}

void rival_revoke(const char *name, const char *why)
{
    words w = {.count = 0};
    put_head(&w, HF__SCRIPT_REVOKE, name, "fwh");
    put(&w, hf__slice_text(why));
    put_number(&w, (int64_t)stage_fence_at(where, name));
    put_number(&w, 3600000);
    run_script(&w);
}

void rival_break(const char *name)
{
    words w = {.count = 0};
    put_whole_head(&w, HF__SCRIPT_BREAK, name);
    put(&w, hf__slice_text(node_get(here(), name)));
    put_number(&w, (int64_t)stage_fence_at(where, name));
    put_number(&w, 3600000);
    if (of_quorum())
        put_number(&w, 1);
    run_script(&w);
}

bool rival_heard(const char *part)
{
    size_t length = strlen(part), all = hf__buffer_length(&heard);
    const char *text = hf__buffer_front(&heard);
    for (size_t at = 0; at + length <= all; at++) {
        if (memcmp(text + at, part, length) != 0)
            continue;
        hf__buffer_take(&heard, at + length);
        return true;
    }
    return false;
}
