/* SPDX-License-Identifier: MIT */
/* See table.h. With n buckets, of which 2^k <= n < 2^(k+1), an entry is in the bucket that the last
 * k + 1 bits of its hash name, or, if that does not exist yet, the last k. A bucket that is added
 * takes its entries from one other. */
#include "base/table.h"

#include <string.h>

#include "base/memory.h"

/* Numbers that count up, or differ in a few bits, are spread. */
static uint64_t spread(uint64_t hash)
{
    hash = (hash ^ (hash >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static size_t highest_bit(size_t number)
{
    return (size_t)1 << (63 - __builtin_clzll(number));
}

static size_t index_of(const hf__table *table, uint64_t hash)
{
    size_t half = highest_bit(table->buckets);
    size_t index = spread(hash) & (2 * half - 1);
    return index < table->buckets ? index : index - half;
}

/* Segment s begins with the bucket BASE * 2^s. */
static hf__node **bucket_at(const hf__table *table, size_t index)
{
    if (index < HF__TABLE_BASE)
        return (hf__node **)&table->base[index];
    int segment = __builtin_ctzll(highest_bit(index) / HF__TABLE_BASE);
    return &table->segments[segment][index - highest_bit(index)];
}

static void push(hf__table *table, hf__node **bucket, hf__node *node)
{
    node->next = *bucket != NULL ? *bucket : &table->end;
    node->prev = &table->end;
    if (*bucket != NULL)
        (*bucket)->prev = node;
    *bucket = node;
}

static void detach(hf__table *table, hf__node **bucket, hf__node *node)
{
    hf__node *next = node->next != &table->end ? node->next : NULL;
    if (node->prev == &table->end)
        *bucket = next;
    else
        node->prev->next = node->next;
    if (next != NULL)
        next->prev = node->prev;
    node->next = node->prev = NULL;
}

static bool has_room(hf__table *table)
{
    size_t index = table->buckets;
    if (index < HF__TABLE_BASE)
        return true;
    int segment = __builtin_ctzll(highest_bit(index) / HF__TABLE_BASE);
    if (segment >= HF__TABLE_SEGMENTS)
        return false;
    if (table->segments[segment] == NULL)
        table->segments[segment] = hf__alloc(highest_bit(index) * sizeof(hf__node *));
    return table->segments[segment] != NULL;
}

static void grow(hf__table *table)
{
    size_t added = table->buckets;
    if (!has_room(table))
        return;
    hf__node **from = bucket_at(table, added - highest_bit(added)), **to = bucket_at(table, added);
    table->buckets++;
    for (hf__node *node = *from, *next; node != NULL; node = next) {
        next = hf__table_next(table, node);
        if (index_of(table, table->hash(node)) != added)
            continue;
        detach(table, from, node);
        push(table, to, node);
    }
}

void hf__table_init(hf__table *table, hf__table_hash *hash)
{
    *table = (hf__table){.buckets = HF__TABLE_BASE, .hash = hash};
}

void hf__table_free(hf__table *table, hf__table_drop *drop)
{
    for (size_t i = 0; drop != NULL && i < table->buckets; i++)
        for (hf__node *node = *bucket_at(table, i), *next; node != NULL; node = next) {
            next = hf__table_next(table, node);
            drop(node);
        }
    for (int i = 0; i < HF__TABLE_SEGMENTS; i++)
        hf__free(table->segments[i]);
}

void hf__table_add(hf__table *table, hf__node *node)
{
    assert(!hf__node_linked(node));
    if (table->count++ >= table->buckets)
        grow(table);
    push(table, bucket_at(table, index_of(table, table->hash(node))), node);
}

void hf__table_remove(hf__table *table, hf__node *node)
{
    assert(hf__node_linked(node) && table->count > 0);
    detach(table, bucket_at(table, index_of(table, table->hash(node))), node);
    table->count--;
}

hf__node *hf__table_first(const hf__table *table, uint64_t hash)
{
    return *bucket_at(table, index_of(table, hash));
}

/* Eight bytes at a time. */
uint64_t hf__hash(const char *bytes, size_t count)
{
    uint64_t hash = count;
    for (; count > 0; bytes += count < 8 ? count : 8, count -= count < 8 ? count : 8) {
        uint64_t part = 0;
        memcpy(&part, bytes, count < 8 ? count : 8);
        hash = (hash ^ part) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return hash;
}
