/* SPDX-License-Identifier: MIT */
/* Goal: servers that forget everything when they are restarted, one after the other, neither take a
 * lock away from whoever holds it nor give it to a second one; and fences go on growing.
 *
 * The longest lease is short here, for that is how long a server that was restarted has no vote.
 * What it is told when it gets one is in src/lua/join.lua.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "quorum.h"

enum { SERVERS = 5, MAX_LEASE_MS = 1000, LONG_LEASE_MS = 1500 };

static hf_error error;
static hf_hold *hold;

#define FORGETFUL .max_lease_ms = MAX_LEASE_MS
#define SLOWER    .max_lease_ms = LONG_LEASE_MS /* for holds that have to survive a slow machine */

/* ---- Verbs ----------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    quorum_start(SERVERS);
    return 0;
}

static struct process *new_puppet(void)
{
    return puppet_start_at(quorum_urls(SERVERS), HF_CLIENT(FORGETFUL));
}

static bool has_vote(int number)
{
    char run_id[41];
    (void)snprintf(run_id, sizeof(run_id), "%s", quorum_run_id(number));
    return strncmp(raw(quorum.servers[number], "GET hf:run"), run_id, 40) == 0;
}

static uint64_t base_of(int number)
{
    const char *run = raw(quorum.servers[number], "GET hf:run");
    assert_true(strlen(run) > 41);
    return strtoull(run + 41, NULL, 10);
}

static uint64_t floor_of(int number)
{
    return strtoull(raw(quorum.servers[number], "GET hf:floor"), NULL, 10);
}

/* ---- All of them, one after the other -------------------------------------------------------- */

static atomic_int *tries; /* of the rival, shared with it */

/* Once it is told to, it tries without a pause, and says so when it has got the lock. */
static void be_a_rival(int line, void *arg)
{
    char order[LINE_MAX_TEXT];
    hf_client *client;
    hf_hold *got;
    (void)arg;
    if (!line_hear(line, order, 2 * QUORUM_PATIENCE_MS) ||
        hf_open(quorum_urls(SERVERS), HF_CLIENT(SLOWER), &client, NULL) != HF_OK)
        return;
    while (hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = LONG_LEASE_MS), &got, NULL) != HF_OK)
        atomic_fetch_add(tries, 1);
    line_say(line, "got it");
}

static bool is_silent(struct process *rival)
{
    char said[LINE_MAX_TEXT];
    return !line_hear(rival->line, said, 0);
}

/* Each gets its copy back before the next one is restarted, which takes the quarantine. */
static void restart_all_under(const hf_hold *held)
{
    for (int i = 0; i < SERVERS; i++) {
        int64_t start = now_ms();
        quorum_restart(i);
        assert_false(has_vote(i));
        WAIT_UNTIL(!hf_is_valid(held) || quorum_held_by(held) == SERVERS, QUORUM_PATIENCE_MS);
        assert_true(hf_is_valid(held));
        assert_true(now_ms() - start >= LONG_LEASE_MS);
        assert_true(has_vote(i));
    }
}

static void hold_from_now_on(int64_t lease_ms)
{
    open_client_at(quorum_urls(quorum.count), &alice, HF_CLIENT(.max_lease_ms = lease_ms));
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = lease_ms, .renew_interval_ms = 100,
                                          .wait_ms = QUORUM_PATIENCE_MS));
    WAIT_UNTIL(quorum_held_by(hold) == quorum.count, QUORUM_PATIENCE_MS);
}

