/* SPDX-License-Identifier: MIT */
/* What an acquire may ask for, through the public API: options that make no sense are refused with
 * a text that names them and without a message, and the others mean what the header says. And who
 * is who: threads that re-enter, and threads that must not. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

static const char long_text[] = /* 300 bytes */
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "4567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
    "8901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
    "23456789012345678";

static void senseless_options_are_refused(void **state)
{
    (void)state;
    const struct {
        hf_acquire_options options;
        const char *part;
    } cases[] = {
        {{.renew_interval_ms = -1}, "renew_interval_ms"},
        {{.renew_interval_ms = 10000}, "renew_interval_ms"}, /* the whole lease */
        {{.renew_interval_ms = HF_MS_MAX + 1}, "renew_interval_ms"},
        {{.lease_ms = 2000, .renew_interval_ms = 3000}, "renew_interval_ms"},
        {{.renew_interval_ms = 1000, .no_renewal = true}, "no_renewal"},
        {{.renew_timeout_ms = -1}, "renew_timeout_ms"},
        {{.renew_timeout_ms = HF_MS_MAX + 1}, "renew_timeout_ms"},
        {{.max_hold_ms = -1}, "max_hold_ms"},
        {{.max_hold_ms = HF_MS_MAX + 1}, "max_hold_ms"},
        {{.warn_ms = -1}, "warn_ms"},
        {{.warn_ms = HF_MS_MAX + 1}, "warn_ms"},
        {{.owner = ""}, "owner"},
        {{.owner = long_text}, "owner"},
        {{.owner = "0123456789abcdef0123456789abcdef:1@host:2/3"}, "owner"}, /* as ours are */
        {{.owner = "hf:"}, "\"hf:\""},
        {{.owner = "hf:mine"}, "\"hf:\""},
        {{.label = long_text}, "label"},
        {{.label = "tab\t"}, "label"},
        {{.label = "\xc3\xa9t\xc3\xa9"}, "label"},
        {{.label = "\x7f"}, "label"},
        {{.lease_ms = HF_LEASE_MIN_MS - 1}, "lease_ms"},
        {{.lease_ms = 60001}, "lease_ms"},
        {{.wait_ms = -2}, "wait_ms"},
        {{.max_retries = -1}, "max_retries"},
    };
    hf_client *client = OPEN();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf_acquire_options options = cases[i].options;
        options.size = sizeof(options);
        fail_to_acquire(client, "x", &options, HF_EINVAL, cases[i].part);
    }
    hf_hold *hold = NULL;
    assert_int_equal(hf_acquire(NULL, "x", NULL, &hold, NULL), HF_EINVAL);
    assert_int_equal(hf_acquire(client, "x", NULL, NULL, NULL), HF_EINVAL);
    assert_int_equal(hf_acquire(client, NULL, NULL, &hold, NULL), HF_EINVAL);
    assert_int_equal(hf_acquire(client, "", NULL, &hold, NULL), HF_EINVAL);
    assert_int_equal(hf_acquire(client, "hf:x", NULL, &hold, NULL), HF_EINVAL);
    assert_int_equal(count_opens(), 0);
    assert_int_equal(hf_close(client), HF_OK);
}

