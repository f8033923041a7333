/* SPDX-License-Identifier: MIT */
/* Goal: ids of one server, as holdfast_ids.h promises them: unique and growing whatever the server
 * goes through, and a clear word when there are none.
 *
 * The name is "lock" where a test looks at its key, because that is the name the fixture knows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <holdfast_ids.h>

#include "fixture.h"

enum { SOME = 2000, JUMP_S = 5, SKEW_S = 2 };

static hf_error error;
static hf_ids *ids;
static hf_ids *others;

static int begin(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    open_both();
    return 0;
}

static int finish(void **state)
{
    hf_ids_close(ids);
    hf_ids_close(others);
    ids = others = NULL;
    return end_everything(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static hf_ids *open_ids(hf_client *client, const hf_ids_options *options)
{
    hf_ids *fresh = NULL;
    EXPECT(HF_OK, hf_ids_open(client, "lock", options, &fresh, &error));
    assert_non_null(fresh);
    return fresh;
}

static int64_t next(hf_ids *of)
{
    int64_t id = 0;
    EXPECT(HF_OK, hf_ids_next(of, &id, &error));
    assert_true(id > 0);
    return id;
}

static hf_id_parts parts_of(int64_t id)
{
    hf_id_parts parts;
    EXPECT(HF_OK, hf_ids_parse(ids, id, &parts, &error));
    return parts;
}

/* Until the server's death is felt: what was fetched ahead is handed out first. Returns the last
 * id. */
static int64_t drain(hf_ids *of, hf_status *status)
{
    int64_t id = 0, last = 0;
    for (int i = 0; (*status = hf_ids_next(of, &id, &error)) == HF_OK; i++) {
        assert_true(i < 10000000);
        assert_true(id > last);
        last = id;
    }
    assert_true(error.text[0] != '\0');
    return last;
}

/* ---- What they are --------------------------------------------------------------------------- */

static void an_id_says_when_it_was_reserved(void **state)
{
    (void)state;
    ids = open_ids(alice, NULL);
    int64_t before = time(NULL);
    hf_id_parts first = parts_of(next(ids)), second = parts_of(next(ids));
    assert_in_range(first.unix_s, before + JUMP_S, time(NULL) + JUMP_S);
    assert_int_equal(second.sequence, first.sequence + 1);
    assert_int_equal(second.plain, first.plain + 1);
    int64_t life = HF_IDS_EPOCH + (INT64_C(1) << 31) - first.unix_s;
    assert_int_equal(hf_ids_life_s(ids), life);
    assert_true(life > INT64_C(60) * 365 * 86400);
}

static void leased_ones_are_unique_and_grow_for_each(void **state)
{
    (void)state;
    ids = open_ids(alice, NULL);
    others = open_ids(bob, HF_IDS(.by_thread = true));
    static int64_t all[2 * SOME];
    for (int i = 0; i < SOME; i++) {
        all[i] = next(ids);
        all[SOME + i] = next(others);
        assert_true(i == 0 || (all[i] > all[i - 1] && all[SOME + i] > all[SOME + i - 1]));
    }
    for (int i = 0, j = SOME; i < SOME; i++) {
        while (j < 2 * SOME && all[j] < all[i])
            j++;
        assert_true(j == 2 * SOME || all[j] != all[i]);
    }
}

/* A thread keeps what it has taken for itself of a few of them only. */
static void many_generators_by_thread(void **state)
{
    (void)state;
    enum { MANY = 6, EACH = 40 };
    hf_ids *many[MANY];
    int64_t all[MANY * EACH];
    for (int i = 0; i < MANY; i++)
        many[i] = open_ids(alice, HF_IDS(.by_thread = true));
    for (int i = 0; i < MANY * EACH; i++) {
        all[i] = next(many[i % MANY]);
        assert_true(i < MANY || all[i] > all[i - MANY]);
        for (int j = 0; j < i; j++)
            assert_true(all[j] != all[i]);
    }
    for (int i = 0; i < MANY; i++)
        hf_ids_close(many[i]);
}

