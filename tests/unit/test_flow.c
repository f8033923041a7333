/* SPDX-License-Identifier: MIT */
/* Overload: what is in flight is bounded by time, renewals pass everything else, a server that is
 * slow but answers is not given up, and new locks wait before an existing one is lost. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "stage.h"

#define S the_stage

enum { MANY = 600, HALF = MANY / 2, INTERVAL_MS = 800, LATE_MS = INTERVAL_MS / 8 };

#define RENEWED .lease_ms = 3 * INTERVAL_MS, .renew_interval_ms = INTERVAL_MS

static hf__link *link_0(void)
{
    return &S.core->links[0];
}

/* Calls first to last, for locks of their own, none of which is waited for. */
static void acquire_all(int first, int last)
{
    char name[32];
    for (int i = first; i <= last; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(i, name, .wait_ms = 60000, .lease_ms = 30000);
    }
}

static void grant_one(void)
{
    stage_say(0, "*2\r\n:1\r\n:30000\r\n", 16);
}

/* ---- A server that is slow ---- */

static void slow_but_steady_is_not_dead(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 1000);
    ACQUIRE(1, "warm");
    S.deaf = true;
    acquire_all(2, 6);
    for (int i = 2; i <= 6; i++) {
        ADVANCE_MS(900);
        grant_one();
        EXPECT(i, HF_OK);
    }
    assert_int_equal(S.connects, 1);
    S.deaf = false;
    FINISH();
}

static void silent_is_dead(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 1000);
    ACQUIRE(1, "warm");
    S.deaf = true;
    acquire_all(2, 3);
    ADVANCE_MS(900);
    grant_one();
    ADVANCE_MS(999);
    assert_int_equal(S.connects, 1);
    S.deaf = false;
    ADVANCE_MS(100);
    assert_int_equal(S.connects, 2);
    EXPECT(3, HF_OK);
    FINISH();
}

/* Both links have an answer in their sockets when the process wakes up. */
static void a_pause_of_ours_is_not_the_server_s_silence(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 1000, .links = 2);
    ACQUIRE(1, "a");
    ACQUIRE(2, "b");
    assert_int_equal(S.connects, 2);
    S.mute = true;
    ACQUIRE(3, "a2", .wait_ms = 60000);
    ACQUIRE(4, "b3", .wait_ms = 60000);
    stage_pause_ms(5000);
    S.mute = false;
    stage_run();
    ADVANCE_MS(1);
    assert_int_equal(S.connects, 2);
    FINISH();
}

/* ---- What may be in flight ---- */

static void what_is_in_flight_is_bounded(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    acquire_all(2, MANY);
    assert_true(link_0()->calls < MANY / 2);
    assert_int_equal(link_0()->calls + link_0()->waiting.count, MANY - 1);
    S.mute = false;
    stage_run();
    for (int i = 2; i <= MANY; i++)
        EXPECT(i, HF_OK);
    FINISH();
}

/* How fast the server is, is not known yet, and there may be holds to renew. */
static void a_link_begins_with_few_calls(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    acquire_all(2, HALF);
    assert_in_range(link_0()->calls, 1, 8);
    S.mute = false;
    stage_run();
    EXPECT(HALF, HF_OK);
    S.mute = true;
    acquire_all(HALF + 1, MANY);
    assert_true(link_0()->calls > 100);
    S.mute = false;
    stage_run();
    FINISH();
}

static void answer_slowly(int count)
{
    for (int i = 0; i < count; i++) {
        ADVANCE_MS(5);
        grant_one();
    }
}

/* The bound is a time: at five milliseconds a call, four calls; and it does not matter how many
 * there were while the server was fast. */
static void a_slow_server_gets_less(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 60000);
    acquire_all(1, HALF);
    S.deaf = true;
    acquire_all(HALF + 1, MANY);
    answer_slowly(HALF - 50);
    assert_in_range(link_0()->window, 2, 5);
    assert_in_range(link_0()->calls, 1, 5);
    S.deaf = false;
    FINISH();
}

static void a_renewal_passes_what_waits(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    ACQUIRE(1, "x", RENEWED);
    S.mute = true;
    acquire_all(2, MANY);
    size_t waiting = link_0()->waiting.count;
    assert_true(waiting > 0);
    ADVANCE_MS(INTERVAL_MS);
    assert_int_equal(S.node.renewals, 1);
    assert_int_equal(link_0()->waiting.count, waiting);
    S.mute = false;
    stage_run();
    EXPECT_STATE(1, HF_SAFE);
    FINISH();
}

/* Also when a connection was lost and all of it is sent again. */
static void a_renewal_is_sent_again_before_what_waits(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    ACQUIRE(1, "x", RENEWED);
    S.mute = true;
    acquire_all(2, MANY);
    ADVANCE_MS(INTERVAL_MS);
    CUT();
    assert_int_equal(link_0()->in_flight.count, 0);
    assert_int_equal(link_0()->urgent.count, 1);
    S.mute = false;
    ADVANCE_MS(50);
    assert_int_equal(S.node.renewals, 2);
    EXPECT_STATE(1, HF_SAFE);
    FINISH();
}

