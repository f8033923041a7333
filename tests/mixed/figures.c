/* SPDX-License-Identifier: MIT */
/* See figures.h. A hand-over is a release and the next grant of the lock, by fence, if the next
 * holder had asked before; it takes from the call of the release to the return of the acquire.
 * Turns between threads of one process are none. */
#include "figures.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHARE_LEAST_PERCENT = 25, GRANTS_PER_SECOND = 20, SECONDS_FOR_ALL = 30 };

static const double NONE = -1;

struct samples {
    double *values;
    size_t count;
};

static bool samples_make(struct samples *samples, size_t most)
{
    samples->count = 0;
    samples->values = calloc(most + 1, sizeof(double));
    return samples->values != NULL;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* `share` of 1 is the largest. */
static double quantile(struct samples *samples, double share)
{
    if (samples->count == 0)
        return NONE;
    qsort(samples->values, samples->count, sizeof(double), by_value);
    return samples->values[(size_t)(share * (double)(samples->count - 1))];
}

static bool is_grant(const struct record *record)
{
    return record->how != HOW_GAVE_UP && record->how != HOW_BROKE;
}

static bool waits(const struct record *record)
{
    return record->how == HOW_QUEUED || record->how == HOW_FAIR || record->how == HOW_GAVE_UP;
}

static double ms(int64_t duration_ns)
{
    return (double)duration_ns / (double)MS_NS;
}

/* ---- Hand-overs ------------------------------------------------------------------------------ */

struct hand_overs {
    struct samples us[SIDES][SIDES];
};

static void hand_overs_free(struct hand_overs *found)
{
    for (int from = 0; from < SIDES; from++)
        for (int to = 0; to < SIDES; to++)
            free(found->us[from][to].values);
}

static bool is_hand_over(const struct record *from, const struct record *to)
{
    return from->belief.lock == to->belief.lock && from->released_ns != 0 && waits(to) &&
           to->asked_ns < from->released_ns && to->belief.from_ns > from->released_ns &&
           process_of(from->belief.client) != process_of(to->belief.client);
}

static int by_lock_and_fence(const void *left, const void *right)
{
    const struct record *a = *(const struct record *const *)left;
    const struct record *b = *(const struct record *const *)right;
    if (a->belief.lock != b->belief.lock)
        return a->belief.lock < b->belief.lock ? -1 : 1;
    return a->fence < b->fence ? -1 : a->fence > b->fence;
}

static void collect(struct hand_overs *found, const struct record *const *grants, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct record *from = grants[i - 1];
        const struct record *to = grants[i];
        struct samples *samples = &found->us[from->side][to->side];
        if (is_hand_over(from, to))
            samples->values[samples->count++] = 1000 * ms(to->belief.from_ns - from->released_ns);
    }
}

static struct hand_overs hand_overs_of(const struct record *records, size_t count)
{
    struct hand_overs found = {{{{NULL, 0}}}};
    const struct record **grants = calloc(count + 1, sizeof(*grants));
    bool made = grants != NULL;
    size_t used = 0;
    for (int pair = 0; pair < SIDES * SIDES; pair++)
        made = samples_make(&found.us[pair / SIDES][pair % SIDES], count) && made;
    for (size_t i = 0; made && i < count; i++)
        if (is_grant(&records[i]))
            grants[used++] = &records[i];
    if (made && used > 0) {
        qsort(grants, used, sizeof(const struct record *), by_lock_and_fence);
        collect(&found, grants, used);
    }
    free(grants);
    return found;
}

static double longest_wait_ms(const struct record *records, size_t count, enum side side)
{
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        double waited = ms(records[i].belief.from_ns - records[i].asked_ns);
        if (records[i].side == side && waits(&records[i]) && waited > longest)
            longest = waited;
    }
    return longest;
}

static size_t count_grants(const struct record *records, size_t count, enum side side)
{
    size_t grants = 0;
    for (size_t i = 0; i < count; i++)
        grants += records[i].side == side && is_grant(&records[i]);
    return grants;
}

/* ---- A storm --------------------------------------------------------------------------------- */

