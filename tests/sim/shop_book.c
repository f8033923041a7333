/* SPDX-License-Identifier: MIT */
/* The book of the shop: what the server has made of each order, read off its counts after every
 * script. One script is about one order, so whatever has changed is what it did: either nothing,
 * or, once in the order's life, what the order says; and reservations whose time is over may have
 * ended, each once. Everything else must be as it was. After each script the counts of the item and
 * of all users are exactly those of the book, none below zero, and nobody has more than the limit
 * when something is added to it.
 *
 * What an application is told must agree with the book, and stay true: what was refused, cancelled
 * or never sent has no effect later. A request is forgotten when its item's time to keep it is over
 * by the server's clock. A server that comes back with an old copy goes back to the book of that
 * time; what was told of the lost future is void. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/name.h"
#include "lua/scripts.h"
#include "sim.h"

enum { ITEM_KEY, OPEN_KEY = 3 };

typedef struct script_run { /* of one of the scripts of stock */
    hf__script_id script;
    int order; /* or NO_ORDER; of a delete: the one that began what it is about */
    bool confirms, cancels, deletes, by_force;
} script_run;

typedef struct counts { /* as the server has them */
    int64_t total, available, reserved, sold;
} counts;

void shop_begin(world *w)
{
    static const char letters[ITEM_KEYS + 1] = "srpt";
    for (int i = 0; i < ITEMS; i++) {
        unsigned slot = hf__slot(item_names[i], strlen(item_names[i]));
        for (int key = 0; key < ITEM_KEYS; key++)
            w->shop.key_lengths[i][key] =
                hf__side_key(w->shop.keys[i][key], HF__SLICE(""), letters[key],
                             hf__slice_text(item_names[i]), slot);
        w->shop.now.items[i].begun = NO_ORDER;
    }
}

static int64_t now_ms(const world *w)
{
    return server_now_us(w) / 1000;
}

/* ---- Reading ---- */

static const char *field(world *w, int item, const char *name)
{
    return sim_server_field(w->server, w->shop.keys[item][ITEM_KEY],
                            w->shop.key_lengths[item][ITEM_KEY], name);
}