static void senseless_client_options_are_refused(void **state)
{
    (void)state;
    static char long_prefix[HF_NAME_MAX + 1];
    memset(long_prefix, 'p', HF_NAME_MAX);
    const struct {
        hf_client_options options;
        const char *part;
    } cases[] = {
        {{.links = -1}, "links"},
        {{.links = HF_LINKS_MAX + 1}, "links"},
        {{.local_turns = -2}, "local_turns"},
        {{.local_turns = HF_LOCAL_TURNS_MAX + 1}, "local_turns"},
        {{.prefix = long_prefix}, "prefix"},
        {{.side_prefix = "shop{"}, "side_prefix"},
        {{.side_prefix = long_text}, "side_prefix"},
        {{.check_eviction = (hf_check)4}, "check_eviction"},
        {{.check_replica = (hf_check)-1}, "check_replica"},
        {{.check_version = (hf_check)99}, "check_version"},
        {{.check_persistence = (hf_check)4}, "check_persistence"},
        {{.check_clock = (hf_check)4}, "check_clock"},
        {{.max_lease_ms = HF_LEASE_MIN_MS - 1}, "max_lease_ms"},
        {{.max_lease_ms = HF_MS_MAX + 1}, "max_lease_ms"},
        {{.call_timeout_ms = -1}, "call_timeout_ms"},
        {{.reply_timeout_ms = HF_MS_MAX + 1}, "reply_timeout_ms"},
        {{.connect_timeout_ms = -5}, "connect_timeout_ms"},
        {{.drift_ms = 60000}, "drift_ms (60000)"}, /* the longest lease */
        {{.drift_ms = 59390}, "max_lease_ms (60000)"},
        {{.drift_ms = 400, .drift_ppm = 500000, .max_lease_ms = 800}, "drift_ppm (500000)"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf_client_options options = cases[i].options;
        hf_client *client = (hf_client *)&options;
        hf_error error;
        options.size = sizeof(options);
        expect_status(hf_open("redis://node", &options, &client, &error), HF_EINVAL, &error);
        assert_null(client);
        assert_non_null(strstr(error.text, cases[i].part));
        options.size = 0;
        assert_int_equal(hf_open("redis://node", &options, &client, NULL), HF_EINVAL);
    }
}

/* A program that was built with the header of 0.1 passes a shorter struct, and one that was built
 * with a later header a longer one, in which it may ask for nothing that we do not know. */
static void structs_of_other_versions_are_understood(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_acquire_options options = {.size = offsetof(hf_acquire_options, renew_interval_ms),
                                  .lease_ms = 5000,
                                  .renew_interval_ms = -1, /* not looked at */
                                  .owner = ""};
    hf_hold *hold = acquire(client, "x", &options);
    assert_in_range(hf_remaining_ms(hold), 1, 5000);
    release(&hold, HF_OK);
    struct {
        hf_acquire_options known;
        int64_t unknown;
    } later = {.known = {.size = sizeof(later)}};
    hold = acquire(client, "x", &later.known);
    release(&hold, HF_OK);
    later.unknown = 1;
    fail_to_acquire(client, "x", &later.known, HF_EINVAL, "");
    assert_int_equal(hf_close(client), HF_OK);
}

/* A lease of which the allowance for clocks leaves nothing could never be granted: the answer would
 * always come too late. */
static void a_lease_is_longer_than_what_clocks_take_off(void **state)
{
    (void)state;
    hf_client *client = OPEN(.drift_ms = 500);
    hf_hold *hold = NULL;
    hf_error error;
    fail_to_acquire(client, "x", HF_ACQUIRE(.lease_ms = 500), HF_EINVAL, "drift_ms (500)");
    fail_to_acquire(client, "x", HF_ACQUIRE(.lease_ms = 524), HF_EINVAL, "lease_ms (524)");
    assert_int_equal(count_opens(), 0);
    hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 30000));
    expect_status(hf_extend(hold, 400, &error), HF_EINVAL, &error);
    assert_non_null(strstr(error.text, "leave 0 ms of lease_ms (400)"));
    char token[HF_TOKEN_MAX];
    assert_int_equal(hf_detach(&hold, token, &error), HF_OK);
    expect_status(hf_attach(client, "x", token, HF_ACQUIRE(.lease_ms = 500), &hold, &error),
                  HF_EINVAL, &error);
    assert_non_null(strstr(error.text, "drift_ms (500)"));
    assert_int_equal(hf_attach(client, "x", token, NULL, &hold, &error), HF_OK);
    release(&hold, HF_OK);
    hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 526)); /* renewed in time all the same */
    assert_true(hf_is_valid(hold));
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void the_largest_options_are_taken(void **state)
{
    (void)state;
    hf_client *client = OPEN(.max_lease_ms = HF_MS_MAX);
    char owner[HF_OWNER_MAX + 1], label[HF_LABEL_MAX + 1];
    memcpy(owner, long_text, HF_OWNER_MAX);
    memcpy(label, long_text, HF_LABEL_MAX);
    owner[HF_OWNER_MAX] = label[HF_LABEL_MAX] = '\0';
    hf_hold *hold = acquire(client, "x",
                            HF_ACQUIRE(.lease_ms = HF_MS_MAX, .renew_interval_ms = HF_MS_MAX - 1,
                                       .renew_timeout_ms = HF_MS_MAX, .max_hold_ms = HF_MS_MAX,
                                       .warn_ms = HF_MS_MAX / 2, .owner = owner, .label = label));
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Who is who ---- */

static void a_thread_enters_again_without_a_message(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *first = acquire(client, "x", NULL);
    WIRES(mute = true); /* whoever asks the server now waits */
    hf_hold *second = acquire(client, "x", HF_ACQUIRE(.wait_ms = -1));
    hf_hold *third = acquire(client, "x", NULL);
    wires_unmute();
    assert_int_equal(count_acquires(), 1);
    assert_true(hf_fence(first) == hf_fence(second) && hf_fence(first) == hf_fence(third));
    release(&first, HF_OK);
    assert_int_equal(hf_release_nowait(&third), HF_OK);
    assert_true(wires_has_key("x"));
    assert_true(hf_is_valid(second));
    release(&second, HF_OK);
    assert_false(wires_has_key("x"));
    assert_int_equal(hf_close(client), HF_OK);
}

typedef struct visit {
    hf_client *client;
    hf_hold *hold;
    hf_status status;
} visit;

static void *try_it(void *arg)
{
    visit *v = arg;
    v->status = hf_acquire(v->client, "x", NULL, &v->hold, NULL);
    return NULL;
}

static void visit_in_a_thread(visit *v)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, try_it, v), 0);
    pthread_join(thread, NULL);
}

