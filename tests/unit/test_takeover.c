/* SPDX-License-Identifier: MIT */
/* Tokens of locks on a quorum: a hold is let go of, and taken up, at all servers, each of which may
 * have it under a number of its own; a majority that confirms it makes the hold, and an attempt
 * that fails releases nothing anywhere. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h" /* to have connections beforehand */
#include "gate.h"
#include "votes.h"

#define S the_stage

enum { PATIENCE_MS = 50 }; /* for those that do not answer, once a majority has */

static bool stage_works(void)
{
    return S.own_memory;
}

static struct node *at(int node)
{
    return &S.nodes[node];
}

static bool is_held_at(int node)
{
    return node_get(at(node), "x") != NULL;
}

static int count_held(void)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += is_held_at(i);
    return count;
}

static int count_releases(void)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += at(i)->releases;
    return count;
}

/* The lock "x" is held, and nobody here knows it any more but by the token. */
static stage_token taken(int64_t lease_ms)
{
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = lease_ms);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_int_equal(count_releases(), 0);
    return token;
}

/* The same value, under another number of the same hold. */
static const char *vote_of(const stage_token *token, uint64_t number)
{
    static char value[400];
    const char *colon = strchr(token->value, ':');
    unsigned long long first = strtoull(colon + 1, NULL, 10);
    snprintf(value, sizeof(value), "%.*s:%llu%s", (int)(colon - token->value), token->value,
             first + number, strchr(token->value, '@'));
    return value;
}

static void renumber(int node, const stage_token *token, uint64_t number)
{
    node_set(at(node), "x", vote_of(token, number), node_ttl_ms(at(node), "x"));
}

/* ---- Detach ---- */

static void the_lock_outlives_the_client(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 3000, .renew_interval_ms = 1000);
    ADVANCE_MS(10000);
    EXPECT_STATE(1, HF_SAFE);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_false(token.late);
    CLOSE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    ADVANCE_MS(3001);
    assert_int_equal(count_held(), 0); /* nobody renews it */
    EXPECT_QUIET(1);
    FINISH();
}

/* What is on its way belongs to the token, which will find it. */
static void a_vote_under_way_is_left_to_the_token(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    INSPECT(9, "x"); /* all are connected now */
    ACQUIRE(8, "y");
    EXPECT(8, HF_OK);
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_true(token.late);
    REVIVE(2);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* Nothing has been sent, and nothing will be. */
static void a_vote_that_could_not_be_asked_for_is_dropped(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    KILL(2);
    stage_token token = taken(10000);
    assert_false(token.late);
    REVIVE(2);
    ADVANCE_MS(5000);
    assert_false(is_held_at(2));
    assert_int_equal(at(2)->acquires, 0);
    FINISH();
}

static void a_lost_hold_has_no_token(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 1000);
    PAUSE_MS(989);
    assert_int_equal(stage_detach(1, &token), HF_ELOST);
    assert_int_equal(count_held(), 0); /* given back as by a release */
    FINISH();
}

/* ---- Attach ---- */