static void ordered_ones_grow_over_all(void **state)
{
    (void)state;
    int64_t last = 0, batch[3];
    ids = open_ids(alice, HF_IDS(.ordered = true));
    others = open_ids(bob, HF_IDS(.ordered = true));
    hf_ids *leased = open_ids(bob, NULL);
    for (int i = 0; i < 200; i++) {
        int64_t mine = next(ids);
        int64_t theirs = next(others);
        assert_true(mine > last && theirs > mine);
        int64_t ahead = next(leased);
        EXPECT(HF_OK, hf_ids_next_batch(ids, batch, 3, &error));
        assert_true(batch[0] > theirs && batch[0] > ahead);
        assert_true(batch[1] > batch[0] && batch[2] > batch[1]);
        last = batch[2];
    }
    hf_ids_close(leased);
}

static void batches_of_any_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 63, 64, 65, 1000, HF_IDS_BATCH_MAX, 3};
    static int64_t place[HF_IDS_BATCH_MAX];
    const hf_ids_options *kinds[] = {NULL, HF_IDS(.by_thread = true), HF_IDS(.ordered = true)};
    int64_t last = 0;
    for (size_t kind = 0; kind < 3; kind++) {
        hf_ids *of = open_ids(alice, kinds[kind]);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            EXPECT(HF_OK, hf_ids_next_batch(of, place, sizes[i], &error));
            for (size_t j = 0; j < sizes[i]; j++) {
                assert_true(place[j] > last);
                last = place[j];
            }
            int64_t single = next(of);
            assert_true(single > last);
            last = single;
        }
        hf_ids_close(of);
    }
}