static void print_hows(const struct record *records, size_t count)
{
    static const char *const names[] = {
#define HOW_TEXT(name, text) text,
        HOW_MAP(HOW_TEXT)};
    size_t found[HOWS][SIDES] = {{0}};
    for (size_t i = 0; i < count; i++)
        found[records[i].how][records[i].side]++;
    printf("\n%-40s %9s %9s\n", "", "old", "new");
    for (int how = 0; how < HOWS; how++)
        printf("%-40s %9zu %9zu\n", names[how], found[how][SIDE_OLD], found[how][SIDE_NEW]);
}

static void print_counts(const struct board *board)
{
    static const char *const names[] = {
#define COUNT_TEXT(name, text) text,
        COUNT_MAP(COUNT_TEXT)};
    for (int kind = 0; kind < COUNTS; kind++)
        printf("%-40s %9lld %9lld\n", names[kind],
               (long long)atomic_load(&board->counts[SIDE_OLD][kind]),
               (long long)atomic_load(&board->counts[SIDE_NEW][kind]));
}

/* How many holds of an owner had company of the other side, with the same fence. */
static size_t count_shared(const struct record *records, size_t count)
{
    size_t shared = 0;
    const struct record **grants = calloc(count + 1, sizeof(*grants));
    size_t used = 0;
    for (size_t i = 0; grants != NULL && i < count; i++)
        if (is_grant(&records[i]) && records[i].belief.party != 0)
            grants[used++] = &records[i];
    if (used > 0)
        qsort(grants, used, sizeof(const struct record *), by_lock_and_fence);
    for (size_t i = 1; i < used; i++)
        shared += grants[i]->side != grants[i - 1]->side &&
                  grants[i]->fence == grants[i - 1]->fence &&
                  grants[i]->belief.lock == grants[i - 1]->belief.lock;
    free(grants);
    return shared;
}

static void print_hand_overs(struct hand_overs *found)
{
    printf("\n%-40s %9s %9s %9s\n", "hand-overs in the storm", "count", "median us", "99 % us");
    for (int from = 0; from < SIDES; from++)
        for (int to = 0; to < SIDES; to++) {
            struct samples *samples = &found->us[from][to];
            printf("from %s to %-27s %9zu %9.0f %9.0f\n", side_name((enum side)from),
                   side_name((enum side)to), samples->count, quantile(samples, 0.5),
                   quantile(samples, 0.99));
        }
}

/* Each of these must have happened on both sides in a run that is long enough. */
static bool all_happened(const struct board *board, size_t shared)
{
    bool all = shared > 0;
    for (int side = 0; side < SIDES; side++)
        for (int kind = 0; kind < COUNTS; kind++)
            all = all && atomic_load(&board->counts[side][kind]) > 0;
    return all;
}

static bool nobody_starves(const struct record *records, size_t count)
{
    size_t grants[SIDES];
    bool fed = true;
    for (int side = 0; side < SIDES; side++)
        grants[side] = count_grants(records, count, (enum side)side);
    for (int side = 0; side < SIDES; side++) {
        double waited = longest_wait_ms(records, count, (enum side)side);
        bool enough =
            100 * grants[side] >= SHARE_LEAST_PERCENT * (grants[SIDE_OLD] + grants[SIDE_NEW]);
        printf("%s side: %zu grants, longest wait %.0f ms\n", side_name((enum side)side),
               grants[side], waited);
        fed = fed && enough && waited < WAIT_MOST_MS;
    }
    return fed;
}

bool figures_of_storm(const struct record *records, size_t count, const struct board *board,
                      int seconds)
{
    struct hand_overs found = hand_overs_of(records, count);
    size_t shared = count_shared(records, count);
    bool fed = nobody_starves(records, count);
    size_t grants = count_grants(records, count, SIDE_OLD) + count_grants(records, count, SIDE_NEW);
    bool enough = grants >= GRANTS_PER_SECOND * (size_t)seconds &&
                  (seconds < SECONDS_FOR_ALL || all_happened(board, shared));
    print_hows(records, count);
    print_counts(board);
    printf("%-40s %9zu\n", "owners' holds shared by both sides", shared);
    print_hand_overs(&found);
    hand_overs_free(&found);
    if (!fed)
        printf("\nSTARVATION: a side got less than %d %% of the grants, or waited for %d ms\n",
               SHARE_LEAST_PERCENT, WAIT_MOST_MS);
    if (!enough)
        printf("\nToo little happened to prove anything.\n");
    return fed && enough;
}

