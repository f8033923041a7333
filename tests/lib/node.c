/* SPDX-License-Identifier: MIT */
/* See node.h. The meaning of the scripts is written a second time, in C (node_scripts.c), which is
 * what makes it a double: a test that only compares the library with itself proves nothing. The
 * real scripts run on a real server in the integration tests. Here are the words of the protocol
 * and the commands. Anything unexpected stops the test at once. */
#include "node.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/scripts.h"
#include "node_store.h"

enum { WORDS_MAX = 1024 };

void node_say(struct node *node, const char *reply)
{
    node_expect(node->canned_count < NODE_CANNED, "too many canned replies");
    node->canned[node->canned_count++] = reply;
}

/* ---- Replies ---- */

void say(hf__buffer *out, const char *text)
{
    node_expect(hf__buffer_reserve(out, strlen(text)), "no memory");
    hf__buffer_append(out, text, strlen(text));
}

static void say_header(hf__buffer *out, char kind, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%c%lld\r\n", kind, (long long)number);
    say(out, text);
}

void say_array(hf__buffer *out, size_t count)
{
    say_header(out, '*', (int64_t)count);
}

void say_number(hf__buffer *out, int64_t number)
{
    say_header(out, ':', number);
}

void say_bulk(hf__buffer *out, hf__slice text)
{
    say_header(out, '$', (int64_t)text.length);
    node_expect(hf__buffer_reserve(out, text.length + 2), "no memory");
    hf__buffer_append(out, text.bytes, text.length);
    hf__buffer_append(out, "\r\n", 2);
}

/* ---- Commands ---- */

static bool is(hf__slice said, const char *text)
{
    return slice_is(said, hf__slice_text(text));
}

static int script_of(hf__slice name)
{
    for (int i = 0; i < HF__SCRIPT_COUNT; i++)
        if (is(name, hf__scripts[i].sha1) ||
            slice_is(name, (hf__slice){hf__scripts[i].body, hf__scripts[i].length}))
            return i;
    node_expect(false, "unknown script");
    return -1;
}

/* Says what the test wants to be said instead of serving the request, if anything. */
static bool say_instead(struct node *node, hf__buffer *out)
{
    if (node->always != NULL) {
        say(out, node->always);
        return true;
    }
    if (node->canned_count == 0)
        return false;
    say(out, node->canned[0]);
    node->canned_count--;
    memmove(node->canned, node->canned + 1, sizeof(node->canned) - sizeof(node->canned[0]));
    return true;
}

/* What the test wants to be denied: of the commands, or of the keys that are asked about. */
static void tell_denied(const struct node *node, bool keys, hf__buffer *out)
{
    const char *denied = keys ? node->denied_key : node->denied_command;
    say_array(out, denied != NULL ? 1 : 0);
    if (denied != NULL)
        say_bulk(out, hf__slice_text(denied));
}

static void copy(char *place, size_t capacity, hf__slice said)
{
    snprintf(place, capacity, "%.*s", (int)said.length, said.bytes);
}

static void note_errand(struct node *node, int id, const hf__slice *words, size_t count)
{
    size_t keys = strtoul(words[2].bytes, NULL, 10);
    node_expect(count >= 5 + keys, "an errand without the words of its copy");
    node_errand *noted = &node->errand_log[node->errands < NODE_ERRANDS ? node->errands : 0];
    node->errands++;
    *noted = (node_errand){.script = id,
                           .whole = is(words[0], "EVAL"),
                           .keys = keys,
                           .words = count - 5 - keys,
                           .releases = node->releases};
    copy(noted->first_key, sizeof(noted->first_key), words[3]);
    copy(noted->last_key, sizeof(noted->last_key), words[2 + keys]);
    copy(noted->run_id, sizeof(noted->run_id), words[3 + keys]);
    copy(noted->again, sizeof(noted->again), words[4 + keys]);
    if (noted->words > 0)
        copy(noted->first_word, sizeof(noted->first_word), words[5 + keys]);
    copy(noted->last_word, sizeof(noted->last_word), words[count - 1]);
}

