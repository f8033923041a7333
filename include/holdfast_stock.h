/* SPDX-License-Identifier: MIT
 *
 * holdfast_stock.h: stock that cannot be oversold.
 *
 *     hf_stock_set(client, "phone", 100, HF_STOCK(.per_user = 1), &error);
 *     if (hf_stock_take(client, "phone", 1, HF_TAKE(.user = "alice"), NULL, &error) == HF_OK)
 *         ... hers ...
 *
 * An ITEM is a name and four counts: TOTAL, how many there are in all, of which some are
 * AVAILABLE, some RESERVED for buyers who have not paid yet, and the rest is SOLD. Every call is
 * one step at the server, which keeps total = available + reserved + sold, and none of them below
 * zero. An item must have been set before: one that is not there is an error (HF_EMISSING), not an
 * empty shelf.
 *
 * A REQUEST is the name of one order, of at most HF_REQUEST_MAX bytes, such as a cart's id: asking
 * a second time with the same one does nothing more and gets the same answer, so whoever has not
 * heard the answer may ask again. Requests are remembered for keep_ms at least, for each item on
 * its own. A call without one gets a fresh one, which sees to it that a message that the library
 * repeats over a new connection counts once. The same request for something else (other units,
 * another user, another verb) is HF_EINVAL.
 *
 * A USER is a name, of at most HF_BUYER_MAX bytes. If the item has a limit per user, every take and
 * reservation names one, and what a user has at any time, sold and reserved, is no more than that.
 *
 * Assumes that the server does not forget: what it loses in a crash, or with a failover to a
 * replica that was behind, is in stock again. So run it with appendonly, and let the database in
 * which the orders end up have the last word: examples/flashsale shows how. Stock is for one
 * server: with a quorum, calls say HF_EINVAL, for a majority of counters is not a counter.
 *
 * All calls are bounded by call_timeout_ms. HF_EUNAVAILABLE: nothing was done. HF_EUNKNOWN: it may
 * have been; ask again with the same request. Any thread may call; see holdfast.h for the rest. */
#ifndef HOLDFAST_STOCK_H
#define HOLDFAST_STOCK_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_ITEM_MAX    512           /* bytes of key prefix + name of an item                     */
#define HF_REQUEST_MAX 128           /* bytes of a request                                        */
#define HF_BUYER_MAX   256           /* bytes of a user                                           */
#define HF_UNITS_MAX   1000000000000 /* of an item, and of a call                                 */
#define HF_KEEP_MIN_MS 60000         /* the shortest keep_ms                                      */

/* ---- An item --------------------------------------------------------------------------------- */

/* Zero means default. Set `size`, or use HF_STOCK(.per_user = 1). */
typedef struct hf_stock_options {
    size_t size;
    size_t name_length; /* bytes in the name of the item; 0: up to its NUL                        */
    int64_t per_user;   /* how many one user may have; default 0: no limit. Of an item that is
                           there: 0 leaves it as it is, -1 does away with it                      */
    int64_t keep_ms;    /* how long requests are remembered at least, and the longest a reservation
                           may last; default 24 hours, or what an item that is there has          */
    bool afresh; /* forget what was sold, reserved, and by whom, and begin again; per_user and
                    keep_ms are as of an item that is there                                     */
} hf_stock_options;

#define HF_STOCK(...) (&(hf_stock_options){.size = sizeof(hf_stock_options), __VA_ARGS__})

/* Says how many units of an item there are in all; those that are sold and reserved stay so. The
 * item is made if it is not there. So it may be called again, with the same number or another one,
 * in the middle of a sale.
 *   HF_OK
 *   HF_ESOLDOUT   more than that are sold or reserved already; nothing was changed
 *   HF_ESTALE     afresh: somebody else has done that just now, and theirs counts
 *   HF_EINVAL, HF_EUNAVAILABLE, HF_EUNKNOWN (it may have been done), HF_EDENIED, ... */
HF_API hf_status hf_stock_set(hf_client *client, const char *item, int64_t units,
                              const hf_stock_options *options, hf_error *error);

/* Deletes an item, with what was sold and by whom. What is left of it at the server, its requests,
 * ends by itself when they need not be remembered any more: until then a request that was served
 * before is not served again, also if the item is set again.
 *   HF_OK         it is gone
 *   HF_EBUSY      reservations are open, and `force` is not set; nothing was done
 *   HF_EMISSING   there is no such item
 *   HF_ESTALE     somebody else has begun it again just now; nothing was done
 *   HF_EUNKNOWN   it may have been done; look, and try again
 * With `force` open reservations end, and cannot be confirmed. name_length 0: up to the NUL. */
HF_API hf_status hf_stock_delete(hf_client *client, const char *item, size_t name_length,
                                 bool force, hf_error *error);