/* pthread_self() of a thread that has ended is given to the next one. */
static void a_thread_is_not_taken_for_one_that_has_ended(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    visit first = {.client = client}, next = {.client = client};
    visit_in_a_thread(&first);
    assert_int_equal(first.status, HF_OK);
    for (int i = 0; i < 10; i++) {
        visit_in_a_thread(&next);
        assert_int_equal(next.status, HF_EBUSY);
    }
    fail_to_acquire(client, "x", NULL, HF_EBUSY, "");
    release(&first.hold, HF_OK); /* by another thread than acquired it */
    assert_int_equal(hf_close(client), HF_OK);
}

static void clients_do_not_enter_each_others_locks(void **state)
{
    (void)state;
    hf_client *client = OPEN(), *other = OPEN();
    hf_hold *hold = acquire(client, "x", NULL);
    fail_to_acquire(other, "x", NULL, HF_EBUSY, "");
    fail_to_acquire(client, "x", HF_ACQUIRE(.no_reentry = true), HF_EBUSY, "");
    release(&hold, HF_OK);
    hold = acquire(client, "x", HF_ACQUIRE(.no_reentry = true));
    fail_to_acquire(client, "x", NULL, HF_EBUSY, "");
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

static void handles_outlive_the_client(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *handles[4];
    for (int i = 0; i < 4; i++)
        handles[i] = acquire(client, "x", NULL);
    release(&handles[0], HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    assert_false(wires_has_key("x"));
    assert_int_equal(hf_hold_state(handles[2]), HF_LOST);
    release(&handles[2], HF_ECLOSED);
    assert_int_equal(hf_release_nowait(&handles[1]), HF_ECLOSED);
    release(&handles[3], HF_ECLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEING(senseless_options_are_refused),
        SEEING(senseless_client_options_are_refused),
        SEEING(structs_of_other_versions_are_understood),
        SEEING(a_lease_is_longer_than_what_clocks_take_off),
        SEEING(the_largest_options_are_taken),
        BOTH(a_thread_enters_again_without_a_message),
        SEEING(a_thread_is_not_taken_for_one_that_has_ended),
        SEEING(clients_do_not_enter_each_others_locks),
        SEEING(handles_outlive_the_client),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
