/* SPDX-License-Identifier: MIT */
/* See node_store.h. Keys and members are looked for one by one: there are thousands at most. Memory
 * is the C library's own: a test that starves the library does not starve its server. */
#include "node_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void node_expect(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "node double: %s\n", what);
    abort();
}

static void *allocate(void *old, size_t size)
{
    void *block = realloc(old, size);
    node_expect(block != NULL, "no memory");
    return block;
}

/* ---- Keys ---- */

bool slice_is(hf__slice a, hf__slice b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

static uint32_t hash_of(hf__slice text)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.bytes[i]) * 16777619U;
    return hash;
}

static bool is_named(const node_text *name, hf__slice text, uint32_t hash)
{
    return name->hash == hash && slice_is(store_slice(name), text);
}

hf__slice store_slice(const node_text *text)
{
    return (hf__slice){text->bytes, text->length};
}

void store_write(node_text *place, hf__slice text)
{
    char *bytes = allocate(NULL, text.length + 1);
    memcpy(bytes, text.bytes, text.length);
    bytes[text.length] = '\0';
    free(place->bytes);
    *place = (node_text){bytes, text.length, hash_of(text)};
}

static void free_member(node_member *member)
{
    free(member->name.bytes);
    free(member->text.bytes);
}

static void free_key(node_key *key)
{
    for (size_t i = 0; i < key->member_count; i++)
        free_member(&key->members[i]);
    free(key->members);
    free(key->name.bytes);
    free(key->value.bytes);
    free(key);
}

void store_remove(struct node *node, node_key *key)
{
    for (size_t i = 0; key != NULL && i < node->places; i++)
        if (node->keys[i] == key)
            node->keys[i] = NULL;
    if (key != NULL)
        free_key(key);
}

node_key *store_find(struct node *node, hf__slice name)
{
    uint32_t hash = hash_of(name);
    for (size_t i = 0; i < node->places; i++) {
        node_key *key = node->keys[i];
        if (key == NULL || !is_named(&key->name, name, hash))
            continue;
        if (key->expires_ms < 0 || key->expires_ms >= node->now_ms)
            return key;
        store_remove(node, key);
    }
    return NULL;
}

node_key *store_make(struct node *node, hf__slice name, node_kind kind)
{
    size_t place = 0;
    node_key *key = store_find(node, name);
    if (key != NULL)
        return key;
    while (place < node->places && node->keys[place] != NULL)
        place++;
    if (place == node->places) {
        node->keys = allocate(node->keys, (node->places + 1) * sizeof(node_key *));
        node->places++;
    }
    key = allocate(NULL, sizeof(*key));
    *key = (node_key){.kind = kind, .expires_ms = -1};
    store_write(&key->name, name);
    store_write(&key->value, HF__SLICE(""));
    node->keys[place] = key;
    return key;
}

void store_set(struct node *node, hf__slice name, hf__slice value, int64_t expires_ms)
{
    store_remove(node, store_find(node, name));
    node_key *key = store_make(node, name, NODE_STRING);
    store_write(&key->value, value);
    key->expires_ms = expires_ms;
}

int64_t store_ttl_ms(const struct node *node, const node_key *key)
{
    if (key == NULL)
        return -2;
    return key->expires_ms < 0 ? -1 : key->expires_ms - node->now_ms;
}

node_member *store_member(node_key *key, hf__slice name)
{
    uint32_t hash = hash_of(name);
    for (size_t i = 0; key != NULL && i < key->member_count; i++)
        if (is_named(&key->members[i].name, name, hash))
            return &key->members[i];
    return NULL;
}

node_member *store_add(node_key *key, hf__slice name)
{
    node_member *member = store_member(key, name);
    if (member != NULL)
        return member;
    if (key->member_count == key->member_room) {
        key->member_room = 2 * key->member_room + 1;
        key->members = allocate(key->members, key->member_room * sizeof(*member));
    }
    member = &key->members[key->member_count++];
    *member = (node_member){.score = 0};
    store_write(&member->name, name);
    return member;
}

void store_drop(struct node *node, node_key *key, node_member *member)
{
    free_member(member);
    *member = key->members[--key->member_count];
    if (key->member_count == 0)
        store_remove(node, key);
}

/* ---- What tests look at ---- */

node_key *node_find(struct node *node, const char *name, size_t length)
{
    return store_find(node, (hf__slice){name, length});
}

const char *node_get(struct node *node, const char *name)
{
    node_key *key = node_find(node, name, strlen(name));
    return key != NULL ? key->value.bytes : NULL;
}

int64_t node_ttl_ms(struct node *node, const char *name)
{
    return store_ttl_ms(node, node_find(node, name, strlen(name)));
}

void node_set(struct node *node, const char *name, const char *value, int64_t ttl_ms)
{
    store_set(node, hf__slice_text(name), hf__slice_text(value),
              ttl_ms < 0 ? -1 : node->now_ms + ttl_ms);
}

void node_delete(struct node *node, const char *name)
{
    store_remove(node, node_find(node, name, strlen(name)));
}

int node_count(struct node *node)
{
    int count = 0;
    for (size_t i = 0; i < node->places; i++) {
        node_key *key = node->keys[i];
        if (key != NULL && strncmp(key->name.bytes, "hf:", 3) != 0)
            count += store_find(node, store_slice(&key->name)) != NULL;
    }
    return count;
}

node_key *node_side(struct node *node, char letter, const char *name)
{
    for (size_t i = 0; i < node->places; i++) {
        node_key *key = node->keys[i];
        if (key == NULL || strncmp(key->name.bytes, "hf:", 3) != 0 || key->name.bytes[3] != letter)
            continue;
        const char *rest = strchr(key->name.bytes, '}');
        if (rest != NULL && strcmp(rest + 1, name) == 0)
            return store_find(node, store_slice(&key->name));
    }
    return NULL;
}

node_member *node_member_of(node_key *key, const char *name)
{
    return store_member(key, hf__slice_text(name));
}

static void forget_all(struct node *node)
{
    for (size_t i = 0; i < node->places; i++)
        if (node->keys[i] != NULL)
            free_key(node->keys[i]);
    free(node->keys);
    node->keys = NULL;
    node->places = 0;
}

void node_free(struct node *node)
{
    forget_all(node);
}

void node_init(struct node *node)
{
    *node = (struct node){.role = "master", .now_ms = 1000, .wall_s = NODE_OWN_TIME, .votes = true};
    snprintf(node->run_id, sizeof(node->run_id), "%040d", 1);
}

void node_restart(struct node *node)
{
    int run = atoi(node->run_id) + 1;
    forget_all(node);
    node->knows_scripts = node->votes = false;
    node->base = node->floor = 0;
    node->errands_known = 0;
    snprintf(node->run_id, sizeof(node->run_id), "%040d", run);
}