/* ---- New locks wait for late renewals ---- */

/* Hold 1 is renewed, and the answer to that is missing. */
static void fall_behind(void)
{
    ACQUIRE(1, "x", RENEWED, .renew_timeout_ms = 1000);
    ACQUIRE(2, "y", .lease_ms = 30000);
    S.mute = true;
    ADVANCE_MS(INTERVAL_MS + LATE_MS + 1);
}

static void a_new_lock_waits_for_late_renewals(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z");
    EXPECT_NO_KEY("z");
    EXPECT_WAITING(3);
    S.mute = false;
    stage_run();
    ADVANCE_MS(1);
    EXPECT(3, HF_OK);
    EXPECT_STATE(1, HF_SAFE);
    FINISH();
}

static void or_is_told_why_not(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z", .wait_ms = 200);
    ADVANCE_MS(200);
    EXPECT(3, HF_EUNAVAILABLE);
    EXPECT_TEXT(3, "ms late");
    EXPECT_NO_KEY("z");
    S.mute = false;
    stage_run();
    FINISH();
}

static void a_release_does_not_wait_for_them(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z");
    RELEASE(2);
    EXPECT_NO_KEY("y");
    EXPECT_NO_KEY("z");
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    FINISH();
}

static void a_cancel_is_heard_meanwhile(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z", .wait_ms = 60000);
    stage_cancel(3);
    EXPECT(3, HF_ECANCELLED);
    S.mute = false;
    stage_run();
    EXPECT_NO_KEY("z");
    FINISH();
}

static void a_lost_connection_lets_it_go_on(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z", .wait_ms = 60000);
    S.mute = false;
    CUT();
    ADVANCE_MS(50);
    EXPECT(3, HF_OK);
    EXPECT_STATE(1, HF_SAFE);
    FINISH();
}

/* The hold for which it waited is gone, and nothing else would wake it. */
static void the_end_of_the_late_hold_lets_it_go_on(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 60000, .call_timeout_ms = 60000);
    fall_behind();
    ACQUIRE(3, "z", .wait_ms = 60000);
    ADVANCE_MS(3 * INTERVAL_MS);
    EXPECT_STATE(1, HF_LOST);
    assert_int_equal(link_0()->held_back.count, 0);
    S.mute = false;
    stage_run();
    EXPECT(3, HF_OK);
    FINISH();
}

static void the_log_says_so_once(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z");
    ADVANCE_MS(300);
    assert_int_equal(S.warnings, 1);
    assert_non_null(strstr(S.last_warning, "ms late; new locks wait"));
    S.mute = false;
    stage_run();
    ADVANCE_MS(3 * INTERVAL_MS);
    assert_int_equal(S.warnings, 1);
    assert_non_null(strstr(S.last_log, "on time again"));
    FINISH();
}

/* Also if the hold that was late is gone, and no renewal will show it. */
static void the_log_says_when_it_is_over(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    fall_behind();
    ACQUIRE(3, "z");
    assert_non_null(strstr(S.last_warning, "ms late; new locks wait"));
    S.mute = false;
    stage_run();
    RELEASE(1);
    EXPECT(1, HF_OK);
    ADVANCE_MS(1100);
    assert_non_null(strstr(S.last_log, "on time again"));
    FINISH();
}

/* ---- Several links to one server ---- */

static int link_of(int call)
{
    const hf_hold *hold = S.calls[call].hold;
    return (int)(hold->link - S.core->links);
}

/* Holds 1 and 2 are on different links; the renewal of the first is late. */
static void fall_behind_on_one(void)
{
    ACQUIRE(1, "a", RENEWED, .renew_timeout_ms = 1000);
    ACQUIRE(2, "b", .lease_ms = 30000);
    assert_int_not_equal(link_of(1), link_of(2));
    S.deaf = true;
    ACQUIRE(3, "{a}2", .wait_ms = 60000, .lease_ms = 30000);
    assert_int_equal(link_of(3), link_of(1));
    ADVANCE_MS(INTERVAL_MS + LATE_MS + 1);
}

/* What operators see; how many are unsent depends on the driver. */
static void expect_load(hf_load expected)
{
    hf_load load;
    hf__core_load(S.core, &load);
    assert_int_equal(load.late_ms, expected.late_ms);
    assert_int_equal(load.held_back, expected.held_back);
    assert_int_equal(load.overloads, expected.overloads);
}

