/* SPDX-License-Identifier: MIT */
/* Goal: a write whose answer is lost counts once, and what is said of it is true; and a copy of it
 * that comes late does no harm. A relay between the client and the server loses the answer, or
 * keeps the message back until the library has sent another one.
 *
 * Every script is used once before, so that what gets lost is the answer to a write. */
#include <stdio.h>
#include <string.h>

#include <holdfast_store.h>

#include "fixture.h"
#include "relay.h"

#define ONE(name, text)        &(hf_write){.key = (name), .value = (text), .value_length = strlen(text)}, 1
#define EXPECT_KEY(name, text) assert_string_equal(raw(server, "GET %s", name), text)

static struct relay relay;
static hf_client *client;
static hf_hold *hold;
static uint64_t version;
static hf_error error;

static void warm_up(void)
{
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 9000));
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "0"), &error));
    EXPECT(HF_OK, hf_write_fenced(client, "g", 0, 5, ONE("b", "0"), NULL, &error));
    EXPECT(HF_OK, hf_value_write(client, "v", 0, "0", 1, 0, &version, &error));
}

static int begin(void **state)
{
    (void)state;
    empty_server();
    relay = relay_start(server);
    open_client_at(relay.url, &client, HF_CLIENT(.reply_timeout_ms = 300, .links = 1));
    warm_up();
    return 0;
}

static int end(void **state)
{
    int result = close_clients(state);
    process_end_all();
    return result;
}

/* ---- The answer is lost ---------------------------------------------------------------------- */

static void a_write_with_a_hold_counts_once(void **state)
{
    (void)state;
    relay_cut_answers(&relay, 1);
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "1"), &error));
    EXPECT_KEY("a", "1");
    /* The call is marked, and beside it is written how far marks were looked through. */
    assert_int_equal(raw_number(server, "HLEN %s", side_key('l')), 2);
    release(&hold);
}

static void a_write_with_a_fence_counts_once(void **state)
{
    (void)state;
    relay_cut_answers(&relay, 1);
    EXPECT(HF_OK, hf_write_fenced(client, "g", 0, 6, ONE("b", "1"), NULL, &error));
    EXPECT_KEY("b", "1");
    release(&hold);
}

static void a_value_is_written_once(void **state)
{
    (void)state;
    uint64_t before = version, seen;
    size_t length;
    relay_cut_answers(&relay, 1);
    EXPECT(HF_OK, hf_value_write(client, "v", 0, "1", 1, before, &version, &error));
    assert_true(version > before);
    EXPECT(HF_OK, hf_value_read(client, "v", 0, NULL, 0, &length, &seen, &error));
    assert_true(seen == version); /* not twice */
    relay_cut_answers(&relay, 1);
    EXPECT(HF_OK, hf_value_write(client, "v", 0, NULL, 0, version, &seen, &error));
    EXPECT(HF_EMISSING, hf_value_read(client, "v", 0, NULL, 0, &length, &version, &error));
    release(&hold);
}

static void a_refused_value_is_unknown_if_the_first_answer_was_lost(void **state)
{
    (void)state;
    relay_cut_answers(&relay, 1);
    EXPECT(HF_EUNKNOWN, hf_value_write(client, "v", 0, "1", 1, 1, NULL, &error));
    expect_says(error.text, "another version");
    EXPECT(HF_ESTALE, hf_value_write(client, "v", 0, "1", 1, 1, NULL, &error));
    relay_cut_answers(&relay, 1);
    EXPECT(HF_EUNKNOWN, hf_write_fenced(client, "g", 0, 4, ONE("b", "1"), NULL, &error));
    EXPECT_KEY("b", "0");
    release(&hold);
}

/* The first copy has written and released; the second finds the lock gone. */
static void a_write_that_releases_may_be_unknown(void **state)
{
    (void)state;
    relay_cut_answers(&relay, 1);
    EXPECT(HF_EUNKNOWN, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
    expect_says(error.text, "may have been written");
    assert_null(hold);
    EXPECT_KEY("a", "1");
    expect_free(client);
}

/* ---- The message comes late ------------------------------------------------------------------ */

/* The library gives up its connection, and says it again over another one. What it said first is
 * still in the relay. */
static void write_with_a_late_copy(void)
{
    relay_stall_one(&relay);
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "1"), &error));
}

