/* SPDX-License-Identifier: MIT */
/* Waiting on a quorum: tickets, queues at every server, and votes that give way to an earlier
 * ticket as long as their hold is not decided, and never afterwards. */
#include "ballots.h"

static void begin(void)
{
    SETUP(.servers = 3, .messages = true);
    rival_begin();
    ACQUIRE(9, "warm"); /* with a listener: there are connections for messages too */
    EXPECT(9, HF_OK);
}

static void end(void)
{
    rival_end();
    FINISH();
}

/* We have node 0, ANN has the others, and our ticket is this. */
static int64_t begin_undecided(void)
{
    begin();
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x", .wait_ms = -1);
    EXPECT_WAITING(1);
    assert_true(has_vote(0, "x"));
    assert_true(ticket_at(1, "x") > 0);
    return ticket_at(1, "x");
}

/* Somebody with that ticket waits for what we have at node 0. */
static void inquire(unsigned long long number, int64_t ticket, const char *client)
{
    char text[100];
    snprintf(text, sizeof(text), "i %llu %lld %s", number, (long long)ticket, client);
    SAY_AT(0, text);
}

/* ---- Queueing ---- */

static void who_waits_queues_with_one_ticket_everywhere(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 0, 2);
    put_waiter(1, "x", VALUE(BOB, 1), 77000000); /* the last that node 1 has given out */
    ACQUIRE(1, "x", .wait_ms = -1);
    EXPECT_WAITING(1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ticket_at(i, "x"), 77000001);
    end();
}

static void tickets_of_a_client_are_all_different(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 0, 2);
    take_for_ann("y", 0, 2);
    ACQUIRE(1, "x", .wait_ms = -1);
    ACQUIRE(2, "y", .wait_ms = -1);
    assert_true(ticket_at(0, "y") > ticket_at(0, "x"));
    end();
}

static void the_lock_is_ours_when_a_majority_hands_it_on(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        RIVAL_AT(i);
        RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    }
    ACQUIRE(1, "x", .wait_ms = -1);
    EXPECT_WAITING(1);
    RIVAL_AT(2);
    rival_release("x", 1);
    assert_true(has_vote(2, "x"));
    EXPECT_WAITING(1);
    RIVAL_AT(0);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    RIVAL_AT(1);
    rival_release("x", 1); /* comes later, and is a vote too */
    assert_int_equal(count_votes("x"), 3);
    EXPECT_STATE(1, HF_SAFE);
    end();
}

/* A fence is believed when a majority has noted that it may be. Servers that refuse to do so for a
 * moment, such as for want of memory, are asked again, although nothing else happens. */
static void a_floor_that_was_refused_is_asked_for_again(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        RIVAL_AT(i);
        RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    }
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(2500); /* the floors of then are too low by now */
    for (int i = 0; i < 3; i++)
        mute(PUSHES(i));
    for (int i = 0; i < 3; i++) {
        RIVAL_AT(i);
        rival_release("x", 1);
    }
    for (int i = 0; i < 5; i++) /* the first two are asked with the second grant and the third */
        node_say(&S.nodes[i % 3], "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    for (int i = 0; i < 3; i++)
        unmute(PUSHES(i));
    assert_int_equal(count_votes("x"), 3);
    EXPECT_WAITING(1);
    ADVANCE_MS(10000);
    EXPECT(1, HF_OK);
    end();
}

/* One that begins to share waits for the word of servers that may know the owner's fence; not for
 * one that has said that it has somebody else. */
static void an_owner_does_not_wait_for_the_fence_of_others(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 2, 2);
    for (int i = 0; i < 2; i++) {
        RIVAL_AT(i);
        RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    }
    ACQUIRE(1, "x", .wait_ms = -1, .owner = "us");
    for (int i = 0; i < 2; i++) { /* with fences that differ */
        EXPECT_WAITING(1);
        RIVAL_AT(i);
        rival_release("x", 1);
        ADVANCE_MS(100);
    }
    EXPECT(1, HF_OK);
    assert_int_equal(stage_fence_at(0, "x"), FENCE(1));
    assert_int_equal(stage_fence_at(1, "x"), FENCE(1));
    end();
}

