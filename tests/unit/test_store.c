/* SPDX-License-Identifier: MIT */
/* Guarded writes and values through the public API, with a server that says whatever the test
 * wants: what is made of its answers, of silence and of too little memory, and what becomes of the
 * hold. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast_store.h>

#include "core/store.h"
#include "wired.h"

#define ONE        (&(hf_write){.key = "a", .value = "1", .value_length = 1}), 1
#define SAYS(text) WIRES(node.errand_says = (text))

static hf_error error;
static uint64_t number;
static size_t length;

static void expect(hf_status expected, hf_status given)
{
    expect_status(given, expected, &error);
}

/* ---- Answers ---- */

static hf__numbers said(int count, int64_t first, int64_t second)
{
    return (hf__numbers){.count = count, .number = {first, second}};
}

static void answers_to_a_write_with_a_hold(void **state)
{
    (void)state;
    static const struct {
        hf__numbers said;
        hf_status status;
    } cases[] = {
        {{1, {1}}, HF_OK},      {{1, {0}}, HF_ELOST},           {{1, {-1}}, HF_EUNKNOWN},
        {{1, {2}}, HF_ESERVER}, {{1, {-2}}, HF_ESERVER},        {{2, {1, 1}}, HF_ESERVER},
        {{0, {1}}, HF_ESERVER}, {{1, {INT64_MIN}}, HF_ESERVER},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect(cases[i].status, hf__store_held_outcome(&cases[i].said, &error));
}

typedef hf_status outcome(const hf__numbers *said, uint64_t *number, hf_error *error);

static void answers_with_a_number(void **state)
{
    (void)state;
    static outcome *const outcomes[] = {hf__store_fenced_outcome, hf__store_write_outcome};
    const int64_t top = HF__STORE_NUMBER_MAX;
    const struct {
        hf__numbers said;
        hf_status status;
    } cases[] = {
        {said(2, 1, 5), HF_OK},        {said(2, 0, 5), HF_ESTALE},
        {said(2, -1, 5), HF_EUNKNOWN}, {said(2, 2, 5), HF_ESERVER},
        {said(2, 1, -1), HF_ESERVER},  {said(2, 1, top + 1), HF_ESERVER},
        {said(1, 1, 0), HF_ESERVER},   {said(3, 1, 0), HF_ESERVER},
        {said(2, 1, top), HF_OK},      {said(2, -2, 5), HF_ESERVER},
    };
    for (size_t i = 0; i < COUNT_OF(cases) * COUNT_OF(outcomes); i++) {
        const hf__numbers *answer = &cases[i / 2].said;
        number = 77;
        expect(cases[i / 2].status, outcomes[i % 2](answer, &number, &error));
        bool told = cases[i / 2].status != HF_ESERVER;
        assert_true(number == (told ? (uint64_t)answer->number[1] : 77));
        expect(cases[i / 2].status, outcomes[i % 2](answer, NULL, &error));
    }
}

static void answers_to_a_read(void **state)
{
    (void)state;
    hf__numbers none = said(1, 0, 0), some = said(1, 7, 0), wrong = said(1, -1, 0);
    expect(HF_EMISSING, hf__store_read_outcome(&none, &number, &error));
    expect(HF_OK, hf__store_read_outcome(&some, &number, &error));
    assert_int_equal(number, 7);
    expect(HF_ESERVER, hf__store_read_outcome(&wrong, &number, &error));
    wrong = said(2, 1, 1);
    expect(HF_ESERVER, hf__store_read_outcome(&wrong, &number, &error));
}

/* ---- Calls ---- */

static void calls_say_what_the_server_says(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *hold = acquire(client, "x", NULL);
    char place[4] = "";
    expect(HF_OK, hf_write_held(hold, ONE, &error));
    SAYS(":0\r\n");
    expect(HF_ELOST, hf_write_held(hold, ONE, &error));
    SAYS("*2\r\n:0\r\n:9\r\n");
    expect(HF_ESTALE, hf_write_fenced(client, "g", 0, 5, ONE, &number, &error));
    assert_int_equal(number, 9);
    expect(HF_ESTALE, hf_value_write(client, "v", 0, "1", 1, 5, &number, &error));
    SAYS("*2\r\n:4\r\n$6\r\nabcdef\r\n");
    expect(HF_OK, hf_value_read(client, "v", 0, place, 3, &length, &number, &error));
    assert_string_equal(place, "abc");
    assert_int_equal(length, 6);
    expect(HF_ESERVER, hf_write_held(hold, ONE, &error)); /* and its text is freed */
    SAYS(":-1\r\n");
    expect(HF_EUNKNOWN, hf_write_held_and_release(&hold, ONE, &error));
    assert_null(hold);
    assert_false(wires_has_key("x"));
    assert_int_equal(hf_close(client), HF_OK);
}

static void no_two_calls_have_the_same_word(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    char first[64], second[64];
    int before;
    SAYS("*2\r\n:1\r\n:9\r\n");
    expect(HF_OK, hf_value_write(client, "v", 0, NULL, 0, 5, NULL, &error));
    WIRES_GET(before, node.errands);
    expect(HF_OK, hf_value_write(client, "v", 0, NULL, 0, 5, NULL, &error));
    wires *w = wires_lock();
    memcpy(first, w->node.errand_log[before - 1].first_word, sizeof(first));
    memcpy(second, w->node.errand_log[before].first_word, sizeof(second));
    wires_unlock();
    assert_true(strlen(first) > 33 && strncmp(first, second, 33) == 0);
    assert_string_not_equal(first, second);
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_hold_of_a_closed_client_is_freed(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *hold = acquire(client, "x", NULL), *other = acquire(client, "y", NULL);
    assert_int_equal(hf_close(client), HF_OK);
    expect(HF_ELOST, hf_write_held(hold, ONE, &error)); /* closing has released it */
    expect(HF_ELOST, hf_write_held_and_release(&hold, ONE, &error));
    assert_null(hold);
    expect(HF_ELOST, hf_write_held_and_release(&other, ONE, &error));
    assert_null(other);
}

static void several_servers_are_not_written_to(void **state)
{
    (void)state;
    hf_client *client = NULL;
    expect(HF_OK, hf_open("redis://a,redis://b,redis://c", HF_CLIENT(.transport = &wires_transport),
                          &client, &error));
    expect(HF_EINVAL, hf_value_read(client, "v", 0, NULL, 0, &length, &number, &error));
    expect(HF_EINVAL, hf_value_write(client, "v", 0, NULL, 0, 5, NULL, &error));
    expect(HF_EINVAL, hf_write_fenced(client, "g", 0, 5, ONE, NULL, &error));
    assert_non_null(strstr(error.text, "quorum"));
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- A callback that forks ---- */

static pid_t child = -1;

static void fork_here(void)
{
    child = fork();
}

typedef hf_status call_function(hf_client *client, hf_hold **hold);

static hf_status call_read(hf_client *client, hf_hold **hold)
{
    (void)hold;
    return hf_value_read(client, "v", 0, NULL, 0, &length, &number, NULL);
}

static hf_status call_write(hf_client *client, hf_hold **hold)
{
    (void)client;
    return hf_write_held_and_release(hold, ONE, NULL);
}

static hf_status call_acquire(hf_client *client, hf_hold **hold)
{
    hf_hold *other = NULL;
    (void)hold;
    hf_status status = hf_acquire(client, "y", NULL, &other, NULL);
    hf_release(&other, NULL);
    return status;
}

/* In the child, the call has ended in the middle: what belonged to it is freed with the client. */
static void a_call_in_which_somebody_forks(void **state)
{
    (void)state;
    static call_function *const calls[] = {call_read, call_write, call_acquire};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        hf_client *client = OPEN(LOGGED, .own_loop = true, .links = 1);
        hf_hold *hold = acquire(client, "x", NULL);
        WIRES(cut_after = 0); /* so that something is logged */
        arm(fork_here);
        hf_status status = calls[i](client, &hold);
        if (child == 0) {
            hf_release(&hold, NULL);
            hf_close(client);
            _exit(status == HF_EFORKED ? 0 : 1);
        }
        int ended = -1;
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
        hf_release(&hold, NULL);
        assert_int_equal(hf_close(client), HF_OK);
    }
}

/* ---- Memory ---- */

static void expect_honest(hf_status status)
{
    if (status != HF_OK && status != HF_ENOMEM && status != HF_EUNKNOWN)
        assert_int_equal(status, HF_EUNAVAILABLE);
}

static bool write_without(long at)
{
    hf_client *client = OPEN(.call_timeout_ms = 2000);
    hf_hold *hold = acquire(client, "x", NULL);
    gate_fail_at(at);
    expect_honest(hf_write_held(hold, ONE, &error));
    expect_honest(hf_write_held_and_release(&hold, ONE, &error));
    assert_null(hold); /* in any case */
    SAYS("*2\r\n:4\r\n$6\r\nabcdef\r\n");
    expect_honest(hf_value_read(client, "v", 0, NULL, 0, &length, &number, &error));
    bool refused = gate_open();
    SAYS(NULL);
    assert_int_equal(hf_close(client), HF_OK);
    assert_false(wires_has_key("x"));
    return refused;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    long at = 0;
    while (write_without(at))
        assert_true(++at < 1000);
    assert_true(at >= 3); /* a query each */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_to_a_write_with_a_hold),
        cmocka_unit_test(answers_with_a_number),
        cmocka_unit_test(answers_to_a_read),
        BOTH(calls_say_what_the_server_says),
        SEEING(no_two_calls_have_the_same_word),
        BOTH(a_hold_of_a_closed_client_is_freed),
        SEEING(several_servers_are_not_written_to),
        SEEING(a_call_in_which_somebody_forks),
        BOTH(every_allocation_fails_once),
    };
    wired_install_gate();
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
