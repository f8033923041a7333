/* SPDX-License-Identifier: MIT */
/* Goal: everybody who names the same owner shares a lock, across processes; nobody else gets in;
 * and the lock is free when the last live one of them has ended, however the others ended.
 *
 * The sharers are puppets (puppet.h) and this process's client; the third party is a second client.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "puppet.h"

static hf_client *client;
static hf_client *third;
static hf_hold *hold;
static hf_hold *none;
static hf_error error;
static hf_inspection seen;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void open_clients(void)
{
    open_client(&client);
    open_client(&third);
}

static hf_hold *share(const char *owner, int64_t lease_ms)
{
    hf_hold *shared;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.owner = owner, .lease_ms = lease_ms),
                             &shared, &error));
    return shared;
}

/* Everybody but the owner: another owner, a thread, and a program that does not know us. */
static void strangers_are_refused(void)
{
    EXPECT(HF_EBUSY, hf_acquire(third, "lock", HF_ACQUIRE(.owner = "request 8"), &none, &error));
    EXPECT(HF_EBUSY, hf_acquire(third, "lock", NULL, &none, &error));
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &none, &error));
    assert_string_equal(raw(server, "SET lock foreign NX PX 1000"), "(nil)");
}

static void look(void)
{
    EXPECT(HF_OK, hf_inspect(third, "lock", 0, &seen, &error));
}

static void expect_count(uint64_t holds)
{
    look();
    assert_int_equal(seen.held, holds > 0);
    assert_int_equal(seen.hold_count, holds);
}

/* ---- Sharing --------------------------------------------------------------------------------- */

static void two_processes_share_and_the_last_one_frees(void **state)
{
    (void)state;
    struct process *other = puppet_start(server);
    open_clients();
    hold = share("request-7", 30000);
    ASK(other, "acquire 30000 0 request-7", "HF_OK");
    assert_true((uint64_t)ask_number(other, "fence") == hf_fence(hold));
    strangers_are_refused();
    expect_count(2);
    EXPECT(HF_OK, hf_release(&hold, &error));
    strangers_are_refused();
    expect_count(1);
    ASK(other, "valid", "yes");
    ASK(other, "release", "HF_OK");
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    expect_count(0);
    EXPECT(HF_OK, hf_acquire(third, "lock", NULL, &none, &error));
    EXPECT(HF_OK, hf_release(&none, &error));
}

/* The lock is the plain key with the owner's name; the holders' side key says who they are, in
 * words that an operator can read. */
