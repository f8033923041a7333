/* SPDX-License-Identifier: MIT */
/* See node.h. The meaning of the scripts is written here a second time, in C, which is what makes
 * it a double: a test that only compares the library with itself proves nothing. The real scripts
 * run on a real server in the integration tests. Anything unexpected stops the test at once. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/scripts.h"

enum { WORDS_MAX = 8 };

typedef struct word {
    const char *bytes;
    size_t length;
} word;

static void expect(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "node double: %s\n", what);
    abort();
}

void node_init(struct node *node)
{
    *node = (struct node){.role = "master", .now_ms = 1000};
    snprintf(node->run_id, sizeof(node->run_id), "%040d", 1);
}

void node_restart(struct node *node)
{
    int run = atoi(node->run_id) + 1;
    memset(node->keys, 0, sizeof(node->keys));
    node->tomb_count = 0;
    node->knows_scripts = false;
    snprintf(node->run_id, sizeof(node->run_id), "%040d", run);
}

node_key *node_find(struct node *node, const char *name, size_t length)
{
    for (int i = 0; i < NODE_KEYS; i++) {
        node_key *key = &node->keys[i];
        if (key->used && key->expires_ms >= 0 && key->expires_ms <= node->now_ms)
            key->used = false;
        if (key->used && key->name_length == length && memcmp(key->name, name, length) == 0)
            return key;
    }
    return NULL;
}

const char *node_get(struct node *node, const char *name)
{
    node_key *key = node_find(node, name, strlen(name));
    return key != NULL ? key->value : NULL;
}

static node_key *put(struct node *node, word name, word value, int64_t ttl_ms)
{
    node_key *key = node_find(node, name.bytes, name.length);
    for (int i = 0; key == NULL && i < NODE_KEYS; i++)
        if (!node->keys[i].used)
            key = &node->keys[i];
    expect(key != NULL, "too many keys");
    *key = (node_key){.used = true, .name_length = name.length};
    memcpy(key->name, name.bytes, name.length);
    memcpy(key->value, value.bytes, value.length);
    key->expires_ms = ttl_ms < 0 ? -1 : node->now_ms + ttl_ms;
    return key;
}

void node_set(struct node *node, const char *name, const char *value, int64_t ttl_ms)
{
    put(node, (word){name, strlen(name)}, (word){value, strlen(value)}, ttl_ms);
}

void node_delete(struct node *node, const char *name)
{
    node_key *key = node_find(node, name, strlen(name));
    if (key != NULL)
        key->used = false;
}

int node_count(struct node *node)
{
    int count = 0;
    for (int i = 0; i < NODE_KEYS; i++)
        count += node->keys[i].used &&
                 node_find(node, node->keys[i].name, node->keys[i].name_length) != NULL;
    return count;
}

void node_say(struct node *node, const char *reply)
{
    expect(node->canned_count < NODE_CANNED, "too many canned replies");
    node->canned[node->canned_count++] = reply;
}

/* ---- Commands ---- */

static void say(hf__buffer *out, const char *text)
{
    expect(hf__buffer_reserve(out, strlen(text)), "no memory");
    hf__buffer_append(out, text, strlen(text));
}

static void say_number(hf__buffer *out, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), ":%lld\r\n", (long long)number);
    say(out, text);
}

static void say_bulk(hf__buffer *out, const char *text)
{
    char header[32];
    snprintf(header, sizeof(header), "$%zu\r\n", strlen(text));
    say(out, header);
    say(out, text);
    say(out, "\r\n");
}

static bool is(word said, const char *text)
{
    return said.length == strlen(text) && memcmp(said.bytes, text, said.length) == 0;
}

static int64_t number_of(word said)
{
    char text[32] = "";
    memcpy(text, said.bytes, said.length);
    return strtoll(text, NULL, 10);
}

static int64_t remaining_of(const struct node *node, const node_key *key)
{
    return key->expires_ms < 0 ? -1 : key->expires_ms - node->now_ms;
}

static bool is_mine(const node_key *key, word value)
{
    return key != NULL && is(value, key->value);
}