static void a_vote_is_kept_while_others_are_waited_for(void **state)
{
    (void)state;
    begin_undecided();
    unsigned long long number = vote_number(0, "x");
    ADVANCE_MS(60000); /* many leases */
    EXPECT_WAITING(1);
    assert_int_equal(vote_number(0, "x"), number);
    node_delete(&S.nodes[1], "x"); /* ANN's time is over there */
    ADVANCE_MS(4000);
    EXPECT(1, HF_OK);
    end();
}

static void a_vote_that_is_lost_while_others_are_waited_for_is_asked_for_again(void **state)
{
    (void)state;
    begin_undecided();
    unsigned long long number = vote_number(0, "x");
    node_set(&S.nodes[0], "x", VALUE(BOB, 1), 3000);
    ADVANCE_MS(4000);
    assert_true(ticket_at(0, "x") > 0 || has_vote(0, "x"));
    ADVANCE_MS(4000);
    assert_true(vote_number(0, "x") > number);
    end();
}

static void who_gives_up_leaves_nothing_behind(void **state)
{
    (void)state;
    begin_undecided();
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    assert_int_equal(count_votes("x"), 0);
    assert_int_equal(ticket_at(1, "x") + ticket_at(2, "x"), 0);
    end();
}

static void the_callers_time_ends_the_waiting(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x", .wait_ms = 5000);
    ADVANCE_MS(4999);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EBUSY);
    EXPECT_TEXT(1, "node-1:6379: held by " ANN);
    assert_int_equal(count_votes("x"), 0);
    end();
}

/* Votes of who cannot get a majority would only be in the way. */
static void without_a_majority_nothing_is_kept(void **state)
{
    (void)state;
    begin();
    KILL(1);
    KILL(2);
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(60);
    EXPECT_WAITING(1);
    assert_int_equal(count_votes("x"), 0);
    REVIVE(1);
    ADVANCE_MS(2000);
    EXPECT(1, HF_OK);
    end();
}

/* ---- Giving way ---- */

static void an_earlier_ticket_gets_the_vote(void **state)
{
    (void)state;
    int64_t ticket = begin_undecided();
    RIVAL_QUEUES("x", .number = 1, .ticket = ticket - 1);
    assert_true(rival_has(0, "x"));
    assert_int_equal(ticket_at(0, "x"), ticket); /* and we wait behind it, with the same ticket */
    rival_release("x", 1);
    assert_true(has_vote(0, "x"));
    EXPECT_WAITING(1);
    end();
}

static void a_later_ticket_waits(void **state)
{
    (void)state;
    int64_t ticket = begin_undecided();
    unsigned long long number = vote_number(0, "x");
    RIVAL_QUEUES("x", .number = 1, .ticket = ticket + 1);
    assert_int_equal(vote_number(0, "x"), number);
    assert_int_equal(S.nodes[0].releases, 0);
    end();
}

static void of_the_same_ticket_the_smaller_client_is_first(void **state)
{
    (void)state;
    int64_t ticket = begin_undecided();
    unsigned long long number = vote_number(0, "x");
    inquire(number, ticket, "00000000000000000000000000000008");
    inquire(number, ticket, STAGE_CLIENT); /* nobody gives way to himself */
    assert_int_equal(vote_number(0, "x"), number);
    inquire(number, ticket, "00000000000000000000000000000006");
    assert_int_equal(S.nodes[0].releases, 1);
    assert_true(vote_number(0, "x") > number);
    end();
}

/* If nobody was there, it has the vote again: by a number that no vote has had, for a grant to the
 * old one may be on its way. */
static void who_gives_way_comes_back_with_a_number_of_its_own(void **state)
{
    (void)state;
    int64_t ticket = begin_undecided();
    unsigned long long number = vote_number(0, "x");
    for (int i = 0; i < 3; i++) {
        inquire(number, ticket - 1, BOB);
        assert_true(vote_number(0, "x") > number);
        inquire(number, ticket - 1, BOB); /* to one that is gone */
        assert_int_equal(S.nodes[0].releases, i + 1);
        number = vote_number(0, "x");
    }
    end();
}

