/* SPDX-License-Identifier: MIT
 *
 * Six ways to sell one unit to one buyer. The table flashsale_item has one row, with the stock; a
 * row of flashsale_order is an order. Each strategy also has to see to it that nobody orders twice,
 * and that a request that is served again, because its first worker was killed, counts once: its
 * number is unique among the orders.
 *
 * think() stands for whatever takes time between looking and writing. All strategies have it, and
 * it is there that workers are killed and stopped. */
#include "sale.h"

#include <holdfast_stock.h>

/* ---- What they share ------------------------------------------------------------------------- */

static void insert_order(struct buyer *buyer)
{
    db_run(buyer->db, "INSERT INTO flashsale_order (id, request, buyer) VALUES (?, ?, ?)",
           WITH(buyer->order_id, buyer->number, buyer->request->user));
}

static int64_t stock_left(struct buyer *buyer)
{
    return db_run(buyer->db, "SELECT stock FROM flashsale_item WHERE id = 1", NULL);
}

static int64_t orders_of_user(struct buyer *buyer)
{
    return db_run(buyer->db, "SELECT count(*) FROM flashsale_order WHERE buyer = ?",
                  WITH(buyer->request->user));
}

/* A no; unless this very request was sold before, and only its answer got lost. */
static enum answer refuse(struct buyer *buyer, enum answer why)
{
    if (db_rollback(buyer->db) == DB_BROKEN)
        return FAILED;
    if (buyer->request->attempts > 1 &&
        db_run(buyer->db, "SELECT count(*) FROM flashsale_order WHERE request = ?",
               WITH(buyer->number)) > 0)
        return SOLD;
    return why;
}

/* Sold, if the database agrees with all that was done. */
static enum answer settle(struct buyer *buyer)
{
    switch (db_commit(buyer->db)) {
    case DB_FINE:
        return SOLD;
    case DB_DUPLICATE:
        return refuse(buyer, HAS_ONE);
    case DB_AGAIN:
        return AGAIN;
    default:
        complain(buyer, "the database", db_why(buyer->db));
        return FAILED;
    }
}

/* ---- 1: look, think, write ------------------------------------------------------------------- */

/* While one thinks, others have looked at the same number, and write the same one less. */
static enum answer naive(struct buyer *buyer)
{
    int64_t stock = stock_left(buyer);
    if (stock == 0)
        return refuse(buyer, SOLD_OUT);
    if (orders_of_user(buyer) > 0)
        return refuse(buyer, HAS_ONE);
    think(buyer);
    db_run(buyer->db, "UPDATE flashsale_item SET stock = ? WHERE id = 1", WITH(stock - 1));
    insert_order(buyer);
    return settle(buyer);
}

/* ---- 2: write if the number is still the one that was seen ----------------------------------- */

/* Right, but of all who have seen the same number one succeeds, and the others are refused for no
 * good reason. (They could try again; under such load, again and again.) */
static enum answer compare_and_set(struct buyer *buyer)
{
    int64_t stock = stock_left(buyer);
    if (stock == 0)
        return refuse(buyer, SOLD_OUT);
    think(buyer);
    db_begin(buyer->db);
    if (db_run(buyer->db, "UPDATE flashsale_item SET stock = stock - 1 WHERE id = 1 AND stock = ?",
               WITH(stock)) == 0) {
        db_rollback(buyer->db);
        stock = stock_left(buyer);
        return refuse(buyer, stock > 0 ? IN_VAIN : SOLD_OUT);
    }
    insert_order(buyer);
    return settle(buyer);
}

/* ---- 3: write if there is one left ----------------------------------------------------------- */

/* Stock and order in one transaction: should the worker be killed in between, neither has happened.
 * Strategies 5 and 6 write the same way, so that the database has the last word. */
static enum answer take_and_order(struct buyer *buyer)
{
    db_begin(buyer->db);
    if (db_run(buyer->db, "UPDATE flashsale_item SET stock = stock - 1 WHERE id = 1 AND stock > 0",
               NULL) == 0)
        return refuse(buyer, SOLD_OUT);
    critical_point(buyer);
    insert_order(buyer);
    return settle(buyer);
}

static enum answer stock_above_zero(struct buyer *buyer)
{
    think(buyer);
    return take_and_order(buyer);
}

/* ---- 4: the naive one, under a lock, with a fence -------------------------------------------- */

