/* SPDX-License-Identifier: MIT */
/* Tokens: a lock that one process takes and another one renews and releases, at a real server. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static hf_error error;
static char token[HF_TOKEN_MAX];

static int begin(void **state)
{
    (void)state;
    empty_server();
    return 0;
}

static void detach(hf_hold *hold)
{
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    assert_null(hold);
    assert_true(strlen(token) > 40);
    assert_null(strpbrk(token, " \t\n'\"$&;<>()*?"));
}

static hf_hold *attach(hf_client *client, const hf_acquire_options *options)
{
    hf_hold *hold = NULL;
    EXPECT(HF_OK, hf_attach(client, "lock", token, options, &hold, &error));
    return hold;
}

/* ---- Two processes ---- */

/* Takes the lock, says its token in parts that fit a message, and is gone. */
static void take_and_go(int line, void *arg)
{
    const hf_acquire_options *options = arg;
    char text[HF_TOKEN_MAX];
    hf_client *client;
    hf_hold *hold;
    uint64_t fence = 0;
    if (hf_open(server->unix_url, NULL, &client, NULL) != HF_OK ||
        hf_acquire(client, "lock", options, &hold, NULL) != HF_OK)
        _exit(1);
    fence = hf_fence(hold);
    if (hf_detach(&hold, text, NULL) != HF_OK || hf_close(client) != HF_OK)
        _exit(1);
    line_say(line, "%s", text);
    line_say(line, "%llu", (unsigned long long)fence);
}

static void another_process_has_it(void **state)
{
    (void)state;
    char fence[LINE_MAX_TEXT], heard[LINE_MAX_TEXT];
    struct process *other = process_start(take_and_go, HF_ACQUIRE(.lease_ms = 20000));
    assert_true(line_hear(other->line, heard, 20000));
    assert_true(line_hear(other->line, fence, 20000));
    assert_true(process_finish(other, 20000));
    (void)snprintf(token, sizeof(token), "%s", heard);
    open_both();
    expect_refused(bob);
    hf_hold *hold = attach(alice, NULL);
    assert_true(hf_fence(hold) == strtoull(fence, NULL, 10));
    assert_in_range(hf_remaining_ms(hold), 1, 20000 - 200 - 2);
    expect_refused(bob);
    release(&hold);
    expect_free(bob);
    EXPECT(HF_ELOST, hf_attach(alice, "lock", token, NULL, &hold, &error));
    assert_null(hold);
}

static void it_is_renewed_here(void **state)
{
    (void)state;
    open_both();
    detach(acquire_for(alice, 1000));
    hf_hold *hold = attach(bob, HF_ACQUIRE(.lease_ms = 1000));
    int64_t start = now_ms();
    while (now_ms() < start + 2500) { /* several leases */
        if (longest_pause_ms(50) > 300)
            start = now_ms();
        if (!hf_is_valid(hold))
            break;
    }
    assert_true(hf_is_valid(hold));
    release(&hold);
}

static void nobody_renews_what_was_detached(void **state)
{
    (void)state;
    open_client(&alice);
    detach(acquire_with(alice, HF_ACQUIRE(.lease_ms = 300)));
    WAIT_UNTIL(strcmp(raw(server, "EXISTS lock"), "0") == 0, 3000);
    hf_hold *hold;
    EXPECT(HF_ELOST, hf_attach(alice, "lock", token, NULL, &hold, &error));
}

static void closing_leaves_it_alone(void **state)
{
    (void)state;
    open_both();
    detach(acquire_for(alice, 20000));
    EXPECT_STATUS(HF_OK, hf_close(alice));
    alice = NULL;
    assert_string_equal(raw(server, "EXISTS lock"), "1");
    hf_hold *hold = attach(bob, HF_ACQUIRE(.no_renewal = true));
    release(&hold);
    expect_only_fences();
}