static void who_has_a_majority_does_not_give_way(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    for (int i = 0; i < 3; i++) {
        RIVAL_AT(i);
        RIVAL_QUEUES("x", .number = 1, .ticket = 1);
    }
    assert_int_equal(count_votes("x"), 3);
    EXPECT_STATE(1, HF_SAFE);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_true(rival_has(0, "x") && rival_has(1, "x") && rival_has(2, "x"));
    end();
}

static void also_not_if_it_had_to_wait(void **state)
{
    (void)state;
    begin_undecided();
    node_delete(&S.nodes[1], "x");
    ADVANCE_MS(4000);
    EXPECT(1, HF_OK);
    unsigned long long number = vote_number(0, "x");
    RIVAL_QUEUES("x", .number = 1, .ticket = 1);
    assert_int_equal(vote_number(0, "x"), number);
    assert_int_equal(S.nodes[0].releases, 0);
    end();
}

/* Its grant is on the way, and the message that somebody waits for it was faster. */
static void who_has_not_heard_of_his_grant_gives_way_too(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 1, 2);
    mute(REQUESTS(0));
    ACQUIRE(1, "x", .wait_ms = -1);
    int64_t ticket = ticket_at(1, "x");
    assert_true(has_vote(0, "x") && ticket > 0);
    RIVAL_QUEUES("x", .number = 1, .ticket = ticket - 1);
    assert_true(rival_has(0, "x"));
    unmute(REQUESTS(0));
    assert_true(rival_has(0, "x"));
    EXPECT_WAITING(1);
    assert_int_equal(ticket_at(0, "x"), ticket);
    end();
}

/* Any ticket that is still to be taken will be a later one. */
static void who_was_asked_before_he_had_a_ticket_gives_way_with_it(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 1, 2);
    STALL(1);
    STALL(2);
    ACQUIRE(1, "x", .wait_ms = -1);
    RIVAL_QUEUES("x", .number = 1, .ticket = 5);
    assert_true(has_vote(0, "x")); /* it may still be decided with the votes of the others */
    REVIVE(1);
    REVIVE(2);
    assert_true(rival_has(0, "x"));
    EXPECT_WAITING(1);
    end();
}

static void and_does_not_if_it_is_decided_after_all(void **state)
{
    (void)state;
    begin();
    STALL(1);
    STALL(2);
    ACQUIRE(1, "x", .wait_ms = -1);
    RIVAL_QUEUES("x", .number = 1, .ticket = 5);
    REVIVE(1);
    EXPECT(1, HF_OK);
    REVIVE(2);
    assert_int_equal(count_votes("x"), 3);
    end();
}

/* ---- A server that is silent ---- */

/* We have node 0, ANN has node 1, and what node 2 answers stays on the way. Whoever is patient with
 * servers is not so with those who are in the way. */
static void begin_unheard(void)
{
    SETUP(.servers = 3, .messages = true, .reply_timeout_ms = 60000, .call_timeout_ms = 60000);
    rival_begin();
    ACQUIRE(9, "warm");
    take_for_ann("x", 1, 1);
    put_fence(2, "x", 50000000); /* more than node 0 will have */
    mute(REQUESTS(2));
    ACQUIRE(1, "x", .wait_ms = -1);
    EXPECT_WAITING(1);
    assert_true(has_vote(0, "x"));
    assert_int_equal(ticket_at(1, "x"), 0); /* node 2 may make it ours */
}

static void a_silent_server_is_not_waited_for_if_the_others_disagree(void **state)
{
    (void)state;
    begin_unheard();
    unsigned long long number = vote_number(0, "x");
    ADVANCE_MS(100);
    assert_int_equal(vote_number(0, "x"), number);
    assert_true(ticket_at(1, "x") > 0);
    unmute(REQUESTS(2)); /* and is a vote all the same */
    EXPECT(1, HF_OK);
    end();
}

/* Two of whom each has a vote do not both wait for the third server. */
static void who_was_asked_before_a_server_fell_silent_gives_way(void **state)
{
    (void)state;
    begin_unheard();
    RIVAL_QUEUES("x", .number = 1, .ticket = 5);
    assert_true(has_vote(0, "x"));
    KILL(2);
    ADVANCE_MS(100);
    assert_true(rival_has(0, "x"));
    assert_true(ticket_at(0, "x") > 0 && ticket_at(0, "x") == ticket_at(1, "x"));
    EXPECT_WAITING(1);
    end();
}