static int64_t number(world *w, int item, const char *name)
{
    const char *text = field(w, item, name);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

static counts read_counts(world *w, int item)
{
    return (counts){.total = number(w, item, "total"),
                    .available = number(w, item, "available"),
                    .reserved = number(w, item, "reserved"),
                    .sold = number(w, item, "sold")};
}

static bool is_open(world *w, int order, double *ends_ms)
{
    char text[REQUEST_SIZE];
    int item = w->shop.orders[order].item;
    (void)shop_request(w, order, text);
    return sim_server_score(w->server, w->shop.keys[item][OPEN_KEY],
                            w->shop.key_lengths[item][OPEN_KEY], text, ends_ms);
}

/* ---- What an order does ---- */

static void add_for_user(item_truth *t, const sim_order *o, int64_t units)
{
    if (o->user != NOBODY)
        t->users[o->user] += units;
}

static void check_limit(world *w, const item_truth *t, const sim_order *o)
{
    if (t->limit > 0 && o->user != NOBODY && t->users[o->user] > t->limit)
        world_fail(w, "%.*s has %lld of %s, of which one may have %lld",
                   (int)shop_user(o->user).length, shop_user(o->user).bytes,
                   (long long)t->users[o->user], item_names[o->item], (long long)t->limit);
}

/* The server need not know it any more. */
static bool is_forgotten(const world *w, int order)
{
    const item_truth *t = &w->shop.now.items[w->shop.orders[order].item];
    return now_ms(w) - w->shop.now.orders[order].first_ms + w->shop.set_back_ms >= t->keep_ms;
}

/* An effect is to be the first one, and nobody may have been told that there is none. */
static void check_first(world *w, int order)
{
    const order_truth *truth = &w->shop.now.orders[order];
    bool again = truth->state != ORDER_NONE, denied = w->shop.orders[order].told_no;
    if (!again && !denied)
        return;
    if (is_forgotten(w, order))
        w->stats.forgotten_orders++;
    else if (again)
        world_fail(w, "order %d: done twice", order);
    else
        world_fail(w, "order %d: done after all, and somebody was told that it was not", order);
}

static void take_effect(world *w, int order, order_state state)
{
    check_first(w, order);
    w->shop.now.orders[order].state = state;
}

static void see_take(world *w, item_truth *t, const counts *c, int order)
{
    const sim_order *o = &w->shop.orders[order];
    if (c->sold != t->sold + o->units)
        return;
    take_effect(w, order, ORDER_DONE);
    t->sold += o->units;
    add_for_user(t, o, o->units);
    check_limit(w, t, o);
    w->stats.sold++;
}

static void see_reserve(world *w, item_truth *t, int order)
{
    const sim_order *o = &w->shop.orders[order];
    double ends_ms = 0;
    if (w->shop.now.orders[order].state == ORDER_OPEN || !is_open(w, order, &ends_ms))
        return;
    take_effect(w, order, ORDER_OPEN);
    w->shop.now.orders[order].ends_ms = (int64_t)ends_ms;
    if ((int64_t)ends_ms != now_ms(w) + o->span_ms)
        world_fail(w, "order %d: reserved for the wrong time", order);
    t->reserved += o->units;
    if (t->open_count < OPEN_MAX)
        t->open[t->open_count++] = order;
    add_for_user(t, o, o->units);
    check_limit(w, t, o);
    w->stats.reserved++;
}

static void see_put(world *w, item_truth *t, const counts *c, int order)
{
    const sim_order *o = &w->shop.orders[order];
    if (o->verb == 'n' && c->total == t->total + o->units) {
        take_effect(w, order, ORDER_DONE);
        t->total += o->units;
    } else if (o->verb == 'p' && c->sold == t->sold - o->units) {
        take_effect(w, order, ORDER_DONE);
        t->sold -= o->units;
        add_for_user(t, o, -o->units);
        w->stats.taken_back++;
    }
}

/* Forgets what was told about the item's orders, which have begun again at the server. */
static void void_told(world *w, int item)
{
    w->shop.renewed[item]++;
    for (int i = 0; i < w->shop.order_count; i++)
        if (w->shop.orders[i].item == item)
            w->shop.orders[i].told_no = false;
}

/* Whether the order has just done that. */
static bool begins_again(world *w, int item, int order)
{
    char text[REQUEST_SIZE];
    const char *begun = field(w, item, "begun");
    (void)shop_request(w, order, text);
    return begun != NULL && strcmp(begun, text) == 0 && w->shop.now.items[item].begun != order;
}

static void forget_orders(world *w, int item, int but)
{
    for (int i = 0; i < w->shop.order_count; i++)
        if (w->shop.orders[i].item == item && i != but)
            w->shop.now.orders[i] = (order_truth){.state = ORDER_NONE};
    void_told(w, item);
}

/* Orders of an item that was deleted, and is set again, do not count again, unless that is to begin
 * afresh. */
static void begin_again(world *w, int item, int order)
{
    item_truth *t = &w->shop.now.items[item];
    bool afresh = w->shop.orders[order].afresh;
    int64_t keep_ms = afresh || t->keep_ms == 0 ? INT64_MAX : t->keep_ms;
    take_effect(w, order, ORDER_DONE);
    *t = (item_truth){
        .exists = true, .total = w->shop.orders[order].units, .begun = order, .keep_ms = keep_ms};
    if (afresh)
        forget_orders(w, item, order);
    w->stats.begun_again++;
}

static void see_deleted(world *w, int item, const script_run *run)
{
    item_truth *t = &w->shop.now.items[item];
    if (!run->deletes || run->order != t->begun)
        world_fail(w, "%s is gone", item_names[item]);
    for (int i = 0; i < t->open_count; i++) {
        order_truth *truth = &w->shop.now.orders[t->open[i]];
        if (truth->ends_ms > now_ms(w) && !run->by_force)
            world_fail(w, "%s is deleted, and order %d is open", item_names[item], t->open[i]);
        truth->state = ORDER_ENDED;
    }
    *t = (item_truth){.begun = NO_ORDER, .keep_ms = t->keep_ms};
    w->stats.deleted++;
}

static void see_set(world *w, int item, const counts *c, int order)
{
    item_truth *t = &w->shop.now.items[item];
    if (c->total != t->total && c->total == w->shop.orders[order].units) {
        take_effect(w, order, ORDER_DONE);
        t->total = c->total;
    }
    int64_t keep_ms = number(w, item, "keep");
    t->keep_ms = keep_ms < t->keep_ms ? keep_ms : t->keep_ms;
    t->limit = number(w, item, "limit");
}

/* ---- Reservations that are no more ---- */

static void end_open(world *w, item_truth *t, int place, const counts *c, const script_run *run)
{
    int order = t->open[place];
    const sim_order *o = &w->shop.orders[order];
    order_truth *truth = &w->shop.now.orders[order];
    bool mine = order == run->order, over = truth->ends_ms <= now_ms(w);
    bool sold = mine && run->confirms && c->sold == t->sold + o->units;
    if (sold && over)
        world_fail(w, "order %d: confirmed %lld ms after its end", order,
                   (long long)(now_ms(w) - truth->ends_ms));
    if (!sold && !over && !(mine && run->cancels))
        world_fail(w, "order %d: its reservation has ended early", order);
    t->open[place] = t->open[--t->open_count];
    t->reserved -= o->units;
    truth->state = sold ? ORDER_DONE : ORDER_ENDED;
    w->stats.confirmed += sold;
    w->stats.ended += !sold;
    if (sold)
        t->sold += o->units;
    else
        add_for_user(t, o, -o->units);
}

static void see_ended(world *w, item_truth *t, const counts *c, const script_run *run)
{
    double ends_ms = 0;
    for (int i = t->open_count - 1; i >= 0; i--)
        if (!is_open(w, t->open[i], &ends_ms))
            end_open(w, t, i, c, run);
}

/* ---- All of it ---- */

static void compare_user(world *w, int item, int user)
{
    char name[24];
    snprintf(name, sizeof(name), "=%s", shop_user(user).bytes);
    int64_t has = number(w, item, name), should = w->shop.now.items[item].users[user];
    if (has != should)
        world_fail(w, "%s: %s has %lld, and should have %lld", item_names[item], name + 1,
                   (long long)has, (long long)should);
}

static void compare(world *w, int item, const counts *c)
{
    const item_truth *t = &w->shop.now.items[item];
    if (c->available < 0 || c->reserved < 0 || c->sold < 0 ||
        c->total != c->available + c->reserved + c->sold)
        world_fail(w, "%s: %lld in all, %lld available, %lld reserved, %lld sold", item_names[item],
                   (long long)c->total, (long long)c->available, (long long)c->reserved,
                   (long long)c->sold);
    if (c->total != t->total || c->reserved != t->reserved || c->sold != t->sold)
        world_fail(w, "%s: %lld in all, %lld reserved, %lld sold, and should be %lld, %lld, %lld",
                   item_names[item], (long long)c->total, (long long)c->reserved,
                   (long long)c->sold, (long long)t->total, (long long)t->reserved,
                   (long long)t->sold);
    for (int user = 0; user < USERS; user++)
        compare_user(w, item, user);
}

static void see_effect(world *w, int item, const counts *c, const script_run *run)
{
    item_truth *t = &w->shop.now.items[item];
    if (run->script == HF__SCRIPT_STOCK_SET)
        see_set(w, item, c, run->order);
    else if (run->script == HF__SCRIPT_STOCK_PUT)
        see_put(w, t, c, run->order);
    else if (run->script == HF__SCRIPT_STOCK_TAKE && w->shop.orders[run->order].verb == 't')
        see_take(w, t, c, run->order);
    else if (run->script == HF__SCRIPT_STOCK_TAKE)
        see_reserve(w, t, run->order);
    order_truth *truth = &w->shop.now.orders[run->order];
    if (truth->first_ms == 0)
        truth->first_ms = now_ms(w);
}

static void see_item(world *w, int item, const script_run *run)
{
    item_truth *t = &w->shop.now.items[item];
    counts c = read_counts(w, item);
    bool about = run->order != NO_ORDER && !run->deletes && w->shop.orders[run->order].item == item;
    if (field(w, item, "total") == NULL) {
        if (t->exists)
            see_deleted(w, item, run);
        return;
    }
    if (about && begins_again(w, item, run->order))
        begin_again(w, item, run->order);
    see_ended(w, t, &c, run);
    if (about)
        see_effect(w, item, &c, run);
    compare(w, item, &c);
}

static script_run run_of(const world *w, const char *sha1, const hf__slice *arguments, int count)
{
    script_run run = {.script = HF__SCRIPT_COUNT, .order = NO_ORDER};
    for (int i = HF__SCRIPT_STOCK_SET; i <= HF__SCRIPT_STOCK_DELETE; i++)
        if (strcmp(sha1, hf__scripts[i].sha1) == 0)
            run.script = (hf__script_id)i;
    int at = run.script == HF__SCRIPT_STOCK_TAKE || run.script == HF__SCRIPT_STOCK_PUT ? 4 : 3;
    run.deletes = run.script == HF__SCRIPT_STOCK_DELETE;
    run.by_force = run.deletes && arguments[3].bytes[0] == '1';
    at = run.deletes ? 2 : at;
    if (run.script == HF__SCRIPT_COUNT || run.script == HF__SCRIPT_STOCK_LOOK || count <= at)
        return run;
    const char *dash = memchr(arguments[at].bytes, '-', arguments[at].length);
    run.order = dash != NULL ? atoi(dash + 1) : NO_ORDER;
    if (run.order >= w->shop.order_count)
        run.order = NO_ORDER;
    run.confirms = run.script == HF__SCRIPT_STOCK_SETTLE && arguments[2].bytes[0] == 'c';
    run.cancels = run.script == HF__SCRIPT_STOCK_SETTLE && !run.confirms;
    return run;
}

void shop_ran(world *w, const char *sha1, const hf__slice *arguments, int count)
{
    script_run run = run_of(w, sha1, arguments, count);
    for (int item = 0; run.script != HF__SCRIPT_COUNT && item < ITEMS; item++)
        see_item(w, item, &run);
}

/* ---- What is told ---- */

static bool agrees(const world *w, const sim_clerk *k, hf_status status)
{
    const order_truth *truth = &w->shop.now.orders[k->order];
    order_state state = truth->state;
    bool over = truth->ends_ms <= now_ms(w) + w->shop.set_back_ms;
    bool reserves = w->shop.orders[k->order].verb == 'r';
    if (status == HF_OK && k->task == TASK_CONFIRM)
        return state == ORDER_DONE;
    if (status == HF_OK && k->task == TASK_CANCEL)
        return state == ORDER_ENDED;
    if (status == HF_OK && w->shop.orders[k->order].verb == 's')
        return true; /* it may have changed nothing */
    if (status == HF_OK)
        return reserves ? state != ORDER_NONE : state == ORDER_DONE;
    if (status == HF_ESOLDOUT && k->task == TASK_CANCEL)
        return state == ORDER_DONE;
    if (status == HF_EMISSING && k->task == TASK_CONFIRM)
        return true; /* it may have come too early */
    if (status == HF_EEXPIRED)
        return state == ORDER_ENDED || state == ORDER_NONE || (state == ORDER_OPEN && over);
    return state == ORDER_NONE;
}

/* What was refused. A set that was refused may be made by a copy that is late, if it had no other
 * one: it says how many there are, and changes nothing that was sold. */
static bool is_final(const sim_order *o, clerk_task task, hf_status status)
{
    bool own = task == TASK_ORDER || task == TASK_BEGIN_AGAIN;
    if (status == HF_ESOLDOUT || status == HF_ELIMIT || status == HF_EINVAL)
        return own;
    if (task == TASK_CANCEL)
        return status == HF_OK || status == HF_EMISSING;
    return own && status == HF_EUNAVAILABLE && !o->given;
}

void shop_told(world *w, int index, const sim_clerk *k, hf_status status, const hf_error *error)
{
    sim_order *o = &w->shop.orders[k->order];
    bool unsure = status == HF_EUNKNOWN || status == HF_ENOMEM || status == HF_ECLOSED ||
                  status == HF_EUNAVAILABLE || status == HF_ESTALE;
    if (status == HF_EMISSING && strstr(error->text, "no such item") != NULL)
        return; /* nothing is remembered, and the item may have been deleted */
    bool known = w->shop.now.items[k->item].exists && !is_forgotten(w, k->order);
    bool put_refused = status == HF_EINVAL && (o->verb == 'p' || o->verb == 'n');
    w->stats.refused_orders += status == HF_ESOLDOUT || status == HF_ELIMIT;
    if (status == HF_EINVAL && !put_refused)
        world_fail(w, "client %d: order %d: %s", index, k->order, error->text);
    if (known && !unsure && !agrees(w, k, status))
        world_fail(w, "client %d: order %d is told %s, and its state is %d", index, k->order,
                   hf_status_name(status), (int)w->shop.now.orders[k->order].state);
    bool done = w->shop.now.orders[k->order].state != ORDER_NONE;
    if (is_final(o, k->task, status) && done && status == HF_EUNAVAILABLE)
        world_fail(w, "client %d: order %d is done, and was never sent", index, k->order);
    if (is_final(o, k->task, status) && !done)
        o->told_no = true;
    o->told_reserved |= status == HF_OK && o->verb == 'r';
}

/* ---- Faults ---- */

void shop_copied(world *w)
{
    w->shop.old = w->shop.now;
}

void shop_lost(world *w, bool old_copy)
{
    if (old_copy)
        w->shop.now = w->shop.old;
    else
        memset(&w->shop.now, 0, sizeof(w->shop.now));
    for (int item = 0; item < ITEMS; item++) {
        if (!old_copy)
            w->shop.now.items[item].begun = NO_ORDER;
        void_told(w, item);
    }
}
