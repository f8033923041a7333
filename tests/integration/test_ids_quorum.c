/* SPDX-License-Identifier: MIT */
/* Goal: ids of several servers are as unique and as ordered as those of one, while a minority of
 * them is gone, and whichever of them have forgotten what they knew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <holdfast_ids.h>

#include "quorum.h"

enum { SERVERS = 3, PROCESSES = 2, ROUNDS = 200, EACH = 3 * ROUNDS };

static hf_error error;
static hf_ids *ordered;
static hf_ids *leased;
static char urls[256];

static int begin(void **state)
{
    (void)state;
    quorum_start(SERVERS);
    (void)snprintf(urls, sizeof(urls), "%s", quorum_urls(SERVERS));
    return 0;
}

static int finish(void **state)
{
    hf_ids_close(ordered);
    hf_ids_close(leased);
    ordered = leased = NULL;
    return quorum_end(state);
}

static void open_ids(void)
{
    open_client_at(urls, &alice, HF_CLIENT(PATIENT));
    EXPECT(HF_OK, hf_ids_open(alice, "lock", HF_IDS(.ordered = true), &ordered, &error));
    EXPECT(HF_OK, hf_ids_open(alice, "lock", NULL, &leased, &error));
}

static int64_t next(hf_ids *of)
{
    int64_t id = 0;
    EXPECT(HF_OK, hf_ids_next(of, &id, &error));
    return id;
}

/* ---- One client ------------------------------------------------------------------------------ */

static void both_kinds_grow(void **state)
{
    (void)state;
    int64_t last = 0, last_leased = 0;
    open_ids();
    for (int i = 0; i < 20; i++) {
        int64_t ahead = next(leased);
        int64_t id = next(ordered);
        assert_true(ahead > last_leased && id > last && id > ahead);
        last_leased = ahead;
        last = id;
    }
    hf_id_parts parts;
    EXPECT(HF_OK, hf_ids_parse(ordered, last, &parts, &error));
    assert_in_range(parts.unix_s, time(NULL) - 2, time(NULL) + 6);
}

static void expect_larger(int64_t *last)
{
    for (int i = 0; i < 3; i++) {
        int64_t id = next(ordered);
        assert_true(id > *last);
        *last = id;
    }
}

/* At last the majority is one that has never been one before. */
static void servers_that_go_and_forget_one_after_the_other(void **state)
{
    (void)state;
    int64_t last = 0;
    open_ids();
    expect_larger(&last);
    for (int i = 0; i < SERVERS; i++) {
        quorum_kill(i);
        expect_larger(&last);
        quorum_restart(i);
        quorum_give_vote(i);
        expect_larger(&last);
    }
    quorum_kill(0);
    expect_larger(&last);
}

/* What one client was given is known to those who come later, and have seen nothing. */
static void what_a_majority_keeps_is_known(void **state)
{
    (void)state;
    static int64_t batch[1000];
    open_ids();
    (void)next(ordered); /* of three servers that know nothing: far ahead of the clocks */
    quorum_kill(0);
    EXPECT(HF_OK, hf_ids_next_batch(ordered, batch, 1000, &error));
    quorum_restart(0);
    quorum_give_vote(0);
    quorum_kill(1);
    open_client_at(urls, &bob, HF_CLIENT(PATIENT));
    hf_ids *fresh;
    EXPECT(HF_OK, hf_ids_open(bob, "lock", HF_IDS(.ordered = true), &fresh, &error));
    int64_t id = next(fresh);
    hf_ids_close(fresh);
    assert_true(id > batch[999]);
}

static void others_with_another_epoch(void **state)
{
    (void)state;
    int64_t id;
    hf_ids *fresh;
    open_ids();
    (void)next(ordered);
    EXPECT(HF_OK, hf_ids_open(alice, "lock", HF_IDS(.epoch_s = 1), &fresh, &error));
    EXPECT(HF_EINVAL, hf_ids_next(fresh, &id, &error));
    expect_says(error.text, "1767225600");
    hf_ids_close(fresh);
}