static void a_server_that_has_no_vote_any_more_is_silent_too(void **state)
{
    (void)state;
    begin_unheard();
    node_restart(&S.nodes[2]);
    stage_cut_link(REQUESTS(2));
    stage_cut_link(PUSHES(2));
    unmute(REQUESTS(2));
    ADVANCE_MS(100);
    assert_true(has_vote(0, "x") && ticket_at(1, "x") > 0);
    EXPECT_WAITING(1);
    end();
}

/* The copy that was lost goes again, and what it brings counts. */
static void a_server_that_comes_back_counts(void **state)
{
    (void)state;
    begin_unheard();
    KILL(2);
    ADVANCE_MS(100);
    EXPECT_WAITING(1);
    unmute(REQUESTS(2));
    REVIVE(2);
    ADVANCE_MS(2000);
    EXPECT(1, HF_OK);
    end();
}

/* Then there is a majority, and what is left to do takes its time. */
static void a_server_that_speaks_at_last_is_in_time(void **state)
{
    (void)state;
    begin_unheard();
    unsigned long long number = vote_number(0, "x");
    ADVANCE_MS(40);
    mute(REQUESTS(0));
    unmute(REQUESTS(2)); /* with another fence than node 0, which is told */
    ADVANCE_MS(1000);
    EXPECT_WAITING(1);
    assert_int_equal(vote_number(0, "x"), number);
    assert_int_equal(vote_number(2, "x"), number);
    unmute(REQUESTS(0));
    EXPECT(1, HF_OK);
    end();
}

/* Who does not wait has nothing to queue with, and hears the others out. */
static void who_does_not_wait_hears_all_servers(void **state)
{
    (void)state;
    begin_unheard();
    take_for_ann("y", 1, 1);
    ACQUIRE(2, "y");
    ADVANCE_MS(1000);
    EXPECT_WAITING(2);
    unmute(REQUESTS(2));
    EXPECT(2, HF_OK);
    end();
}

/* ---- Messages ---- */

static void messages_are_wanted_from_all_servers_while_it_is_undecided(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(1, "x", .deaf = true);
    EXPECT(1, HF_OK);
    for (int i = 0; i < 3; i++)
        assert_false(S.wires[PUSHES(i)].open); /* nobody needs them */
    take_for_ann("y", 1, 2);
    ACQUIRE(2, "y", .deaf = true, .wait_ms = -1);
    EXPECT_WAITING(2);
    for (int i = 0; i < 3; i++)
        assert_true(S.wires[PUSHES(i)].open); /* also where it has a vote */
    FINISH();
}

/* A message may have been missed. */
static void a_connection_for_messages_that_came_back_makes_votes_give_way(void **state)
{
    (void)state;
    begin_undecided();
    ACQUIRE(2, "y"); /* decided */
    unsigned long long number = vote_number(0, "x"), decided = vote_number(0, "y");
    stage_cut_link(PUSHES(0));
    ADVANCE_MS(100);
    assert_true(S.wires[PUSHES(0)].open);
    assert_true(vote_number(0, "x") > number);
    assert_int_equal(vote_number(0, "y"), decided);
    end();
}

static void without_messages_who_waits_polls(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x", .wait_ms = -1);
    assert_int_equal(count_votes("x"), 0); /* nothing is kept between two tries */
    assert_int_equal(ticket_at(1, "x"), 0);
    node_delete(&S.nodes[2], "x");
    ADVANCE_MS(500);
    EXPECT(1, HF_OK);
    FINISH();
}

/* Where one server denies messages, who waits queues at all of them all the same. */
static void one_server_without_messages_costs_no_place(void **state)
{
    (void)state;
    begin();
    S.nodes[0].denies = "SUBSCRIBE";
    stage_cut_link(PUSHES(0));
    take_for_ann("x", 0, 2);
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(100);
    for (int i = 0; i < 3; i++)
        assert_true(ticket_at(i, "x") > 0);
    assert_int_equal(S.nodes[0].last_copy, -1);
    assert_true(S.nodes[1].last_copy > 0);
    int asked = S.nodes[1].acquires;
    ADVANCE_MS(2000);
    assert_int_equal(S.nodes[1].acquires, asked); /* no need to ask there */
    S.nodes[0].denies = NULL;
    ADVANCE_MS(9000);
    assert_true(S.nodes[0].last_copy > 0);
    end();
}

