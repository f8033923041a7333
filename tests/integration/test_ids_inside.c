/* SPDX-License-Identifier: MIT */
/* Goal: what cannot be seen from outside in a short time. Leased ids that have become old are
 * dropped, unless the server is gone; and every allocation may fail.
 *
 * The clock by which blocks grow old is one of this program's own, and can be set ahead. It is not
 * what time-outs are counted by.
 */
#include <time.h>

#include <holdfast_ids.h>

#include "../lib/gate.h"
#include "fixture.h"
#include "net/clock.h"

enum { OLD_S = 11, BLOCK = 64 };

static atomic_llong ahead_ns;
static hf_error error;
static hf_ids *ids;

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

hf__instant hf__clock_now(void)
{
    return (hf__instant){read_clock(CLOCK_BOOTTIME)};
}

hf__wall hf__clock_wall(void)
{
    return (hf__wall){read_clock(CLOCK_REALTIME) / 1000};
}

hf__instant hf__clock_coarse(void)
{
    return (hf__instant){read_clock(CLOCK_MONOTONIC) + atomic_load(&ahead_ns)};
}

static void pass_s(int64_t seconds)
{
    atomic_fetch_add(&ahead_ns, seconds * 1000000000);
}

static int begin(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    open_client_with(&alice, HF_CLIENT(.call_timeout_ms = 500));
    return 0;
}

static int finish(void **state)
{
    hf_ids_close(ids);
    ids = NULL;
    return end_everything(state);
}

static void open_ids(const hf_ids_options *options)
{
    EXPECT(HF_OK, hf_ids_open(alice, "lock", options, &ids, &error));
}

static int64_t next(void)
{
    int64_t id = 0;
    EXPECT(HF_OK, hf_ids_next(ids, &id, &error));
    return id;
}

/* ---- Age ------------------------------------------------------------------------------------- */

static void old_ones_are_dropped(void **state)
{
    (void)state;
    const hf_ids_options *kinds[] = {NULL, HF_IDS(.by_thread = true)};
    for (int i = 0; i < 2; i++) {
        open_ids(kinds[i]);
        int64_t id = next();
        assert_int_equal(next(), id + 1);
        pass_s(OLD_S - 2);
        assert_int_equal(next(), id + 2);
        pass_s(2);
        assert_true(next() >= id + BLOCK);
        hf_ids_close(ids);
        ids = NULL;
    }
}

/* What was fetched ahead grows old too. */
static void old_ones_that_were_fetched_ahead(void **state)
{
    (void)state;
    open_ids(NULL);
    int64_t id = next(), first = id;
    for (int i = 1; i <= BLOCK / 2; i++)
        assert_int_equal(next(), id + i);
    const char *key = side_key('n');
    WAIT_UNTIL(raw_number(server, "EVAL %s 1 %s",
                          "local f = {} for w in redis.call('GET', KEYS[1]):gmatch('%S+') do "
                          "f[#f + 1] = w end return tonumber(f[4]) % 2147483648",
                          key) >= (first + 2 * BLOCK) % 2147483648,
               10000);
    pass_s(OLD_S);
    assert_true(next() >= first + 2 * BLOCK);
}

static void without_a_server_old_ones_will_do(void **state)
{
    (void)state;
    open_ids(NULL);
    int64_t id = next();
    redis_server_kill(server);
    pass_s(OLD_S);
    assert_int_equal(next(), id + 2); /* one was passed over when it was found old */
    assert_int_equal(next(), id + 3);
    pass_s(OLD_S);
    int64_t last = next();
    assert_true(last > id + 3 && last < id + BLOCK);
    redis_server_restart(server);
    int64_t fresh = last;
    WAIT_UNTIL((pass_s(OLD_S), fresh = next()) >= id + BLOCK, 20000);
    assert_true(fresh > last);
}

static void blocks_shrink_when_few_are_wanted(void **state)
{
    (void)state;
    open_ids(NULL);
    int64_t last = next();
    for (int i = 0; i < 8; i++) {
        pass_s(OLD_S);
        last = next();
    }
    /* One at a time by now: the next one is reserved by itself. */
    long long scripts = scripts_run(server);
    pass_s(OLD_S);
    assert_true(next() > last);
    assert_int_equal(scripts_run(server), scripts + 1);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void expect_done_or_starved(hf_status status)
{
    if (status != HF_OK && status != HF_ENOMEM && status != HF_EUNAVAILABLE)
        assert_int_equal(status, HF_EUNKNOWN);
}

/* One life of a generator with one allocation refused; false once none was. */
static bool live_starved(const hf_ids_options *options, long refused)
{
    int64_t place[3 * BLOCK], id;
    gate_fail_at(refused);
    hf_status status = hf_ids_open(alice, "lock", options, &ids, &error);
    assert_int_equal(ids != NULL, status == HF_OK);
    if (status != HF_OK)
        assert_int_equal(status, HF_ENOMEM);
    else
        expect_done_or_starved(hf_ids_next_batch(ids, place, 3 * BLOCK, NULL));
    if (ids != NULL)
        expect_done_or_starved(hf_ids_next(ids, &id, NULL));
    bool starved = gate_open();
    if (ids == NULL)
        open_ids(options);
    WAIT_UNTIL(hf_ids_next(ids, &id, NULL) == HF_OK, 10000); /* it still works */
    assert_true(next() > id);
    hf_ids_close(ids);
    ids = NULL;
    return starved;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const hf_ids_options *kinds[] = {NULL, HF_IDS(.by_thread = true), HF_IDS(.ordered = true)};
    open_ids(NULL);
    (void)next(); /* the client is connected: that is tested elsewhere */
    hf_ids_close(ids);
    for (int i = 0; i < 3; i++) {
        long refused = 0;
        while (live_starved(kinds[i], refused))
            refused++;
        assert_in_range(refused, 3, 100);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(old_ones_are_dropped),
        TEST(old_ones_that_were_fetched_ahead),
        TEST(without_a_server_old_ones_will_do),
        TEST(blocks_shrink_when_few_are_wanted),
        TEST(every_allocation_may_fail),
    };
    gate_install();
    return cmocka_run_group_tests_name("ids_inside", tests, NULL, NULL);
}
