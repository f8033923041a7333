/* SPDX-License-Identifier: MIT */
/* Goal: a holder can be asked to give up, and hears it once, in the words of who asked; and a lock
 * can be taken away by force, with a fence that keeps the victim's late writes out.
 *
 * The holder renews often, so that it hears soon; its lease is long, so that nothing else ends it.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

static hf_client *holder;
static hf_client *asker;
static hf_hold *hold;
static hf_hold *other;
static hf_error error;
static struct witness witness;

static int begin(void **state)
{
    (void)state;
    witness_clear(&witness);
    empty_server();
    open_client(&holder);
    open_client(&asker);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void hold_it_as(const char *owner)
{
    EXPECT(HF_OK, hf_acquire(holder, "lock",
                             HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100, .owner = owner,
                                        .on_event = witness_event, .arg = &witness),
                             &hold, &error));
}

static void wait_for_renewals(uint64_t count)
{
    uint64_t enough = stats_of(holder)->renewals + count;
    WAIT_UNTIL(stats_of(holder)->renewals >= enough, 10000);
}

static void expect_told_to_give_up(const char *why)
{
    WAIT_UNTIL(atomic_load(&witness.count) > 0, 10000);
    EXPECT_TOLD(&witness, 0, HF_SAFE, HF_REASON_REVOKED);
    assert_string_equal(witness.told[0].text, why);
}

/* ---- Asked ----------------------------------------------------------------------------------- */

static void a_request_is_told_once(void **state)
{
    (void)state;
    hold_it_as(NULL);
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "deploy at noon", &error));
    expect_told_to_give_up("deploy at noon");
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "once more", &error));
    wait_for_renewals(3);
    assert_int_equal(atomic_load(&witness.count), 1);
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    assert_true(hf_is_valid(hold));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void no_words_are_needed(void **state)
{
    (void)state;
    hold_it_as(NULL);
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, NULL, &error));
    expect_told_to_give_up("");
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void the_longest_words_come_whole(void **state)
{
    (void)state;
    char why[HF_REASON_MAX + 2];
    memset(why, 'w', sizeof(why));
    why[HF_REASON_MAX + 1] = '\0';
    hold_it_as(NULL);
    EXPECT(HF_EINVAL, hf_revoke(asker, "lock", 0, why, &error));
    why[HF_REASON_MAX] = '\0';
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, why, &error));
    expect_told_to_give_up(why);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* The request was for that hold, and ends with it. */
static void the_next_holder_is_not_asked(void **state)
{
    (void)state;
    hold_it_as(NULL);
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "you, please", &error));
    expect_told_to_give_up("you, please");
    EXPECT(HF_OK, hf_release(&hold, &error));
    witness_clear(&witness);
    hold_it_as(NULL);
    wait_for_renewals(3);
    assert_int_equal(atomic_load(&witness.count), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void every_sharer_is_asked(void **state)
{
    (void)state;
    static struct witness second;
    witness_clear(&second);
    hold_it_as("request 7");
    EXPECT(HF_OK,
           hf_acquire(asker, "lock",
                      HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100, .owner = "request 7",
                                 .on_event = witness_event, .arg = &second),
                      &other, &error));
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "all of you", &error));
    expect_told_to_give_up("all of you");
    WAIT_UNTIL(times_told(&second, HF_SAFE, HF_REASON_REVOKED) == 1, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
}

/* The counter was lost (deleted, evicted), but the hold is there, and can be asked. */
static void a_holder_without_a_counter_is_asked(void **state)
{
    (void)state;
    hold_it_as(NULL);
    assert_string_equal(
        raw(server, "EVAL %s 0", "return redis.call('DEL', redis.call('KEYS', 'hf:f:*')[1])"), "1");
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "all the same", &error));
    expect_told_to_give_up("all the same");
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Nobody will hear it who does not use this library; and who comes next was not meant. */
static void a_request_to_a_foreigner_is_not_for_us(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "SET lock foreign PX 30000"), "OK");
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "you there", &error));
    assert_string_equal(raw(server, "DEL lock"), "1");
    hold_it_as(NULL);
    wait_for_renewals(3);
    assert_int_equal(atomic_load(&witness.count), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void nobody_can_be_asked(void **state)
{
    (void)state;
    EXPECT(HF_ENOTHELD, hf_revoke(asker, "lock", 0, "please", &error));
    hold_it_as(NULL);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_ENOTHELD, hf_revoke(asker, "lock", 0, "please", &error));
}

/* ---- Broken ---------------------------------------------------------------------------------- */

