/* SPDX-License-Identifier: MIT */
/* Goal: somebody who may publish at a real server, and knows a client's channel, cannot make it
 * believe that it has a lock: not by guessing, and not with messages that were true once. What such
 * a neighbour can do is to ask a holder to stop, and to make it stop; and one who can also read the
 * queue can deceive a waiter, until its first renewal finds out. docs/safety.md says so.
 *
 * Alice has the lock, bob is the victim. Whenever alice's hold is valid bob's must not be.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

enum { LONG_MS = 60000, SHORT_MS = 3000, ENOUGH_MS = 100 };

#define FORGED_FENCE UINT64_C(9000000000000000)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static hf_error error;
static hf_hold *of_alice;
static struct attempt waiter;
static struct witness witness;
static redisContext *listener; /* the attacker's subscription */
static char channel[64];       /* bob's */

static int begin(void **state)
{
    witness_clear(&witness);
    waiter.hold = NULL;
    return begin_with_both(state);
}

static int end(void **state)
{
    if (listener != NULL)
        redisFree(listener);
    listener = NULL;
    hf_release(&of_alice, NULL);
    int result = close_clients(state);
    hf_release(&waiter.hold, NULL);
    return result;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void forge(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void forge(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    assert_in_range(length, 0, sizeof(text) - 1);
    assert_int_equal(raw_number(server, "PUBLISH %s %b", channel, text, (size_t)length) > 0, 1);
}

static void bob_waits(int64_t lease_ms)
{
    static hf_inspection seen;
    attempt_begin(&waiter, bob, "lock",
                  HF_ACQUIRE(.wait_ms = -1, .lease_ms = lease_ms, .no_reentry = true,
                             .on_event = witness_event, .arg = &witness));
    WAIT_UNTIL(queued() == 1, 10000);
    EXPECT(HF_OK, hf_inspect(alice, "lock", 0, &seen, &error));
    assert_int_equal(seen.waiter_count, 1);
    (void)snprintf(channel, sizeof(channel), "hf:c:%s", seen.waiters[0].client_id);
}

static void alice_holds(void)
{
    of_alice = acquire_with(alice, HF_ACQUIRE(.lease_ms = LONG_MS, .wait_ms = 10000));
}

static void expect_not_believed(void)
{
    sleep_ms(ENOUGH_MS);
    assert_true(hf_is_valid(of_alice));
    if (attempt_is_over(&waiter))
        fail_msg("believed, while somebody else has the lock");
}

/* The true grant comes behind all that was forged: its fence shows which one was believed. */
static void alice_hands_over(void)
{
    uint64_t before = hf_fence(of_alice);
    release(&of_alice);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(hf_is_valid(waiter.hold));
    assert_true(hf_fence(waiter.hold) > before);
    assert_true(hf_fence(waiter.hold) < FORGED_FENCE);
}

static void listen_in(void)
{
    listener = redisConnectUnix(server->socket);
    assert_non_null(listener);
    assert_int_equal(redisSetTimeout(listener, (struct timeval){.tv_sec = 10}), REDIS_OK);
    redisReply *reply = redisCommand(listener, "SUBSCRIBE %s", channel);
    assert_non_null(reply);
    freeReplyObject(reply);
}

/* The next grant on bob's channel. */
static void overhear_grant(char text[LINE_MAX_TEXT])
{
    redisReply *reply = NULL;
    for (;;) {
        assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
        assert_int_equal(reply->elements, 3);
        (void)snprintf(text, LINE_MAX_TEXT, "%s", reply->element[2]->str);
        freeReplyObject(reply);
        if (text[0] == 'g')
            return;
    }
}

/* ---- Guesses --------------------------------------------------------------------------------- */

static void guesses_are_not_believed(void **state)
{
    (void)state;
    static const uint64_t guesses[] = {0,
                                       1,
                                       2,
                                       UINT64_C(1) << 32,
                                       (UINT64_C(1) << 50) + 12345,
                                       (UINT64_C(1) << 51) - 1,
                                       UINT64_C(1) << 51,
                                       (UINT64_C(1) << 53) - 1,
                                       UINT64_C(1) << 53,
                                       INT64_MAX,
                                       UINT64_MAX};
    alice_holds();
    bob_waits(LONG_MS);
    for (int number = 0; number < 5; number++)
        for (size_t i = 0; i < COUNT(guesses); i++)
            forge("g %d %" PRIu64 " 1 %d 0", number, guesses[i], LONG_MS);
    for (uint64_t i = 0; i < 2000; i++)
        forge("g 1 %" PRIu64 " 1 %d 0", (i * UINT64_C(0x9e3779b97f4a7c15)) >> 13, LONG_MS);
    expect_not_believed();
    alice_hands_over();
    release(&waiter.hold);
}

/* ---- What was true once ---------------------------------------------------------------------- */

/* As it was, and for the holds that came since. */
static void replay(const char *grant)
{
    uint64_t copy = 0;
    forge("%s", grant);
    assert_int_equal(sscanf(grant, "g %*d %" SCNu64, &copy), 1);
    for (int number = 1; number < 6; number++)
        forge("g %d %" PRIu64 " %" PRIu64 " %d 0", number, copy, FORGED_FENCE, LONG_MS);
}

static void recorded_grants_are_not_believed_again(void **state)
{
    (void)state;
    char grant[LINE_MAX_TEXT];
    alice_holds();
    bob_waits(LONG_MS);
    listen_in();
    alice_hands_over();
    overhear_grant(grant);
    uint64_t fence = hf_fence(waiter.hold);
    replay(grant); /* while he has it: neither more time nor another fence */
    sleep_ms(ENOUGH_MS);
    assert_true(hf_fence(waiter.hold) == fence);
    assert_in_range(hf_remaining_ms(waiter.hold), 1, LONG_MS);
    release(&waiter.hold);
    replay(grant); /* when he has it no more */
    alice_holds();
    replay(grant);
    bob_waits(LONG_MS);
    replay(grant); /* while he waits again */
    expect_not_believed();
    alice_hands_over();
    replay(grant);
    sleep_ms(ENOUGH_MS);
    assert_true(hf_fence(waiter.hold) > fence);
    assert_true(hf_fence(waiter.hold) < FORGED_FENCE);
    release(&waiter.hold);
}

/* Nor does one grant tell the number of the next: who waits again counts from another one. */
static void one_who_has_listened_cannot_count_on(void **state)
{
    (void)state;
    char grant[LINE_MAX_TEXT];
    uint64_t copy = 0;
    alice_holds();
    bob_waits(LONG_MS);
    listen_in();
    alice_hands_over();
    overhear_grant(grant);
    assert_int_equal(sscanf(grant, "g 1 %" SCNu64, &copy), 1);
    release(&waiter.hold);
    alice_holds();
    bob_waits(LONG_MS);
    for (uint64_t i = 1; i <= 2000; i++)
        forge("g 2 %" PRIu64 " %" PRIu64 " %d 0", copy + i, FORGED_FENCE, LONG_MS);
    expect_not_believed();
    alice_hands_over();
    release(&waiter.hold);
}

/* A grant that was skipped: he had given up, and it was given back. */
static void a_grant_that_nobody_took_is_not_believed_later(void **state)
{
    (void)state;
    char grant[LINE_MAX_TEXT];
    hf_hold *none = NULL;
    alice_holds();
    bob_waits(LONG_MS);
    listen_in();
    alice_hands_over();
    overhear_grant(grant);
    release(&waiter.hold);
    alice_holds();
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 50), &none, &error));
    replay(grant);
    bob_waits(LONG_MS);
    replay(grant);
    expect_not_believed();
    alice_hands_over();
    release(&waiter.hold);
}