static void a_key_hides_what_an_id_says(void **state)
{
    (void)state;
    static const char key[] = "0123456789abcdef";
    hf_id_parts parts, without_key;
    int growing = 0;
    int64_t before_plain = 0, before = 0;
    ids = open_ids(alice, HF_IDS(.key = key, .key_length = 16));
    others = open_ids(bob, NULL);
    for (int i = 0; i < 64; i++) {
        int64_t id = next(ids);
        EXPECT(HF_OK, hf_ids_parse(ids, id, &parts, &error));
        EXPECT(HF_OK, hf_ids_parse(others, id, &without_key, &error));
        assert_in_range(parts.unix_s, time(NULL) - SKEW_S, time(NULL) + 2 * JUMP_S);
        assert_true(parts.plain > before_plain && without_key.plain == id);
        growing += id > before;
        before_plain = parts.plain;
        before = id;
    }
    assert_in_range(growing, 8, 56); /* about half of them by chance */
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuses(const hf_ids_options *options, const char *word)
{
    hf_ids *none = (hf_ids *)&error;
    EXPECT(HF_EINVAL, hf_ids_open(alice, "lock", options, &none, &error));
    assert_null(none);
    expect_says(error.text, word);
}

static void options_out_of_bounds(void **state)
{
    (void)state;
    static const char key[HF_IDS_KEY_MAX + 1] = "secret";
    refuses(&(hf_ids_options){.ordered = true}, "size");
    refuses(HF_IDS(.epoch_s = -1), "epoch_s");
    refuses(HF_IDS(.epoch_s = INT64_MAX), "epoch_s");
    refuses(HF_IDS(.max_skew_s = -1), "max_skew_s");
    refuses(HF_IDS(.max_skew_s = HF_IDS_SKEW_MAX + 1), "max_skew_s");
    refuses(HF_IDS(.key_length = 16), "key");
    refuses(HF_IDS(.key = key, .key_length = HF_IDS_KEY_MIN - 1), "key_length");
    refuses(HF_IDS(.key = key, .key_length = HF_IDS_KEY_MAX + 1), "key_length");
    refuses(HF_IDS(.key = key), "key_length");
    refuses(HF_IDS(.ordered = true, .by_thread = true), "exclude");
    refuses(HF_IDS(.name_length = HF_IDS_NAME_MAX + 1), "512");
}

static void names_that_are_none(void **state)
{
    (void)state;
    static char longest[HF_IDS_NAME_MAX + 2];
    memset(longest, 'x', sizeof(longest) - 1);
    EXPECT(HF_EINVAL, hf_ids_open(alice, NULL, NULL, &ids, &error));
    EXPECT(HF_EINVAL, hf_ids_open(alice, "", NULL, &ids, &error));
    EXPECT(HF_EINVAL, hf_ids_open(alice, "hf:ids:lock", NULL, &ids, &error));
    EXPECT(HF_EINVAL, hf_ids_open(alice, longest, NULL, &ids, &error));
    assert_null(ids);
    longest[HF_IDS_NAME_MAX] = '\0';
    EXPECT(HF_OK, hf_ids_open(alice, longest, NULL, &ids, &error));
    (void)next(ids);
    EXPECT(HF_OK, hf_ids_open(alice, "a\n\0b", HF_IDS(.name_length = 4), &others, &error));
    (void)next(others);
    assert_int_equal(keys_like("*"), 2);
}

static void arguments_that_are_missing(void **state)
{
    (void)state;
    int64_t id, *none = NULL;
    hf_id_parts parts;
    ids = open_ids(alice, NULL);
    EXPECT(HF_EINVAL, hf_ids_open(NULL, "lock", NULL, &others, &error));
    EXPECT(HF_EINVAL, hf_ids_open(alice, "lock", NULL, NULL, &error));
    EXPECT(HF_EINVAL, hf_ids_next(NULL, &id, &error));
    EXPECT(HF_EINVAL, hf_ids_next(ids, none, &error));
    EXPECT(HF_EINVAL, hf_ids_next_batch(NULL, &id, 1, &error));
    EXPECT(HF_EINVAL, hf_ids_next_batch(ids, none, 1, &error));
    EXPECT(HF_EINVAL, hf_ids_next_batch(ids, &id, 0, &error));
    EXPECT(HF_EINVAL, hf_ids_next_batch(ids, &id, HF_IDS_BATCH_MAX + 1, &error));
    EXPECT(HF_EINVAL, hf_ids_parse(NULL, 1, &parts, &error));
    EXPECT(HF_EINVAL, hf_ids_parse(ids, 1, NULL, &error));
    EXPECT(HF_EINVAL, hf_ids_parse(ids, 0, &parts, &error));
    EXPECT(HF_EINVAL, hf_ids_parse(ids, INT64_MIN, &parts, &error));
    assert_int_equal(hf_ids_life_s(NULL), 0);
    hf_ids_close(NULL);
    assert_int_equal(scripts_run(server), 0);
    EXPECT_STATUS(HF_OK, hf_ids_next(ids, &id, NULL));
    EXPECT_STATUS(HF_EINVAL, hf_ids_next(NULL, NULL, NULL));
}

static void others_with_another_epoch(void **state)
{
    (void)state;
    int64_t id;
    ids = open_ids(alice, NULL);
    (void)next(ids);
    others = open_ids(bob, HF_IDS(.ordered = true, .epoch_s = HF_IDS_EPOCH - 1));
    EXPECT(HF_EINVAL, hf_ids_next(others, &id, &error));
    expect_says(error.text, "1767225600");
}

static void an_epoch_that_has_not_begun_or_is_over(void **state)
{
    (void)state;
    int64_t id;
    ids = open_ids(alice, HF_IDS(.ordered = true, .epoch_s = time(NULL) + 1000));
    EXPECT(HF_ESERVER, hf_ids_next(ids, &id, &error));
    others = open_ids(alice, HF_IDS(.ordered = true));
    (void)next(others);
    assert_string_equal(raw(server, "SET %s %s", side_key('n'), "x 1767225600 2147483647 7 0"),
                        "OK");
    EXPECT(HF_ESERVER, hf_ids_next(others, &id, &error));
    expect_says(error.text, "used up");
}

/* ---- What the server goes through ------------------------------------------------------------ */

static void a_server_that_forgets_its_scripts_or_its_keys(void **state)
{
    (void)state;
    ids = open_ids(alice, HF_IDS(.ordered = true));
    int64_t last = next(ids);
    static const char *const blows[] = {"SCRIPT FLUSH", "FLUSHALL", "SCRIPT FLUSH"};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(raw(server, blows[i]), "OK");
        int64_t id = next(ids);
        assert_true(id > last);
        last = id;
    }
    assert_string_equal(raw(server, "SET %s nonsense", side_key('n')), "OK");
    assert_true(next(ids) > last);
}

