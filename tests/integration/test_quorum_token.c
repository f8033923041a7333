/* SPDX-License-Identifier: MIT */
/* Goal: a lock on three real servers goes from process to process as a token, and whoever takes it
 * up renews and releases it at all of them, with one server down, one that has lost its copy, or
 * votes that have different numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

enum { SERVERS = 3, LEASE_MS = 60000, PATIENCE_MS = 20000, CLIENT_ID = 32 };

static struct redis_server *all[SERVERS];
static char urls[256];
static hf_error error;
static char token[HF_TOKEN_MAX];

/* The servers are new, but have nothing that they could have forgotten. */
#define CLIENT                                                                    \
    HF_CLIENT(.connect_timeout_ms = PATIENCE_MS, .reply_timeout_ms = PATIENCE_MS, \
              .call_timeout_ms = PATIENCE_MS, .durable_servers = true)

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++)
        assert_non_null(all[i] = redis_server_start(NULL));
    (void)snprintf(urls, sizeof(urls), "%s,%s,%s", all[0]->url, all[1]->url, all[2]->url);
    return 0;
}

/* Not before a test has started its processes: who forks has no threads. */
static void open_clients(void)
{
    open_client_at(urls, &alice, CLIENT);
    open_client_at(urls, &bob, CLIENT);
}

static bool is_held_at(int number)
{
    return raw_number(all[number], "EXISTS lock") == 1;
}

static int count_held(void)
{
    int count = 0;
    for (int i = 0; i < SERVERS; i++)
        count += is_held_at(i);
    return count;
}

/* Everywhere: a hold that is decided may still be on its way to the third. */
static void take_everywhere(void)
{
    open_clients();
    hf_hold *hold = acquire_for(alice, LEASE_MS);
    WAIT_UNTIL(count_held() == SERVERS, PATIENCE_MS);
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    assert_null(hold);
}

static hf_hold *attach_for(int64_t lease_ms)
{
    hf_hold *hold = NULL;
    EXPECT(HF_OK, hf_attach(bob, "lock", token,
                            HF_ACQUIRE(.lease_ms = lease_ms, .no_renewal = true), &hold, &error));
    return hold;
}

/* ---- Two processes --------------------------------------------------------------------------- */

static void take_and_go(int line, void *arg)
{
    (void)arg;
    char text[HF_TOKEN_MAX];
    hf_client *client;
    hf_hold *hold;
    if (hf_open(urls, CLIENT, &client, NULL) != HF_OK ||
        hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = LEASE_MS), &hold, NULL) != HF_OK)
        _exit(1);
    unsigned long long fence = hf_fence(hold);
    if (hf_detach(&hold, text, NULL) != HF_OK || hf_close(client) != HF_OK)
        _exit(1);
    line_say(line, "%s", text);
    line_say(line, "%llu", fence);
}

static void another_process_has_it(void **state)
{
    (void)state;
    char fence[LINE_MAX_TEXT], heard[LINE_MAX_TEXT];
    struct process *other = process_start(take_and_go, NULL);
    assert_true(line_hear(other->line, heard, PATIENCE_MS));
    assert_true(line_hear(other->line, fence, PATIENCE_MS));
    assert_true(process_finish(other, PATIENCE_MS));
    (void)snprintf(token, sizeof(token), "%s", heard);
    open_clients();
    assert_in_range(count_held(), 2, 3);
    expect_refused(alice);
    hf_hold *hold = attach_for(LEASE_MS);
    assert_true(hf_fence(hold) == strtoull(fence, NULL, 10));
    assert_in_range(hf_remaining_ms(hold), 1, LEASE_MS);
    expect_refused(alice);
    release(&hold);
    assert_int_equal(count_held(), 0);
    EXPECT(HF_ELOST, hf_attach(bob, "lock", token, NULL, &hold, &error));
    expect_says(error.text, "0 of 3 servers have it");
    assert_null(hold);
}

/* ---- All servers ----------------------------------------------------------------------------- */

static void the_release_frees_all(void **state)
{
    (void)state;
    take_everywhere();
    hf_hold *hold = attach_for(HF_LEASE_MIN_MS);
    release(&hold);
    WAIT_UNTIL(count_held() == 0, PATIENCE_MS);
}

static void all_are_renewed(void **state)
{
    (void)state;
    take_everywhere();
    for (int i = 0; i < SERVERS; i++)
        assert_int_equal(raw_number(all[i], "PEXPIRE lock 30000"), 1);
    hf_hold *hold = attach_for(LEASE_MS);
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    for (int i = 0; i < SERVERS; i++)
        assert_in_range(raw_number(all[i], "PTTL lock"), 30001, LEASE_MS);
    hold = attach_for(HF_LEASE_MIN_MS); /* which makes nothing shorter */
    assert_in_range(hf_remaining_ms(hold), 30001, LEASE_MS);
    release(&hold);
}

/* Each vote that was given up and had again has another number: as if that had happened. */
static void the_votes_have_numbers_of_their_own(void **state)
{
    (void)state;
    take_everywhere();
    for (int i = 1; i < SERVERS; i++) {
        char value[256], changed[512];
        unsigned long long number;
        (void)snprintf(value, sizeof(value), "%s", raw(all[i], "GET lock"));
        assert_int_equal(sscanf(value + CLIENT_ID + 1, "%llu", &number), 1);
        (void)snprintf(changed, sizeof(changed), "%.*s:%llu%s", CLIENT_ID, value,
                       number + (unsigned)i, strchr(value, '@'));
        assert_string_equal(raw(all[i], "SET lock %s KEEPTTL", changed), "OK");
    }
    hf_hold *hold = attach_for(LEASE_MS);
    EXPECT(HF_OK, hf_extend(hold, LEASE_MS, &error));
    release(&hold);
    WAIT_UNTIL(count_held() == 0, PATIENCE_MS);
}