/* ---- Who can read the queue ------------------------------------------------------------------ */

/* Then the number is no secret: bob believes. The server knows better, and says so with the first
 * renewal, a third of the lease later; alice is not disturbed. */
static void whoever_reads_the_queue_deceives_until_the_first_renewal(void **state)
{
    (void)state;
    uint64_t copy = 0;
    static hf_inspection seen;
    alice_holds();
    bob_waits(SHORT_MS);
    EXPECT(HF_OK, hf_inspect(alice, "lock", 0, &seen, &error));
    redisReply *records = redisCommand(server->raw, "HVALS %s", side_key('w'));
    assert_non_null(records);
    for (size_t i = 0; i < records->elements; i++)
        (void)sscanf(records->element[i]->str, "%" SCNu64 " ", &copy);
    freeReplyObject(records);
    int64_t start = now_ms();
    forge("g %" PRIu64 " %" PRIu64 " 1 %d 0", seen.waiters[0].number, copy, LONG_MS);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_in_range(hf_remaining_ms(waiter.hold), 0, SHORT_MS); /* not what the forger wished */
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_GONE) == 1, SHORT_MS);
    EXPECT_TOOK(start, 0, SHORT_MS / 3);
    assert_false(hf_is_valid(waiter.hold));
    assert_true(hf_is_valid(of_alice));
    EXPECT(HF_ELOST, hf_release(&waiter.hold, &error));
    assert_true(hf_is_valid(of_alice));
    release(&of_alice);
}