static void let_it_arrive(void)
{
    long long before = scripts_run(server);
    relay_heal(&relay);
    WAIT_UNTIL(scripts_run(server) > before, 10000);
}

static void a_late_copy_does_not_undo_what_came_since(void **state)
{
    (void)state;
    write_with_a_late_copy();
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "2"), &error));
    let_it_arrive();
    EXPECT_KEY("a", "2");
    assert_true(raw_number(server, "PTTL %s", side_key('l')) > 0);
    release(&hold);
}

static void a_late_copy_with_a_fence_does_not_either(void **state)
{
    (void)state;
    relay_stall_one(&relay);
    EXPECT(HF_OK, hf_write_fenced(client, "g", 0, 6, ONE("b", "1"), NULL, &error));
    EXPECT(HF_OK, hf_write_fenced(client, "g", 0, 6, ONE("b", "2"), NULL, &error));
    let_it_arrive();
    EXPECT_KEY("b", "2");
    release(&hold);
}

static void a_late_copy_does_not_write_after_the_release(void **state)
{
    (void)state;
    relay_stall_one(&relay);
    EXPECT(HF_OK, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
    (void)raw(server, "SET a 2"); /* the next holder's */
    let_it_arrive();
    EXPECT_KEY("a", "2");
    expect_free(client);
}

static void a_late_copy_does_not_bring_back_a_deleted_value(void **state)
{
    (void)state;
    uint64_t made;
    size_t length;
    relay_stall_one(&relay);
    EXPECT(HF_OK, hf_value_write(client, "fresh", 0, "1", 1, 0, &made, &error));
    EXPECT(HF_OK, hf_value_write(client, "fresh", 0, "2", 1, made, &made, &error));
    EXPECT(HF_OK, hf_value_write(client, "fresh", 0, NULL, 0, made, NULL, &error));
    let_it_arrive();
    EXPECT(HF_EMISSING, hf_value_read(client, "fresh", 0, NULL, 0, &length, &made, &error));
    release(&hold);
}

/* Whoever uses a value as a flag makes and deletes it all day long. */
static void a_late_copy_does_not_make_it_when_others_have_made_and_deleted_it(void **state)
{
    (void)state;
    uint64_t made;
    size_t length;
    relay_stall_one(&relay);
    EXPECT(HF_OK, hf_value_write(client, "flag", 0, "1", 1, 0, &made, &error));
    EXPECT(HF_OK, hf_value_write(client, "flag", 0, NULL, 0, made, NULL, &error));
    EXPECT(HF_OK, hf_value_write(client, "flag", 0, "2", 1, 0, &made, &error));
    EXPECT(HF_OK, hf_value_write(client, "flag", 0, NULL, 0, made, NULL, &error));
    let_it_arrive();
    EXPECT(HF_EMISSING, hf_value_read(client, "flag", 0, NULL, 0, &length, &made, &error));
    release(&hold);
}

/* ---- Marks end ------------------------------------------------------------------------------- */

enum { OLD_MARKS = 3000, NEW_MARKS = 1000 };

/* What the library sends for a copy that is not the first. */
static void write_again(const char *word)
{
    static char script[8192];
    FILE *file = fopen(HF_SCRIPTS "write_fenced.lua", "r");
    assert_non_null(file);
    size_t length = fread(script, 1, sizeof(script) - 1, file);
    (void)fclose(file);
    script[length] = '\0';
    assert_string_equal(
        raw(server, "EVAL %s 3 guard marks b run 1 %s 6 s %s 0", script, word, word),
        "(array of 2)");
}

static void write_again_often(void)
{
    char word[32];
    for (int i = 0; i < NEW_MARKS; i++) {
        (void)snprintf(word, sizeof(word), "new%d", i);
        write_again(word);
    }
}

static long long marks_like(const char *pattern)
{
    static const char script[] =
        "local n, at = 0, '0' repeat local page = redis.call('HSCAN', KEYS[1], at, 'MATCH', "
        "ARGV[1]) at, n = page[1], n + #page[2] / 2 until at == '0' return n";
    return raw_number(server, "EVAL %s 1 marks %s", script, pattern);
}

/* Though calls go on to be marked; and each lasts for a day. Those of 0.7 do not say when they were
 * made. */
static void marks_end_one_by_one(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "EVAL %s 1 marks %d",
                            "local now = redis.call('TIME')[1] for i = 1, ARGV[1] do "
                            "redis.call('HSET', KEYS[1], 'old' .. i, now - 90000, 'young' .. i, "
                            "now - 80000, 'older' .. i, 1) end return 'done'",
                            OLD_MARKS),
                        "done");
    write_again_often();
    assert_int_equal(marks_like("new*"), NEW_MARKS);
    assert_int_equal(marks_like("young*"), OLD_MARKS);
    assert_int_equal(marks_like("older*"), OLD_MARKS);
    assert_int_equal(marks_like("old[0-9]*"), 0);
    assert_true(raw_number(server, "HGET marks older7") > 1000000);
    assert_true(raw_number(server, "PTTL marks") > 0);
    write_again("older9"); /* which was written, and must not be again */
    EXPECT_KEY("b", "new999");
    release(&hold);
}