/* One who has seen nothing asks a server that has forgotten everything. */
static void a_restart_within_the_same_second(void **state)
{
    (void)state;
    static int64_t batch[1000];
    ids = open_ids(alice, HF_IDS(.ordered = true));
    EXPECT(HF_OK, hf_ids_next_batch(ids, batch, 1000, &error));
    redis_server_restart(server);
    others = open_ids(bob, HF_IDS(.ordered = true));
    int64_t id = next(others);
    assert_true(id > batch[999]);
    assert_true(next(ids) > id);
}

static void a_replica_that_has_not_heard_of_the_last_ids(void **state)
{
    (void)state;
    struct redis_server *replica =
        redis_server_start(&(struct redis_server_options){.replica_of = server->port});
    ids = open_ids(alice, HF_IDS(.ordered = true));
    (void)next(ids);
    WAIT_UNTIL(strstr(raw(replica, "INFO replication"), "master_link_status:up") != NULL &&
                   raw_number(replica, "EXISTS %s", side_key('n')) == 1,
               10000);
    assert_string_equal(raw(replica, "REPLICAOF NO ONE"), "OK");
    int64_t last = next(ids);
    redis_server_kill(server);
    open_client_at(replica->url, &bob, NULL);
    others = open_ids(bob, HF_IDS(.ordered = true));
    assert_true(next(others) > last);
}

static void leased_ones_outlast_the_server(void **state)
{
    (void)state;
    hf_status status;
    EXPECT_STATUS(HF_OK, hf_close(alice));
    open_client_with(&alice, HF_CLIENT(.call_timeout_ms = 200));
    ids = open_ids(alice, NULL);
    int64_t first = next(ids);
    redis_server_kill(server);
    int64_t id, last = drain(ids, &status);
    assert_true(status == HF_EUNAVAILABLE || status == HF_EUNKNOWN); /* if it was being asked */
    assert_true(last >= first + 62); /* at least the block of the first one */
    WAIT_UNTIL(hf_ids_next_batch(ids, &id, 1, &error) == HF_EUNAVAILABLE, 10000);
    redis_server_restart(server);
    WAIT_UNTIL(hf_ids_next(ids, &id, NULL) == HF_OK, 10000);
    assert_true(id > last);
}

static void ordered_ones_wait_for_it_as_long_as_a_call_may(void **state)
{
    (void)state;
    int64_t id;
    EXPECT_STATUS(HF_OK, hf_close(alice));
    open_client_with(&alice, HF_CLIENT(.call_timeout_ms = 200));
    ids = open_ids(alice, HF_IDS(.ordered = true));
    int64_t last = next(ids);
    redis_server_freeze(server);
    int64_t start = now_ms();
    EXPECT(HF_EUNKNOWN, hf_ids_next(ids, &id, &error));
    EXPECT_TOOK(start, 150, 200);
    redis_server_thaw(server);
    WAIT_UNTIL(hf_ids_next(ids, &id, NULL) == HF_OK, 10000);
    assert_true(id > last);
}

/* ---- Threads, processes, ends ---------------------------------------------------------------- */

static void take_in_a_child(int line, void *arg)
{
    hf_ids *fresh;
    int64_t id[2];
    (void)arg;
    hf_status taken = hf_ids_next(ids, id, NULL);
    hf_status own = hf_ids_next(others, id, NULL);
    hf_status batch = hf_ids_next_batch(ids, id, 2, NULL);
    hf_status opened = hf_ids_open(alice, "lock", NULL, &fresh, NULL);
    hf_ids_close(ids);
    hf_ids_close(others);
    (void)hf_close(alice);
    line_say(line, "%s %s %s %s", hf_status_name(taken), hf_status_name(own), hf_status_name(batch),
             hf_status_name(opened));
}

