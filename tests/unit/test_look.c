/* SPDX-License-Identifier: MIT */
/* Looking from outside, through the public API: inspect, list, revoke, break and the statistics,
 * with the client's prefix, with any bytes in names, and with too little memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

static hf_inspection seen; /* too large for the stack of a small thread, as an application's */

static void inspect(hf_client *client, const char *name)
{
    hf_error error;
    memset(&seen, 0xee, sizeof(seen));
    expect_status(hf_inspect(client, name, 0, &seen, &error), HF_OK, &error);
    assert_string_equal(seen.name, name);
    assert_int_equal(seen.name_length, strlen(name));
}

/* ---- Inspect ---- */

static void inspect_shows_the_holder(void **state)
{
    (void)state;
    hf_client *client = OPEN(.prefix = "shop:"), *other = OPEN(.prefix = "shop:");
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.label = "report"));
    inspect(other, "x");
    assert_true(seen.held && !seen.shared);
    assert_true(seen.fence == hf_fence(hold));
    assert_in_range(seen.remaining_ms, 1, 10000);
    assert_int_equal(seen.holder_count, 1);
    assert_int_equal(strlen(seen.holders[0].client_id), 32);
    assert_string_equal(seen.holders[0].label, "report");
    assert_true(seen.holders[0].pid > 0 && seen.holders[0].thread > 0);
    assert_true(strlen(seen.holders[0].host) > 0);
    inspect(other, "y");
    assert_false(seen.held);
    release(&hold, HF_OK);
    inspect(other, "x");
    assert_false(seen.held);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