static void names_and_owners_may_be_anything(void **state)
{
    (void)state;
    static const char owner[] = "caf\xc3\xa9 %41, 'x' \n\x01\xff";
    static const char name[] = {'a', '\0', 'b'};
    char shown[100];
    hf_hold *hold;
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, name,
                             HF_ACQUIRE(.name_length = sizeof(name), .owner = owner,
                                        .label = "with %, and blanks", .no_renewal = true),
                             &hold, &error));
    detach(hold);
    EXPECT(HF_OK,
           hf_attach(bob, name, token, HF_ACQUIRE(.name_length = sizeof(name)), &hold, &error));
    assert_int_equal(hf_owner(hold, shown, sizeof(shown)), strlen(owner));
    assert_string_equal(shown, owner);
    assert_int_equal(hf_owner(hold, shown, 4), strlen(owner));
    assert_string_equal(shown, "caf");
    assert_int_equal(hf_owner(hold, NULL, 0), strlen(owner));
    release(&hold);
    assert_int_equal(hf_owner(NULL, shown, sizeof(shown)), 0);
    assert_string_equal(shown, "");
}

static void the_owner_of_a_thread_is_its_value(void **state)
{
    (void)state;
    char shown[300];
    open_client(&alice);
    hf_hold *hold = acquire_for(alice, 5000);
    hf_owner(hold, shown, sizeof(shown));
    assert_string_equal(shown, raw(server, "GET lock"));
    release(&hold);
}

/* Whatever is wrong with a token, it is said and nothing is asked. */
static void what_is_no_token_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "x",
        "1",
        "1,0,5,5,30000,value,",
        "2,0,5,5,30000,%s,",
        "1,2,5,5,30000,%s,",
        "1,0,0,5,30000,%s,",
        "1,0,6,5,30000,%s,",
        "1,0,5,5,99,%s,",
        "1,0,5,5,604800001,%s,",
        "1,0,9007199254740992,9007199254740992,30000,%s,",
        "1,0,5,5,30000,%s",
        "1,0,5,5,30000,%s,,",
        "1,0,5,5,30000,%s,%%4",
        "1,0,5,5,30000,%s,%%zz",
        "1,0,-5,5,30000,%s,",
        " 1,0,5,5,30000,%s,",
    };
    static const char value[] = "0123456789abcdef0123456789abcdef:1@host:2/3";
    char text[2 * HF_TOKEN_MAX];
    hf_hold *hold;
    open_client(&alice);
    long long before = scripts_run(server);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *gap = strstr(wrong[i], "%s");
        int length = gap != NULL ? (int)(gap - wrong[i]) : (int)strlen(wrong[i]);
        (void)snprintf(text, sizeof(text), "%.*s%s%s", length, wrong[i], gap != NULL ? value : "",
                       gap != NULL ? gap + 2 : "");
        EXPECT(HF_EINVAL, hf_attach(alice, "lock", text, NULL, &hold, &error));
        assert_null(hold);
        expect_says(error.text, "token");
    }
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    EXPECT(HF_EINVAL, hf_attach(alice, "lock", text, NULL, &hold, &error));
    EXPECT(HF_EINVAL, hf_attach(alice, "lock", NULL, NULL, &hold, &error));
    EXPECT(HF_EINVAL, hf_attach(NULL, "lock", "x", NULL, &hold, &error));
    EXPECT(HF_EINVAL, hf_attach(alice, "lock", "x", NULL, NULL, &error));
    assert_int_equal(scripts_run(server), before);
    (void)snprintf(text, sizeof(text), "1,0,5,5,30000,%s,", value); /* good, but of no lock */
    EXPECT(HF_ELOST, hf_attach(alice, "lock", text, NULL, &hold, &error));
    EXPECT(HF_EINVAL, hf_attach(alice, "", text, NULL, &hold, &error));
    EXPECT(HF_EINVAL, hf_attach(alice, "lock", text, HF_ACQUIRE(.lease_ms = 99), &hold, &error));
}

/* ---- Detaching ---- */

/* Nothing is done, so its descriptor lives on, too. */
static void a_reentered_hold_stays_as_it_is(void **state)
{
    (void)state;
    open_both();
    hf_hold *outer = acquire_for(alice, 5000), *inner = acquire_for(alice, 5000);
    int descriptor = hf_descriptor(outer);
    EXPECT(HF_EINVAL, hf_detach(&outer, token, &error));
    assert_non_null(outer);
    assert_string_equal(token, "");
    assert_int_equal(hf_descriptor(outer), descriptor);
    raw(server, "DEL lock");
    EXPECT(HF_ELOST, hf_extend(inner, 0, &error));
    struct pollfd news = {.fd = descriptor, .events = POLLIN};
    assert_int_equal(poll(&news, 1, 5000), 1);
    assert_int_equal(news.revents, POLLIN);
    EXPECT(HF_ELOST, hf_release(&inner, &error));
    EXPECT(HF_ELOST, hf_detach(&outer, token, &error));
    assert_null(outer);
    assert_string_equal(token, "");
}