struct taker {
    hf_ids *of;
    pthread_t thread;
    atomic_bool ends;
    atomic_long taken;
    hf_status status;
};

static struct taker takers[4];

static void *take_until_told(void *arg)
{
    struct taker *taker = arg;
    int64_t id, last = 0;
    while (!atomic_load(&taker->ends)) {
        taker->status = hf_ids_next(taker->of, &id, NULL);
        if (taker->status != HF_OK || id <= last)
            break;
        last = id;
        atomic_fetch_add(&taker->taken, 1);
    }
    return NULL;
}

static void start_takers(int count, hf_ids *of)
{
    for (int i = 0; i < count; i++) {
        takers[i] = (struct taker){.of = of};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_until_told, &takers[i]), 0);
    }
}

static void join_takers(int count, hf_status wanted)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        EXPECT_STATUS(wanted, takers[i].status);
    }
}

static void a_child_gets_none(void **state)
{
    (void)state;
    ids = open_ids(alice, NULL);
    others = open_ids(alice, HF_IDS(.by_thread = true));
    int64_t before = next(ids);
    (void)next(others); /* and has some more in this thread's hands */
    start_takers(2, ids);
    for (int i = 0; i < 10; i++) {
        struct process *child = process_start(take_in_a_child, NULL);
        EXPECT_HEARD(child, "HF_EFORKED HF_EFORKED HF_EFORKED HF_EFORKED");
        assert_true(process_finish(child, 5000));
    }
    for (int i = 0; i < 2; i++) {
        WAIT_UNTIL(atomic_load(&takers[i].taken) > 0, 10000);
        atomic_store(&takers[i].ends, true);
    }
    join_takers(2, HF_OK);
    assert_true(next(ids) > before);
}

static void closing_the_client_ends_calls_that_wait(void **state)
{
    (void)state;
    ids = open_ids(alice, HF_IDS(.ordered = true));
    others = open_ids(alice, NULL);
    start_takers(4, ids);
    for (int i = 0; i < 4; i++)
        WAIT_UNTIL(atomic_load(&takers[i].taken) > 10, 10000);
    (void)next(others);
    (void)hf_close(alice);
    alice = NULL;
    join_takers(4, HF_ECLOSED);
    hf_status status;
    (void)drain(others, &status);
    EXPECT_STATUS(HF_ECLOSED, status);
}

/* Nobody waits for a round that is stuck, and then as long again for its own. */
static void those_who_wait_together_give_up_in_time(void **state)
{
    (void)state;
    enum { TIMEOUT_MS = 1500 };
    EXPECT_STATUS(HF_OK, hf_close(alice));
    open_client_with(&alice, HF_CLIENT(.call_timeout_ms = TIMEOUT_MS, .reply_timeout_ms = 5000));
    ids = open_ids(alice, HF_IDS(.ordered = true));
    start_takers(4, ids);
    for (int i = 0; i < 4; i++)
        WAIT_UNTIL(atomic_load(&takers[i].taken) > 10, 10000);
    redis_server_freeze(server);
    int64_t start = now_ms();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        assert_true(takers[i].status == HF_EUNAVAILABLE || takers[i].status == HF_EUNKNOWN);
    }
    EXPECT_TOOK(start, 0, TIMEOUT_MS);
    redis_server_thaw(server);
    WAIT_UNTIL(hf_ids_next(ids, &(int64_t){0}, NULL) == HF_OK, 10000);
}

static void a_generator_has_one_thread_while_it_is_open(void **state)
{
    (void)state;
    int before = running_threads();
    ids = open_ids(alice, NULL);
    assert_int_equal(running_threads(), before);
    for (int i = 0; i < SOME; i++)
        (void)next(ids);
    assert_int_equal(running_threads(), before + 1);
    hf_ids_close(ids);
    ids = NULL;
    assert_int_equal(running_threads(), before);
}

