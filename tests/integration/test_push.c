/* SPDX-License-Identifier: MIT */
/* Goal: what is said about a hold reaches a holder that is subscribed at once, not with its next
 * renewal; and whoever inspects a lock sees who waits for it, in order.
 *
 * The holder's renewals are twenty seconds apart. It is subscribed because it had to wait once, for
 * another lock.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "crowd.h"
#include "fixture.h"
#include "witness.h"

enum { LONG_MS = 60000, AT_ONCE_MS = 3000 };

static hf_client *holder;
static hf_client *asker;
static hf_hold *hold;
static hf_hold *other;
static hf_error error;
static hf_inspection seen;
static struct attempt waiter;
static struct witness witness;

static int begin(void **state)
{
    witness_clear(&witness);
    return start_server(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* Lets the client wait for something, in the queue. */
static void subscribe(hf_client *client)
{
    EXPECT(HF_OK, hf_acquire(asker, "another", NULL, &other, &error));
    EXPECT(HF_EBUSY, hf_acquire(client, "another", HF_ACQUIRE(.wait_ms = 300), &hold, &error));
    release(&other);
    assert_string_equal(raw(server, "PUBSUB CHANNELS hf:c:*"), "(array of 1)");
}

static void a_subscribed_client_holds(const char *owner)
{
    open_client(&holder);
    open_client(&asker);
    subscribe(holder);
    hold = acquire_with(holder, HF_ACQUIRE(.lease_ms = LONG_MS, .owner = owner,
                                           .on_event = witness_event, .arg = &witness));
}

static void expect_told_at_once(hf_state state, hf_reason reason, const char *text)
{
    WAIT_UNTIL(atomic_load(&witness.count) > 0, AT_ONCE_MS);
    EXPECT_TOLD(&witness, 0, state, reason);
    if (text != NULL)
        assert_string_equal(witness.told[0].text, text);
    assert_int_equal(stats_of(holder)->renewals, 0);
}

/* ---- Messages to the holder ------------------------------------------------------------------ */

static void a_request_comes_at_once(void **state)
{
    (void)state;
    a_subscribed_client_holds(NULL);
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "deploy at noon", &error));
    expect_told_at_once(HF_SAFE, HF_REASON_REVOKED, "deploy at noon");
    assert_true(hf_is_valid(hold));
    EXPECT(HF_OK, hf_extend(hold, 0, &error)); /* which brings the note once more */
    sleep_ms(50);
    assert_int_equal(atomic_load(&witness.count), 1);
    release(&hold);
}

static void a_request_to_an_owner_comes_at_once(void **state)
{
    (void)state;
    a_subscribed_client_holds("order 7");
    EXPECT(HF_OK, hf_revoke(asker, "lock", 0, "please", &error));
    expect_told_at_once(HF_SAFE, HF_REASON_REVOKED, "please");
    release(&hold);
}

static void a_break_is_told_at_once(void **state)
{
    (void)state;
    a_subscribed_client_holds(NULL);
    EXPECT(HF_OK, hf_break(asker, "lock", 0, NULL, &error));
    expect_told_at_once(HF_LOST, HF_REASON_BROKEN, NULL);
    assert_false(hf_is_valid(hold));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_break_is_told_to_an_owner_at_once(void **state)
{
    (void)state;
    a_subscribed_client_holds("order 7");
    EXPECT(HF_OK, hf_break(asker, "lock", 0, NULL, &error));
    expect_told_at_once(HF_LOST, HF_REASON_BROKEN, NULL);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

/* And the lock goes to the first who waits, with a fence above the victim's and the breaker's. */
static void a_break_hands_on(void **state)
{
    (void)state;
    uint64_t fence = 0;
    a_subscribed_client_holds(NULL);
    attempt_begin(&waiter, asker, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == 1, 10000);
    int64_t start = now_ms();
    EXPECT(HF_OK, hf_break(asker, "lock", 0, &fence, &error));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, AT_ONCE_MS);
    assert_true(fence > hf_fence(hold));
    assert_true(hf_fence(waiter.hold) > fence);
    expect_told_at_once(HF_LOST, HF_REASON_BROKEN, NULL);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    release(&waiter.hold);
}

/* Messages that no server script has sent, by whoever may publish: none is believed or harmful. */
static void forged_messages_do_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "g",
                                        "g ",
                                        "g 1",
                                        "g 2 1 99 60000 0",
                                        "g 2 9223372036854775807 99 60000 0",
                                        "g 2 99999999999999999999999 99 60000 0",
                                        "g 18446744073709551616 1 1 1 1",
                                        "i",
                                        "i 2",
                                        "i 77",
                                        "r 2",
                                        "x 2",
                                        "x 2 0",
                                        "x 2 -5",
                                        "z 2 1",
                                        "\r\n$5\r\nhello"};
    a_subscribed_client_holds(NULL);
    attempt_begin(&waiter, asker, "lock", HF_ACQUIRE(.wait_ms = 1500, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == 1, 10000);
    EXPECT(HF_OK, hf_inspect(holder, "lock", 0, &seen, &error));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)raw(server, "PUBLISH hf:c:%s %s", seen.holders[0].client_id, texts[i]);
        (void)raw(server, "PUBLISH hf:c:%s %s", seen.waiters[0].client_id, texts[i]);
    }
    assert_int_equal(attempt_end(&waiter), HF_EBUSY);
    assert_true(hf_is_valid(hold));
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    release(&hold);
}