static void owners_share_across_clients(void **state)
{
    (void)state;
    hf_client *client = OPEN(), *other = OPEN();
    hf_hold *a = acquire(client, "x", HF_ACQUIRE(.owner = "order 66"));
    hf_hold *b = acquire(other, "x", HF_ACQUIRE(.owner = "order 66", .lease_ms = 20000));
    hf_hold *c = acquire(client, "x", HF_ACQUIRE(.owner = "order 66")); /* one of its own */
    assert_true(hf_fence(a) == hf_fence(b) && hf_fence(a) == hf_fence(c));
    inspect(client, "x");
    assert_true(seen.shared);
    assert_string_equal(seen.owner, "order 66");
    assert_int_equal(seen.hold_count, 3);
    assert_true(seen.holders[0].remaining_ms > 10000);
    fail_to_acquire(client, "x", HF_ACQUIRE(.owner = "order 67"), HF_EBUSY, "order 66");
    fail_to_acquire(client, "x", NULL, HF_EBUSY, "order 66");
    release(&a, HF_OK);
    release(&c, HF_OK);
    assert_true(wires_has_key("x"));
    release(&b, HF_OK);
    assert_false(wires_has_key("x"));
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

static void names_may_have_any_bytes(void **state)
{
    (void)state;
    hf_client *client = OPEN(.prefix = "p");
    hf_error error;
    hf_hold *hold = NULL;
    static const char name[] = "a\0b\xff";
    assert_int_equal(hf_acquire(client, name, HF_ACQUIRE(.name_length = 4), &hold, NULL), HF_OK);
    expect_status(hf_inspect(client, name, 4, &seen, &error), HF_OK, &error);
    assert_true(seen.held);
    assert_int_equal(seen.name_length, 4);
    assert_memory_equal(seen.name, name, 5);
    expect_status(hf_inspect(client, name, 0, &seen, &error), HF_OK, &error); /* "a" */
    assert_false(seen.held);
    expect_status(hf_revoke(client, name, 0, NULL, &error), HF_ENOTHELD, &error);
    expect_status(hf_revoke(client, name, 4, NULL, &error), HF_OK, &error);
    expect_status(hf_break(client, name, 4, NULL, &error), HF_OK, &error);
    release(&hold, HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- List ---- */

typedef struct found {
    int count;
    int limit; /* 0: none */
    char names[32][64];
    hf_client *client; /* to be used inside */
} found;

static bool see(void *arg, const hf_inspection *inspection)
{
    found *f = arg;
    assert_true(inspection->held);
    assert_in_range(f->count, 0, 31);
    snprintf(f->names[f->count++], sizeof(f->names[0]), "%.63s", inspection->name);
    if (f->client != NULL) { /* which may use the client, also for what waits */
        hf_hold *hold = acquire(f->client, "inside", NULL);
        release(&hold, HF_OK);
    }
    return f->limit == 0 || f->count < f->limit;
}

static bool has(const found *f, const char *name)
{
    int count = 0;
    for (int i = 0; i < f->count; i++)
        count += strcmp(f->names[i], name) == 0;
    return count > 0;
}

static found list(hf_client *client, const char *pattern, int limit)
{
    found f = {.limit = limit};
    hf_error error;
    expect_status(hf_list(client, pattern, see, &f, &error), HF_OK, &error);
    return f;
}

static void list_finds_what_is_held(void **state)
{
    (void)state;
    hf_client *client = OPEN(.prefix = "a*["), *other = OPEN(.prefix = "ab");
    hf_hold *one = acquire(client, "one", NULL), *two = acquire(client, "two", NULL);
    hf_hold *braces = acquire(client, "{one}", HF_ACQUIRE(.owner = "me"));
    hf_hold *elsewhere = acquire(other, "[one", NULL);
    hf_hold *over = acquire(client, "over", NULL);
    release(&over, HF_OK);
    found f = list(client, NULL, 0);
    assert_int_equal(f.count, 3);
    assert_true(has(&f, "one") && has(&f, "two") && has(&f, "{one}"));
    f = list(client, "*o*e*", 0);
    assert_int_equal(f.count, 2);
    f = list(client, "t?o", 0);
    assert_int_equal(f.count, 1);
    assert_true(has(&f, "two"));
    f = list(client, "three", 0);
    assert_int_equal(f.count, 0);
    f = list(client, NULL, 2); /* enough */
    assert_int_equal(f.count, 2);
    found inside = {.client = client};
    assert_int_equal(hf_list(client, "one", see, &inside, NULL), HF_OK);
    assert_int_equal(inside.count, 1);
    release(&one, HF_OK);
    release(&two, HF_OK);
    release(&braces, HF_OK);
    release(&elsewhere, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

/* What the server's own match gets wrong or does not know. */
static void list_shows_locks_that_match_and_nothing_else(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *braces = acquire(client, "a}b", NULL), *plain = acquire(client, "b", NULL);
    hf_hold *gone = acquire(client, "hash", NULL);
    release(&gone, HF_OK);
    hold_for_somebody("hash");
    wires *n = wires_lock();
    node_find(&n->node, "hash", 4)->kind = NODE_HASH; /* not a lock any more */
    wires_unlock();
    found f = list(client, "b", 0);
    assert_int_equal(f.count, 1);
    assert_true(has(&f, "b"));
    f = list(client, "*", 0);
    assert_int_equal(f.count, 2);
    assert_true(has(&f, "a}b") && has(&f, "b"));
    release(&braces, HF_OK);
    release(&plain, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void list_goes_through_all_pages(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *holds[8];
    char name[32];
    for (int i = 0; i < 400; i++) { /* their fences fill pages */
        snprintf(name, sizeof(name), "old-%d", i);
        hf_hold *hold = acquire(client, name, NULL);
        assert_int_equal(hf_release_nowait(&hold), HF_OK);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "held-%d", i);
        holds[i] = acquire(client, name, NULL);
    }
    found f = list(client, "held*", 0);
    assert_int_equal(f.count, 8);
    int scans;
    WIRES_GET(scans, node.scans);
    assert_true(scans > 1);
    for (int i = 0; i < 8; i++)
        release(&holds[i], HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Revoke and break ---- */

typedef struct asked {
    atomic_int count;
    char text[HF_REASON_MAX + 1];
} asked;

static void hear(void *arg, const hf_event *event)
{
    asked *a = arg;
    if (event->reason == HF_REASON_REVOKED)
        snprintf(a->text, sizeof(a->text), "%s", event->text);
    atomic_fetch_add(&a->count, 1);
}

static void a_request_reaches_another_client(void **state)
{
    (void)state;
    hf_client *client = OPEN(), *other = OPEN();
    hf_error error;
    asked a = {.text = ""};
    expect_status(hf_revoke(other, "x", 0, "please", &error), HF_ENOTHELD, &error);
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 300, .on_event = hear, .arg = &a));
    expect_status(hf_revoke(other, "x", 0, "please", &error), HF_OK, &error);
    EVENTUALLY(atomic_load(&a.count) == 1);
    assert_string_equal(a.text, "please");
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    release(&hold, HF_OK);
    assert_int_equal(atomic_load(&a.count), 1);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

static void a_break_takes_it_away(void **state)
{
    (void)state;
    hf_client *client = OPEN(), *other = OPEN();
    hf_error error;
    uint64_t fence = 77;
    expect_status(hf_break(other, "x", 0, &fence, &error), HF_ENOTHELD, &error);
    hf_hold *hold = acquire(client, "x", NULL);
    expect_status(hf_break(other, "x", 0, &fence, &error), HF_OK, &error);
    assert_true(fence > hf_fence(hold));
    assert_false(wires_has_key("x"));
    hf_hold *next = acquire(other, "x", NULL);
    assert_true(hf_fence(next) > fence);
    expect_status(hf_extend(hold, 0, &error), HF_ELOST, &error);
    release(&hold, HF_ELOST);
    release(&next, HF_OK);
    hold_for_somebody("foreign"); /* without a fence, for ever */
    expect_status(hf_break(other, "foreign", 0, NULL, &error), HF_OK, &error);
    assert_false(wires_has_key("foreign"));
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

/* ---- Arguments ---- */

static void bad_arguments(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_error error;
    char text[HF_NAME_MAX + 2];
    memset(text, 'n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    expect_status(hf_inspect(NULL, "x", 0, &seen, &error), HF_EINVAL, &error);
    expect_status(hf_inspect(client, NULL, 0, &seen, &error), HF_EINVAL, &error);
    expect_status(hf_inspect(client, "x", 0, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_inspect(client, "", 0, &seen, &error), HF_EINVAL, &error);
    expect_status(hf_inspect(client, text, 0, &seen, &error), HF_EINVAL, &error);
    expect_status(hf_inspect(client, "hf:x", 0, &seen, &error), HF_EINVAL, &error);
    expect_status(hf_list(NULL, NULL, see, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_list(client, NULL, NULL, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_list(client, text, see, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_revoke(NULL, "x", 0, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_revoke(client, "", 0, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_revoke(client, "x", 0, text, &error), HF_EINVAL, &error);
    expect_status(hf_break(NULL, "x", 0, NULL, &error), HF_EINVAL, &error);
    expect_status(hf_break(client, "hf:x", 0, NULL, &error), HF_EINVAL, &error);
    assert_int_equal(hf_stats_read(NULL, NULL), HF_EINVAL);
    assert_int_equal(hf_stats_read(client, NULL), HF_EINVAL);
    assert_int_equal(count_opens(), 0);
    assert_true(hf_fence(NULL) == 0);
    assert_int_equal(hf_hold_state(NULL), HF_LOST);
    assert_int_equal(hf_close(client), HF_OK);
}

static void no_server(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_error error;
    found f = {.count = 0};
    WIRES(open_failure = ECONNREFUSED);
    expect_status(hf_inspect(client, "x", 0, &seen, &error), HF_EUNAVAILABLE, &error);
    expect_status(hf_list(client, NULL, see, &f, &error), HF_EUNAVAILABLE, &error);
    expect_status(hf_revoke(client, "x", 0, NULL, &error), HF_EUNAVAILABLE, &error);
    expect_status(hf_break(client, "x", 0, NULL, &error), HF_EUNAVAILABLE, &error);
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_silent_server(void **state)
{
    (void)state;
    hf_client *client = OPEN(.call_timeout_ms = 50, .links = 1);
    hf_error error;
    hf_hold *hold = acquire(client, "warm", NULL);
    WIRES(mute = true);
    int64_t start = now_ms();
    expect_status(hf_inspect(client, "x", 0, &seen, &error), HF_EUNKNOWN, &error);
    assert_in_range(now_ms() - start, 45, 3000);
    wires_unmute();
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Statistics ---- */

static void statistics(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_stats stats;
    assert_int_equal(hf_stats_read(client, &stats), HF_OK);
    assert_int_equal(stats.acquisitions + stats.held + stats.wait.count, 0);
    hf_hold *hold = acquire(client, "x", NULL), *again = acquire(client, "x", NULL);
    fail_to_acquire(client, "x", HF_ACQUIRE(.no_reentry = true), HF_EBUSY, "");
    assert_int_equal(hf_stats_read(client, &stats), HF_OK);
    assert_int_equal(stats.acquisitions, 1);
    assert_int_equal(stats.reentries, 1);
    assert_int_equal(stats.contentions, 1);
    assert_int_equal(stats.failures, 1);
    assert_int_equal(stats.held, 1);
    release(&hold, HF_OK);
    release(&again, HF_OK);
    assert_int_equal(hf_stats_read(client, &stats), HF_OK);
    assert_int_equal(stats.releases, 1);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.hold.count, 1);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Memory ---- */

static void expect_done_or_starved(hf_status status)
{
    if (status != HF_OK && status != HF_ENOTHELD && status != HF_EUNAVAILABLE &&
        status != HF_EUNKNOWN)
        assert_int_equal(status, HF_ENOMEM);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    bool starved = true;
    long refused = 0;
    for (; starved; refused++) {
        hf_client *client = OPEN(.links = 1);
        hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.label = "label"));
        found f = {.count = 0};
        gate_fail_at(refused);
        hf_status inspected = hf_inspect(client, "x", 0, &seen, NULL);
        expect_done_or_starved(inspected);
        assert_true(inspected != HF_OK || seen.held);
        expect_done_or_starved(hf_list(client, NULL, see, &f, NULL));
        expect_done_or_starved(hf_revoke(client, "x", 0, "why", NULL));
        int descriptor = hf_descriptor(hold);
        assert_true(descriptor >= -1);
        expect_done_or_starved(hf_break(client, "x", 0, NULL, NULL));
        starved = gate_open();
        hf_release(&hold, NULL);
        inspect(client, "x");
        assert_false(seen.held);
        assert_int_equal(hf_close(client), HF_OK);
    }
    assert_in_range(refused, 8, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(inspect_shows_the_holder),
        BOTH(owners_share_across_clients),
        SEEING(names_may_have_any_bytes),
        BOTH(list_finds_what_is_held),
        SEEING(list_shows_locks_that_match_and_nothing_else),
        SEEING(list_goes_through_all_pages),
        BOTH(a_request_reaches_another_client),
        BOTH(a_break_takes_it_away),
        SEEING(bad_arguments),
        SEEING(no_server),
        BOTH(a_silent_server),
        SEEING(statistics),
        BOTH(every_allocation_may_fail),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
