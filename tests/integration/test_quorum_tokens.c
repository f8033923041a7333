/* SPDX-License-Identifier: MIT */
/* Goal: a hold on several servers goes from one process to another by its token, and is on a
 * majority of them before, meanwhile and afterwards.
 */
#include "quorum.h"

enum { SERVERS = 3, LEASE_MS = 30000 };

static hf_error error;
static hf_hold *hold;
static char token[HF_TOKEN_MAX];

static int begin(void **state)
{
    (void)state;
    quorum_start(SERVERS);
    open_client_at(quorum_urls(SERVERS), &alice, HF_CLIENT(PATIENT));
    open_client_at(quorum_urls(SERVERS), &bob, HF_CLIENT(PATIENT));
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LEASE_MS, .renew_interval_ms = 50));
    WAIT_UNTIL(quorum_held() == SERVERS, QUORUM_PATIENCE_MS);
    return 0;
}

static void a_hold_goes_to_another_client(void **state)
{
    (void)state;
    uint64_t fence = hf_fence(hold);
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    assert_null(hold);
    assert_int_equal(quorum_held(), SERVERS);
    expect_refused(bob);
    EXPECT(HF_OK, hf_attach(bob, "lock", token, NULL, &hold, &error));
    assert_int_equal(hf_fence(hold), fence);
    assert_true(hf_is_valid(hold));
    expect_refused(alice);
    release(&hold);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
    expect_free(alice);
}

static void nobody_renews_it_meanwhile(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    long long before = quorum_scripts();
    EXPECT_STATUS(HF_OK, hf_close(alice));
    alice = NULL;
    assert_int_equal(quorum_scripts(), before);
    assert_int_equal(quorum_held(), SERVERS);
    EXPECT(HF_OK, hf_attach(bob, "lock", token, NULL, &hold, &error));
    release(&hold);
}

/* A hold is one on a majority, also if it comes from a token. */
static void what_only_one_server_has_is_lost(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    for (int i = 1; i < SERVERS; i++)
        raw(quorum.servers[i], "DEL lock");
    EXPECT(HF_ELOST, hf_attach(bob, "lock", token, NULL, &hold, &error));
    assert_null(hold);
}

static void one_server_may_be_missing(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    quorum_kill(0);
    EXPECT(HF_OK, hf_attach(bob, "lock", token, NULL, &hold, &error));
    expect_refused(alice);
    release(&hold);
    expect_free(alice);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, quorum_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hold_goes_to_another_client),
        TEST(nobody_renews_it_meanwhile),
        TEST(what_only_one_server_has_is_lost),
        TEST(one_server_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