static void without_a_majority_there_are_none(void **state)
{
    (void)state;
    int64_t id;
    open_client_at(urls, &alice, HF_CLIENT(.call_timeout_ms = 300));
    EXPECT(HF_OK, hf_ids_open(alice, "lock", HF_IDS(.ordered = true), &ordered, &error));
    int64_t last = 0;
    WAIT_UNTIL(hf_ids_next(ordered, &last, NULL) == HF_OK, QUORUM_PATIENCE_MS);
    quorum_kill(0);
    quorum_kill(2);
    int64_t start = now_ms();
    hf_status status = hf_ids_next(ordered, &id, &error);
    assert_true(status == HF_EUNAVAILABLE || status == HF_EUNKNOWN);
    EXPECT_TOOK(start, 0, 300);
    quorum_restart(0);
    quorum_give_vote(0);
    WAIT_UNTIL(hf_ids_next(ordered, &id, NULL) == HF_OK, QUORUM_PATIENCE_MS);
    assert_true(id > last);
}

/* ---- Several processes ----------------------------------------------------------------------- */

struct shared {
    atomic_int rounds;
    atomic_llong published; /* the largest id that anybody was given */
    int64_t ids[PROCESSES][EACH];
};

static struct shared *shared;

static hf_status take_round(hf_ids **of, int64_t *place, hf_error *why)
{
    hf_status status = hf_ids_next(of[0], &place[0], why);
    if (status == HF_OK)
        status = hf_ids_next(of[0], &place[1], why);
    long long before = atomic_load(&shared->published);
    if (status == HF_OK)
        status = hf_ids_next(of[1], &place[2], why);
    if (status != HF_OK)
        return status;
    if (place[1] <= place[0] || place[2] <= before)
        return hf_ids_next(NULL, NULL, why);
    for (before = atomic_load(&shared->published);
         before < place[2] && !atomic_compare_exchange_weak(&shared->published, &before, place[2]);)
        continue;
    atomic_fetch_add(&shared->rounds, 1);
    return HF_OK;
}

/* Says HF_OK, or what went wrong; HF_EINVAL also if they did not grow. */
static void take_rounds(int line, void *arg)
{
    const int *number = arg;
    hf_client *client;
    hf_ids *of[2] = {NULL, NULL};
    hf_error why;
    hf_status status = hf_open(urls, HF_CLIENT(PATIENT), &client, &why);
    if (status == HF_OK)
        status = hf_ids_open(client, "lock", NULL, &of[0], &why);
    if (status == HF_OK)
        status = hf_ids_open(client, "lock", HF_IDS(.ordered = true), &of[1], &why);
    for (int i = 0; i < ROUNDS && status == HF_OK; i++)
        status = take_round(of, shared->ids[*number] + 3 * i, &why);
    hf_ids_close(of[0]);
    hf_ids_close(of[1]);
    (void)hf_close(client);
    line_say(line, "%s", status == HF_OK ? "HF_OK" : why.text);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void two_processes_at_once(void **state)
{
    (void)state;
    struct process *processes[PROCESSES];
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = process_start(take_rounds, &i);
    WAIT_UNTIL(atomic_load(&shared->rounds) > ROUNDS / 4, QUORUM_PATIENCE_MS);
    quorum_kill(0);
    WAIT_UNTIL(atomic_load(&shared->rounds) > ROUNDS / 2, QUORUM_PATIENCE_MS);
    quorum_restart(0);
    quorum_give_vote(0);
    for (int i = 0; i < PROCESSES; i++) {
        EXPECT_HEARD(processes[i], "HF_OK");
        assert_true(process_finish(processes[i], QUORUM_PATIENCE_MS));
    }
    int64_t *all = shared->ids[0];
    qsort(all, PROCESSES * EACH, sizeof(*all), compare);
    for (int i = 0; i < PROCESSES * EACH; i++)
        assert_true(all[i] > (i > 0 ? all[i - 1] : 0));
    (void)munmap(shared, sizeof(*shared));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_kinds_grow),
        TEST(servers_that_go_and_forget_one_after_the_other),
        TEST(what_a_majority_keeps_is_known),
        TEST(others_with_another_epoch),
        TEST(without_a_majority_there_are_none),
        TEST(two_processes_at_once),
    };
    return cmocka_run_group_tests_name("ids_quorum", tests, NULL, NULL);
}