static void takes_it_up_everywhere(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    ADVANCE_MS(4000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    assert_int_equal(FENCE(2), token.fence);
    assert_int_equal(stage_remaining_ms(2), 10000 - 100 - 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(node_ttl_ms(at(i), "x"), 10000);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

static void each_vote_has_its_own_number(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    renumber(1, &token, 1);
    renumber(2, &token, HF__NUMBER_STEP - 1);
    ATTACH(2, &token, "x", .renew_interval_ms = 1000, .lease_ms = 3000);
    EXPECT(2, HF_OK);
    ADVANCE_MS(20000);
    EXPECT_STATE(2, HF_SAFE);
    assert_int_equal(count_held(), 3);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* Of the same client and thread, but the next one. */
static void the_next_hold_of_the_thread_is_another(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    for (int i = 0; i < 3; i++)
        renumber(i, &token, HF__NUMBER_STEP);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "0 of 3 servers have it: node-0:6379 does not have it; node-1:6379 does not");
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void another_label_is_another_hold(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    char other[400];
    snprintf(other, sizeof(other), "%s/label", token.value);
    for (int i = 0; i < 3; i++)
        node_set(at(i), "x", other, 5000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void an_owner_finds_its_own(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token first, second;
    ACQUIRE(1, "x", .owner = "request 7");
    ACQUIRE(2, "x", .owner = "request 7");
    EXPECT(2, HF_OK);
    assert_int_equal(stage_detach(1, &first), HF_OK);
    assert_int_equal(stage_detach(2, &second), HF_OK);
    ATTACH(1, &first, "x");
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(count_held(), 3); /* for the other */
    ATTACH(1, &first, "x");
    EXPECT(1, HF_ELOST);
    ATTACH(2, &second, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* The list of those who share it is cut; who was not listed is asked for with its first number. */
static void an_owner_finds_its_own_among_many(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    char other[100];
    ACQUIRE(1, "x", .owner = "request 7");
    assert_int_equal(stage_detach(1, &token), HF_OK);
    for (int i = 0; i < 3 * (HF_HOLDERS_MAX + 1); i++) {
        snprintf(other, sizeof(other), ANN ":%d@there:5/1", i);
        put_sharer(i % 3, "x", other, 20000);
    }
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    ATTACH(2, &token, "x"); /* it may be there under another number */
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "too many who share it");
    FINISH();
}

static void a_short_lease_only_looks(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    ADVANCE_MS(4000);
    ATTACH(2, &token, "x", .lease_ms = HF_LEASE_MIN_MS);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 6000 - 60 - 2);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(node_ttl_ms(at(i), "x"), 6000);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void it_lasts_as_long_as_a_majority_says(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_set(at(0), "x", token.value, 3000);
    node_set(at(2), "x", token.value, 6000);
    ATTACH(2, &token, "x", .lease_ms = HF_LEASE_MIN_MS);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 6000 - 60 - 2);
    FINISH();
}

static void a_request_to_give_it_up_is_heard(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    REVOKE(3, "x", "please");
    EXPECT(3, HF_OK);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    EXPECT_TOLD(2, HF_SAFE, REVOKED);
    EXPECT_QUIET(2);
    FINISH();
}

/* ---- Some servers ---- */

static void a_copy_that_was_lost_is_made_again(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(3000);
    node_delete(at(1), "x");
    ATTACH(2, &token, "x", .renew_interval_ms = 1000);
    EXPECT(2, HF_OK);
    assert_false(is_held_at(1));
    ADVANCE_MS(5000);
    assert_int_equal(count_held(), 3);
    assert_string_not_equal(node_get(at(1), "x"), token.value); /* never used before */
    assert_int_equal(stage_detach(2, &token), HF_OK);
    ATTACH(3, &token, "x"); /* and is found again by the number that it has */
    EXPECT(3, HF_OK);
    RELEASE(3);
    EXPECT(3, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

static void a_dead_minority_delays_nothing(void **state)
{
    (void)state;
    SETUP(.servers = 5);
    stage_token token = taken(10000);
    KILL(0);
    KILL(3);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 2); /* until their lease is over */
    FINISH();
}

static void a_silent_minority_is_waited_for_a_little(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS - 1);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_OK);
    REVIVE(1); /* in time to become a vote */
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* Those that have been confirmed are renewed meanwhile. */
static void one_that_comes_in_time_is_in(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS - 10);
    REVIVE(1);
    EXPECT(2, HF_OK);
    assert_int_equal(at(1)->renewals, 1);
    FINISH();
}

/* Its answer comes when nobody needs it any more. */
static void what_comes_after_the_end_is_nothing(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS);
    RELEASE(2);
    EXPECT(2, HF_OK);
    REVIVE(1);
    ADVANCE_MS(1000);
    assert_true(is_held_at(1));
    assert_int_equal(at(1)->renewals, 0);
    ACQUIRE(3, "x"); /* two are enough for the next */
    EXPECT(3, HF_OK);
    FINISH();
}

static void two_of_three_have_lost_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    node_set(at(1), "x", VALUE(ANN, 1), 5000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    assert_int_equal(count_releases(), 0);
    ADVANCE_MS(5000);
    assert_int_equal(count_releases(), 0);
    assert_true(is_held_at(2)); /* not ours to give back */
    FINISH();
}

/* Half of them is no majority, and the other half says so. */
static void two_of_four_have_lost_it(void **state)
{
    (void)state;
    SETUP(.servers = 4);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    node_delete(at(3), "x");
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "of 4 servers have it");
    FINISH();
}

static void a_lease_that_is_over_is_lost(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(1000);
    ADVANCE_MS(1001);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    FINISH();
}

static void what_the_missing_decide_is_not_guessed(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    KILL(1);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "1 of 3 servers have it: node-0:6379 does not have it; node-1:6379: refused");
    assert_int_equal(count_releases(), 0);
    REVIVE(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(100); /* it is connected to again */
    EXPECT(2, HF_OK);
    FINISH();
}

static void a_silent_majority_is_told_in_time(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    stage_token token = taken(10000);
    STALL(0);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(699);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "node-0:6379 gave no answer in time; node-1:6379 gave no answer in time");
    REVIVE(0);
    REVIVE(1);
    ADVANCE_MS(1000);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

/* Each server says that it has it, and to the renewal it says that. */
static void say_to_renewals(const stage_token *token, const char *reply)
{
    static char seen[600];
    snprintf(seen, sizeof(seen), "*7\r\n$%zu\r\n%s\r\n:5000\r\n$0\r\n\r\n:0\r\n*0\r\n:0\r\n*0\r\n",
             strlen(token->value), token->value);
    for (int i = 0; i < 3; i++) {
        node_say(at(i), seen);
        node_say(at(i), reply);
    }
}

static void silence_to_the_renewal_is_told_in_time(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    stage_token token = taken(10000);
    say_to_renewals(&token, "");
    ATTACH(2, &token, "x");
    ADVANCE_MS(699);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "0 of 3 servers have it: node-0:6379 gave no answer in time");
    ADVANCE_MS(5000);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void a_refusal_is_told_and_the_lock_stays(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", HF_EUNAVAILABLE},
        {"-NOPERM this user has no permissions\r\n", HF_EDENIED},
        {"*1\r\n-WRONGTYPE Operation against a key\r\n", HF_ESERVER},
        {"*1\r\n:0\r\n", HF_ELOST},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        SETUP(.servers = 3);
        stage_token token = taken(10000);
        say_to_renewals(&token, table[i].reply);
        ATTACH(2, &token, "x");
        EXPECT(2, table[i].status);
        ADVANCE_MS(5000);
        assert_int_equal(count_held(), 3);
        assert_int_equal(count_releases(), 0);
        FINISH();
    }
}

static void a_server_without_a_vote_does_not_count(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    KILL(1);
    at(1)->has_no_vote = true; /* restarted, with a copy of what it had */
    snprintf(at(1)->run_id, sizeof(at(1)->run_id), "%040d", 77);
    REVIVE(1);
    ADVANCE_MS(1000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "node-1:6379 was restarted and has no vote yet");
    FINISH();
}

/* ---- Copies of the acquire that come late ---- */

/* The hold is long over, and others had the lock; then the copies that were on the way bring it
 * back at two servers. */
static void a_late_grant_is_another(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    token.late = true;
    for (int i = 0; i < 2; i++)
        put_vote(i, "x", token.value, 5000, token.fence_top + 10000001);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "1 of 3 servers have it: node-0:6379 may have granted it anew since");
    assert_int_equal(count_releases(), 0);
    FINISH();
}

/* A vote that was asked for last, or had to be waited for, has a later fence than the others. */
static void a_vote_may_have_come_later_than_the_others(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    token.late = true;
    put_fence(2, "x", token.fence_top + 10000000);
    node_delete(at(0), "x");
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    FINISH();
}

/* A server may have a higher fence because others have tried there in vain. */
static void a_higher_fence_at_a_minority_is_none_of_ours(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    put_fence(2, "x", token.fence_top + 10000001);
    KILL(0);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK); /* no copy can have come late */
    assert_int_equal(FENCE(2), token.fence);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    token.late = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(100); /* it cannot be connected to */
    EXPECT(2, HF_EUNKNOWN);
    REVIVE(0);
    ATTACH(2, &token, "x");
    ADVANCE_MS(100); /* it is connected to again */
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    assert_int_equal(at(2)->last_tombstone_ms, 10000); /* so that none does */
    FINISH();
}