static void operators_can_read_who_shares(void **state)
{
    (void)state;
    char host[65] = "";
    char of_parent[160];
    char of_child[160];
    struct process *other = puppet_start(server);
    open_clients();
    hold = share("request-7", 30000);
    ASK(other, "acquire 30000 0 request-7", "HF_OK");
    assert_string_equal(raw(server, "GET lock"), "request-7");
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    (void)snprintf(of_parent, sizeof(of_parent), "@%s:%d/", host, (int)getpid());
    (void)snprintf(of_child, sizeof(of_child), "@%s:%d/", host, (int)other->pid);
    const char *members = raw(server, "EVAL %s 0",
                              "local key = redis.call('KEYS', 'hf:h:{*}lock')[1] "
                              "return table.concat(redis.call('ZRANGE', key, 0, -1), ' ')");
    assert_non_null(strstr(members, of_parent));
    assert_non_null(strstr(members, of_child));
    look();
    assert_true(seen.shared);
    assert_string_equal(seen.owner, "request-7");
    assert_int_equal(seen.holder_count, 2);
    bool first_is_parent = seen.holders[0].pid == (uint64_t)getpid();
    assert_int_equal(seen.holders[first_is_parent ? 1 : 0].pid, other->pid);
    assert_string_equal(seen.holders[0].host, host);
    assert_true(seen.holders[0].thread > 0 && seen.holders[1].thread > 0);
    ASK(other, "release", "HF_OK");
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Also within one client: each acquire is a hold of its own, counted at the server. */
static void every_acquire_counts(void **state)
{
    (void)state;
    enum { HOLDS = 20 };
    hf_hold *holds[HOLDS];
    open_clients();
    for (int i = 0; i < HOLDS; i++) {
        holds[i] = share("request-7", 30000);
        expect_count((uint64_t)i + 1);
    }
    assert_int_equal(seen.holder_count, HF_HOLDERS_MAX);
    for (int i = 0; i < HOLDS; i++) {
        strangers_are_refused();
        EXPECT(HF_OK, hf_release(&holds[i], &error));
        expect_count((uint64_t)(HOLDS - 1 - i));
    }
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* ---- Sharers that end otherwise ---------------------------------------------------------------
 */

/* What is seen: the survivor's release does not free the lock while the dead one's lease runs, for
 * nobody can know that it is dead; it cuts the lock down to what is left of that lease. Then the
 * lock goes to the next one, with a larger fence. */
static void a_killed_sharer_costs_at_most_its_lease(void **state)
{
    (void)state;
    enum { LEASE_MS = 1500 };
    struct process *dying = puppet_start(server);
    open_clients();
    hold = share("request-7", 30000);
    uint64_t fence = hf_fence(hold);
    ASK(dying, "acquire 1500 0 request-7", "HF_OK");
    process_kill(dying);
    int64_t killed = now_ms();
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_in_range(raw_number(server, "PTTL lock") + 2, 0, LEASE_MS + 2);
    EXPECT(HF_OK, hf_acquire(third, "lock", HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 10),
                             &none, &error));
    assert_true(now_ms() - killed <= LEASE_MS + SLACK_MS);
    assert_true(hf_fence(none) > fence);
    EXPECT(HF_OK, hf_release(&none, &error));
}

/* Once its lease is over it does not count any more, although the lock lives on. */
static void a_dead_sharer_does_not_keep_the_lock(void **state)
{
    (void)state;
    struct process *dying = puppet_start(server);
    open_clients();
    hold = share("request-7", 30000);
    ASK(dying, "acquire 1200 0 request-7", "HF_OK");
    expect_count(2);
    process_kill(dying);
    WAIT_UNTIL((look(), seen.hold_count == 1), 10000);
    strangers_are_refused();
    assert_true(hf_is_valid(hold));
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* A short lease that joins does not shorten the lock of the others, and its own end is its own. */
static void each_has_its_own_lease(void **state)
{
    (void)state;
    struct process *brief = puppet_start(server);
    open_clients();
    hold = share("request-7", 30000);
    ASK(brief, "lease 200 0 request-7", "HF_OK");
    assert_true(raw_number(server, "PTTL lock") > 20000);
    sleep_ms(250);
    ASK(brief, "state", "LOST");
    ASK(brief, "release", "HF_ELOST");
    assert_true(hf_is_valid(hold));
    strangers_are_refused();
    expect_count(1);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* The long one goes first: the lock is left for as long as the short one needs it, and renewed. */
static void the_one_who_stays_renews(void **state)
{
    (void)state;
    enum { LEASE_MS = 900, TRIES = 10 };
    struct process *stays = puppet_start(server);
    int64_t pause = LEASE_MS;
    open_clients();
    for (int i = 0; i < TRIES && pause > LEASE_MS / 4; i++) {
        if (i > 0) { /* the machine was away for too long, and the lease perhaps over */
            tell(stays, "release");
            assert_true(line_hear(stays->line, (char[LINE_MAX_TEXT]){""}, 10000));
        }
        hold = share("request-7", 30000);
        ASK(stays, "acquire 900 0 request-7", "HF_OK");
        EXPECT(HF_OK, hf_release(&hold, &error));
        assert_true(raw_number(server, "PTTL lock") <= LEASE_MS);
        pause = longest_pause_ms(LEASE_MS * 3 / 2);
    }
    ASK(stays, "state", "SAFE");
    strangers_are_refused();
    ASK(stays, "release", "HF_OK");
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* ---- Not an owner ---------------------------------------------------------------------------- */

/* The owner's name at the key, but nobody behind it: somebody else put it there. */
static void a_name_without_holders_is_not_joined(void **state)
{
    (void)state;
    open_clients();
    assert_string_equal(raw(server, "SET lock request-7 PX 30000"), "OK");
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", HF_ACQUIRE(.owner = "request-7"), &none, &error));
    assert_string_equal(raw(server, "DEL lock"), "1");
    hold = share("request-7", 30000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* The name of a hold without an owner is no way in. */
static void the_value_of_a_hold_is_no_owner(void **state)
{
    (void)state;
    char value[256];
    open_clients();
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &hold, &error));
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    EXPECT(HF_EINVAL, hf_acquire(third, "lock", HF_ACQUIRE(.owner = value), &none, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void the_longest_owner_is_accepted(void **state)
{
    (void)state;
    char owner[HF_OWNER_MAX + 1];
    memset(owner, 'o', HF_OWNER_MAX);
    owner[HF_OWNER_MAX] = '\0';
    open_clients();
    hold = share(owner, 30000);
    hf_hold *second = share(owner, 30000);
    expect_count(2);
    assert_string_equal(seen.owner, owner);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&second, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_processes_share_and_the_last_one_frees),
        TEST(operators_can_read_who_shares),
        TEST(every_acquire_counts),
        TEST(a_killed_sharer_costs_at_most_its_lease),
        TEST(a_dead_sharer_does_not_keep_the_lock),
        TEST(each_has_its_own_lease),
        TEST(the_one_who_stays_renews),
        TEST(a_name_without_holders_is_not_joined),
        TEST(the_value_of_a_hold_is_no_owner),
        TEST(the_longest_owner_is_accepted),
    };
    return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
