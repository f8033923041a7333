/* SPDX-License-Identifier: MIT */
/* An intrusive doubly linked list: the node lives in the element, so adding never fails. A node
 * that is in no list is all zero, and can be asked so. */
#ifndef HF_BASE_LIST_H
#define HF_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hf__node {
    struct hf__node *next;
    struct hf__node *prev;
} hf__node;

typedef struct hf__list {
    hf__node head; /* a ring; empty when it points to itself */
    size_t count;
} hf__list;

/* The element that contains a node. */
#define HF__ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void hf__list_init(hf__list *list)
{
    list->head.next = list->head.prev = &list->head;
    list->count = 0;
}

static inline bool hf__node_linked(const hf__node *node)
{
    return node->next != NULL;
}

static inline void hf__list_insert_before(hf__list *list, hf__node *place, hf__node *node)
{
    assert(!hf__node_linked(node));
    node->next = place;
    node->prev = place->prev;
    place->prev->next = node;
    place->prev = node;
    list->count++;
}

static inline void hf__list_append(hf__list *list, hf__node *node)
{
    hf__list_insert_before(list, &list->head, node);
}

static inline void hf__list_prepend(hf__list *list, hf__node *node)
{
    hf__list_insert_before(list, list->head.next, node);
}

static inline void hf__list_remove(hf__list *list, hf__node *node)
{
    assert(hf__node_linked(node) && list->count > 0);
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
    list->count--;
}

static inline hf__node *hf__list_first(const hf__list *list)
{
    return list->count > 0 ? list->head.next : NULL;
}

static inline hf__node *hf__list_last(const hf__list *list)
{
    return list->count > 0 ? list->head.prev : NULL;
}

/* Moves the first one to the end, and returns it: for going through a list in which any element may
 * vanish at each step. It must not be empty. */
static inline hf__node *hf__list_rotate(hf__list *list)
{
    hf__node *first = hf__list_first(list);
    hf__list_remove(list, first);
    hf__list_append(list, first);
    return first;
}

/* NULL after the last one. */
static inline hf__node *hf__list_next(const hf__list *list, const hf__node *node)
{
    return node->next != &list->head ? node->next : NULL;
}

#endif
