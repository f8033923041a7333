/* SPDX-License-Identifier: MIT */
/* Goal: two hundred buyers for each unit, in processes that are killed at every step, and a server
 * that is killed and comes back with its data; still nothing is sold twice, nothing is lost, and
 * nobody has two.
 *
 * Each buyer makes two orders, of which one may succeed. Each order is made by two processes, with
 * the same request, so every message is sent twice at least. Some buyers reserve and confirm, some
 * walk away; and all but the last give back what they bought, or it would be over too soon. What a
 * process was told is written down in memory that outlives it; one that was killed is replaced, and
 * its successor goes back a few orders, so that in the end an answer to each was heard. Then the
 * books of the server and of the buyers must be the same.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <holdfast_stock.h>

#include "fixture.h"

enum {
    UNITS = 10,
    BUYERS = 200 * UNITS,
    ORDERS = 2 * BUYERS,
    PROCESSES = 4,
    THREADS = 3,
    ROUNDS = 3,    /* of killing at every step */
    BACK = 6,      /* orders that a successor makes again */
    SHORT_MS = 40, /* reservations that nobody confirms */
    LONG_MS = 50000
};

enum step { NOWHERE, IN_TAKE, IN_RESERVE, BETWEEN, IN_CONFIRM, IN_PUT, STEPS };

struct order { /* a bit for each status that somebody was told */
    atomic_uint said;
    atomic_uint confirmed;
    atomic_uint returned;
};

struct books { /* shared by all */
    struct order orders[ORDERS];
    atomic_int progress[PROCESSES][THREADS];
    atomic_int dies_at[PROCESSES]; /* enum step: where it is to be killed */
    atomic_bool is_there[PROCESSES];
    atomic_int done[PROCESSES]; /* threads */
    atomic_int surprises;       /* answers that make no sense */
};

static struct books *books;
static struct process *buyers[PROCESSES];
static hf_error error;

/* ---- In the processes of the buyers ---------------------------------------------------------- */

struct buyer {
    hf_client *client;
    int process, thread;
};

/* In front of a call the killer comes during it; between calls it is waited for. */
static void come_to(const struct buyer *buyer, enum step step)
{
    if (atomic_load(&books->dies_at[buyer->process]) != (int)step)
        return;
    atomic_store(&books->is_there[buyer->process], true);
    while (step == BETWEEN)
        (void)pause();
}

static bool is_heard(hf_status status)
{
    return status != HF_EUNAVAILABLE && status != HF_EUNKNOWN;
}

static bool reserves(int number)
{
    return number / 2 % 3 != 0;
}

static bool walks_away(int number)
{
    return number / 2 % 6 == 5;
}

struct names {
    char user[32], request[32];
};

static struct names names_of(const char *verb, int number)
{
    struct names names;
    (void)snprintf(names.user, sizeof(names.user), "user %d", number / 2);
    (void)snprintf(names.request, sizeof(names.request), "%s %d", verb, number);
    return names;
}

/* Asks until there is an answer, always with the same request. */
static hf_status place(const struct buyer *buyer, int number)
{
    struct names names = names_of("order", number);
    hf_take_options options = *HF_TAKE(.user = names.user, .request = names.request);
    hf_status status;
    int64_t limit_ms = walks_away(number) ? SHORT_MS : LONG_MS;
    do {
        come_to(buyer, reserves(number) ? IN_RESERVE : IN_TAKE);
        status = reserves(number) ? hf_stock_reserve(buyer->client, "lock", 1, limit_ms, &options,
                                                     NULL, NULL, NULL)
                                  : hf_stock_take(buyer->client, "lock", 1, &options, NULL, NULL);
    } while (!is_heard(status));
    atomic_fetch_or(&books->orders[number].said, 1U << status);
    return status;
}

static hf_status confirm(const struct buyer *buyer, int number)
{
    struct names names = names_of("order", number);
    hf_status status;
    come_to(buyer, BETWEEN);
    do {
        come_to(buyer, IN_CONFIRM);
        status = hf_stock_confirm(buyer->client, "lock", 0, names.request, NULL);
    } while (!is_heard(status));
    atomic_fetch_or(&books->orders[number].confirmed, 1U << status);
    return status;
}

static bool gives_back(int number)
{
    return number < ORDERS / 4 * 3;
}

static void give_back(const struct buyer *buyer, int number)
{
    struct names names = names_of("return", number);
    hf_take_options options = *HF_TAKE(.user = names.user, .request = names.request);
    hf_status status;
    do {
        come_to(buyer, IN_PUT);
        status = hf_stock_put(buyer->client, "lock", 1, &options, NULL, NULL);
    } while (!is_heard(status));
    atomic_fetch_or(&books->orders[number].returned, 1U << status);
}

static bool is_mine(const struct buyer *buyer, int number)
{
    int process = number % PROCESSES;
    bool of_process = process == buyer->process || (process + 1) % PROCESSES == buyer->process;
    return of_process && number / PROCESSES % THREADS == buyer->thread;
}

static void *buy(void *arg)
{
    const struct buyer *buyer = arg;
    atomic_int *progress = &books->progress[buyer->process][buyer->thread];
    int first = atomic_load(progress) - BACK * PROCESSES * THREADS;
    for (int number = first > 0 ? first : 0; number < ORDERS; number++) {
        if (!is_mine(buyer, number))
            continue;
        atomic_store(progress, number);
        hf_status status = place(buyer, number);
        if (status == HF_OK && reserves(number))
            status = walks_away(number) ? HF_EEXPIRED : confirm(buyer, number);
        if (status == HF_OK && gives_back(number))
            give_back(buyer, number);
        if (status != HF_OK && status != HF_ESOLDOUT && status != HF_ELIMIT &&
            status != HF_EEXPIRED)
            atomic_fetch_add(&books->surprises, 1);
    }
    atomic_fetch_add(&books->done[buyer->process], 1);
    return NULL;
}