/* Somebody has had the lock after us. That we thought it was ours is what the fence is for. */
static enum answer too_late(struct buyer *buyer)
{
    if (db_rollback(buyer->db) != DB_FINE)
        return AGAIN;
    atomic_fetch_add(&buyer->sale->stale, 1);
    return AGAIN;
}

/* The fence goes into the row before anything is read: from then on nobody with an older one can
 * write, so what is read stays true until we write, or until the database refuses us as well. */
static enum answer sell_fenced(struct buyer *buyer, int64_t fence)
{
    if (db_run(buyer->db, "UPDATE flashsale_item SET fence = ? WHERE id = 1 AND fence <= ?",
               WITH(fence, fence)) == 0)
        return too_late(buyer);
    int64_t stock = stock_left(buyer);
    if (stock == 0)
        return refuse(buyer, SOLD_OUT);
    if (orders_of_user(buyer) > 0)
        return refuse(buyer, HAS_ONE);
    think(buyer);
    db_begin(buyer->db);
    if (db_run(buyer->db, "UPDATE flashsale_item SET stock = ? WHERE id = 1 AND fence <= ?",
               WITH(stock - 1, fence)) == 0)
        return too_late(buyer);
    insert_order(buyer);
    return settle(buyer);
}

/* A program that is careful asks hf_is_valid() before it writes, which saves a vain attempt. It is
 * left out here to show that the database does not depend on it. */
static enum answer under_lock(struct buyer *buyer)
{
    hf_hold *hold;
    hf_error error;
    if (hf_acquire(buyer->client, ITEM, HF_ACQUIRE(.lease_ms = LEASE_MS, .wait_ms = 60000), &hold,
                   &error) != HF_OK)
        return trouble_with_redis(buyer, &error);
    enum answer answer = sell_fenced(buyer, (int64_t)hf_fence(hold));
    hf_release(&hold, NULL); /* that it was lost, if it was, the database has seen */
    return answer;
}

/* ---- 5: the stock is in Redis ---------------------------------------------------------------- */

static enum answer not_taken(struct buyer *buyer, const hf_error *error)
{
    switch (error->status) {
    case HF_ESOLDOUT:
        return refuse(buyer, SOLD_OUT);
    case HF_ELIMIT:
        return refuse(buyer, HAS_ONE);
    case HF_EEXPIRED:
        return refuse(buyer, IN_VAIN);
    default:
        return trouble_with_redis(buyer, error);
    }
}

/* Only so many as there are units get as far as the database. A worker that is killed between the
 * two leaves a unit that is taken and not ordered: the request is served again, takes nothing more,
 * and writes its order. */
static enum answer redis_stock(struct buyer *buyer)
{
    hf_error error;
    if (hf_stock_take(buyer->client, ITEM, 1,
                      HF_TAKE(.user = buyer->user, .request = buyer->request_name), NULL,
                      &error) != HF_OK)
        return not_taken(buyer, &error);
    think(buyer);
    return take_and_order(buyer);
}

/* ---- 6: reserve, order, confirm -------------------------------------------------------------- */

/* The same for buyers who may never come back: what is not confirmed is in stock again by itself.
 * An order that is confirmed too late stands, because it is in the database; the unit that is on
 * offer again in Redis will be refused there. */
static enum answer reserve_and_confirm(struct buyer *buyer)
{
    hf_error error;
    if (hf_stock_reserve(buyer->client, ITEM, 1, RESERVE_MS,
                         HF_TAKE(.user = buyer->user, .request = buyer->request_name), NULL, NULL,
                         &error) != HF_OK)
        return not_taken(buyer, &error);
    think(buyer);
    enum answer answer = take_and_order(buyer);
    if (answer == SOLD_OUT || answer == HAS_ONE)
        hf_stock_cancel(buyer->client, ITEM, 0, buyer->request_name, NULL);
    if (answer != SOLD)
        return answer;
    critical_point(buyer);
    hf_status status = hf_stock_confirm(buyer->client, ITEM, 0, buyer->request_name, &error);
    return status == HF_OK || status == HF_EEXPIRED ? SOLD : trouble_with_redis(buyer, &error);
}

const struct strategy strategies[STRATEGIES] = {
    {"naive: look, then write", naive, false, false, false, false},
    {"compare-and-set", compare_and_set, true, false, true, false},
    {"... WHERE stock > 0", stock_above_zero, true, true, true, false},
    {"lock and fence", under_lock, true, true, true, false},
    {"stock in Redis", redis_stock, true, true, true, true},
    {"reserve and confirm", reserve_and_confirm, true, true, true, true},
};
