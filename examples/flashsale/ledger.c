/* SPDX-License-Identifier: MIT
 *
 * The books. Every run begins with fresh tables, and with fresh stock in Redis if the strategy has
 * it there; in the end the orders are counted in the database, whatever the buyers were told.
 * Sessions are closed again before anybody forks. */
#include "sale.h"

#include <holdfast_stock.h>
#include <inttypes.h>
#include <stdio.h>

static struct db *open_or_say(const struct sale *sale)
{
    char why[256];
    struct db *db = db_open(sale->options.db_url, why, sizeof why);
    if (db == NULL)
        fprintf(stderr, "flashsale: %s: %s\n", sale->options.db_url, why);
    return db;
}

static bool close_or_say(struct db *db)
{
    bool good = db_commit(db) == DB_FINE;
    if (!good)
        fprintf(stderr, "flashsale: the database: %s\n", db_why(db));
    db_close(db);
    return good;
}

static bool tables_begin(const struct sale *sale)
{
    struct db *db = open_or_say(sale);
    if (db == NULL)
        return false;
    db_run(db, "DROP TABLE IF EXISTS flashsale_order", NULL);
    db_run(db, "DROP TABLE IF EXISTS flashsale_item", NULL);
    db_run(db,
           "CREATE TABLE flashsale_item (id BIGINT PRIMARY KEY, stock BIGINT NOT NULL,"
           " fence BIGINT NOT NULL DEFAULT 0)",
           NULL);
    db_run(db,
           "CREATE TABLE flashsale_order (id BIGINT PRIMARY KEY, request BIGINT NOT NULL UNIQUE,"
           " buyer BIGINT NOT NULL)",
           NULL);
    db_run(db,
           sale->strategy->one_per_user
               ? "CREATE UNIQUE INDEX flashsale_one_per_user ON flashsale_order (buyer)"
               : "CREATE INDEX flashsale_by_user ON flashsale_order (buyer)",
           NULL);
    db_run(db, "INSERT INTO flashsale_item (id, stock) VALUES (1, ?)", WITH(sale->options.stock));
    return close_or_say(db);
}

/* ---- Redis ----------------------------------------------------------------------------------- */

typedef hf_status redis_work(hf_client *client, const struct sale *sale, void *place,
                             hf_error *error);

static bool with_client(const struct sale *sale, redis_work *work, void *place)
{
    hf_client *client;
    hf_error error;
    const char *url = sale->options.redis_url;
    hf_status status = hf_open(url, HF_CLIENT(.prefix = PREFIX), &client, &error);
    if (status == HF_OK)
        status = work(client, sale, place, &error);
    hf_close(client);
    if (status != HF_OK)
        fprintf(stderr, "flashsale: %s: %s: %s\n", url, hf_status_name(status), error.text);
    return status == HF_OK;
}

/* Who waits for a lock also waits for a server that is still starting. */
static hf_status say_hello(hf_client *client, const struct sale *sale, void *place, hf_error *error)
{
    hf_hold *hold;
    (void)sale;
    (void)place;
    hf_status status = hf_acquire(client, "hello", HF_ACQUIRE(.wait_ms = 5000), &hold, error);
    return status == HF_OK ? hf_release(&hold, error) : status;
}

static hf_status begin_stock(hf_client *client, const struct sale *sale, void *place,
                             hf_error *error)
{
    (void)place;
    return hf_stock_set(client, ITEM, sale->options.stock, HF_STOCK(.per_user = 1, .afresh = true),
                        error);
}

static hf_status audit_stock(hf_client *client, const struct sale *sale, void *place,
                             hf_error *error)
{
    (void)sale;
    return hf_stock_audit(client, ITEM, 0, place, error);
}

bool redis_is_there(const struct sale *sale)
{
    return with_client(sale, say_hello, NULL);
}

/* ---- Both ------------------------------------------------------------------------------------ */

bool ledger_begin(const struct sale *sale)
{
    return tables_begin(sale) &&
           (!sale->strategy->in_redis || with_client(sale, begin_stock, NULL));
}

bool ledger_count(const struct sale *sale, struct ledger *ledger)
{
    struct db *db = open_or_say(sale);
    if (db == NULL)
        return false;
    ledger->sold = db_run(db, "SELECT count(*) FROM flashsale_order", NULL);
    ledger->stock_left = db_run(db, "SELECT stock FROM flashsale_item WHERE id = 1", NULL);
    ledger->duplicates =
        db_run(db,
               "SELECT count(*) FROM (SELECT buyer FROM flashsale_order GROUP BY buyer"
               " HAVING count(*) > 1) AS twice",
               NULL);
    ledger->oversold = ledger->sold > sale->options.stock ? ledger->sold - sale->options.stock : 0;
    hf_stock_report audit = {0};
    ledger->redis_sold = -1;
    if (!close_or_say(db) || (sale->strategy->in_redis && !with_client(sale, audit_stock, &audit)))
        return false;
    if (audit.adds_up && audit.state.reserved == 0)
        ledger->redis_sold = audit.state.sold;
    return true;
}
