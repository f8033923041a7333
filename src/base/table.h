/* SPDX-License-Identifier: MIT */
/* An intrusive hash table that grows with what is in it, one bucket with each entry (linear
 * hashing): no entry costs more than another, however many there are, and adding never fails. If
 * there is no memory to grow, it works on with the buckets that it has. */
#ifndef HF_BASE_TABLE_H
#define HF_BASE_TABLE_H

#include <stdint.h>

#include "base/list.h"

enum { HF__TABLE_BASE = 64, HF__TABLE_SEGMENTS = 27 };

typedef uint64_t hf__table_hash(const hf__node *node); /* of an entry: the same for its life */
typedef void hf__table_drop(hf__node *node);

typedef struct hf__table {
    hf__node *base[HF__TABLE_BASE]; /* the first buckets; each is the first entry, or NULL */
    hf__node **segments[HF__TABLE_SEGMENTS]; /* the others: each as many as there are before it */
    size_t buckets;
    size_t count;
    hf__node end; /* behind the last entry of every bucket */
    hf__table_hash *hash;
} hf__table;

void hf__table_init(hf__table *table, hf__table_hash *hash);
void hf__table_free(hf__table *table, hf__table_drop *drop); /* with its entries; NULL: they stay */
void hf__table_add(hf__table *table, hf__node *node);
void hf__table_remove(hf__table *table, hf__node *node);

/* Those that may have this hash, one after the other; NULL: no more. */
hf__node *hf__table_first(const hf__table *table, uint64_t hash);
static inline hf__node *hf__table_next(const hf__table *table, const hf__node *node)
{
    return node->next != &table->end ? node->next : NULL;
}

uint64_t hf__hash(const char *bytes, size_t count);

#endif
