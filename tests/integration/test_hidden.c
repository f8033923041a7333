/* SPDX-License-Identifier: MIT */
/* Goal: a server that does not tell its run_id in INFO, as behind a proxy that hides it, serves
 * plain locks. It serves no ids, since nobody could tell when they might come a second time, and it
 * has no vote in a quorum. When it tells again, all is as before.
 */
#include <stdio.h>
#include <string.h>

#include <holdfast_ids.h>

#include "quorum.h"
#include "relay.h"

static hf_error error;

static hf_status take_an_id(hf_client *client)
{
    hf_ids *ids;
    int64_t id;
    EXPECT(HF_OK, hf_ids_open(client, "order", NULL, &ids, &error));
    hf_status status = hf_ids_next(ids, &id, &error);
    hf_ids_close(ids);
    return status;
}

static struct relay begin_hidden(void)
{
    server = redis_server_start(NULL);
    struct relay relay = relay_start(server);
    relay_hide_run_id(&relay, true);
    open_client_at(relay.url, &alice, NULL);
    open_client_at(relay.url, &bob, NULL);
    return relay;
}

/* ---- One server ------------------------------------------------------------------------------ */

static void locks_go_on_and_ids_do_not(void **state)
{
    (void)state;
    hf_hold *hold, *second;
    (void)begin_hidden();
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.lease_ms = 1000), &hold, &error));
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", NULL, &second, &error));
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 1500), &second, &error));
    assert_true(hf_is_valid(hold)); /* it was renewed */
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 5000), &second, &error));
    EXPECT(HF_OK, hf_release(&second, &error));
    assert_int_equal(take_an_id(alice), HF_EUNSAFE);
    expect_says(error.text, "does not tell its run_id");
    assert_int_equal(keys_like("hf:n:*"), 0); /* nothing was written */
}

static void ids_come_when_it_tells(void **state)
{
    (void)state;
    struct relay relay = begin_hidden();
    assert_int_equal(take_an_id(alice), HF_EUNSAFE);
    relay_hide_run_id(&relay, false);
    assert_int_equal(take_an_id(bob), HF_OK); /* connects now */
}

/* ---- A quorum -------------------------------------------------------------------------------- */

static struct relay relays[3];

static void begin_quorum(int hidden)
{
    char urls[256] = "";
    quorum_start(3);
    for (int i = 0; i < 3; i++) {
        relays[i] = relay_start(quorum.servers[i]);
        relay_hide_run_id(&relays[i], i < hidden);
        (void)snprintf(urls + strlen(urls), sizeof(urls) - strlen(urls), "%s%s", i > 0 ? " " : "",
                       relays[i].url);
    }
    open_client_at(urls, &alice, HF_CLIENT(PATIENT));
}

static void one_of_three_that_hides_it_has_no_vote(void **state)
{
    (void)state;
    hf_hold *hold;
    begin_quorum(1);
    EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &hold, &error));
    assert_string_equal(raw(quorum.servers[0], "EXISTS lock"), "0");
    assert_int_equal(quorum_held(), 2);
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_int_equal(take_an_id(alice), HF_OK);
}

static void two_of_three_are_no_quorum(void **state)
{
    (void)state;
    hf_hold *hold;
    begin_quorum(2);
    EXPECT(HF_EUNSAFE, hf_acquire(alice, "lock", NULL, &hold, &error));
    expect_says(error.text, "does not tell its run_id");
    assert_int_equal(quorum_held(), 0);
    assert_int_equal(take_an_id(alice), HF_EUNSAFE);
    relay_hide_run_id(&relays[1], false);
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.wait_ms = 5000), &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_teardown(function, quorum_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(locks_go_on_and_ids_do_not),
        TEST(ids_come_when_it_tells),
        TEST(one_of_three_that_hides_it_has_no_vote),
        TEST(two_of_three_are_no_quorum),
    };
    return cmocka_run_group_tests_name("hidden", tests, NULL, NULL);
}