static void run(int line, void *arg)
{
    pthread_t threads[THREADS];
    struct buyer each[THREADS];
    hf_client *client;
    (void)line;
    if (hf_open(server->url, HF_CLIENT(.call_timeout_ms = 500), &client, NULL) != HF_OK)
        _exit(1);
    for (int i = 0; i < THREADS; i++) {
        each[i] = (struct buyer){client, *(int *)arg, i};
        if (pthread_create(&threads[i], NULL, buy, &each[i]) != 0)
            _exit(1);
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)hf_close(client);
}

/* ---- The storm ------------------------------------------------------------------------------- */

static void start(int process)
{
    atomic_store(&books->done[process], 0);
    buyers[process] = process_start(run, &process);
}

static bool is_done(int process)
{
    return atomic_load(&books->done[process]) == THREADS;
}

/* False: it had nothing to do there any more. */
static bool kill_at(int process, enum step step)
{
    atomic_store(&books->is_there[process], false);
    atomic_store(&books->dies_at[process], (int)step);
    WAIT_UNTIL(atomic_load(&books->is_there[process]) || is_done(process), 20000);
    bool there = atomic_load(&books->is_there[process]);
    process_kill(buyers[process]);
    atomic_store(&books->dies_at[process], NOWHERE);
    start(process);
    return there;
}

static void rage(void)
{
    int killed[STEPS] = {0};
    for (int process = 0; process < PROCESSES; process++)
        start(process);
    for (int round = 0; round < ROUNDS; round++) {
        for (int step = NOWHERE + 1; step < STEPS; step++)
            killed[step] += kill_at((round + step) % PROCESSES, (enum step)step);
        if (round < 2)
            redis_server_restart(server);
    }
    for (int step = NOWHERE + 1; step < STEPS; step++)
        assert_true(killed[step] > 0);
    for (int process = 0; process < PROCESSES; process++)
        assert_true(process_finish(buyers[process], 60000));
}

/* ---- The books ------------------------------------------------------------------------------- */

#define BIT(status) (1U << (status))

static int bought_count; /* also of those that were given back */

static bool is_one_bit(unsigned bits)
{
    return bits != 0 && (bits & (bits - 1)) == 0;
}

/* Whether it was sold for good, as its buyer was told. */
static bool was_sold(int number)
{
    unsigned said = atomic_load(&books->orders[number].said);
    unsigned confirmed = atomic_load(&books->orders[number].confirmed);
    unsigned returned = atomic_load(&books->orders[number].returned);
    assert_true(is_one_bit(said) || (reserves(number) && said == (BIT(HF_OK) | BIT(HF_EEXPIRED))));
    assert_true(confirmed == 0 || is_one_bit(confirmed));
    assert_true(confirmed == 0 || (said & BIT(HF_OK)) != 0);
    bool bought = reserves(number) ? confirmed == BIT(HF_OK) : said == BIT(HF_OK);
    assert_true(returned == (bought && gives_back(number) ? BIT(HF_OK) : 0));
    bought_count += bought;
    return bought && returned == 0;
}

static int count_sold(void)
{
    int sold = 0;
    for (int number = 0; number < ORDERS; number += 2) {
        int first = was_sold(number), second = was_sold(number + 1);
        assert_true(first + second <= 1); /* one order per user */
        sold += first + second;
    }
    return sold;
}

static hf_stock_report audit(hf_client *client)
{
    hf_stock_report report;
    EXPECT(HF_OK, hf_stock_audit(client, "lock", 0, &report, &error));
    assert_true(report.adds_up);
    assert_int_equal(report.state.total, UNITS);
    assert_true(report.most_by_one <= 1);
    return report;
}

/* What came back when everybody had been refused. */
static void sell_the_rest(hf_client *client, int64_t left)
{
    char user[32];
    for (int64_t i = 0; i < left; i++) {
        (void)snprintf(user, sizeof(user), "late %d", (int)i);
        EXPECT(HF_OK, hf_stock_take(client, "lock", 1, HF_TAKE(.user = user), NULL, &error));
    }
    EXPECT(HF_ESOLDOUT, hf_stock_take(client, "lock", 1, HF_TAKE(.user = "last"), NULL, &error));
}

static void never_oversold(void **state)
{
    (void)state;
    server = redis_server_start(&(struct redis_server_options){.keeps_data = true});
    books = mmap(NULL, sizeof(*books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(books != MAP_FAILED);
    hf_client *client; /* closed before others are forked */
    EXPECT(HF_OK, hf_open(server->url, NULL, &client, &error));
    EXPECT(HF_OK, hf_stock_set(client, "lock", UNITS, HF_STOCK(.per_user = 1), &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
    rage();
    assert_int_equal(atomic_load(&books->surprises), 0);
    open_client(&alice);
    hf_stock_report report = audit(alice);
    WAIT_UNTIL((report = audit(alice)).state.reserved == 0, 5000);
    assert_int_equal(report.state.sold, count_sold());
    assert_true(bought_count > UNITS);
    print_message("%d of %d orders, %d for good\n", bought_count, ORDERS, (int)report.state.sold);
    sell_the_rest(alice, report.state.available);
    redis_server_restart(server);
    assert_int_equal(audit(alice).state.sold, UNITS);
    assert_int_equal(munmap(books, sizeof(*books)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(never_oversold, end_everything)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
