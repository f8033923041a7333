/* SPDX-License-Identifier: MIT */
/* The calls on stock: check the arguments, ask the server once, and say what it said. All that
 * counts happens in the script; here only the name of a request is made up if the caller has none,
 * so that a message that is repeated is known as the same one. */
#include <inttypes.h>
#include <string.h>

#include "api/client.h"
#include "core/fail.h"
#include "core/stock.h"
#include "net/clock.h"

enum { AUDIT_TRIES = 20 }; /* of one that is too large to be counted in one step */

typedef struct task { /* one call */
    hf_client *client;
    hf__stock_item item;
    bool restock;
    char request[HF__CALL_WORD_MAX]; /* made up */
} task;

/* ---- Checks ---- */

static hf_status begin(task *call, hf_client *client, const char *item, size_t length,
                       hf_error *error)
{
    hf_status status = hf__client_ready(client, error);
    if (status == HF_OK)
        status = hf__client_check_single(client, error);
    if (status == HF_OK)
        status = hf__name_check(client, item, &length, error);
    if (status != HF_OK)
        return status;
    if (client->prefix_length + length > HF_ITEM_MAX)
        return hf__fail(error, HF_EINVAL, "prefix and item have more than %d bytes", HF_ITEM_MAX);
    call->client = client;
    call->item = (hf__stock_item){hf__client_prefix(client), {item, length}};
    return HF_OK;
}

static hf_status check_range(int64_t number, const char *what, int64_t least, int64_t most,
                             hf_error *error)
{
    if (number >= least && number <= most)
        return HF_OK;
    return hf__fail(error, HF_EINVAL, "%s must be %" PRId64 " to %" PRId64, what, least, most);
}

/* Of a user or a request that was given. */
static hf_status check_word(const char *word, const char *what, size_t most, hf__slice *slice,
                            hf_error *error)
{
    *slice = (hf__slice){word, strnlen(word, most + 1)};
    if (slice->length > most)
        return hf__fail(error, HF_EINVAL, "%s has more than %zu bytes", what, most);
    if (slice->length == 0)
        return hf__fail(error, HF_EINVAL, "%s is empty", what);
    return HF_OK;
}

static hf_status begin_order(task *call, hf_client *client, const char *item, int64_t units,
                             const hf_take_options *given, hf__stock_order *order, hf_error *error)
{
    hf_take_options options;
    hf_status status = hf__struct_read(given, &options, sizeof(options), error);
    *order = (hf__stock_order){.units = units, .given = options.request != NULL};
    call->restock = options.restock;
    if (status == HF_OK)
        status = begin(call, client, item, options.name_length, error);
    if (status == HF_OK)
        status = check_range(units, "units", 1, HF_UNITS_MAX, error);
    if (status == HF_OK && options.user != NULL)
        status = check_word(options.user, "user", HF_BUYER_MAX, &order->user, error);
    if (status == HF_OK && options.request != NULL)
        status = check_word(options.request, "request", HF_REQUEST_MAX, &order->request, error);
    else if (status == HF_OK)
        order->request = hf__client_name_call(client, call->request);
    return status;
}

/* ---- Asking ---- */

static hf_status ask(const task *call, hf__query *query, int64_t *left, hf_error *error)
{
    hf__answer answer = {0};
    hf_status status = hf__client_run(call->client, query, &answer, error);
    if (status == HF_OK)
        status = hf__stock_outcome(&answer.numbers, left, error);
    hf__buffer_free(&answer.value);
    return status;
}

static hf_status look(const task *call, hf_stock_state *state, hf__answer *answer, hf_error *error)
{
    hf__stock_count count = {0};
    hf__query *query = hf__stock_look(&call->item);
    hf_status status = hf__client_run(call->client, query, answer, error);
    if (status == HF_OK)
        status = hf__stock_look_outcome(&answer->numbers, &count, error);
    *state = count.report.state;
    return status;
}

/* What is replaced or deleted must be what was there when that was asked for: a message that comes
 * late must not empty the shelf a second time. `answer` is freed by the caller. */
static hf_status look_who_began(const task *call, hf__answer *answer, hf__slice *begun,
                                hf_error *error)
{
    hf_stock_state state;
    hf_status status = look(call, &state, answer, error);
    *begun = (hf__slice){hf__buffer_front(&answer->value), hf__buffer_length(&answer->value)};
    if (status == HF_EMISSING)
        *begun = HF__SLICE("");
    return status;
}

/* ---- An item ---- */

static hf_status set_afresh(const task *call, hf__stock_plan *plan, hf_error *error)
{
    hf__answer before = {0};
    hf_status status = look_who_began(call, &before, &plan->begun, error);
    if (status == HF_OK || status == HF_EMISSING)
        status = ask(call, hf__stock_set(&call->item, plan), NULL, error);
    hf__buffer_free(&before.value);
    return status;
}

static hf_status check_plan(const hf_stock_options *options, int64_t units, hf_error *error)
{
    hf_status status = check_range(units, "units", 0, HF_UNITS_MAX, error);
    if (status == HF_OK)
        status = check_range(options->per_user, "per_user", -1, HF_UNITS_MAX, error);
    if (status == HF_OK && options->keep_ms != 0)
        status = check_range(options->keep_ms, "keep_ms", HF_KEEP_MIN_MS, HF_MS_MAX, error);
    return status;
}