/* ---- To a holder ----------------------------------------------------------------------------- */

/* Bob has the lock, and his client is subscribed. Returns the fence that the server knows. */
static uint64_t bob_holds(void)
{
    alice_holds();
    bob_waits(LONG_MS);
    alice_hands_over();
    return (uint64_t)strtoull(raw(server, "GET %s", side_key('f')), NULL, 10);
}

/* Asked a thousand times: told once, in words that can do nothing to a terminal. */
static void a_request_is_told_once_and_in_print(void **state)
{
    (void)state;
    uint64_t fence = bob_holds();
    forge("r 1 %" PRIu64 ":", fence + 1);    /* for another grant */
    forge("r 77 %" PRIu64 ":nobody", fence); /* for a hold of others */
    forge("r 1 :nobody");
    forge("r 1 %" PRIu64 ":%s", fence, "\x1b[2J\x07\r\n\xff\xfe\xc3\x28 give\tit up");
    for (int i = 0; i < 1000; i++)
        forge("r 1 %" PRIu64 ":%d", fence, i);
    WAIT_UNTIL(atomic_load(&witness.count) > 0, 10000);
    sleep_ms(ENOUGH_MS);
    assert_int_equal(atomic_load(&witness.count), 1);
    EXPECT_TOLD(&witness, 0, HF_SAFE, HF_REASON_REVOKED);
    assert_string_equal(witness.told[0].text, "?[2J?????"
                                              "?( give?it up");
    assert_true(hf_is_valid(waiter.hold));
    release(&waiter.hold);
}

static void a_request_of_a_megabyte_is_cut(void **state)
{
    (void)state;
    static char note[1000 * 1000];
    uint64_t fence = bob_holds();
    memset(note, '\xe2', sizeof(note));
    int header = snprintf(note, sizeof(note), "r 1 %" PRIu64 ":", fence);
    note[header] = '\0'; /* in the middle, and nothing ends with it */
    assert_true(raw_number(server, "PUBLISH %s %b", channel, note, sizeof(note)) > 0);
    WAIT_UNTIL(atomic_load(&witness.count) > 0, 10000);
    assert_int_equal(strlen(witness.told[0].text), HF_REASON_MAX);
    assert_int_equal(strspn(witness.told[0].text, "?"), HF_REASON_MAX);
    release(&waiter.hold);
}

/* That others wait is believed, and costs the threads of a process their turns; nothing else. */
static void news_of_waiters_do_no_harm(void **state)
{
    (void)state;
    (void)bob_holds();
    for (int i = 0; i < 3000; i++)
        forge("i %d", i % 4);
    sleep_ms(ENOUGH_MS);
    assert_int_equal(atomic_load(&witness.count), 0);
    assert_true(hf_is_valid(waiter.hold));
    release(&waiter.hold);
}

/* One that names an older grant, or no hold of his, means nothing. One that fits is believed: he
 * stops, which is the safe side, and gives back what he still has at the server. */
static void a_forged_break_makes_its_holder_stop(void **state)
{
    (void)state;
    uint64_t fence = bob_holds();
    forge("x 1 %" PRIu64, hf_fence(waiter.hold) - 1);
    forge("x 77 %" PRIu64, fence);
    forge("x 1 -1");
    forge("x 1 99999999999999999999");
    forge("x 1");
    sleep_ms(ENOUGH_MS);
    assert_true(hf_is_valid(waiter.hold));
    forge("x 1 %" PRIu64, fence);
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_BROKEN) == 1, 10000);
    assert_false(hf_is_valid(waiter.hold));
    forge("g 1 1 1 60000 0");
    EXPECT(HF_ELOST, hf_release(&waiter.hold, &error));
    expect_free(alice);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(guesses_are_not_believed),
        TEST(recorded_grants_are_not_believed_again),
        TEST(one_who_has_listened_cannot_count_on),
        TEST(a_grant_that_nobody_took_is_not_believed_later),
        TEST(whoever_reads_the_queue_deceives_until_the_first_renewal),
        TEST(a_request_is_told_once_and_in_print),
        TEST(a_request_of_a_megabyte_is_cut),
        TEST(news_of_waiters_do_no_harm),
        TEST(a_forged_break_makes_its_holder_stop),
    };
    return cmocka_run_group_tests_name("forged messages", tests, start_server, end_server);
}