/* One tries all the time, two wait. */
static void a_hold_survives_the_restart_of_all(void **state)
{
    (void)state;
    tries = mmap(NULL, sizeof(*tries), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(tries != MAP_FAILED);
    struct process *waiters[] = {
        puppet_start_at(quorum_urls(SERVERS), HF_CLIENT(SLOWER)),
        puppet_start_at(quorum_urls(SERVERS), HF_CLIENT(SLOWER)),
    };
    struct process *rival = process_start(be_a_rival, NULL);
    hold_from_now_on(LONG_LEASE_MS);
    uint64_t fence = hf_fence(hold);
    tell(waiters[0], "queue 1500 -1");
    tell(waiters[1], "queue 1500 -1");
    WAIT_UNTIL(quorum_all_queued(2), QUORUM_PATIENCE_MS);
    int before = atomic_load(tries);
    line_say(rival->line, "begin");
    restart_all_under(hold);
    assert_true(is_silent(rival) && is_silent(waiters[0]) && is_silent(waiters[1]));
    assert_true(atomic_load(tries) > before);
    process_kill(rival);
    release(&hold);
    quorum_serves_both(waiters, fence);
    (void)munmap(tries, sizeof(*tries));
}

/* ---- One of them ----------------------------------------------------------------------------- */

static void lend_out(int number, bool lent)
{
    (void)raw(quorum.servers[number], lent ? "SET lock somebody" : "DEL lock");
}

/* The first three have granted it. When the third has forgotten that, it would be a majority for
 * somebody else, together with the last two. */
static void what_was_forgotten_is_not_granted_again(void **state)
{
    (void)state;
    struct process *first = new_puppet(), *second = new_puppet();
    lend_out(3, true);
    lend_out(4, true);
    ASK(first, "lease 1000 0", "HF_OK");
    long long fence = ask_number(first, "fence");
    lend_out(3, false);
    lend_out(4, false);
    quorum_restart(2);
    tell(second, "queue 1000 -1");
    long long believed = ask_number(first, "spin");
    EXPECT_HEARD(second, "HF_OK");
    assert_true(ask_number(second, "when") > believed);
    assert_true(ask_number(second, "fence") > fence);
    ASK(second, "release", "HF_OK");
}

/* The server votes as soon as it is there: the holder is late, and somebody who waits is the first
 * whom it grants it to. That one must give way, or as many restarts as there are servers would take
 * the lock away from its holder. */
static void who_waits_does_not_keep_a_holder_from_its_copy(void **state)
{
    (void)state;
    struct process *waiter = puppet_start_at(quorum_urls(SERVERS), NULL);
    open_client_at(quorum_urls(SERVERS), &alice, NULL);
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = 60000));
    WAIT_UNTIL(quorum_held_by(hold) == SERVERS, QUORUM_PATIENCE_MS);
    tell(waiter, "queue 60000 -1");
    WAIT_UNTIL(quorum_all_queued(1), QUORUM_PATIENCE_MS);
    quorum_restart(2);
    quorum_give_vote(2);
    WAIT_UNTIL(quorum_held() == SERVERS, QUORUM_PATIENCE_MS); /* at 2 it is the waiter */
    for (int64_t start = now_ms(); quorum_held_by(hold) < SERVERS && now_ms() - start < 3000;)
        EXPECT(HF_OK, hf_extend(hold, 0, &error)); /* with each one it looks for lost copies */
    assert_int_equal(quorum_held_by(hold), SERVERS);
    release(&hold);
    EXPECT_HEARD(waiter, "HF_OK");
    ASK(waiter, "release", "HF_OK");
}

static void a_restarted_server_goes_on_from_the_highest_floor(void **state)
{
    uint64_t highest = 0;
    (void)state;
    hold_from_now_on(MAX_LEASE_MS);
    quorum_restart(1);
    assert_string_equal(raw(quorum.servers[1], "EXISTS hf:run hf:floor"), "0");
    for (int i = 0; i < SERVERS; i++)
        if (i != 1)
            highest = floor_of(i) > highest ? floor_of(i) : highest;
    assert_true(highest >= hf_fence(hold));
    WAIT_UNTIL(has_vote(1), QUORUM_PATIENCE_MS);
    assert_true(base_of(1) >= hf_fence(hold));
    assert_true(floor_of(1) >= base_of(1));
    release(&hold);
}

/* ---- New ones -------------------------------------------------------------------------------- */

static int begin_new(void **state)
{
    (void)state;
    quorum = (struct quorum){.count = 3};
    for (int i = 0; i < quorum.count; i++)
        quorum.servers[i] = redis_server_start(NULL);
    return 0;
}

static void new_servers_have_no_vote_at_first(void **state)
{
    (void)state;
    int64_t start = now_ms();
    assert_int_equal(quorum_end(state), 0);
    assert_int_equal(begin_new(state), 0);
    open_client_at(quorum_urls(3), &alice, HF_CLIENT(FORGETFUL));
    EXPECT(HF_EUNAVAILABLE, hf_acquire(alice, "lock", HF_ACQUIRE(.lease_ms = 500), &hold, &error));
    expect_says(error.text, "no vote yet");
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = 500, .wait_ms = QUORUM_PATIENCE_MS));
    assert_true(now_ms() - start >= MAX_LEASE_MS);
    release(&hold);
}

static long long youngest_s(void)
{
    long long youngest = -1;
    for (int i = 0; i < quorum.count; i++) {
        const char *field = strstr(raw(quorum.servers[i], "INFO server"), "uptime_in_seconds:");
        assert_non_null(field);
        long long uptime = strtoll(field + strlen("uptime_in_seconds:"), NULL, 10);
        youngest = youngest < 0 || uptime < youngest ? uptime : youngest;
    }
    return youngest;
}

/* Somebody who comes later believes what they say of their age. */
static void servers_that_are_old_enough_vote_at_once(void **state)
{
    (void)state;
    WAIT_UNTIL(youngest_s() >= 3, QUORUM_PATIENCE_MS);
    open_client_at(quorum_urls(3), &alice, HF_CLIENT(FORGETFUL));
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = 500));
    release(&hold);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, quorum_end)
#define NEW(test)  cmocka_unit_test_setup_teardown(test, begin_new, quorum_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hold_survives_the_restart_of_all),
        TEST(what_was_forgotten_is_not_granted_again),
        TEST(who_waits_does_not_keep_a_holder_from_its_copy),
        TEST(a_restarted_server_goes_on_from_the_highest_floor),
        NEW(new_servers_have_no_vote_at_first),
        NEW(servers_that_are_old_enough_vote_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