static void its_descriptor_is_closed(void **state)
{
    (void)state;
    open_client(&alice);
    hf_hold *hold = acquire_for(alice, 5000);
    int before = open_descriptors();
    assert_true(hf_descriptor(hold) >= 0);
    assert_int_equal(open_descriptors(), before + 1);
    detach(hold);
    assert_int_equal(open_descriptors(), before);
    hold = attach(alice, NULL);
    release(&hold);
}

static void bad_calls_are_refused(void **state)
{
    (void)state;
    open_client(&alice);
    hf_hold *none = NULL, *hold = acquire_for(alice, 5000);
    EXPECT(HF_EINVAL, hf_detach(NULL, token, &error));
    EXPECT(HF_EINVAL, hf_detach(&none, token, &error));
    EXPECT(HF_EINVAL, hf_detach(&hold, NULL, &error));
    assert_non_null(hold);
    EXPECT_STATUS(HF_OK, hf_close(alice));
    alice = NULL;
    EXPECT(HF_ECLOSED, hf_detach(&hold, token, &error));
    assert_null(hold);
    assert_string_equal(token, "");
}

static void a_request_to_give_up_waits_for_it(void **state)
{
    (void)state;
    open_both();
    detach(acquire_for(alice, 5000));
    EXPECT(HF_OK, hf_revoke(bob, "lock", 0, "please", &error));
    hf_hold *hold = attach(alice, HF_ACQUIRE(.no_renewal = true));
    struct pollfd news = {.fd = hf_descriptor(hold), .events = POLLIN};
    assert_int_equal(poll(&news, 1, 0), 1); /* it is known by now */
    release(&hold);
    hold = acquire_for(alice, 5000);
    news.fd = hf_descriptor(hold);
    assert_int_equal(poll(&news, 1, 0), 0); /* and was meant for the one before */
    release(&hold);
}

/* ---- The examination ---- */

static void the_server_is_examined(void **state)
{
    (void)state;
    hf_examination e;
    open_client(&alice);
    EXPECT(HF_OK, hf_examine(alice, &e, &error));
    assert_non_null(strstr(raw(server, "INFO server"), e.version));
    assert_non_null(strstr(raw(server, "INFO server"), e.run_id));
    assert_int_equal(strlen(e.run_id), 40);
    assert_string_equal(e.eviction_policy, "noeviction");
    assert_in_range(e.round_trip_us, 1, 1000000 * SLACK_MS / 1000);
    assert_true(e.clock_ahead_us > -SLACK_MS * 1000 && e.clock_ahead_us < SLACK_MS * 1000);
    assert_false(e.replica || e.append_only || e.cluster);
    EXPECT(HF_EINVAL, hf_examine(alice, NULL, &error));
    EXPECT(HF_EINVAL, hf_examine(NULL, &e, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_process_has_it, begin, close_clients),
        cmocka_unit_test_setup_teardown(it_is_renewed_here, begin, close_clients),
        cmocka_unit_test_setup_teardown(nobody_renews_what_was_detached, begin, close_clients),
        cmocka_unit_test_setup_teardown(closing_leaves_it_alone, begin, close_clients),
        cmocka_unit_test_setup_teardown(names_and_owners_may_be_anything, begin, close_clients),
        cmocka_unit_test_setup_teardown(the_owner_of_a_thread_is_its_value, begin, close_clients),
        cmocka_unit_test_setup_teardown(what_is_no_token_is_refused, begin, close_clients),
        cmocka_unit_test_setup_teardown(a_reentered_hold_stays_as_it_is, begin, close_clients),
        cmocka_unit_test_setup_teardown(its_descriptor_is_closed, begin, close_clients),
        cmocka_unit_test_setup_teardown(bad_calls_are_refused, begin, close_clients),
        cmocka_unit_test_setup_teardown(a_request_to_give_up_waits_for_it, begin, close_clients),
        cmocka_unit_test_setup_teardown(the_server_is_examined, begin, close_clients),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