/* It answers over that link, and yet is late: so it is slow over the others, too. */
static void a_lock_of_another_link_waits_too(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000, .links = 2);
    fall_behind_on_one();
    stage_say(link_of(1), "*2\r\n:1\r\n:30000\r\n", 16);
    EXPECT(3, HF_OK);
    ACQUIRE(4, "{b}2", .wait_ms = 60000);
    assert_int_equal(link_of(4), link_of(2));
    assert_int_equal(S.core->links[link_of(4)].held_back.count, 1);
    expect_load((hf_load){.late_ms = LATE_MS + 1, .held_back = 1, .overloads = 1});
    stage_say(link_of(1), "*1\r\n:1\r\n", 8);
    ADVANCE_MS(1);
    EXPECT_STATE(1, HF_SAFE);
    assert_int_equal(S.core->links[link_of(4)].held_back.count, 0);
    expect_load((hf_load){.overloads = 1});
    S.deaf = false;
    FINISH();
}

/* A link that is silent is a matter of its connection. */
static void but_not_for_one_that_is_silent(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000, .links = 2);
    fall_behind_on_one();
    ACQUIRE(4, "{b}2", .wait_ms = 60000);
    assert_int_equal(S.core->links[link_of(4)].held_back.count, 0);
    S.deaf = false;
    FINISH();
}

/* ---- A server that is far away ---- */

/* The way there and back is no lateness, neither for new locks nor for what operators see. */
static void distance_is_not_lateness(void **state)
{
    enum { AWAY_MS = 2 * LATE_MS };
    (void)state;
    SETUP(.reply_timeout_ms = 5000, .call_timeout_ms = 5000);
    ACQUIRE(1, "warm");
    link_0()->round_trip = hf__span_ms(AWAY_MS); /* as if it had never been faster */
    S.deaf = true;
    ACQUIRE(2, "a", RENEWED, .renew_timeout_ms = 1000);
    ADVANCE_MS(AWAY_MS);
    grant_one();
    EXPECT(2, HF_OK);
    ADVANCE_MS(INTERVAL_MS - AWAY_MS + LATE_MS + 1);
    ACQUIRE(3, "b", .wait_ms = 60000);
    assert_int_equal(link_0()->held_back.count, 0);
    expect_load((hf_load){.late_ms = 0});
    ADVANCE_MS(2 * AWAY_MS); /* a renewal may go there twice */
    ACQUIRE(4, "c", .wait_ms = 60000);
    assert_int_equal(link_0()->held_back.count, 1);
    expect_load((hf_load){.late_ms = LATE_MS + 1, .held_back = 1, .overloads = 1});
    stage_say(0, "*1\r\n:1\r\n", 8);
    ADVANCE_MS(1);
    EXPECT_STATE(2, HF_SAFE);
    S.deaf = false;
    FINISH();
}

/* ---- Many that are late ---- */

/* Each is in jeopardy when its own time has come, though one timer is theirs together. */
static void each_is_told_in_its_time(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 60000);
    for (int i = 1; i <= 5; i++) {
        char name[] = {'a', (char)('0' + i), '\0'};
        ACQUIRE(i, name, RENEWED, .renew_timeout_ms = 100 + 10 * i);
    }
    S.mute = true;
    ADVANCE_MS(INTERVAL_MS + 100);
    for (int i = 1; i <= 5; i++) {
        ADVANCE_MS(9);
        EXPECT_STATE(i, HF_SAFE);
        ADVANCE_MS(1);
        EXPECT_STATE(i, HF_JEOPARDY);
    }
    S.mute = false;
    stage_run();
    for (int i = 1; i <= 5; i++)
        EXPECT_STATE(i, HF_SAFE);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_but_steady_is_not_dead),
        cmocka_unit_test(silent_is_dead),
        cmocka_unit_test(a_pause_of_ours_is_not_the_server_s_silence),
        cmocka_unit_test(what_is_in_flight_is_bounded),
        cmocka_unit_test(a_link_begins_with_few_calls),
        cmocka_unit_test(a_slow_server_gets_less),
        cmocka_unit_test(a_renewal_passes_what_waits),
        cmocka_unit_test(a_renewal_is_sent_again_before_what_waits),
        cmocka_unit_test(a_new_lock_waits_for_late_renewals),
        cmocka_unit_test(or_is_told_why_not),
        cmocka_unit_test(a_release_does_not_wait_for_them),
        cmocka_unit_test(a_cancel_is_heard_meanwhile),
        cmocka_unit_test(a_lost_connection_lets_it_go_on),
        cmocka_unit_test(the_end_of_the_late_hold_lets_it_go_on),
        cmocka_unit_test(the_log_says_so_once),
        cmocka_unit_test(the_log_says_when_it_is_over),
        cmocka_unit_test(a_lock_of_another_link_waits_too),
        cmocka_unit_test(but_not_for_one_that_is_silent),
        cmocka_unit_test(distance_is_not_lateness),
        cmocka_unit_test(each_is_told_in_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
