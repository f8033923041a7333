/* SPDX-License-Identifier: MIT */
/* Buyers. A clerk takes, reserves, confirms, cancels, takes back, restocks, says how many there
 * are, counts them, begins an item again, and deletes it; for users, some of whom have enough. Half
 * of the orders have a request of the application's own, and are made again by anybody who likes,
 * also by other clients at the same time. What an order is answered is compared with what the
 * server has made of it (shop_book.c). */
#include <stdio.h>
#include <string.h>

#include "core/stock.h"
#include "sim.h"

enum { AGAIN_MS = 1000 /* requests are repeated within */, RECENT = 24 };

const char *const item_names[ITEMS] = {"phone", "x"};
static const char *const user_names[USERS] = {"alice", "bob", "carol dan", "e"};

static hf__stock_item item_of(int item)
{
    return (hf__stock_item){.name = hf__slice_text(item_names[item])};
}

hf__slice shop_user(int user)
{
    return user == NOBODY ? HF__SLICE("") : hf__slice_text(user_names[user]);
}

/* ---- Orders ---- */

hf__slice shop_request(const world *w, int order, char text[REQUEST_SIZE])
{
    int length = snprintf(text, REQUEST_SIZE, "%d-%d", w->shop.orders[order].item, order);
    return (hf__slice){text, (size_t)length};
}

static hf__query *set(world *w, const sim_clerk *k, hf__slice request)
{
    const sim_order *o = &w->shop.orders[k->order];
    bool again = k->task == TASK_BEGIN_AGAIN;
    bool limits = again || !w->shop.now.items[o->item].exists;
    hf__slice begun = {hf__buffer_front(&k->answer.value), hf__buffer_length(&k->answer.value)};
    hf__stock_item item = item_of(o->item);
    return hf__stock_set(&item, &(hf__stock_plan){.units = o->units,
                                                  .per_user = limits ? w->plan.per_user : 0,
                                                  .keep_ms = o->span_ms,
                                                  .request = request,
                                                  .afresh = again,
                                                  .begun = begun});
}

static hf__query *order_query(world *w, const sim_clerk *k)
{
    char text[REQUEST_SIZE];
    const sim_order *o = &w->shop.orders[k->order];
    hf__stock_item item = item_of(o->item);
    hf__stock_order order = {.units = o->units,
                             .user = shop_user(o->user),
                             .request = shop_request(w, k->order, text),
                             .given = o->given};
    if (k->task == TASK_CONFIRM)
        return hf__stock_confirm(&item, order.request);
    if (k->task == TASK_CANCEL)
        return hf__stock_cancel(&item, order.request);
    if (o->verb == 't')
        return hf__stock_take(&item, &order);
    if (o->verb == 'r')
        return hf__stock_reserve(&item, &order, o->span_ms);
    if (o->verb == 's')
        return set(w, k, order.request);
    return hf__stock_put(&item, &order, o->verb == 'n');
}

static void start(world *w, int index, int number, clerk_task task, int order)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    const sim_order *o = &w->shop.orders[order];
    w->shop.orders[order].afresh |= task == TASK_BEGIN_AGAIN;
    k->task = task;
    k->order = order;
    k->item = o->item;
    k->renewed = w->shop.renewed[o->item];
    world_log(w, "client %d, clerk %d: order %d: %c%s %lld of %s for %d", index, number, order,
              o->verb,
              task == TASK_CONFIRM  ? " confirm"
              : task == TASK_CANCEL ? " cancel"
                                    : "",
              (long long)o->units, item_names[o->item], o->user);
    clerk_start(w, index, number, order_query(w, k));
}

static int any_user(world *w)
{
    return w->plan.per_user > 0 || draw(w, 4) > 0 ? (int)draw(w, USERS) : NOBODY;
}

static int new_order(world *w, int item, char verb)
{
    sim_order *o = &w->shop.orders[w->shop.order_count];
    *o = (sim_order){.verb = verb, .item = item, .made_ns = w->run.now_ns};
    o->given = verb != 's' && draw(w, 2) == 0;
    o->user = verb == 'n' || verb == 's' ? NOBODY : any_user(w);
    o->units = draw_between(w, 1, 3);
    if (verb == 'r')
        o->span_ms = draw(w, 3) == 0 ? KEEP_MIN_MS : draw_between(w, 1, 1500);
    if (verb == 's') {
        o->units = draw_between(w, 1, w->plan.units);
        o->span_ms = draw(w, 2) == 0 ? KEEP_MIN_MS : draw_between(w, KEEP_MIN_MS, 2 * KEEP_MIN_MS);
    }
    return w->shop.order_count++;
}