/* Between the question and the renewal. */
static void a_grant_in_between_is_noticed(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    S.mute = true;
    ATTACH(2, &token, "x"); /* they have been asked */
    for (int i = 0; i < 2; i++)
        put_vote(i, "x", token.value, 5000, token.fence_top + 10);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "node-0:6379 does not have it any more");
    FINISH();
}

/* ---- Tokens of other locks ---- */

static void a_token_of_one_server_is_none_of_several(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = {.value = STAGE_CLIENT ":5@host:1/1", .fence = 7, .fence_top = 7};
    token.lease_ms = 5000;
    for (int i = 0; i < 3; i++)
        put_vote(i, "x", STAGE_CLIENT ":6@host:1/1", 5000, 7);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "not of a lock on several servers");
    FINISH();
}

/* ---- Ends ---- */

static void close_ends_an_attempt(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(0);
    STALL(1);
    ATTACH(2, &token, "x");
    EXPECT_WAITING(2);
    CLOSE(3);
    EXPECT(2, HF_ECLOSED);
    EXPECT(3, HF_OK);
    ATTACH(4, &token, "x");
    EXPECT(4, HF_ECLOSED);
    REVIVE(0);
    REVIVE(1);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void detaching_forgets_those_that_have_not_answered(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    REVIVE(1);
    assert_int_equal(count_held(), 3);
    assert_int_equal(at(1)->renewals, 0);
    FINISH();
}

static void both_are_counted(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hf_stats stats;
    stage_token token = taken(10000);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.held, 0);
    ATTACH(2, &token, "x");
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.held, 1);
    assert_int_equal(stats.acquisitions, 2);
    ATTACH(3, &token, "y");
    EXPECT(3, HF_ELOST);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.failures, 1);
    FINISH();
}