/* ---- Who waits ------------------------------------------------------------------------------- */

static void every_field_of_those_who_wait(void **state)
{
    (void)state;
    enum { WAITERS = 3 };
    static struct attempt waiters[WAITERS];
    static const char *const labels[] = {"first/of all", "second", ""};
    char host[65] = "";
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    open_client(&holder);
    open_client(&asker);
    hold = acquire_for(holder, LONG_MS);
    for (int i = 0; i < WAITERS; i++) {
        attempt_begin(&waiters[i], asker, "lock",
                      HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900, .fair = true, .label = labels[i],
                                 .owner = i == 1 ? "order 7" : NULL));
        WAIT_UNTIL(queued() == i + 1, 10000);
    }
    int64_t all_wait_since = now_ms();
    sleep_ms(700); /* which is beyond a check of each */
    EXPECT(HF_OK, hf_inspect(holder, "lock", 0, &seen, &error));
    assert_int_equal(seen.queue_length, WAITERS);
    assert_int_equal(seen.waiter_count, WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        const hf_holder *one = &seen.waiters[i];
        assert_string_equal(one->label, labels[i]);
        assert_string_equal(one->host, host);
        assert_int_equal(one->pid, getpid());
        assert_int_equal(strlen(one->client_id), 32);
        assert_true(one->thread > 0 && one->number > 0);
        assert_int_equal(one->remaining_ms, 0);
        assert_in_range(one->waited_ms, 600, now_ms() - all_wait_since + SLACK_MS);
        if (i > 0) {
            assert_true(one->thread != seen.waiters[i - 1].thread);
            assert_true(one->waited_ms <= seen.waiters[i - 1].waited_ms);
        }
    }
    release(&hold);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(attempt_end(&waiters[i]), HF_OK);
        release(&waiters[i].hold);
    }
    EXPECT(HF_OK, hf_inspect(holder, "lock", 0, &seen, &error));
    assert_int_equal(seen.queue_length, 0);
    assert_int_equal(seen.waiter_count, 0);
}

static void more_wait_than_can_be_listed(void **state)
{
    (void)state;
    enum { WAITERS = HF_WAITERS_MAX + 9 };
    crowd_start(server, WAITERS);
    open_client(&holder);
    hold = acquire_for(holder, LONG_MS);
    for (int i = 0; i < WAITERS; i++) {
        crowd_join(i, &(struct crowd_wish){.threads = 1, .lease_ms = LONG_MS});
        WAIT_UNTIL(queued() == i + 1, 10000);
    }
    EXPECT(HF_OK, hf_inspect(holder, "lock", 0, &seen, &error));
    assert_int_equal(seen.queue_length, WAITERS);
    assert_int_equal(seen.waiter_count, HF_WAITERS_MAX);
    for (int i = 0; i < HF_WAITERS_MAX; i++)
        assert_int_equal(seen.waiters[i].pid, crowd_pid(i));
    release(&hold);
    for (int i = 0; i < WAITERS; i++)
        (void)crowd_hear(i);
    expect_only_fences();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_comes_at_once),
        TEST(a_request_to_an_owner_comes_at_once),
        TEST(a_break_is_told_at_once),
        TEST(a_break_is_told_to_an_owner_at_once),
        TEST(a_break_hands_on),
        TEST(forged_messages_do_nothing),
        TEST(every_field_of_those_who_wait),
        TEST(more_wait_than_can_be_listed),
    };
    return cmocka_run_group_tests_name("push", tests, NULL, NULL);
}
