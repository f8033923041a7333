/* SPDX-License-Identifier: MIT */
/* Goal: a client belongs to the process that opened it. A child can neither use nor harm it.
 *
 * Here the parent has a client open, and a hold, when it forks; that is the point. The child tries
 * everything, reports it in one line of text and exits, and the parent then finds its lock as it
 * left it. The hard case is a fork while a thread of the parent is inside the library, perhaps with
 * a mutex locked that nobody in the child will ever unlock.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static hf_client *client;
static hf_hold *hold;
static hf_hold *second;
static hf_error error;
static struct attempt waiter;
static char value[256];
static int descriptors_before;

/* raw() keeps its connection, so it is made before anything is counted. */
static int begin(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    descriptors_before = open_descriptors();
    open_client(&client);
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 30000), &hold, &error));
    EXPECT(HF_OK, hf_acquire(client, "second", HF_ACQUIRE(.lease_ms = 30000), &second, &error));
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    return 0;
}

/* The parent's holds are what they were, and still the parent's to use. */
static void expect_untouched(void)
{
    assert_string_equal(raw(server, "GET lock"), value);
    assert_string_equal(raw(server, "EXISTS second"), "1");
    assert_true(hf_is_valid(hold));
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&second, &error));
    assert_string_equal(raw(server, "EXISTS lock second"), "0");
}

/* The calls that look at locks, or act on those of others. */
static bool see_nothing(void *arg, const hf_inspection *inspection)
{
    (void)arg;
    return inspection != NULL;
}

static void look_at_everything(int line, void *arg)
{
    hf_inspection inspection;
    hf_stats stats;
    (void)arg;
    hf_status inspected = hf_inspect(client, "lock", 0, &inspection, NULL);
    hf_status listed = hf_list(client, NULL, see_nothing, NULL, NULL);
    hf_status revoked = hf_revoke(client, "lock", 0, "please", NULL);
    hf_status broken = hf_break(client, "lock", 0, NULL, NULL);
    hf_status counted = hf_stats_read(client, &stats);
    line_say(line, "%s %s %s %s %s", hf_status_name(inspected), hf_status_name(listed),
             hf_status_name(revoked), hf_status_name(broken), hf_status_name(counted));
}

static void run_child(process_body *body, const char *report)
{
    struct process *child = process_start(body, NULL);
    EXPECT_HEARD(child, report);
    assert_true(process_finish(child, 5000));
}

/* ---- Children -------------------------------------------------------------------------------- */

static void use_everything(int line, void *arg)
{
    hf_hold *fresh = hold;
    hf_error why;
    (void)arg;
    hf_status acquired = hf_acquire(client, "third", NULL, &fresh, &why);
    bool said = why.status == acquired && why.text[0] != '\0' && fresh == NULL;
    hf_status extended = hf_extend(hold, 0, NULL);
    bool valid = hf_is_valid(hold) || hf_hold_state(hold) != HF_LOST || hf_descriptor(hold) != -1;
    int remaining = (int)hf_remaining_ms(hold);
    hf_status released = hf_release(&hold, NULL);
    hf_status let_go = hf_release_nowait(&second);
    line_say(line, "%s %s %s %s valid %d, remaining %d, said %d, cleared %d",
             hf_status_name(acquired), hf_status_name(extended), hf_status_name(released),
             hf_status_name(let_go), valid, remaining, said, hold == NULL && second == NULL);
}

/* The child has one descriptor of its own: its line. */
static void close_with_live_holds(int line, void *arg)
{
    (void)arg;
    (void)hf_close(client);
    line_say(line, "%d descriptors too many", open_descriptors() - descriptors_before - 1);
}

static void close_then_release(int line, void *arg)
{
    (void)arg;
    (void)hf_close(client);
    hf_status released = hf_release(&hold, NULL);
    hf_status let_go = hf_release_nowait(&second);
    line_say(line, "%d %d", released == HF_EFORKED || released == HF_ECLOSED,
             let_go == HF_EFORKED || let_go == HF_ECLOSED);
}

static void release_then_close(int line, void *arg)
{
    (void)arg;
    hf_status released = hf_release(&hold, NULL);
    (void)hf_close(client);
    hf_status let_go = hf_release_nowait(&second);
    line_say(line, "%d %d", released == HF_EFORKED, let_go == HF_EFORKED || let_go == HF_ECLOSED);
}

static void open_an_own_client(int line, void *arg)
{
    hf_client *own;
    hf_hold *other;
    (void)arg;
    hf_status opened = hf_open(server->url, NULL, &own, NULL);
    hf_status refused = hf_acquire(own, "lock", NULL, &other, NULL);
    hf_status acquired = hf_acquire(own, "third", NULL, &other, NULL);
    hf_status released = hf_release(&other, NULL);
    hf_status closed = hf_close(own);
    line_say(line, "%s %s %s %s %s", hf_status_name(opened), hf_status_name(refused),
             hf_status_name(acquired), hf_status_name(released), hf_status_name(closed));
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void every_call_in_a_child_is_refused(void **state)
{
    (void)state;
    run_child(use_everything, "HF_EFORKED HF_EFORKED HF_EFORKED HF_EFORKED "
                              "valid 0, remaining 0, said 1, cleared 1");
    run_child(look_at_everything, "HF_EFORKED HF_EFORKED HF_EFORKED HF_EFORKED HF_EFORKED");
    assert_string_equal(raw(server, "EXISTS third"), "0");
    expect_untouched();
}

static void closing_in_a_child_frees_its_side_only(void **state)
{
    (void)state;
    run_child(close_with_live_holds, "0 descriptors too many");
    expect_untouched();
}

static void any_order_of_ending_in_a_child(void **state)
{
    (void)state;
    run_child(close_then_release, "1 1");
    run_child(release_then_close, "1 1");
    expect_untouched();
}

/* The holder's wait goes on in the parent's other thread while children come and go. */
static void a_fork_in_the_middle_of_a_call(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    assert_non_null(cancel);
    attempt_begin(&waiter, client, "lock",
                  HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 10, .cancel = cancel));
    for (int i = 0; i < 10; i++) {
        run_child(use_everything, "HF_EFORKED HF_EFORKED HF_EFORKED HF_EFORKED "
                                  "valid 0, remaining 0, said 1, cleared 1");
        run_child(close_then_release, "1 1");
    }
    assert_false(attempt_is_over(&waiter));
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    hf_cancel_free(cancel);
    expect_untouched();
}

static void a_child_may_open_its_own(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("ThreadSanitizer allows no threads in a child of a threaded process\n");
    skip();
#endif
    run_child(open_an_own_client, "HF_OK HF_EBUSY HF_OK HF_OK HF_OK");
    expect_untouched();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_call_in_a_child_is_refused), TEST(closing_in_a_child_frees_its_side_only),
        TEST(any_order_of_ending_in_a_child),   TEST(a_fork_in_the_middle_of_a_call),
        TEST(a_child_may_open_its_own),
    };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