hf_status hf_stock_set(hf_client *client, const char *item, int64_t units,
                       const hf_stock_options *options, hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf_stock_options checked;
    hf_status status = hf__struct_read(options, &checked, sizeof(checked), error);
    if (status == HF_OK)
        status = begin(&call, client, item, checked.name_length, error);
    if (status == HF_OK)
        status = check_plan(&checked, units, error);
    if (status != HF_OK)
        return status;
    hf__stock_plan plan = {.units = units,
                           .per_user = checked.per_user,
                           .keep_ms = checked.keep_ms,
                           .request = hf__client_name_call(client, call.request),
                           .afresh = checked.afresh};
    if (plan.afresh)
        return set_afresh(&call, &plan, error);
    return ask(&call, hf__stock_set(&call.item, &plan), NULL, error);
}

hf_status hf_stock_delete(hf_client *client, const char *item, size_t name_length, bool force,
                          hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf__slice begun;
    hf__answer before = {0};
    hf_status status = begin(&call, client, item, name_length, error);
    if (status == HF_OK)
        status = look_who_began(&call, &before, &begun, error);
    if (status == HF_OK)
        status = ask(&call, hf__stock_delete(&call.item, begun, force), NULL, error);
    hf__buffer_free(&before.value);
    return status;
}

hf_status hf_stock_get(hf_client *client, const char *item, size_t name_length,
                       hf_stock_state *state, hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf_stock_state seen;
    hf__answer answer = {0};
    if (state == NULL)
        return hf__fail(error, HF_EINVAL, "state is NULL");
    hf_status status = begin(&call, client, item, name_length, error);
    if (status == HF_OK)
        status = look(&call, &seen, &answer, error);
    if (status == HF_OK)
        *state = seen;
    hf__buffer_free(&answer.value);
    return status;
}

/* ---- Counting ---- */

static hf_status count_page(const task *call, hf__stock_count *count, hf__instant ends,
                            hf_error *error)
{
    hf__answer answer = {0};
    hf__query *query = hf__stock_look_at_page(&call->item, count);
    hf_status status = hf__client_run_until(call->client, query, &answer, ends, error);
    if (status == HF_OK)
        status = hf__stock_look_outcome(&answer.numbers, count, error);
    hf__buffer_free(&answer.value);
    return status;
}

/* A page is one step at the server. If the item has changed between two of them the count begins
 * again: several times, for a sale has its pauses, but not for ever. */
hf_status hf_stock_audit(hf_client *client, const char *item, size_t name_length,
                         hf_stock_report *report, hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf__stock_count count = {0};
    int left = AUDIT_TRIES;
    if (report == NULL)
        return hf__fail(error, HF_EINVAL, "report is NULL");
    hf_status status = begin(&call, client, item, name_length, error);
    if (status != HF_OK)
        return status;
    hf__instant ends = hf__after(hf__clock_now(), hf__span_ms(client->call_timeout_ms));
    while (status == HF_OK && !hf__stock_is_counted(&count) && left > 0) {
        status = count_page(&call, &count, ends, error);
        left -= !count.begun;
    }
    if (status == HF_OK && left == 0)
        return hf__fail(error, HF_EBUSY, "the item changes while its users are counted");
    if (status == HF_OK)
        *report = count.report;
    return status;
}

/* ---- Selling ---- */

hf_status hf_stock_take(hf_client *client, const char *item, int64_t units,
                        const hf_take_options *options, int64_t *left, hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf__stock_order order;
    hf_status status = begin_order(&call, client, item, units, options, &order, error);
    if (status != HF_OK)
        return status;
    return ask(&call, hf__stock_take(&call.item, &order), left, error);
}

hf_status hf_stock_put(hf_client *client, const char *item, int64_t units,
                       const hf_take_options *options, int64_t *left, hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf__stock_order order;
    hf_status status = begin_order(&call, client, item, units, options, &order, error);
    if (status == HF_OK && call.restock && order.user.length > 0)
        status = hf__fail(error, HF_EINVAL, "units that are new are from no user");
    if (status != HF_OK)
        return status;
    return ask(&call, hf__stock_put(&call.item, &order, call.restock), left, error);
}

/* ---- Reservations ---- */

hf_status hf_stock_reserve(hf_client *client, const char *item, int64_t units, int64_t limit_ms,
                           const hf_take_options *options, char *request, int64_t *left,
                           hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf__stock_order order;
    hf_status status = begin_order(&call, client, item, units, options, &order, error);
    if (status == HF_OK)
        status = check_range(limit_ms, "limit_ms", 1, HF_MS_MAX, error);
    if (status == HF_OK && request == NULL && !order.given)
        status = hf__fail(error, HF_EINVAL, "request is NULL, and none was given");
    if (status != HF_OK)
        return status;
    if (request != NULL) { /* also for one whose answer is not heard, who may want to cancel it */
        memmove(request, order.request.bytes, order.request.length);
        request[order.request.length] = '\0';
        order.request.bytes = request;
    }
    return ask(&call, hf__stock_reserve(&call.item, &order, limit_ms), left, error);
}

typedef hf__query *settle_function(const hf__stock_item *item, hf__slice request);

static hf_status settle(hf_client *client, const char *item, size_t name_length,
                        const char *request, settle_function *make, hf_error *error)
{
    HF__VISIT(client);
    task call;
    hf__slice word;
    hf_status status = begin(&call, client, item, name_length, error);
    if (status == HF_OK && request == NULL)
        status = hf__fail(error, HF_EINVAL, "request is NULL");
    if (status == HF_OK)
        status = check_word(request, "request", HF_REQUEST_MAX, &word, error);
    return status == HF_OK ? ask(&call, make(&call.item, word), NULL, error) : status;
}

hf_status hf_stock_confirm(hf_client *client, const char *item, size_t name_length,
                           const char *request, hf_error *error)
{
    return settle(client, item, name_length, request, hf__stock_confirm, error);
}

hf_status hf_stock_cancel(hf_client *client, const char *item, size_t name_length,
                          const char *request, hf_error *error)
{
    return settle(client, item, name_length, request, hf__stock_cancel, error);
}