static void run_acquire(struct node *node, const word *arguments, size_t count, hf__buffer *out)
{
    expect(count == 4, "acquire takes two keys and two arguments");
    word name = arguments[0], value = arguments[2];
    node_key *key = node_find(node, name.bytes, name.length);
    node->acquires++;
    for (int i = 0; i < node->tomb_count && i < NODE_KEYS; i++) {
        if (is(value, node->tombs[i])) {
            say(out, ":-1\r\n");
            return;
        }
    }
    if (key != NULL && key->wrong_type) {
        say(out, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
        return;
    }
    if (key == NULL)
        key = put(node, name, value, number_of(arguments[3]));
    bool mine = is_mine(key, value);
    if (!mine)
        say(out, "*2\r\n");
    say_number(out, remaining_of(node, key));
    if (!mine)
        say_bulk(out, key->value);
}

/* name, [queue,] value, [tombstone] */
static void run_release(struct node *node, const word *arguments, size_t count, hf__buffer *out)
{
    word value = arguments[count == 2 ? 1 : 2];
    node_key *key = node_find(node, arguments[0].bytes, arguments[0].length);
    bool mine = is_mine(key, value);
    node->releases++;
    node->last_tombstone_ms = count == 2 ? 0 : number_of(arguments[3]);
    if (mine)
        key->used = false;
    if (node->last_tombstone_ms > 0) {
        char *tomb = node->tombs[node->tomb_count++ % NODE_KEYS];
        memcpy(tomb, value.bytes, value.length);
        tomb[value.length] = '\0';
    }
    say_number(out, mine);
}

static void run_renew(struct node *node, const word *arguments, size_t count, hf__buffer *out)
{
    expect(count == 3, "renew takes a key and two arguments");
    node_key *key = node_find(node, arguments[0].bytes, arguments[0].length);
    int64_t lease = number_of(arguments[2]);
    node->renewals++;
    if (!is_mine(key, arguments[1])) {
        say_number(out, 0);
        return;
    }
    if (remaining_of(node, key) < lease)
        key->expires_ms = node->now_ms + lease;
    say_number(out, remaining_of(node, key));
}

static int script_of(word name)
{
    for (int i = 0; i < HF__SCRIPT_COUNT; i++)
        if (is(name, hf__scripts[i].sha1) ||
            (name.length == hf__scripts[i].length &&
             memcmp(name.bytes, hf__scripts[i].body, name.length) == 0))
            return i;
    expect(false, "unknown script");
    return -1;
}

static void run_script(struct node *node, const word *words, size_t count, hf__buffer *out)
{
    static void (*const scripts[])(struct node *, const word *, size_t,
                                   hf__buffer *) = {run_acquire, run_release, run_renew};
    bool whole = is(words[0], "EVAL");
    int script = script_of(words[1]);
    node->evals += whole;
    if (node->always != NULL) {
        say(out, node->always);
        return;
    }
    if (node->canned_count > 0) {
        say(out, node->canned[0]);
        node->canned_count--;
        memmove(node->canned, node->canned + 1, sizeof(node->canned) - sizeof(node->canned[0]));
        return;
    }
    if (!whole && !node->knows_scripts) {
        say(out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    scripts[script](node, words + 3, count - 3, out);
}

static void run_info(struct node *node, word section, hf__buffer *out)
{
    char text[200];
    if (is(section, "server") && node->greeting_error != NULL) {
        say(out, node->greeting_error);
        return;
    }
    snprintf(text, sizeof(text), "# Section\r\nrole:%s\r\nrun_id:%s\r\nend:1\r\n", node->role,
             node->run_id);
    say_bulk(out, text);
}

static void run_command(struct node *node, const word *words, size_t count, hf__buffer *out)
{
    snprintf(node->last_command, sizeof(node->last_command), "%.*s", (int)words[0].length,
             words[0].bytes);
    if (is(words[0], "EVALSHA") || is(words[0], "EVAL")) {
        run_script(node, words, count, out);
    } else if (is(words[0], "INFO")) {
        node->greetings += is(words[1], "server");
        run_info(node, words[1], out);
    } else if (is(words[0], "SCRIPT")) {
        node->knows_scripts = true;
        say_bulk(out, hf__scripts[script_of(words[2])].sha1);
    } else if (is(words[0], "AUTH")) {
        bool right = node->password != NULL && is(words[count - 1], node->password);
        say(out, right ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n");
    } else {
        expect(is(words[0], "SELECT") || is(words[0], "CLIENT"), "unknown command");
        say(out, "+OK\r\n");
    }
}

/* Reads "<kind><number>\r\n"; false: incomplete. */
static bool read_header(const char **at, const char *end, char kind, size_t *number)
{
    const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
    if (line_end == NULL)
        return false;
    expect(**at == kind, "malformed request");
    *number = (size_t)strtoul(*at + 1, NULL, 10);
    *at = line_end + 1;
    return true;
}

/* One command at the front of `in`; false: incomplete. */
static bool take_command(struct node *node, hf__buffer *in, hf__buffer *out)
{
    const char *at = hf__buffer_front(in);
    const char *end = at + hf__buffer_length(in);
    word words[WORDS_MAX];
    size_t count, length;
    if (at == end || !read_header(&at, end, '*', &count))
        return false;
    expect(count > 0 && count <= WORDS_MAX, "too many words");
    for (size_t i = 0; i < count; i++) {
        if (at == end || !read_header(&at, end, '$', &length) || (size_t)(end - at) < length + 2)
            return false;
        words[i] = (word){at, length};
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