/* ---- Contention ------------------------------------------------------------------------------ */

static void take_in_turn(int line, void *arg)
{
    (void)arg;
    hf_error why = {.text = ""};
    char text[HF_TOKEN_MAX];
    hf_client *client;
    hf_hold *hold;
    hf_status status = hf_open(urls, CLIENT, &client, &why);
    for (int i = 0; i < 10 && status == HF_OK; i++) {
        status = hf_acquire(client, "lock",
                            HF_ACQUIRE(.lease_ms = LEASE_MS, .wait_ms = PATIENCE_MS), &hold, &why);
        if (status == HF_OK)
            status = hf_detach(&hold, text, &why);
        if (status == HF_OK)
            status = hf_attach(client, "lock", text, HF_ACQUIRE(.no_renewal = true), &hold, &why);
        if (status == HF_OK)
            status = hf_release(&hold, &why);
    }
    line_say(line, "%s %s", hf_status_name(status), why.text);
    (void)hf_close(client);
}

/* Several that queue, and give way, and pass through a token each time: nothing is left behind. */
static void tokens_of_a_lock_that_is_wanted(void **state)
{
    (void)state;
    struct process *others[3];
    char heard[LINE_MAX_TEXT];
    for (int i = 0; i < 3; i++)
        others[i] = process_start(take_in_turn, NULL);
    for (int i = 0; i < 3; i++) {
        assert_true(line_hear(others[i]->line, heard, 3 * PATIENCE_MS));
        assert_string_equal(heard, "HF_OK ");
        assert_true(process_finish(others[i], PATIENCE_MS));
    }
    open_clients();
    expect_free(alice);
}

/* ---- Servers that are missing ---------------------------------------------------------------- */

static void one_server_has_lost_its_copy(void **state)
{
    (void)state;
    take_everywhere();
    assert_int_equal(raw_number(all[1], "DEL lock"), 1);
    hf_hold *hold = NULL;
    EXPECT(HF_OK, hf_attach(bob, "lock", token, HF_ACQUIRE(.lease_ms = 600), &hold, &error));
    WAIT_UNTIL(is_held_at(1), PATIENCE_MS); /* given it again, once it has been renewed */
    assert_true(hf_is_valid(hold));
    release(&hold);
    WAIT_UNTIL(count_held() == 0, PATIENCE_MS);
}

static void one_server_is_down(void **state)
{
    (void)state;
    take_everywhere();
    redis_server_kill(all[2]);
    hf_hold *hold = attach_for(LEASE_MS);
    release(&hold);
    assert_false(is_held_at(0) || is_held_at(1));
}

static void one_server_is_silent(void **state)
{
    (void)state;
    take_everywhere();
    redis_server_freeze(all[0]);
    hf_hold *hold = attach_for(LEASE_MS);
    release(&hold);
    assert_false(is_held_at(1) || is_held_at(2));
    redis_server_thaw(all[0]);
}

static void two_servers_are_down(void **state)
{
    (void)state;
    hf_hold *hold;
    take_everywhere();
    redis_server_kill(all[0]);
    redis_server_kill(all[2]);
    EXPECT(HF_EUNAVAILABLE, hf_attach(bob, "lock", token, NULL, &hold, &error));
    expect_says(error.text, "1 of 3 servers have it");
    assert_true(is_held_at(1)); /* nothing was given back */
}

static void two_servers_have_lost_it(void **state)
{
    (void)state;
    hf_hold *hold;
    take_everywhere();
    assert_int_equal(raw_number(all[0], "DEL lock"), 1);
    assert_string_equal(raw(all[2], "SET lock somebody PX %d", LEASE_MS), "OK");
    EXPECT(HF_ELOST, hf_attach(bob, "lock", token, NULL, &hold, &error));
    assert_true(is_held_at(1) && is_held_at(2));
}

static void it_has_ended(void **state)
{
    (void)state;
    open_clients();
    hf_hold *hold = acquire_for(alice, 300);
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    WAIT_UNTIL(count_held() == 0, PATIENCE_MS);
    EXPECT(HF_ELOST, hf_attach(bob, "lock", token, NULL, &hold, &error));
}

/* ---- Who shares it --------------------------------------------------------------------------- */

static void an_owner_has_several_tokens(void **state)
{
    (void)state;
    char first[HF_TOKEN_MAX];
    open_clients();
    hf_hold *hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LEASE_MS, .owner = "request 7"));
    EXPECT(HF_OK, hf_detach(&hold, first, &error));
    hold = acquire_with(bob, HF_ACQUIRE(.lease_ms = LEASE_MS, .owner = "request 7"));
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    EXPECT(HF_OK, hf_attach(bob, "lock", first, NULL, &hold, &error));
    release(&hold);
    EXPECT(HF_ELOST, hf_attach(bob, "lock", first, NULL, &hold, &error));
    hold = attach_for(LEASE_MS);
    release(&hold);
    WAIT_UNTIL(count_held() == 0, PATIENCE_MS);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_process_has_it),
        TEST(the_release_frees_all),
        TEST(all_are_renewed),
        TEST(the_votes_have_numbers_of_their_own),
        TEST(tokens_of_a_lock_that_is_wanted),
        TEST(one_server_has_lost_its_copy),
        TEST(one_server_is_down),
        TEST(one_server_is_silent),
        TEST(two_servers_are_down),
        TEST(two_servers_have_lost_it),
        TEST(it_has_ended),
        TEST(an_owner_has_several_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
