/* SPDX-License-Identifier: MIT */
/* What is kept at the server besides locks, seen from outside: ids, and an item or two of stock. */
#ifndef HF_SIM_STORES_H
#define HF_SIM_STORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

enum {
    CLERKS_MAX = 4, /* of one client */
    IDS_NAMES = 2,
    BLOCKS_MAX = 8192, /* of one name */
    ITEMS = 2,
    ITEM_KEYS = 4,
    USERS = 4,
    ORDERS_MAX = 8192,
    OPEN_MAX = 1024, /* reservations of an item */
    KEEP_MIN_MS = 10000,
    REQUEST_SIZE = 24 /* bytes of an order's request, and NUL */
};

enum { NOBODY = -1, NO_ORDER = -1 };

/* ---- Ids ---- */

typedef struct sim_block { /* ids from the first on, up to the end */
    int64_t first, end;
} sim_block;

typedef struct sim_ids {
    char key[64];
    size_t key_length;
    char kept[128];   /* what the server has; empty: nothing */
    int64_t highest;  /* the end of all blocks that anybody was told of */
    int64_t ahead_us; /* its clock, when those began to jump that are furthest ahead of it */
    bool forgot;      /* the server has, and nobody has asked it since */
    bool excused;     /* and it was beyond the assumptions: nothing is promised for a while */
    int count;
    sim_block blocks[BLOCKS_MAX];
} sim_ids;

/* ---- Stock ---- */

typedef enum order_state {
    ORDER_NONE, /* it has had no effect */
    ORDER_DONE, /* sold, taken back, added, set; of a reservation: confirmed */
    ORDER_OPEN, /* reserved */
    ORDER_ENDED /* not any more */
} order_state;

typedef struct order_truth { /* what the server has made of it */
    order_state state;
    int64_t ends_ms;  /* of a reservation, by the server's clock */
    int64_t first_ms; /* when it first heard of it; 0: never */
} order_truth;

typedef struct item_truth {
    bool exists;
    int64_t total, reserved, sold, limit;
    int64_t keep_ms; /* the shortest that there was */
    int begun;       /* by which order, or NO_ORDER */
    int64_t users[USERS];
    int open[OPEN_MAX];
    int open_count;
} item_truth;

/* What can be known of the server's state from what its scripts did, one by one. Goes back with the
 * server if that comes back with an old copy. */
typedef struct shop_truth {
    item_truth items[ITEMS];
    order_truth orders[ORDERS_MAX];
} shop_truth;

typedef struct sim_order {
    char verb; /* as in stock_item.lua */
    int item;
    int64_t units, span_ms;
    int user;    /* or NOBODY */
    bool given;  /* the request is the application's: anybody may ask again */
    bool afresh; /* a set that begins the item again */
    int64_t made_ns;
    /* What an application was told, which must stay true. */
    bool told_no;       /* refused, cancelled, or never sent */
    bool told_reserved; /* somebody may confirm or cancel it */
} sim_order;

typedef struct sim_shop {
    shop_truth now, old; /* old: of the world's old copy */
    sim_order orders[ORDERS_MAX];
    int order_count;
    int renewed[ITEMS];  /* how often it was begun again, or forgotten: what was told is void */
    int64_t set_back_ms; /* the clock, in all */
    char keys[ITEMS][ITEM_KEYS][64]; /* in the order of the scripts */
    size_t key_lengths[ITEMS][ITEM_KEYS];
} sim_shop;

/* ---- Clerks: who run errands for a client ---- */

typedef enum clerk_task {
    TASK_IDS,
    TASK_ORDER, /* take, reserve, put, restock, set: what its order says */
    TASK_CONFIRM,
    TASK_CANCEL,
    TASK_LOOK,
    TASK_BEGIN_AGAIN, /* look first, and then set */
    TASK_DELETE,      /* look first, */
    TASK_DELETE_NOW   /* and then delete */
} clerk_task;

typedef struct sim_clerk {
    bool sells; /* or fetches ids */
    bool busy;
    clerk_task task;
    hf__call call;
    hf__answer answer;
    int64_t began_ns, paused_before_ns;
    /* Ids. */
    int name;
    int64_t ids_seen[IDS_NAMES]; /* the end of the highest block that it was given */
    int64_t count, seen, told_before;
    bool excused; /* nothing was promised when it asked, or since */
    /* Stock. */
    int item, order, renewed;
} sim_clerk;

#endif
