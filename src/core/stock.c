/* SPDX-License-Identifier: MIT */
/* Stock on the wire: each call is one of the scripts src/lua/stock_*.lua on the keys of the item,
 * which answers with a code and what is left. */
#include "core/stock.h"

#include "core/fail.h"
#include "core/words.h"

enum { REPORT_NUMBERS = 16, KEEP_MS = 24 * 60 * 60 * 1000 };

#define NUMBER_LIMIT (INT64_C(1) << 53) /* what scripts count with is exact up to here */

/* The item, requests, old requests, open reservations. */
#define STOCK_KEYS "srpt"

static hf__query *ask(const hf__stock_item *item, hf__script_id script, const hf__words *w)
{
    return hf__query_new_errand(&(hf__errand){.script = script,
                                              .prefix = item->prefix,
                                              .name = item->name,
                                              .letters = STOCK_KEYS,
                                              .words = w->all,
                                              .word_count = w->count});
}

hf__query *hf__stock_set(const hf__stock_item *item, const hf__stock_plan *plan)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put_number(&w, plan->units);
    hf__words_put(&w, plan->request);
    hf__words_put_number(&w, plan->per_user);
    hf__words_put_number(&w, plan->keep_ms);
    hf__words_put_number(&w, KEEP_MS);
    if (plan->afresh)
        hf__words_put(&w, plan->begun);
    return ask(item, HF__SCRIPT_STOCK_SET, &w);
}

hf__query *hf__stock_look(const hf__stock_item *item)
{
    hf__words w;
    hf__words_begin(&w);
    return ask(item, HF__SCRIPT_STOCK_LOOK, &w);
}

hf__query *hf__stock_look_at_page(const hf__stock_item *item, const hf__stock_count *count)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, HF__SLICE("count"));
    hf__words_put_number(&w, count->place);
    hf__words_put_number(&w, count->cursor);
    return ask(item, HF__SCRIPT_STOCK_LOOK, &w);
}

static hf__query *order(const hf__stock_item *item, hf__script_id script, const char *verb,
                        const hf__stock_order *wanted, int64_t bound)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, (hf__slice){verb, 1});
    hf__words_put_number(&w, wanted->units);
    hf__words_put(&w, wanted->request);
    hf__words_put_number(&w, wanted->given);
    hf__words_put_number(&w, bound);
    hf__words_put(&w, wanted->user);
    return ask(item, script, &w);
}

hf__query *hf__stock_take(const hf__stock_item *item, const hf__stock_order *wanted)
{
    return order(item, HF__SCRIPT_STOCK_TAKE, "t", wanted, 0);
}

hf__query *hf__stock_reserve(const hf__stock_item *item, const hf__stock_order *wanted,
                             int64_t limit_ms)
{
    return order(item, HF__SCRIPT_STOCK_TAKE, "r", wanted, limit_ms);
}

hf__query *hf__stock_put(const hf__stock_item *item, const hf__stock_order *wanted, bool restock)
{
    return order(item, HF__SCRIPT_STOCK_PUT, restock ? "n" : "p", wanted, HF_UNITS_MAX);
}

static hf__query *settle(const hf__stock_item *item, const char *how, hf__slice request)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, (hf__slice){how, 1});
    hf__words_put(&w, request);
    return ask(item, HF__SCRIPT_STOCK_SETTLE, &w);
}

hf__query *hf__stock_confirm(const hf__stock_item *item, hf__slice request)
{
    return settle(item, "c", request);
}

hf__query *hf__stock_cancel(const hf__stock_item *item, hf__slice request)
{
    return settle(item, "x", request);
}

hf__query *hf__stock_delete(const hf__stock_item *item, hf__slice begun, bool force)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, begun);
    hf__words_put_number(&w, force);
    return ask(item, HF__SCRIPT_STOCK_DELETE, &w);
}

/* ---- Answers ---- */

/* As the scripts number them. */
static const struct {
    hf_status status;
    const char *text;
} refusals[] = {
    {HF_ESERVER, "the server's answer about stock makes no sense"},
    {HF_EMISSING, "there is no such item: set it first"},
    {HF_ESOLDOUT, "fewer are left than were asked for"},
    {HF_ELIMIT, "that is more than one user may have of this item"},
    {HF_EINVAL, "this item has a limit per user, and no user was named"},
    {HF_EEXPIRED, "the reservation has ended"},
    {HF_EINVAL, "the same request was made before, for something else"},
    {HF_EINVAL, "limit_ms is longer than the item's keep_ms"},
    {HF_EMISSING, "nothing is known of such a reservation"},
    {HF_EINVAL, "more than were sold to that user (or, if none is named, to nobody), or "
                "than there may be"},
    {HF_ESTALE, "somebody else has begun this item again just now"},
    {HF_EBUSY, "reservations of this item are open"},
};