/* Waiting for that thread is no place to end. */
static void *close_when_cancelled(void *arg)
{
    pthread_cancel(pthread_self());
    hf_ids_close(ids);
    ids = NULL;
    *(bool *)arg = true;
    return NULL;
}

static void closing_it_is_not_cancelled_half_way(void **state)
{
    (void)state;
    bool closed = false;
    pthread_t thread;
    ids = open_ids(alice, NULL);
    for (int i = 0; i < 40; i++)
        (void)next(ids); /* more than half of a block: there is a thread */
    assert_int_equal(pthread_create(&thread, NULL, close_when_cancelled, &closed), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(closed);
}

static void without_threads_in_a_loop_of_ones_own(void **state)
{
    (void)state;
    EXPECT_STATUS(HF_OK, hf_close(alice));
    open_client_with(&alice, HF_CLIENT(.own_loop = true));
    int before = running_threads();
    int64_t last = 0;
    ids = open_ids(alice, NULL);
    for (int i = 0; i < SOME; i++) {
        int64_t id = next(ids);
        assert_true(id > last);
        last = id;
    }
    assert_int_equal(running_threads(), before);
}

static struct {
    hf_status ready, empty, ordered;
    hf_ids *in_order;
    atomic_bool told;
} inside;

static void take_inside(void *arg, hf_hold *hold, const hf_error *why)
{
    int64_t id;
    (void)arg;
    (void)why;
    (void)hf_release_nowait(&hold);
    inside.ready = hf_ids_next(ids, &id, NULL);
    inside.empty = hf_ids_next(others, &id, NULL);
    inside.ordered = hf_ids_next(inside.in_order, &id, NULL);
    atomic_store(&inside.told, true);
}

static void a_callback_gets_what_is_there_and_never_waits(void **state)
{
    (void)state;
    ids = open_ids(alice, NULL);
    (void)next(ids);
    others = open_ids(alice, NULL); /* has no block yet */
    inside.in_order = open_ids(alice, HF_IDS(.ordered = true));
    EXPECT(HF_OK, hf_acquire_async(alice, "other", NULL, take_inside, NULL, NULL, &error));
    WAIT_UNTIL(atomic_load(&inside.told), 10000);
    EXPECT_STATUS(HF_OK, inside.ready);
    EXPECT_STATUS(HF_EDEADLK, inside.empty);
    EXPECT_STATUS(HF_EDEADLK, inside.ordered);
    hf_ids_close(inside.in_order);
}

/* The thread fetches ahead, so a rate of many thousands a second costs few round trips. */
static void few_messages_for_many_ids(void **state)
{
    (void)state;
    ids = open_ids(alice, NULL);
    for (int i = 0; i < 100000; i++)
        (void)next(ids);
    assert_in_range(scripts_run(server), 2, 40);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_id_says_when_it_was_reserved),
        TEST(leased_ones_are_unique_and_grow_for_each),
        TEST(many_generators_by_thread),
        TEST(ordered_ones_grow_over_all),
        TEST(batches_of_any_size),
        TEST(a_key_hides_what_an_id_says),
        TEST(options_out_of_bounds),
        TEST(names_that_are_none),
        TEST(arguments_that_are_missing),
        TEST(others_with_another_epoch),
        TEST(an_epoch_that_has_not_begun_or_is_over),
        TEST(a_server_that_forgets_its_scripts_or_its_keys),
        TEST(a_restart_within_the_same_second),
        TEST(a_replica_that_has_not_heard_of_the_last_ids),
        TEST(leased_ones_outlast_the_server),
        TEST(ordered_ones_wait_for_it_as_long_as_a_call_may),
        TEST(a_child_gets_none),
        TEST(closing_the_client_ends_calls_that_wait),
        TEST(those_who_wait_together_give_up_in_time),
        TEST(a_generator_has_one_thread_while_it_is_open),
        TEST(closing_it_is_not_cancelled_half_way),
        TEST(without_threads_in_a_loop_of_ones_own),
        TEST(a_callback_gets_what_is_there_and_never_waits),
        TEST(few_messages_for_many_ids),
    };
    return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