/* Nobody can tell us there that somebody with an earlier ticket waits: it is given back now and
 * then, so that two who have a part each do not wait for each other for ever. */
static void a_vote_without_messages_gives_way_by_itself(void **state)
{
    (void)state;
    begin();
    S.nodes[0].denies = "SUBSCRIBE";
    stage_cut_link(PUSHES(0));
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(50);
    assert_true(has_vote(0, "x"));
    RIVAL_AT(0);
    RIVAL_QUEUES("x", .number = 1, .ticket = 1);
    ADVANCE_MS(500);
    assert_true(rival_has(0, "x"));
    assert_true(ticket_at(0, "x") > 0);
    EXPECT_WAITING(1);
    rival_release("x", 1);
    node_delete(&S.nodes[1], "x");
    ADVANCE_MS(4000);
    EXPECT(1, HF_OK);
    ADVANCE_MS(2000);
    EXPECT_STATE(1, HF_SAFE); /* once decided, it is kept */
    end();
}

static void what_makes_no_sense_is_no_inquiry(void **state)
{
    (void)state;
    static const char *const rests[] = {"", " ", " 0 " BOB, " x", " 18446744073709551615 " BOB};
    char text[200];
    begin_undecided();
    unsigned long long number = vote_number(0, "x");
    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        snprintf(text, sizeof(text), "i %llu%s", number, rests[i]);
        SAY_AT(0, text);
    }
    snprintf(text, sizeof(text), "i %llu 1 " BOB, number);
    SAY_AT(1, text); /* of another server */
    assert_int_equal(vote_number(0, "x"), number);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_queues_with_one_ticket_everywhere),
        cmocka_unit_test(one_server_without_messages_costs_no_place),
        cmocka_unit_test(a_vote_without_messages_gives_way_by_itself),
        cmocka_unit_test(tickets_of_a_client_are_all_different),
        cmocka_unit_test(the_lock_is_ours_when_a_majority_hands_it_on),
        cmocka_unit_test(a_floor_that_was_refused_is_asked_for_again),
        cmocka_unit_test(an_owner_does_not_wait_for_the_fence_of_others),
        cmocka_unit_test(a_vote_is_kept_while_others_are_waited_for),
        cmocka_unit_test(a_vote_that_is_lost_while_others_are_waited_for_is_asked_for_again),
        cmocka_unit_test(who_gives_up_leaves_nothing_behind),
        cmocka_unit_test(the_callers_time_ends_the_waiting),
        cmocka_unit_test(without_a_majority_nothing_is_kept),
        cmocka_unit_test(an_earlier_ticket_gets_the_vote),
        cmocka_unit_test(a_later_ticket_waits),
        cmocka_unit_test(of_the_same_ticket_the_smaller_client_is_first),
        cmocka_unit_test(who_gives_way_comes_back_with_a_number_of_its_own),
        cmocka_unit_test(who_has_a_majority_does_not_give_way),
        cmocka_unit_test(also_not_if_it_had_to_wait),
        cmocka_unit_test(who_has_not_heard_of_his_grant_gives_way_too),
        cmocka_unit_test(who_was_asked_before_he_had_a_ticket_gives_way_with_it),
        cmocka_unit_test(and_does_not_if_it_is_decided_after_all),
        cmocka_unit_test(a_silent_server_is_not_waited_for_if_the_others_disagree),
        cmocka_unit_test(who_was_asked_before_a_server_fell_silent_gives_way),
        cmocka_unit_test(a_server_that_has_no_vote_any_more_is_silent_too),
        cmocka_unit_test(a_server_that_comes_back_counts),
        cmocka_unit_test(a_server_that_speaks_at_last_is_in_time),
        cmocka_unit_test(who_does_not_wait_hears_all_servers),
        cmocka_unit_test(messages_are_wanted_from_all_servers_while_it_is_undecided),
        cmocka_unit_test(a_connection_for_messages_that_came_back_makes_votes_give_way),
        cmocka_unit_test(without_messages_who_waits_polls),
        cmocka_unit_test(what_makes_no_sense_is_no_inquiry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