static void a_break_takes_it_away(void **state)
{
    (void)state;
    uint64_t fence = 0;
    hold_it_as(NULL);
    EXPECT(HF_OK, hf_break(asker, "lock", 0, &fence, &error));
    assert_true(fence > hf_fence(hold));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    WAIT_UNTIL(atomic_load(&witness.count) > 0, 10000);
    EXPECT_TOLD(&witness, 0, HF_LOST, HF_REASON_BROKEN);
    assert_false(hf_is_valid(hold));
    EXPECT(HF_OK, hf_acquire(asker, "lock", NULL, &other, &error));
    assert_true(hf_fence(other) > fence);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "1");
    EXPECT(HF_OK, hf_release(&other, &error));
    assert_int_equal(stats_of(holder)->losses[HF_REASON_BROKEN], 1);
}

/* The victim finds out with its release, if that comes first. */
static void a_release_after_a_break_is_lost(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_acquire(holder, "lock", HF_ACQUIRE(.lease_ms = 30000), &hold, &error));
    EXPECT(HF_OK, hf_break(asker, "lock", 0, NULL, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_acquire(holder, "lock", HF_ACQUIRE(.lease_ms = 30000), &hold, &error));
    EXPECT(HF_OK, hf_break(asker, "lock", 0, NULL, &error));
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void all_sharers_are_broken(void **state)
{
    (void)state;
    uint64_t fence = 0;
    hold_it_as("request 7");
    EXPECT(HF_OK, hf_acquire(asker, "lock", HF_ACQUIRE(.lease_ms = 30000, .owner = "request 7"),
                             &other, &error));
    EXPECT(HF_OK, hf_break(asker, "lock", 0, &fence, &error));
    assert_true(fence > hf_fence(hold));
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_BROKEN) == 1, 10000);
    EXPECT(HF_ELOST, hf_extend(other, 0, &error));
    EXPECT(HF_ELOST, hf_release(&other, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    hold_it_as("request 7"); /* the name may be used again, for a new grant */
    assert_true(hf_fence(hold) > fence);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* A hold that was granted after a break has nothing to do with it. */
static void the_next_holder_is_not_broken(void **state)
{
    (void)state;
    hold_it_as(NULL);
    EXPECT(HF_OK, hf_break(asker, "lock", 0, NULL, &error));
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_BROKEN) == 1, 10000);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    witness_clear(&witness);
    hold_it_as(NULL);
    wait_for_renewals(3);
    assert_int_equal(atomic_load(&witness.count), 0);
    assert_string_equal(raw(server, "DEL lock"), "1");
    WAIT_UNTIL(atomic_load(&witness.count) > 0, 10000);
    EXPECT_TOLD(&witness, 0, HF_LOST, HF_REASON_GONE); /* deleted, not broken */
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_foreign_lock_can_be_broken(void **state)
{
    (void)state;
    uint64_t fence = 0;
    assert_string_equal(raw(server, "SET lock foreign"), "OK");
    EXPECT(HF_OK, hf_break(asker, "lock", 0, &fence, &error));
    assert_true(fence > 0);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    hold_it_as(NULL);
    assert_true(hf_fence(hold) > fence);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void nobody_can_be_broken(void **state)
{
    (void)state;
    uint64_t fence = 77;
    EXPECT(HF_ENOTHELD, hf_break(asker, "lock", 0, &fence, &error));
    assert_int_equal(fence, 77);
}

static void names_with_nul_bytes(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_acquire(holder, "a\0b", HF_ACQUIRE(.name_length = 3), &hold, &error));
    EXPECT(HF_ENOTHELD, hf_revoke(asker, "a", 0, NULL, &error));
    EXPECT(HF_OK, hf_revoke(asker, "a\0b", 3, NULL, &error));
    EXPECT(HF_ENOTHELD, hf_break(asker, "a", 0, NULL, &error));
    EXPECT(HF_OK, hf_break(asker, "a\0b", 3, NULL, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_told_once),
        TEST(no_words_are_needed),
        TEST(the_longest_words_come_whole),
        TEST(the_next_holder_is_not_asked),
        TEST(every_sharer_is_asked),
        TEST(nobody_can_be_asked),
        TEST(a_request_to_a_foreigner_is_not_for_us),
        TEST(a_holder_without_a_counter_is_asked),
        TEST(a_break_takes_it_away),
        TEST(a_release_after_a_break_is_lost),
        TEST(all_sharers_are_broken),
        TEST(the_next_holder_is_not_broken),
        TEST(a_foreign_lock_can_be_broken),
        TEST(nobody_can_be_broken),
        TEST(names_with_nul_bytes),
    };
    return cmocka_run_group_tests_name("revoke and break", tests, start_server, end_server);
}
