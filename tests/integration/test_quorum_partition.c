/* SPDX-License-Identifier: MIT */
/* Goal: clients that are cut off from different servers never have the lock together; those who
 * reach too few are told so in time; and when the network is whole again, everybody gets on and
 * nothing is left behind, though what was sent meanwhile arrives late.
 *
 * Each of two clients, a process each, has a relay of its own to each of five servers.
 */
#include <stdio.h>
#include <string.h>

#include "quorum.h"
#include "relay.h"

enum { SERVERS = 5, ROUNDS = 12 };

struct side {
    struct relay relays[SERVERS];
    struct process *puppet;
};

static struct side left, right;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void start_side(struct side *side)
{
    char urls[512];
    size_t length = 0;
    for (int i = 0; i < SERVERS; i++) {
        side->relays[i] = relay_start(quorum.servers[i]);
        length += (size_t)snprintf(urls + length, sizeof(urls) - length, "%s%s", i > 0 ? " " : "",
                                   side->relays[i].url);
    }
    side->puppet =
        puppet_start_at(urls, HF_CLIENT(.connect_timeout_ms = 300, .reply_timeout_ms = 300,
                                        .call_timeout_ms = 400));
}

static int begin(void **state)
{
    (void)state;
    quorum_start(SERVERS);
    start_side(&left);
    start_side(&right);
    return 0;
}

/* It reaches the servers whose digits are in the text, and no others. */
static void reaches(const struct side *side, const char *numbers)
{
    for (int i = 0; i < SERVERS; i++)
        if (strchr(numbers, '0' + i) != NULL)
            relay_heal(&side->relays[i]);
        else
            relay_cut(&side->relays[i]);
}

static void heal_everything(void)
{
    reaches(&left, "01234");
    reaches(&right, "01234");
}

static void warm_up(const struct side *side)
{
    ASK(side->puppet, "queue 30000 20000", "HF_OK");
    ASK(side->puppet, "release", "HF_OK");
}

/* Cut off by silence, so whether it was granted is not always known; but not by whom it is. */
static void expect_told_why(const struct side *side, const char *order)
{
    char heard[LINE_MAX_TEXT] = "(silence)";
    tell(side->puppet, order);
    (void)line_hear(side->puppet->line, heard, QUORUM_PATIENCE_MS);
    if (strcmp(heard, "HF_EUNAVAILABLE") != 0 && strcmp(heard, "HF_EUNKNOWN") != 0)
        fail_msg("%s: %s", order, heard);
    tell(side->puppet, "why");
    assert_true(line_hear(side->puppet->line, heard, QUORUM_PATIENCE_MS));
    expect_says(heard, "of 5 servers granted it");
    expect_says(heard, "127.0.0.1:");
}

/* Leases are longer than anybody's patience: what stays is not what has run out. */
static void expect_nothing_left(void)
{
    WAIT_UNTIL(quorum_held() == 0 && quorum_all_queued(0), QUORUM_PATIENCE_MS);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void overlapping_minorities_get_nothing(void **state)
{
    (void)state;
    warm_up(&left);
    warm_up(&right);
    reaches(&left, "01");
    reaches(&right, "12");
    expect_told_why(&left, "queue 30000 0");
    expect_told_why(&right, "queue 30000 0");
    expect_told_why(&left, "queue 30000 600");
    expect_told_why(&right, "acquire 30000 600");
    heal_everything();
    warm_up(&right);
    warm_up(&left);
    expect_nothing_left();
}

/* Both wait through it, and one after the other has it afterwards. */
static void who_waits_meanwhile_is_served_when_it_is_over(void **state)
{
    char said[LINE_MAX_TEXT];
    (void)state;
    warm_up(&left);
    reaches(&left, "04");
    reaches(&right, "14");
    tell(left.puppet, "queue 30000 -1");
    tell(right.puppet, "queue 30000 -1");
    long long before = quorum_scripts();
    WAIT_UNTIL(quorum_scripts() > before + 10, QUORUM_PATIENCE_MS); /* they try */
    assert_false(line_hear(left.puppet->line, said, 0) || line_hear(right.puppet->line, said, 0));
    heal_everything();
    quorum_serves_both((struct process *[]){left.puppet, right.puppet}, 0);
    expect_nothing_left();
}

/* Each reaches three, and the one in the middle decides. */
static void overlapping_majorities_take_turns(void **state)
{
    long long last = 0;
    (void)state;
    reaches(&left, "012");
    reaches(&right, "234");
    for (int i = 0; i < ROUNDS; i++) {
        const struct side *holder = i % 2 == 0 ? &left : &right;
        const struct side *rival = i % 2 == 0 ? &right : &left;
        ASK(holder->puppet, "queue 30000 20000", "HF_OK");
        long long fence = ask_number(holder->puppet, "fence");
        assert_true(fence > last);
        last = fence;
        ASK(rival->puppet, "queue 30000 0", "HF_EBUSY");
        ASK(holder->puppet, "release", "HF_OK");
    }
    heal_everything();
    warm_up(&left);
    expect_nothing_left();
}

/* Whoever is cut off stops believing in its hold before somebody else has it. */
static void a_holder_that_is_cut_off_is_succeeded(void **state)
{
    (void)state;
    warm_up(&right);
    ASK(left.puppet, "acquire 1000 20000", "HF_OK");
    long long fence = ask_number(left.puppet, "fence");
    tell(right.puppet, "queue 30000 -1");
    reaches(&left, "04");
    long long believed = ask_number(left.puppet, "spin");
    EXPECT_HEARD(right.puppet, "HF_OK");
    assert_true(ask_number(right.puppet, "when") > believed);
    assert_true(ask_number(right.puppet, "fence") > fence);
    ASK(left.puppet, "release", "HF_ELOST");
    heal_everything();
    ASK(left.puppet, "queue 30000 0", "HF_EBUSY"); /* what arrives late takes nothing away */
    ASK(right.puppet, "valid", "yes");
    ASK(right.puppet, "release", "HF_OK");
    warm_up(&left);
    expect_nothing_left();
}

/* A minority that it cannot reach does not end a hold, and is told of the end later. */
static void a_holder_that_keeps_a_majority_keeps_the_lock(void **state)
{
    (void)state;
    warm_up(&right);
    ASK(left.puppet, "acquire 2000 20000", "HF_OK");
    reaches(&left, "024");
    reaches(&right, "134");
    ASK(left.puppet, "extend", "HF_OK");
    ASK(right.puppet, "queue 30000 2200", "HF_EBUSY"); /* for longer than the lease */
    ASK(left.puppet, "valid", "yes");
    ASK(left.puppet, "release", "HF_OK");
    heal_everything();
    warm_up(&right);
    expect_nothing_left();
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, quorum_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(overlapping_minorities_get_nothing),
        TEST(who_waits_meanwhile_is_served_when_it_is_over),
        TEST(overlapping_majorities_take_turns),
        TEST(a_holder_that_is_cut_off_is_succeeded),
        TEST(a_holder_that_keeps_a_majority_keeps_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