/* ---- Calm ------------------------------------------------------------------------------------ */

static double pair_us(const struct record *records, size_t count, enum side side)
{
    struct samples samples;
    double median = NONE;
    if (!samples_make(&samples, count))
        return NONE;
    for (size_t i = 0; i < count; i++) {
        const struct record *record = &records[i];
        int64_t acquired_ns = record->belief.from_ns - record->asked_ns;
        if (record->side == side && is_grant(record) && record->done_ns != 0)
            samples.values[samples.count++] =
                1000 * ms(acquired_ns + record->done_ns - record->released_ns);
    }
    median = quantile(&samples, 0.5);
    free(samples.values);
    return median;
}

struct calm_round figures_of_calm(const struct record *records, size_t count, int64_t duration_ms)
{
    struct calm_round round;
    struct hand_overs found = hand_overs_of(records, count);
    for (int side = 0; side < SIDES; side++) {
        enum side one = (enum side)side;
        for (int to = 0; to < SIDES; to++)
            round.hand_over_us[side][to] = quantile(&found.us[side][to], 0.5);
        round.pair_us[side] = pair_us(records, count, one);
        round.longest_wait_ms[side] = longest_wait_ms(records, count, one);
        round.grants_per_s[side] =
            1000 * (double)count_grants(records, count, one) / (double)duration_ms;
    }
    hand_overs_free(&found);
    return round;
}

/* One row: the median of the rounds, and where the middle half of them was. */
static void print_row(const char *name, const char *detail, double values[ROUNDS], const char *unit)
{
    struct samples samples = {values, ROUNDS};
    double median = quantile(&samples, 0.5);
    printf("%-10s %-36s %9.1f  %9.1f to %9.1f  %s\n", name, detail, median,
           quantile(&samples, 0.25), quantile(&samples, 0.75), unit);
}

static const char *const company_names[] = {"only old", "only new", "both"};

static bool takes_part(enum company company, enum side side)
{
    return company == BOTH || (company == ONLY_OLD) == (side == SIDE_OLD);
}

#define PRINT_ROW(company, rounds, detail, field, unit)           \
    do {                                                          \
        double values_[ROUNDS];                                   \
        for (int i_ = 0; i_ < ROUNDS; i_++)                       \
            values_[i_] = (rounds)[i_].field;                     \
        print_row(company_names[company], detail, values_, unit); \
    } while (0)

static void print_company(enum company company, struct calm_round *rounds, bool queue)
{
    char detail[64];
    for (int side = 0; side < SIDES; side++) {
        if (!takes_part(company, (enum side)side))
            continue;
        const char *name = side_name((enum side)side);
        for (int to = 0; queue && to < SIDES; to++) {
            if (!takes_part(company, (enum side)to))
                continue;
            (void)snprintf(detail, sizeof(detail), "hand-over from %s to %s", name,
                           side_name((enum side)to));
            PRINT_ROW(company, rounds, detail, hand_over_us[side][to], "us");
        }
        (void)snprintf(detail, sizeof(detail), "acquire and release, %s", name);
        if (!queue)
            PRINT_ROW(company, rounds, detail, pair_us[side], "us");
        (void)snprintf(detail, sizeof(detail), "longest wait, %s", name);
        if (queue)
            PRINT_ROW(company, rounds, detail, longest_wait_ms[side], "ms");
        (void)snprintf(detail, sizeof(detail), "grants of %s", name);
        PRINT_ROW(company, rounds, detail, grants_per_s[side], "per s");
    }
}

void print_queue(struct calm_round rounds[COMPANIES][ROUNDS])
{
    printf("\nfour processes queue for one lock; medians of %d rounds, and their middle half\n",
           ROUNDS);
    for (int company = 0; company < COMPANIES; company++)
        print_company((enum company)company, rounds[company], true);
}

void print_names(struct calm_round rounds[COMPANIES][ROUNDS])
{
    printf("\nfour processes take free locks of %d names; the same\n", CALM_NAMES_MOST);
    for (int company = 0; company < COMPANIES; company++)
        print_company((enum company)company, rounds[company], false);
}