/* What an errand does is tested at a real server. */
static void run_errand(struct node *node, int id, bool whole, hf__buffer *out)
{
    if (whole)
        node->errands_known |= 1U << id;
    if ((node->errands_known >> id & 1) == 0)
        say(out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    else
        say(out, node->errand_says != NULL ? node->errand_says : ":1\r\n");
}

/* A call that names a key which its user may not access is refused as a whole. */
static bool refuse_forbidden(struct node *node, const hf__slice *keys, size_t count,
                             hf__buffer *out)
{
    for (size_t i = 0; i < 2 * count; i++) {
        const char *forbidden = node->forbidden[i % 2];
        if (forbidden == NULL || !is(keys[i / 2], forbidden))
            continue;
        node->forbidden_calls++;
        say(out, "-NOPERM this user has no permissions to access one of the keys used as "
                 "arguments\r\n");
        return true;
    }
    return false;
}

static void run_script(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    bool whole = is(words[0], "EVAL");
    int id = script_of(words[1]);
    if (id == HF__SCRIPT_PERMISSIONS) {
        node->asked_keys = count - 4;
        tell_denied(node, is(words[3], "keys"), out);
        return;
    }
    node_expect(count > 3, "a script without keys");
    size_t keys = strtoul(words[2].bytes, NULL, 10);
    node_expect(keys <= count - 3, "more keys than words");
    node->evals += whole;
    if (refuse_forbidden(node, words + 3, keys, out))
        return;
    bool errand = id >= HF__SCRIPT_IDS;
    if (errand)
        note_errand(node, id, words, count);
    if (say_instead(node, out))
        return;
    if (errand) {
        run_errand(node, id, whole, out);
        return;
    }
    if (!whole && !node->knows_scripts) {
        say(out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    node_run_script(id, &(script){.node = node,
                                  .keys = words + 3,
                                  .key_count = keys,
                                  .arguments = words + 3 + keys,
                                  .argument_count = count - 3 - keys,
                                  .out = out,
                                  .clock_us = node->now_ms * 1000});
}

static void run_info(struct node *node, hf__slice section, hf__buffer *out)
{
    char text[400];
    if (is(section, "server") && node->greeting_error != NULL) {
        say(out, node->greeting_error);
        return;
    }
    snprintf(text, sizeof(text), "# Section\r\nrole:%s\r\nrun_id:%s\r\n%s\r\nend:1\r\n", node->role,
             node->run_id, node->info != NULL ? node->info : "");
    say_bulk(out, hf__slice_text(text));
}

static void run_time(const struct node *node, hf__buffer *out)
{
    char seconds[32], rest[32];
    bool other = node->wall_s != NODE_OWN_TIME;
    snprintf(seconds, sizeof(seconds), "%" PRId64, other ? node->wall_s : node->now_ms / 1000);
    snprintf(rest, sizeof(rest), "%" PRId64, other ? 0 : node->now_ms % 1000 * 1000);
    say_array(out, 2);
    say_bulk(out, hf__slice_text(seconds));
    say_bulk(out, hf__slice_text(rest));
}

/* SCAN cursor MATCH pattern COUNT n: the cursor is the next place to look at. */
static void run_scan(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    char pattern[2 * 1024], cursor[32];
    const node_key *found[64];
    size_t found_count = 0;
    node_expect(count == 6 && is(words[2], "MATCH") && is(words[4], "COUNT"), "a strange SCAN");
    node_expect(words[3].length < sizeof(pattern), "a long pattern");
    snprintf(pattern, sizeof(pattern), "%.*s", (int)words[3].length, words[3].bytes);
    size_t place = strtoul(words[1].bytes, NULL, 10);
    size_t end = place + strtoul(words[5].bytes, NULL, 10);
    node->scans++;
    if (say_instead(node, out))
        return;
    for (; place < end && place < node->places && found_count < 64; place++) {
        const node_key *key = node->keys[place];
        if (key != NULL && fnmatch(pattern, key->name.bytes, 0) == 0)
            found[found_count++] = key;
    }
    snprintf(cursor, sizeof(cursor), "%zu", place < node->places ? place : 0);
    say_array(out, 2);
    say_bulk(out, hf__slice_text(cursor));
    say_array(out, found_count);
    for (size_t i = 0; i < found_count; i++)
        say_bulk(out, store_slice(&found[i]->name));
}

/* Its time is not waited for: a test that wants it to take long keeps the answer back. */
static void run_wait(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    node_expect(count == 3 && strtol(words[1].bytes, NULL, 10) > 0, "a strange WAIT");
    node->waits++;
    node->last_wait_ms = strtoll(words[2].bytes, NULL, 10);
    node_expect(node->last_wait_ms > 0, "a WAIT without end");
    if (node->wait_error != NULL)
        say(out, node->wait_error);
    else
        say_number(out, node->replicas);
}

static void run_command(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    snprintf(node->last_command, sizeof(node->last_command), "%.*s", (int)words[0].length,
             words[0].bytes);
    if (node_run_channel_command(node, words, count, out))
        return;
    if (is(words[0], "EVALSHA") || is(words[0], "EVAL")) {
        run_script(node, words, count, out);
    } else if (is(words[0], "SCAN")) {
        run_scan(node, words, count, out);
    } else if (is(words[0], "INFO")) {
        hf__slice section = count > 1 ? words[1] : hf__slice_text("all");
        node->greetings += is(section, "server");
        run_info(node, section, out);
    } else if (is(words[0], "TIME")) {
        run_time(node, out);
    } else if (is(words[0], "MGET")) {
        node_run_mget(node, words, count, out);
    } else if (is(words[0], "WAIT")) {
        run_wait(node, words, count, out);
    } else if (is(words[0], "SCRIPT")) {
        node->knows_scripts = true;
        say_bulk(out, hf__slice_text(hf__scripts[script_of(words[2])].sha1));
    } else if (is(words[0], "AUTH")) {
        bool right = node->password != NULL && is(words[count - 1], node->password);
        say(out, right ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n");
    } else {
        node_expect(is(words[0], "SELECT") || is(words[0], "CLIENT"), "unknown command");
        say(out, "+OK\r\n");
    }
}

/* Reads "<kind><number>\r\n"; false: incomplete. */
static bool read_header(const char **at, const char *end, char kind, size_t *number)
{
    const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
    if (line_end == NULL)
        return false;
    node_expect(**at == kind, "malformed request");
    *number = (size_t)strtoul(*at + 1, NULL, 10);
    *at = line_end + 1;
    return true;
}

/* One command at the front of `in`; false: incomplete. */
static bool take_command(struct node *node, hf__buffer *in, hf__buffer *out)
{
    const char *at = hf__buffer_front(in);
    const char *end = at + hf__buffer_length(in);
    static hf__slice words[WORDS_MAX]; /* only one thread at a time is in here */
    size_t count, length;
    if (at == end || !read_header(&at, end, '*', &count))
        return false;
    node_expect(count > 0 && count <= WORDS_MAX, "too many words");
    for (size_t i = 0; i < count; i++) {
        if (at == end || !read_header(&at, end, '$', &length) || (size_t)(end - at) < length + 2)
            return false;
        words[i] = (hf__slice){at, length};
        at += length + 2;
    }
    run_command(node, words, count, out);
    hf__buffer_take(in, (size_t)(at - hf__buffer_front(in)));
    return true;
}

void node_work(struct node *node, hf__buffer *in, hf__buffer *out)
{
    while (take_command(node, in, out))
        continue;
}