/* What somebody has changed behind our back may be less than nothing. */
static int64_t or_nothing(int64_t left)
{
    return left > 0 ? left : 0;
}

hf_status hf__stock_outcome(const hf__numbers *said, int64_t *left, hf_error *error)
{
    bool plain =
        said->count == 1 && said->number[0] >= 0; /* a take says what is left, and no more */
    int64_t code = plain ? 1 : said->number[0], rest = said->number[plain ? 0 : 1];
    int64_t last = (int64_t)(sizeof(refusals) / sizeof(refusals[0])) - 1;
    bool fits = plain || (said->count == 2 && code >= -last && code <= 1 && code != 0);
    if (fits && left != NULL)
        *left = or_nothing(rest);
    if (fits && code == 1)
        return hf__ok(error);
    size_t which = fits ? (size_t)-code : 0;
    return hf__fail(error, refusals[which].status, "%s", refusals[which].text);
}

/* A code, and numbers that can be added up without care. */
static bool is_report(const hf__numbers *said)
{
    bool fits = said->count == REPORT_NUMBERS && said->number[0] == 1;
    for (int i = 1; fits && i < REPORT_NUMBERS; i++)
        fits = said->number[i] >= -NUMBER_LIMIT && said->number[i] <= NUMBER_LIMIT;
    return fits;
}

/* Of one page. */
static hf__stock_count read_page(const int64_t *n)
{
    hf_stock_state state = {.total = n[1],
                            .available = n[2],
                            .reserved = n[3],
                            .sold = n[4],
                            .per_user = n[5],
                            .keep_ms = n[6],
                            .reservations = n[7]};
    return (hf__stock_count){.report = {.state = state,
                                        .in_reservations = n[8],
                                        .by_users = n[9],
                                        .most_by_one = n[10],
                                        .by_nobody = n[11]},
                             .place = n[12],
                             .cursor = n[13],
                             .turn = n[14],
                             .requests = n[15],
                             .begun = true};
}

/* Whether nothing has happened to the item in between; stock_look.lua says why that is enough. */
static bool same_moment(const hf__stock_count *a, const hf__stock_count *b)
{
    const hf_stock_state *x = &a->report.state, *y = &b->report.state;
    return a->turn == b->turn && a->requests == b->requests && x->total == y->total &&
           x->available == y->available && x->reserved == y->reserved && x->sold == y->sold;
}

static void add_page(hf__stock_count *count, const hf__stock_count *page)
{
    const hf_stock_report *more = &page->report;
    hf_stock_report *report = &count->report;
    report->in_reservations += more->in_reservations;
    report->by_users += more->by_users;
    report->by_nobody += more->by_nobody;
    if (more->most_by_one > report->most_by_one)
        report->most_by_one = more->most_by_one;
    count->place = page->place;
    count->cursor = page->cursor;
}

static bool adds_up(const hf_stock_report *report)
{
    const hf_stock_state *state = &report->state;
    return state->total == state->available + state->reserved + state->sold &&
           state->available >= 0 && state->reserved >= 0 && state->sold >= 0 &&
           report->in_reservations == state->reserved &&
           report->by_users + report->by_nobody == state->reserved + state->sold;
}

hf_status hf__stock_look_outcome(const hf__numbers *said, hf__stock_count *count, hf_error *error)
{
    if (said->count == 1 && said->number[0] == -1)
        return hf__fail(error, refusals[1].status, "%s", refusals[1].text);
    if (!is_report(said))
        return hf__fail(error, refusals[0].status, "%s", refusals[0].text);
    hf__stock_count page = read_page(said->number);
    if (!count->begun)
        *count = page;
    else if (same_moment(count, &page))
        add_page(count, &page);
    else
        *count = (hf__stock_count){0};
    if (hf__stock_is_counted(count))
        count->report.adds_up = adds_up(&count->report);
    return hf__ok(error);
}

bool hf__stock_is_counted(const hf__stock_count *count)
{
    return count->begun && count->place < 0 && count->cursor < 0;
}
