/* SPDX-License-Identifier: MIT */
/* What the servers of a quorum say, made into one answer: who has the lock, for how long, who
 * shares it and who waits; and when it is too early to tell. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "core/agree.h"
#include "core/fail.h"
#include "core/holder.h"

#define ANN         "00000000000000000000000000000aaa"
#define BOB         "00000000000000000000000000000bbb"
#define REST        "@there:5/1/report"
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static hf_inspection said[HF_SERVERS_MAX];
static hf__opinion opinions[HF_SERVERS_MAX];
static hf_inspection merged;
static int leader;

/* ---- Verbs ---- */

static int begin(void **state)
{
    (void)state;
    memset(said, 0, sizeof(said));
    memset(opinions, 0, sizeof(opinions));
    leader = -1;
    return 0;
}

static void is_free(int server, uint64_t fence)
{
    said[server].fence = fence;
    opinions[server] = (hf__opinion){.seen = &said[server]};
}

static void has(int server, const char *value, int64_t remaining_ms, uint64_t fence)
{
    is_free(server, fence);
    said[server].held = true;
    said[server].remaining_ms = remaining_ms;
    snprintf(said[server].owner, sizeof(said[server].owner), "%s", value);
    said[server].hold_count = said[server].holder_count = 1;
    said[server].holders[0] = hf__holder_of(hf__slice_text(value));
    said[server].holders[0].remaining_ms = remaining_ms;
    opinions[server].value = hf__slice_text(value);
}

static void shares(int server, const char *owner)
{
    has(server, owner, 100, 7);
    said[server].shared = true;
    said[server].hold_count = said[server].holder_count = 0;
}

static void add_sharer(int server, uint64_t thread, int64_t remaining_ms)
{
    hf_holder *holder = &said[server].holders[said[server].holder_count++];
    *holder = hf__holder_of(HF__SLICE(ANN ":1" REST));
    holder->thread = thread;
    holder->remaining_ms = remaining_ms;
    said[server].hold_count++;
}

static void add_waiter(int server, const char *value, int64_t waited_ms)
{
    hf_holder *waiter = &said[server].waiters[said[server].waiter_count++];
    *waiter = hf__holder_of(hf__slice_text(value));
    waiter->waited_ms = waited_ms;
    said[server].queue_length++;
}

#define EXPECT_AGREED(count, expected) \
    assert_int_equal(hf__agree(opinions, count, &leader), HF__AGREE_##expected)

static void merge(int count)
{
    hf__agreement agreement = hf__agree(opinions, count, &leader);
    assert_int_not_equal(agreement, HF__AGREE_OPEN);
    hf__agree_merge(opinions, count, agreement == HF__AGREE_HELD ? leader : -1, &merged);
}

/* ---- Who has it ---- */

static void a_majority_decides(void **state)
{
    (void)state;
    EXPECT_AGREED(3, OPEN);
    has(2, ANN ":1" REST, 100, 7);
    EXPECT_AGREED(3, OPEN);
    has(1, ANN ":2" REST, 100, 7);
    EXPECT_AGREED(3, HELD);
    assert_int_equal(leader, 1);
    is_free(0, 0);
    EXPECT_AGREED(3, HELD);
}

static void half_is_no_majority(void **state)
{
    (void)state;
    has(0, ANN ":1" REST, 100, 7);
    has(1, ANN ":2" REST, 100, 7);
    is_free(2, 7);
    EXPECT_AGREED(4, OPEN);
    is_free(3, 7);
    EXPECT_AGREED(4, FREE);
}

static void what_is_not_said_may_decide(void **state)
{
    (void)state;
    is_free(0, 0);
    EXPECT_AGREED(3, OPEN); /* the two others may have it */
    has(1, ANN ":1" REST, 100, 7);
    EXPECT_AGREED(3, OPEN); /* and the third be the second vote of this one */
    has(2, BOB ":1" REST, 100, 7);
    EXPECT_AGREED(3, FREE);
}

static void nobody_is_certain_with_a_majority_that_says_so(void **state)
{
    (void)state;
    is_free(0, 0);
    EXPECT_AGREED(2, OPEN); /* nobody can have both, but its fence may be at the other one */
    is_free(3, 0);
    EXPECT_AGREED(5, OPEN);
    is_free(4, 0);
    EXPECT_AGREED(5, FREE);
}

/* Which two of these say the same. */
static void values_are_compared_without_their_numbers(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {ANN ":1" REST, ANN ":1" REST, true},
        {ANN ":1" REST, ANN ":18446744073709551615" REST, true},
        {ANN ":1" REST, BOB ":1" REST, false},
        {ANN ":1@there:5/1/report", ANN ":1@here:5/1/report", false},
        {ANN ":1@there:5/1/report", ANN ":1@there:5/1/report2", false},
        {ANN ":1@there:5/1/report", ANN ":1@there:5/1", false},
        {ANN ":1@there:5/1/a@b:c", ANN ":2@there:5/1/a@b:c", true},
        {ANN ":1@there:5/1/a@b:c", ANN ":2@there:5/1/a@b:d", false},
        {"somebody else's", "somebody else's", true},
        {"somebody else's", "somebody else", false},
        {"a:1@b", "a:2@b", false}, /* not ours: every byte of it counts */
        {ANN ":x" REST, ANN ":y" REST, false},
        {"", "", true},
    };
    (void)state;
    for (int i = 0; i < COUNT(pairs); i++) {
        has(0, pairs[i].a, 100, 7);
        has(1, pairs[i].b, 100, 7);
        assert_int_equal(hf__agree(opinions, 2, &leader) == HF__AGREE_HELD, pairs[i].same);
    }
}

