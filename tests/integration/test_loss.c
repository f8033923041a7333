/* SPDX-License-Identifier: MIT */
/* Goal: whoever loses a hold learns it first, from the library, before he could do harm; and what
 * he does afterwards does not touch his successor. Here the holder or somebody else is the reason;
 * servers that stop or forget are in test_loss_server.c.
 *
 * A machine that is suspended cannot be had in a test: the clock that decides (CLOCK_BOOTTIME) is
 * the one of the stopped processes here, and the unit tests and the simulator let it jump.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "puppet.h"
#include "witness.h"

static hf_client *client;
static hf_hold *hold;
static hf_error error;
static struct witness witness;

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    witness_clear(&witness);
    server = redis_server_start(NULL);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* A long lease that is renewed often: what is lost is noticed soon, and not by the deadline. */
static void acquire(void)
{
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100,
                                           .wait_ms = 20000, .retry_interval_ms = 20,
                                           .on_event = witness_event, .arg = &witness));
}

static void expect_lost(hf_reason reason)
{
    WAIT_UNTIL(atomic_load(&witness.count) > 0, 10000);
    EXPECT_TOLD(&witness, 0, HF_LOST, reason);
    assert_int_equal(hf_hold_state(hold), HF_LOST);
    assert_false(hf_is_valid(hold));
    assert_int_equal(hf_remaining_ms(hold), 0);
}

/* ---- A holder that was stopped --------------------------------------------------------------- */

/* Stops the holder until its lock has gone to this process's client. */
static void stop_until_succeeded(struct process *holder)
{
    process_freeze(holder);
    open_client(&client);
    acquire();
    process_thaw(holder);
}