/* One of the latest, with what it takes; NO_ORDER: there was none, by luck. */
static int recent_order(world *w, int64_t within_ms, bool (*fits)(const sim_order *))
{
    int latest = w->shop.order_count < RECENT ? w->shop.order_count : RECENT;
    if (latest == 0)
        return NO_ORDER;
    int order = w->shop.order_count - 1 - (int)draw(w, (uint64_t)latest);
    const sim_order *o = &w->shop.orders[order];
    bool late = w->run.now_ns - o->made_ns > MS(within_ms);
    return !late && fits(o) ? order : NO_ORDER;
}

static bool is_given(const sim_order *o)
{
    return o->given;
}

static bool can_settle(const sim_order *o)
{
    return o->verb == 'r' && (o->given || o->told_reserved);
}

/* ---- What to do next ---- */

static void look(world *w, int index, int number, clerk_task task, int item)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    hf__stock_item asked = item_of(item);
    k->task = task;
    k->item = item;
    k->renewed = w->shop.renewed[item];
    k->order = NO_ORDER;
    clerk_start(w, index, number,
                task == TASK_LOOK ? hf__stock_look_at_page(&asked, &(hf__stock_count){0})
                                  : hf__stock_look(&asked));
}

static void begin_order(world *w, int index, int number, int item)
{
    static const char verbs[] = "tttttrrrrrrppnn";
    bool exists = w->shop.now.items[item].exists;
    char verb = verbs[draw(w, sizeof(verbs) - 1)];
    if (draw(w, exists ? 40 : 4) == 0)
        verb = 's';
    start(w, index, number, TASK_ORDER, new_order(w, item, verb));
}

void shop_act(world *w, int index, int number)
{
    int item = (int)draw(w, (uint64_t)w->plan.items);
    uint64_t dice = draw(w, 100);
    int order = NO_ORDER;
    if (dice < 20)
        order = recent_order(w, AGAIN_MS, is_given);
    else if (dice < 50)
        order = recent_order(w, KEEP_MIN_MS, can_settle);
    if (order != NO_ORDER)
        start(w, index, number,
              dice < 20   ? TASK_ORDER
              : dice < 40 ? TASK_CONFIRM
                          : TASK_CANCEL,
              order);
    else if (dice >= 95 || w->shop.order_count == ORDERS_MAX)
        look(w, index, number, TASK_LOOK, item);
    else if (dice == 94 && w->plan.begins_again)
        look(w, index, number, TASK_BEGIN_AGAIN, item);
    else if (dice >= 90 && w->plan.begins_again)
        look(w, index, number, TASK_DELETE, item);
    else
        begin_order(w, index, number, item);
}

/* ---- What was answered ---- */

static void check_report(world *w, int index, const sim_clerk *k)
{
    hf__stock_count count = {0};
    hf_error error;
    hf_status status = hf__stock_look_outcome(&k->answer.numbers, &count, &error);
    if (status == HF_EMISSING)
        return;
    if (status != HF_OK)
        world_fail(w, "client %d: a look: %s", index, error.text);
    else if (k->task == TASK_LOOK && !count.report.adds_up)
        world_fail(w, "client %d: %s does not add up", index, item_names[k->item]);
}

/* What the look has seen, and nothing that comes after. */
static void delete_seen(world *w, int index, int number)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    hf__stock_item item = item_of(k->item);
    hf__slice begun = {hf__buffer_front(&k->answer.value), hf__buffer_length(&k->answer.value)};
    bool force = draw(w, 2) == 0;
    world_log(w, "client %d, clerk %d: delete %s, begun by %.*s%s", index, number,
              item_names[k->item], (int)begun.length, begun.bytes, force ? ", by force" : "");
    k->task = TASK_DELETE_NOW;
    clerk_start(w, index, number, hf__stock_delete(&item, begun, force));
}

void shop_answered(world *w, int index, int number)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    hf_status status = k->call.error.status;
    hf_error error = k->call.error;
    bool looked = k->order == NO_ORDER;
    if (status == HF_OK && (!looked || k->task == TASK_DELETE_NOW))
        status = hf__stock_outcome(&k->answer.numbers, NULL, &error);
    world_log(w, "client %d, clerk %d: order %d: %s %s", index, number, k->order,
              hf_status_name(status), error.text);
    if (!looked) {
        if (k->renewed == w->shop.renewed[k->item])
            shop_told(w, index, k, status, &error);
        return;
    }
    if (status != HF_OK || k->task == TASK_DELETE_NOW)
        return;
    check_report(w, index, k);
    if (k->task == TASK_DELETE && !w->finished && k->answer.numbers.number[0] == 1)
        delete_seen(w, index, number);
    if (k->task == TASK_BEGIN_AGAIN && !w->finished && w->shop.order_count < ORDERS_MAX)
        start(w, index, number, TASK_BEGIN_AGAIN, new_order(w, k->item, 's'));
}