static void an_owner_is_not_a_value_of_the_same_name(void **state)
{
    (void)state;
    shares(0, "request 7");
    has(1, "request 7", 100, 7); /* a foreign program that has chosen the same words */
    is_free(2, 0);
    EXPECT_AGREED(3, FREE);
    shares(1, "request 7");
    EXPECT_AGREED(3, HELD);
    shares(1, "request 8");
    EXPECT_AGREED(3, FREE);
}

/* ---- What is told ---- */

static void it_lasts_as_long_as_a_majority_says(void **state)
{
    (void)state;
    has(0, ANN ":1" REST, 500, 20);
    has(1, ANN ":2" REST, 900, 22);
    has(2, ANN ":3" REST, 100, 21);
    has(3, BOB ":1" REST, 5000, 30);
    has(4, ANN ":4" REST, 700, 22);
    merge(5);
    assert_true(merged.held && !merged.shared);
    assert_string_equal(merged.owner, ANN ":1" REST);
    assert_int_equal(merged.remaining_ms, 500);
    assert_int_equal(merged.fence, 22); /* of those that agree */
    assert_int_equal(merged.hold_count, 1);
    assert_int_equal(merged.holder_count, 1);
    assert_string_equal(merged.holders[0].client_id, ANN);
    assert_int_equal(merged.holders[0].remaining_ms, 500);
}

static void for_ever_is_longest(void **state)
{
    (void)state;
    has(0, "foreign", -1, 0);
    has(1, "foreign", 900, 0);
    has(2, "foreign", -1, 0);
    merge(3);
    assert_int_equal(merged.remaining_ms, -1);
    has(2, "foreign", 800, 0);
    merge(3);
    assert_int_equal(merged.remaining_ms, 900);
}

static void of_those_who_share_it_a_majority_knows_the_rest(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        shares(i, "request 7");
    add_sharer(0, 1, 300);
    add_sharer(1, 1, 500);
    add_sharer(2, 1, 400); /* at all three */
    add_sharer(0, 2, 200);
    add_sharer(2, 2, 900); /* at two */
    add_sharer(1, 3, 950); /* at one */
    add_sharer(1, 4, 450);
    add_sharer(2, 4, 460); /* at the two that are not the first */
    merge(3);
    assert_true(merged.held && merged.shared);
    assert_string_equal(merged.owner, "request 7");
    assert_int_equal(merged.hold_count, 3);
    assert_int_equal(merged.holder_count, 3);
    static const uint64_t threads[] = {4, 1, 2};
    static const int64_t remaining[] = {450, 400, 200};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(merged.holders[i].thread, threads[i]);
        assert_int_equal(merged.holders[i].remaining_ms, remaining[i]);
    }
}

static void holds_that_look_alike_are_told_apart_by_their_number(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        shares(i, "request 7");
        add_sharer(i, 1, 900 - i);
        add_sharer(i, 1, 500 - i);
    }
    add_sharer(2, 1, 100);
    merge(3);
    assert_int_equal(merged.hold_count, 2);
    assert_int_equal(merged.holders[0].remaining_ms, 899);
    assert_int_equal(merged.holders[1].remaining_ms, 499);
}

