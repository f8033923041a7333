/* SPDX-License-Identifier: MIT
 *
 * The story of the flash sale: each strategy in turn on fresh tables, with the same buyers in the
 * same order; then the table, and whether each has kept what it promises. See sale.h for the parts,
 * strategies.c for what it is about.
 *
 *     flashsale --redis unix:///tmp/redis.sock      exit code 0: all as promised */
#include "sale.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void on_signal(int number)
{
    (void)number;
    sale_interrupted = 1;
}

/* ---- One run --------------------------------------------------------------------------------- */

static struct sale *sale_new(const struct options *options)
{
    int count = options->buyers * CLICKS;
    size_t size = sizeof(struct sale) + (size_t)count * sizeof(struct request);
    struct sale *sale = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sale == MAP_FAILED)
        return NULL;
    sale->options = *options;
    sale->requests_count = count;
    return sale;
}

/* Who comes when: a user's clicks are next to each other, so that they are served together. */
static void shuffle_buyers(struct sale *sale)
{
    unsigned int seed = sale->options.seed;
    for (int i = 0; i < sale->options.buyers; i++) {
        int other = (int)((unsigned int)rand_r(&seed) % (unsigned int)(i + 1));
        int64_t moved = sale->requests[other * CLICKS].user;
        for (int click = 0; click < CLICKS; click++) {
            sale->requests[i * CLICKS + click].user = moved;
            sale->requests[other * CLICKS + click].user = i + 1;
        }
    }
}

/* Kills and stops in turn, spread over the sale: no strategy can sell its stock without coming to
 * as many critical points. */
static void plan_mishaps(struct sale *sale)
{
    unsigned int seed = sale->options.seed, part = (unsigned int)sale->options.stock / MISHAPS_MAX;
    memset(sale->mishaps, 0, sizeof sale->mishaps);
    if (!sale->options.chaos)
        return;
    for (unsigned int i = 0; i < MISHAPS_MAX && part > 0; i++)
        sale->mishaps[i] = (struct mishap){(int)(i * part + 1 + (unsigned int)rand_r(&seed) % part),
                                           i % 2 == 0 ? SIGKILL : SIGSTOP};
}

static void sale_begin(struct sale *sale, const struct strategy *strategy)
{
    size_t size = (size_t)sale->requests_count * sizeof sale->requests[0];
    memset(sale->requests, 0, size);
    for (int i = 0; i < sale->requests_count; i++)
        sale->requests[i].desk = NOBODY;
    sale->strategy = strategy;
    sale->points = sale->decided = sale->sold = sale->stale = 0;
    shuffle_buyers(sale);
    plan_mishaps(sale);
}

/* ---- What came of it ------------------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static bool measure(const struct sale *sale, struct result *result)
{
    int count = sale->requests_count;
    int64_t *took_us = calloc((size_t)count, sizeof *took_us);
    if (took_us == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        took_us[i] = sale->requests[i].took_us;
        result->told_sold += sale->requests[i].answer == SOLD;
        result->in_vain += sale->requests[i].answer == IN_VAIN;
    }
    qsort(took_us, (size_t)count, sizeof *took_us, by_size);
    result->stale = sale->stale;
    result->per_second = count / ((double)result->crew.took_us / 1e6);
    result->p50_ms = (double)took_us[count / 2] / 1e3;
    result->p99_ms = (double)took_us[(size_t)count * 99 / 100] / 1e3;
    free(took_us);
    return true;
}

static bool run(struct sale *sale, const struct strategy *strategy, struct result *result)
{
    sale_begin(sale, strategy);
    if (!ledger_begin(sale))
        return false;
    crew_run(sale, &result->crew);
    if (!result->crew.good || sale_interrupted || !measure(sale, result) ||
        !ledger_count(sale, &result->ledger))
        return false;
    screen_end_run(sale, result);
    return true;
}

/* ---- The verdict ----------------------------------------------------------------------------- */

static bool judge(const struct options *options, const struct strategy *strategy,
                  const struct result *result)
{
    const struct ledger *ledger = &result->ledger;
    int64_t all = options->buyers < options->stock ? options->buyers : options->stock;
    bool honest = result->told_sold == ledger->sold;
    bool good =
        honest && ledger->duplicates == 0 && ledger->sold + ledger->stock_left == options->stock;
    if (strategy->exact)
        good = good && ledger->sold == all && result->in_vain == 0;
    if (strategy->in_redis)
        good = good && ledger->redis_sold == ledger->sold;
    screen_check(good, "%s: %s, none twice, every yes is an order%s", strategy->name,
                 strategy->exact ? "all sold, none too many" : "none too many",
                 strategy->in_redis ? ", Redis agrees" : "");
    return good;
}

/* A test of how it takes a blow needs one. */
static bool there_was_chaos(const struct options *options, const struct result *results)
{
    bool good = true;
    int stopped = 0;
    for (int i = 0; i < STRATEGIES; i++) {
        good = good && (!options->chosen[i] || results[i].crew.killed > 0);
        stopped += results[i].crew.stopped;
    }
    screen_check(good && stopped > 0, "workers were killed in each, and stopped");
    return good && stopped > 0;
}

static bool verdict(const struct options *options, const struct result *results)
{
    bool good = true;
    for (int i = 0; i < STRATEGIES; i++) {
        const struct ledger *ledger = &results[i].ledger;
        if (!options->chosen[i])
            continue;
        if (strategies[i].never_over)
            good = judge(options, &strategies[i], &results[i]) && good;
        else if (ledger->oversold + ledger->duplicates > 0)
            printf("  ---  %s: %" PRId64 " too many, and %" PRId64 " users got two, as expected\n",
                   strategies[i].name, ledger->oversold, ledger->duplicates);
    }
    return good && (!options->chaos || there_was_chaos(options, results));
}

/* ---- The program ----------------------------------------------------------------------------- */

/* A database for this run only, in a folder of its own, for SQLite puts files beside it. */
struct own_database {
    char folder[64], url[96];
};

static bool database_new(struct own_database *own)
{
    snprintf(own->folder, sizeof own->folder, "/tmp/flashsale-XXXXXX");
    if (mkdtemp(own->folder) == NULL) {
        perror("flashsale: /tmp");
        return false;
    }
    snprintf(own->url, sizeof own->url, "%s/sale.db", own->folder);
    return true;
}

static void database_remove(const struct own_database *own)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char path[128];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(path, sizeof path, "%s%s", own->url, endings[i]);
        unlink(path);
    }
    rmdir(own->folder);
}

static int tell_the_story(const struct options *options)
{
    struct result results[STRATEGIES] = {{{0}, {0}, 0, 0, 0, 0, 0, 0}};
    struct sale *sale = sale_new(options);
    bool good = true;
    if (sale == NULL || !redis_is_there(sale))
        return 2;
    screen_begin(options);
    for (int i = 0; i < STRATEGIES && good; i++)
        good = !options->chosen[i] || run(sale, &strategies[i], &results[i]);
    if (sale_interrupted) {
        printf("\ninterrupted; everything is cleaned up\n");
        return 130;
    }
    if (!good) {
        fprintf(stderr, "\nflashsale: the sale could not be finished\n");
        return 1;
    }
    screen_table(options, results);
    return verdict(options, results) ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options;
    struct own_database own;
    struct sigaction action = {.sa_handler = on_signal};
    if (!options_parse(argc, argv, &options))
        return 2;
    bool is_own = options.db_url == NULL;
    if (is_own && !database_new(&own))
        return 2;
    if (is_own)
        options.db_url = own.url;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = tell_the_story(&options);
    if (is_own)
        database_remove(&own);
    return code;
}