/* Fails that allocation of an attach; false: there are not so many. */
static bool fails_at(long number)
{
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    gate_fail_at(number);
    bool started = stage_start_attach(2, &token, &(stage_acquire){.name = "x"});
    ADVANCE_MS(PATIENCE_MS);
    bool failed = gate_open();
    ADVANCE_MS(3000);
    assert_true(!started || S.calls[2].done);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
    return failed;
}

/* Whatever is missing costs one server or the attempt, and nothing is given back. */
static void without_memory(void **state)
{
    (void)state;
    long number = 0;
    while (fails_at(number))
        number++;
    assert_true(number > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lock_outlives_the_client),
        cmocka_unit_test(a_vote_under_way_is_left_to_the_token),
        cmocka_unit_test(a_vote_that_could_not_be_asked_for_is_dropped),
        cmocka_unit_test(a_lost_hold_has_no_token),
        cmocka_unit_test(takes_it_up_everywhere),
        cmocka_unit_test(each_vote_has_its_own_number),
        cmocka_unit_test(the_next_hold_of_the_thread_is_another),
        cmocka_unit_test(another_label_is_another_hold),
        cmocka_unit_test(an_owner_finds_its_own),
        cmocka_unit_test(an_owner_finds_its_own_among_many),
        cmocka_unit_test(a_short_lease_only_looks),
        cmocka_unit_test(it_lasts_as_long_as_a_majority_says),
        cmocka_unit_test(a_request_to_give_it_up_is_heard),
        cmocka_unit_test(a_copy_that_was_lost_is_made_again),
        cmocka_unit_test(a_dead_minority_delays_nothing),
        cmocka_unit_test(a_silent_minority_is_waited_for_a_little),
        cmocka_unit_test(one_that_comes_in_time_is_in),
        cmocka_unit_test(what_comes_after_the_end_is_nothing),
        cmocka_unit_test(two_of_three_have_lost_it),
        cmocka_unit_test(two_of_four_have_lost_it),
        cmocka_unit_test(a_lease_that_is_over_is_lost),
        cmocka_unit_test(what_the_missing_decide_is_not_guessed),
        cmocka_unit_test(a_silent_majority_is_told_in_time),
        cmocka_unit_test(silence_to_the_renewal_is_told_in_time),
        cmocka_unit_test(a_refusal_is_told_and_the_lock_stays),
        cmocka_unit_test(a_server_without_a_vote_does_not_count),
        cmocka_unit_test(a_late_grant_is_another),
        cmocka_unit_test(a_vote_may_have_come_later_than_the_others),
        cmocka_unit_test(a_higher_fence_at_a_minority_is_none_of_ours),
        cmocka_unit_test(a_grant_in_between_is_noticed),
        cmocka_unit_test(a_token_of_one_server_is_none_of_several),
        cmocka_unit_test(close_ends_an_attempt),
        cmocka_unit_test(detaching_forgets_those_that_have_not_answered),
        cmocka_unit_test(both_are_counted),
        cmocka_unit_test(without_memory),
    };
    gate_install();
    gate_exempt = stage_works;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