static void sharers_may_be_none_of_a_majority(void **state)
{
    (void)state;
    shares(0, "request 7");
    shares(1, "request 7");
    add_sharer(0, 1, 900);
    add_sharer(1, 2, 900);
    merge(3);
    assert_true(merged.held);
    assert_int_equal(merged.hold_count, 0);
    assert_int_equal(merged.holder_count, 0);
}

static void more_sharers_than_fit_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        shares(i, "request 7");
        for (int j = 0; j < HF_HOLDERS_MAX; j++)
            add_sharer(i, (uint64_t)j, 1000 - j);
    }
    said[0].hold_count = 40;
    said[1].hold_count = 60;
    said[2].hold_count = 50;
    merge(3);
    assert_int_equal(merged.holder_count, HF_HOLDERS_MAX);
    assert_int_equal(merged.hold_count, 50);
}

/* Each list of five servers has other ones in it: together they are more than there is room for. */
static void the_longest_sharers_are_listed(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        shares(i, "request 7");
        for (int j = 0; j < HF_HOLDERS_MAX; j++) {
            int thread = (i * 5 + j) % 25; /* 25 in all, each at 3 or 4 of the servers */
            add_sharer(i, (uint64_t)thread, 1000 + thread);
        }
    }
    merge(5);
    assert_int_equal(merged.holder_count, HF_HOLDERS_MAX);
    assert_int_equal(merged.hold_count, 25);
    for (size_t i = 0; i + 1 < merged.holder_count; i++)
        assert_true(merged.holders[i].remaining_ms > merged.holders[i + 1].remaining_ms);
    assert_int_equal(merged.holders[0].thread, 24);
}

/* ---- Those who wait ---- */

static void the_longest_queue_is_told(void **state)
{
    (void)state;
    has(0, ANN ":1" REST, 500, 20);
    has(1, ANN ":2" REST, 900, 20);
    has(2, BOB ":9" REST, 900, 20);
    add_waiter(0, BOB ":3" REST, 30);
    add_waiter(1, BOB ":4" REST, 20);
    add_waiter(1, BOB ":5@there:5/2", 10);
    for (int i = 0; i < 3; i++) /* here the holder itself waits, and nobody asks this one */
        add_waiter(2, ANN ":6" REST, 30);
    merge(3);
    assert_int_equal(merged.queue_length, 2);
    assert_int_equal(merged.waiter_count, 2);
    assert_int_equal(merged.waiters[0].number, 4);
    assert_int_equal(merged.waiters[0].waited_ms, 20);
    assert_int_equal(merged.waiters[1].number, 5);
    said[1].queue_length = 40; /* more than it has listed */
    merge(3);
    assert_int_equal(merged.queue_length, 40);
    assert_int_equal(merged.waiter_count, 2);
    said[1].queue_length = 2;
    said[0].queue_length = 3; /* says that they are more, and lists less */
    merge(3);
    assert_int_equal(merged.queue_length, 3);
    assert_int_equal(merged.waiter_count, 1);
    said[0].queue_length = 0;
    said[1].queue_length = 1; /* lists more than there are, which no server does */
    merge(3);
    assert_int_equal(merged.queue_length, 2);
}

static void those_with_votes_wait_in_front(void **state)
{
    (void)state;
    has(0, ANN ":1" REST, 500, 20);
    has(1, BOB ":2" REST, 900, 25);
    is_free(2, 30);
    add_waiter(0, BOB ":3" REST, 30);
    add_waiter(0, BOB ":4@there:5/9", 20);
    merge(3);
    assert_false(merged.held);
    assert_int_equal(merged.hold_count, 0);
    assert_int_equal(merged.remaining_ms, 0);
    assert_string_equal(merged.owner, "");
    assert_int_equal(merged.fence, 30); /* of all */
    assert_int_equal(merged.queue_length, 3);
    assert_int_equal(merged.waiter_count, 3);
    assert_string_equal(merged.waiters[0].client_id, ANN);
    assert_int_equal(merged.waiters[0].remaining_ms, 0);
    assert_int_equal(merged.waiters[1].number, 2); /* who is not told a second time */
    assert_int_equal(merged.waiters[2].number, 4);
}