static void a_stopped_holder_hears_of_it_first(void **state)
{
    (void)state;
    char value[256];
    struct process *holder = puppet_start(server);
    ASK(holder, "acquire 400 0", "HF_OK");
    long long fence = ask_number(holder, "fence");
    stop_until_succeeded(holder);
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    ASK(holder, "state", "LOST");
    ASK(holder, "valid", "no");
    ASK(holder, "extend", "HF_ELOST");
    ASK(holder, "release", "HF_ELOST");
    assert_string_equal(raw(server, "GET lock"), value);
    assert_true((long long)hf_fence(hold) > fence);
    assert_true(hf_is_valid(hold));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void a_stopped_holder_is_told(void **state)
{
    (void)state;
    struct process *holder = puppet_start(server);
    char heard[LINE_MAX_TEXT] = "";
    ASK(holder, "acquire 400 0", "HF_OK");
    stop_until_succeeded(holder);
    int64_t give_up = now_ms() + 10000;
    while (strstr(heard, "LOST") == NULL && now_ms() < give_up) {
        tell(holder, "told");
        assert_true(line_hear(holder->line, heard, 10000));
    }
    /* A renewal may have been late before that; nothing comes after it. */
    if (strcmp(heard, "LOST:4") != 0)
        assert_string_equal(heard, "JEOPARDY:1 LOST:4");
    ASK(holder, "nowait", "HF_ELOST");
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Stopped in the middle of asking nothing else but whether it is valid: the last yes was asked for
 * before the successor had it. */
static void a_stopped_holder_never_says_yes_too_late(void **state)
{
    (void)state;
    struct process *holder = puppet_start(server);
    char heard[LINE_MAX_TEXT] = "";
    char word[16] = "";
    long long last_yes = 0;
    for (int i = 0; i < 3; i++) {
        ASK(holder, "acquire 300 10000", "HF_OK");
        tell(holder, "spin");
        sleep_ms(50); /* let it ask for a while; how often does not matter */
        process_freeze(holder);
        if (client == NULL)
            open_client(&client);
        acquire();
        int64_t succeeded = now_ms();
        process_thaw(holder);
        assert_true(line_hear(holder->line, heard, 20000));
        assert_int_equal(sscanf(heard, "%lld %15s", &last_yes, word), 2);
        assert_true(last_yes > 0);
        assert_true(last_yes < succeeded);
        assert_string_equal(word, "LOST");
        ASK(holder, "release", "HF_ELOST");
        EXPECT(HF_OK, hf_release(&hold, &error));
    }
}

/* ---- Somebody else's hand -------------------------------------------------------------------- */

static void a_deleted_key_is_told_with_the_next_renewal(void **state)
{
    (void)state;
    open_client(&client);
    acquire();
    assert_string_equal(raw(server, "DEL lock"), "1");
    expect_lost(HF_REASON_GONE);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

static void a_foreign_key_in_its_place_is_left_alone(void **state)
{
    (void)state;
    open_client(&client);
    acquire();
    assert_string_equal(raw(server, "DEL lock"), "1");
    assert_string_equal(raw(server, "SET lock foreign NX PX 25000"), "OK");
    expect_lost(HF_REASON_GONE);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "foreign");
    assert_in_range(raw_number(server, "PTTL lock"), 1, 25000);
}

static void a_killed_connection_costs_nothing(void **state)
{
    (void)state;
    open_client(&client);
    acquire();
    for (int i = 0; i < 5; i++) {
        uint64_t before = stats_of(client)->renewals;
        assert_true(raw_number(server, "CLIENT KILL TYPE normal SKIPME yes") > 0);
        WAIT_UNTIL(stats_of(client)->renewals >= before + 2, 10000);
    }
    assert_true(hf_is_valid(hold));
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void forgotten_scripts_cost_nothing(void **state)
{
    (void)state;
    open_client(&client);
    acquire();
    for (int i = 0; i < 5; i++) {
        uint64_t before = stats_of(client)->renewals;
        assert_string_equal(raw(server, "SCRIPT FLUSH SYNC"), "OK");
        WAIT_UNTIL(stats_of(client)->renewals >= before + 2, 10000);
    }
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* ---- The descriptor -------------------------------------------------------------------------- */

static bool is_readable(int descriptor, int bound_ms)
{
    struct pollfd asked = {.fd = descriptor, .events = POLLIN};
    return poll(&asked, 1, bound_ms) == 1 && (asked.revents & POLLIN) != 0;
}

static void the_descriptor_is_readable_on_loss(void **state)
{
    (void)state;
    uint64_t times = 0;
    open_client(&client);
    EXPECT(HF_OK,
           hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100),
                      &hold, &error));
    int descriptor = hf_descriptor(hold);
    assert_true(descriptor >= 0);
    assert_int_equal(hf_descriptor(hold), descriptor);
    assert_false(is_readable(descriptor, 0));
    assert_string_equal(raw(server, "DEL lock"), "1");
    assert_true(is_readable(descriptor, 10000));
    assert_int_equal(read(descriptor, &times, sizeof(times)), sizeof(times));
    assert_int_equal(hf_hold_state(hold), HF_LOST);
    assert_false(is_readable(descriptor, 0));
    int before = open_descriptors();
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_int_equal(open_descriptors(), before - 1);
}

/* Nobody was told, so the news is still there for whoever asks for a descriptor now. Otherwise a
 * program that asks for one right after its acquire could wait for ever. */
static void a_late_descriptor_knows_of_the_loss(void **state)
{
    (void)state;
    open_client(&client);
    EXPECT(HF_OK,
           hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100),
                      &hold, &error));
    assert_string_equal(raw(server, "DEL lock"), "1");
    WAIT_UNTIL(hf_hold_state(hold) == HF_LOST, 10000);
    assert_true(is_readable(hf_descriptor(hold), 1000));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_holder_hears_of_it_first),
        TEST(a_stopped_holder_is_told),
        TEST(a_stopped_holder_never_says_yes_too_late),
        TEST(a_deleted_key_is_told_with_the_next_renewal),
        TEST(a_foreign_key_in_its_place_is_left_alone),
        TEST(a_killed_connection_costs_nothing),
        TEST(forgotten_scripts_cost_nothing),
        TEST(the_descriptor_is_readable_on_loss),
        TEST(a_late_descriptor_knows_of_the_loss),
    };
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
