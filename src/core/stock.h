/* SPDX-License-Identifier: MIT */
/* Stock: questions and orders about an item, and what their answers come to. Pure. See
 * holdfast_stock.h for the words, and src/lua/stock_item.lua for what the server keeps. */
#ifndef HF_CORE_STOCK_H
#define HF_CORE_STOCK_H

#include <holdfast_stock.h>

#include "core/core.h"

typedef struct hf__stock_item { /* must outlive what is made of it */
    hf__slice prefix, name;
} hf__stock_item;

typedef struct hf__stock_order { /* take, reserve, put */
    int64_t units;
    hf__slice user;    /* empty: none */
    hf__slice request; /* which order it is */
    bool given;        /* by the caller, not made up: then refusals are remembered too */
} hf__stock_order;

typedef struct hf__stock_plan { /* set */
    int64_t units;
    int64_t per_user; /* 0: as it is, -1: none */
    int64_t keep_ms;  /* 0: as it is */
    hf__slice request;
    bool afresh;
    hf__slice begun; /* afresh: as hf__stock_look has said it */
} hf__stock_plan;

/* What a look has seen. An audit is a look at one page after the other; begin with zeros. */
typedef struct hf__stock_count {
    hf_stock_report report; /* adds_up: once all is counted */
    int64_t place, cursor;  /* where the next page begins; -1: there is none */
    int64_t turn, requests; /* with the counts of the item they tell one moment from another */
    bool begun;             /* a page was counted */
} hf__stock_count;

/* All NULL: out of memory. */
hf__query *hf__stock_set(const hf__stock_item *item, const hf__stock_plan *plan);
hf__query *hf__stock_look(const hf__stock_item *item);
hf__query *hf__stock_look_at_page(const hf__stock_item *item, const hf__stock_count *count);
hf__query *hf__stock_take(const hf__stock_item *item, const hf__stock_order *order);
hf__query *hf__stock_reserve(const hf__stock_item *item, const hf__stock_order *order,
                             int64_t limit_ms);
hf__query *hf__stock_put(const hf__stock_item *item, const hf__stock_order *order, bool restock);
hf__query *hf__stock_confirm(const hf__stock_item *item, hf__slice request);
hf__query *hf__stock_cancel(const hf__stock_item *item, hf__slice request);
/* `begun` as hf__stock_look has said it. */
hf__query *hf__stock_delete(const hf__stock_item *item, hf__slice begun, bool force);

/* What is said to all but look: the status that the calls of holdfast_stock.h return; *left may be
 * NULL. */
hf_status hf__stock_outcome(const hf__numbers *said, int64_t *left, hf_error *error);
/* And to a look: what it says is added to what was counted before. If the item has changed since,
 * *count is zeros again, to begin anew. HF_OK, HF_EMISSING, HF_ESERVER. */
hf_status hf__stock_look_outcome(const hf__numbers *said, hf__stock_count *count, hf_error *error);
bool hf__stock_is_counted(const hf__stock_count *count);

#endif