static void two_votes_of_one_are_one_who_waits(void **state)
{
    (void)state;
    has(0, ANN ":1" REST, 500, 20);
    has(1, ANN ":2" REST, 500, 20);
    has(2, BOB ":1" REST, 500, 20);
    has(3, BOB ":2" REST, 500, 20);
    is_free(4, 20);
    merge(5);
    assert_false(merged.held);
    assert_int_equal(merged.queue_length, 2);
}

/* ---- What is said of several failures ---- */

static void each_failure_is_told(void **state)
{
    (void)state;
    static const hf_error one = {HF_EUNAVAILABLE, "b:6379: refused"};
    static const hf_error two = {HF_EUNAVAILABLE, "c:6379: no route"};
    static const hf_error doubt = {HF_EUNKNOWN, "c:6379 gave no answer"};
    static const hf_error denied = {HF_EDENIED, "d:6379 denies"};
    const hf_error *troubles[] = {&one, &two};
    hf_error error;
    assert_int_equal(hf__fail_each(&error, troubles, 2, "%d of %d failed", 2, 3), HF_EUNAVAILABLE);
    assert_string_equal(error.text, "2 of 3 failed: b:6379: refused; c:6379: no route");
    assert_int_equal(error.status, HF_EUNAVAILABLE);
    troubles[1] = &doubt;
    assert_int_equal(hf__fail_each(NULL, troubles, 2, "failed"), HF_EUNKNOWN);
    troubles[1] = &denied;
    assert_int_equal(hf__fail_each(NULL, troubles, 2, "failed"), HF_EUNAVAILABLE);
    troubles[0] = &denied;
    assert_int_equal(hf__fail_each(NULL, troubles, 2, "failed"), HF_EDENIED);
    assert_int_equal(hf__fail_each(&error, troubles, 0, "failed"), HF_EUNAVAILABLE);
    assert_string_equal(error.text, "failed");
}

static void long_failures_are_cut_so_that_each_has_a_place(void **state)
{
    (void)state;
    hf_error troubles[HF_SERVERS_MAX], error;
    const hf_error *all[HF_SERVERS_MAX];
    for (int i = 0; i < HF_SERVERS_MAX; i++) {
        char *text = troubles[i].text;
        troubles[i].status = HF_EUNAVAILABLE;
        memset(text, 'a' + i, sizeof(troubles[i].text) - 1);
        text[sizeof(troubles[i].text) - 1] = '\0';
        all[i] = &troubles[i];
    }
    snprintf(troubles[0].text, sizeof(troubles[0].text), "short");
    hf__fail_each(&error, all, HF_SERVERS_MAX, "9 of 9 did not answer");
    assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
    assert_non_null(strstr(error.text, "9 of 9 did not answer: short; bbbb"));
    for (int i = 1; i < HF_SERVERS_MAX; i++) {
        char part[] = {(char)('a' + i), (char)('a' + i), (char)('a' + i), '.', '.', '.', '\0'};
        assert_non_null(strstr(error.text, part));
    }
    char what[600];
    memset(what, 'w', sizeof(what) - 1);
    what[sizeof(what) - 1] = '\0';
    hf__fail_each(&error, all, HF_SERVERS_MAX, "%s", what); /* no room is left at all */
    assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
}

#define TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_majority_decides),
        TEST(half_is_no_majority),
        TEST(what_is_not_said_may_decide),
        TEST(nobody_is_certain_with_a_majority_that_says_so),
        TEST(values_are_compared_without_their_numbers),
        TEST(an_owner_is_not_a_value_of_the_same_name),
        TEST(it_lasts_as_long_as_a_majority_says),
        TEST(for_ever_is_longest),
        TEST(of_those_who_share_it_a_majority_knows_the_rest),
        TEST(holds_that_look_alike_are_told_apart_by_their_number),
        TEST(sharers_may_be_none_of_a_majority),
        TEST(more_sharers_than_fit_are_counted),
        TEST(the_longest_sharers_are_listed),
        TEST(the_longest_queue_is_told),
        TEST(those_with_votes_wait_in_front),
        TEST(two_votes_of_one_are_one_who_waits),
        TEST(each_failure_is_told),
        TEST(long_failures_are_cut_so_that_each_has_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