/* One who may not look through them writes and is marked all the same. */
static void marks_need_no_new_permission(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "ACL SETUSER default -hscan"), "OK");
    write_again("one");
    write_again("two");
    assert_string_equal(raw(server, "ACL SETUSER default +@all"), "OK");
    EXPECT_KEY("b", "two");
    assert_int_equal(raw_number(server, "HLEN marks"), 3);
    release(&hold);
}

/* ---- Nobody answers -------------------------------------------------------------------------- */

static void without_an_answer_it_is_unknown(void **state)
{
    (void)state;
    hf_client *brief = NULL;
    EXPECT(HF_OK, hf_open(relay.url, HF_CLIENT(.reply_timeout_ms = 200, .call_timeout_ms = 500),
                          &brief, &error));
    EXPECT(HF_OK, hf_write_fenced(brief, "g", 0, 6, ONE("b", "1"), NULL, &error));
    relay_cut(&relay);
    EXPECT(HF_EUNKNOWN, hf_write_fenced(brief, "g", 0, 6, ONE("b", "2"), NULL, &error));
    EXPECT_KEY("b", "1");
    relay_heal(&relay);
    (void)hf_close(brief);
    release(&hold);
}

static void without_a_connection_nothing_is_written(void **state)
{
    (void)state;
    hf_client *late = NULL;
    redis_server_kill(server);
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.call_timeout_ms = 500), &late, &error));
    EXPECT(HF_EUNAVAILABLE, hf_write_fenced(late, "g", 0, 6, ONE("b", "2"), NULL, &error));
    (void)hf_close(late);
    redis_server_restart(server);
    /* It has forgotten the lock; whether a first message was lost is a matter of luck. */
    hf_status status = hf_write_held(hold, ONE("a", "1"), &error);
    assert_true(status == HF_ELOST || status == HF_EUNKNOWN);
    assert_int_equal(raw_number(server, "EXISTS a"), 0);
    (void)hf_release(&hold, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_write_with_a_hold_counts_once),
        TEST(a_write_with_a_fence_counts_once),
        TEST(a_value_is_written_once),
        TEST(a_refused_value_is_unknown_if_the_first_answer_was_lost),
        TEST(a_write_that_releases_may_be_unknown),
        TEST(a_late_copy_does_not_undo_what_came_since),
        TEST(a_late_copy_with_a_fence_does_not_either),
        TEST(a_late_copy_does_not_write_after_the_release),
        TEST(a_late_copy_does_not_bring_back_a_deleted_value),
        TEST(a_late_copy_does_not_make_it_when_others_have_made_and_deleted_it),
        TEST(marks_end_one_by_one),
        TEST(marks_need_no_new_permission),
        TEST(without_an_answer_it_is_unknown),
        TEST(without_a_connection_nothing_is_written),
    };
    return cmocka_run_group_tests_name("store_loss", tests, start_server, end_server);
}