typedef struct hf_stock_state {
    int64_t total;
    int64_t available;
    int64_t reserved;
    int64_t sold;
    int64_t per_user; /* 0: no limit */
    int64_t keep_ms;
    int64_t reservations; /* how many are open */
} hf_stock_state;

/* HF_OK: *state is filled. HF_EMISSING. name_length 0: up to the NUL. */
HF_API hf_status hf_stock_get(hf_client *client, const char *item, size_t name_length,
                              hf_stock_state *state, hf_error *error);

typedef struct hf_stock_report {
    hf_stock_state state;
    int64_t in_reservations; /* units, counted one by one                                         */
    int64_t by_users;    /* units that named users have, sold and reserved, counted one by one    */
    int64_t by_nobody;   /* units that are sold to, or reserved for, nobody by name               */
    int64_t most_by_one; /* the most that one user has; more than per_user after that was lowered */
    bool adds_up; /* total = available + reserved + sold, none is negative, the open reservations
                     make up what is reserved, and users and nobody have what is reserved and sold
                   */
} hf_stock_report;

/* Counts everything. The server counts up to about a thousand reservations and four thousand users
 * in one step. An item with more is counted in several steps, between which others are served; if
 * it changes meanwhile the count begins again. HF_OK         *report is filled, also if it does not
 * add up HF_EBUSY      a large item that changed each time; try again when fewer buy HF_EMISSING */
HF_API hf_status hf_stock_audit(hf_client *client, const char *item, size_t name_length,
                                hf_stock_report *report, hf_error *error);

/* ---- Selling --------------------------------------------------------------------------------- */

/* Zero means default. Set `size`, or use HF_TAKE(.user = "alice", .request = cart). */
typedef struct hf_take_options {
    size_t size;
    size_t name_length;  /* bytes in the name of the item; 0: up to its NUL                       */
    const char *user;    /* whom it is for; default: nobody                                       */
    const char *request; /* which order it is; default: one that there never was                  */
    bool restock;        /* put: the units are new ones, not from a buyer                         */
} hf_take_options;

#define HF_TAKE(...) (&(hf_take_options){.size = sizeof(hf_take_options), __VA_ARGS__})

/* Sells `units`, at least 1, if so many are available. *left (which may be NULL): how many are
 * available after that.
 *   HF_OK         sold
 *   HF_ESOLDOUT   fewer are available; *left says how many
 *   HF_ELIMIT     the user would have too many
 *   HF_EMISSING   there is no such item
 *   HF_EINVAL     also: the item has a limit, and no user was named; or the request was for
 *                 something else */
HF_API hf_status hf_stock_take(hf_client *client, const char *item, int64_t units,
                               const hf_take_options *options, int64_t *left, hf_error *error);

/* Takes back what was sold, from the user if one is named, who then may buy again; or, with
 * `restock`, adds new units to what there is.
 *   HF_OK
 *   HF_EINVAL     also: more than was sold to that user or, if none is named, to nobody by name
 *   HF_EMISSING */
HF_API hf_status hf_stock_put(hf_client *client, const char *item, int64_t units,
                              const hf_take_options *options, int64_t *left, hf_error *error);

/* ---- Reservations ---------------------------------------------------------------------------- */

/* Sets units aside for limit_ms (up to keep_ms of the item). hf_stock_confirm() sells them. With
 * hf_stock_cancel(), or when the time is over and no confirm has come, they are available again,
 * exactly once, whoever is alive then. The server's clock counts. (It is the calls on the item that
 * find out, each for up to 4096 reservations: of more that end together, some count a little
 * longer.)
 *
 * A reservation goes by its request. `request` has room for HF_REQUEST_MAX + 1 bytes and is filled
 * with it, so that one who gave none learns it; it may be NULL if one was given. Outcomes as of
 * hf_stock_take(). */
HF_API hf_status hf_stock_reserve(hf_client *client, const char *item, int64_t units,
                                  int64_t limit_ms, const hf_take_options *options, char *request,
                                  int64_t *left, hf_error *error);

/* Sells what was reserved. May be repeated.
 *   HF_OK         sold, now or before
 *   HF_EEXPIRED   too late: the time was over, and the units are available, or somebody else's; the
 *                 same if it was cancelled
 *   HF_EMISSING   no such item, or no such reservation is known (any more)
 *   HF_EINVAL     also: that request was not a reservation */
HF_API hf_status hf_stock_confirm(hf_client *client, const char *item, size_t name_length,
                                  const char *request, hf_error *error);

/* Gives back what was reserved. May be repeated. HF_OK: it is cancelled, or has ended by itself.
 * HF_ESOLDOUT: it was confirmed before, and stays sold (see hf_stock_put()). HF_EMISSING: nothing
 * is known of it; if its reserve is still to come, it will be refused (HF_EEXPIRED). HF_EINVAL. */
HF_API hf_status hf_stock_cancel(hf_client *client, const char *item, size_t name_length,
                                 const char *request, hf_error *error);

#ifdef __cplusplus
}
#endif

#endif
