/* SPDX-License-Identifier: MIT */
/* holdfast-mixed: clients of an older library and of this one share locks, while processes of both
 * are killed and stopped; then a judge reads what everybody believed.
 *
 *     holdfast-mixed --old WORKER --new WORKER [--servers 1|3] [--seconds N] [--seed S]
 *                    [--measure] [--keep] [--sabotage delete|lie]
 *
 * --old, --new  the worker (worker.c), built with either library
 * --servers     one server, or a quorum of three
 * --measure     afterwards, in calm: what is slower for either side when the other one is there
 * --keep        leaves the run's folder, with the ledgers and the logs of the servers
 * --sabotage    delete: somebody deletes keys of locks; lie: some fences are written down too
 * small. The exit status is 0 if, and only if, the judge finds exactly that kind of fault
 *
 * The seed decides what is tried. Real time is not repeatable, so the same seed gives a similar
 * run, not the same one. Everything started here dies with this process and is ended by its number.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"
#include "judge.h"
#include "run.h"

enum { SECONDS_MAX = 86400, RUSH_MS = 3000, CALM_MS = 1000, CALM_CREW = 4 };

static struct run run = {.seed = 1, .seconds = 10, .server_count = 1};
static struct crew crew = {.frozen = -1};
static bool measure;
static bool keep;
static pid_t driver;

/* ---- Options --------------------------------------------------------------------------------- */

static bool read_number(const char *text, unsigned long long most, unsigned long long *number)
{
    char *end;
    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0' && *number <= most;
}

static bool read_sabotage(const char *text)
{
    if (strcmp(text, "delete") == 0)
        run.sabotage = SABOTAGE_DELETE;
    else if (strcmp(text, "lie") == 0)
        run.sabotage = SABOTAGE_LIE;
    return run.sabotage != SABOTAGE_NONE;
}

static bool read_option(int option)
{
    unsigned long long number = 0;
    switch (option) {
    case 'o':
    case 'n':
        run.programs[option == 'o' ? SIDE_OLD : SIDE_NEW] = optarg;
        return true;
    case 'v':
        run.server_count = strcmp(optarg, "3") == 0 ? 3 : 1;
        return run.server_count == 3 || strcmp(optarg, "1") == 0;
    case 's':
        run.seconds = read_number(optarg, SECONDS_MAX, &number) ? (int)number : 0;
        return run.seconds > 0;
    case 'r':
        return read_number(optarg, UINT64_MAX, (unsigned long long *)&run.seed);
    case 'm':
        return measure = true;
    case 'k':
        return keep = true;
    case 'b':
        return read_sabotage(optarg);
    default:
        return false;
    }
}

static bool read_options(int count, char **arguments)
{
    static const struct option known[] = {
        {"old", required_argument, NULL, 'o'},
        {"new", required_argument, NULL, 'n'},
        {"servers", required_argument, NULL, 'v'},
        {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'r'},
        {"measure", no_argument, NULL, 'm'},
        {"keep", no_argument, NULL, 'k'},
        {"sabotage", required_argument, NULL, 'b'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(count, arguments, "", known, NULL)) != -1)
        if (!read_option(option))
            return false;
    return optind == count && run.programs[SIDE_OLD] != NULL && run.programs[SIDE_NEW] != NULL;
}

/* ---- The storm ------------------------------------------------------------------------------- */

/* Whether every lock ends with its lease, whoever died with it. */
static void expect_all_free(void)
{
    int64_t give_up_ns = now_ns() + (2 * LEASE_MOST_MS + 1000) * MS_NS;
    long long held = 1;
    while (held > 0 && now_ns() < give_up_ns) {
        held = 0;
        for (int i = 0; i < run.server_count; i++)
            for (int lock = 0; lock < LOCKS; lock++)
                held += raw_number(run.servers[i], "EXISTS " MIXED_PREFIX "lock-%d", lock);
        sleep_ms(20);
    }
    if (held > 0)
        complain(crew.board, "%lld locks outlive their lease", held);
}

static bool has_passed(const struct findings *findings, bool progress)
{
    bool healthy = !findings->unreadable && atomic_load(&crew.board->complaints) == 0 && progress;
    if (run.sabotage == SABOTAGE_DELETE)
        return findings->overlap;
    if (run.sabotage == SABOTAGE_LIE)
        return findings->fences && !findings->overlap && healthy;
    return !findings->overlap && !findings->fences && healthy;
}

static bool storm(void)
{
    size_t count = 0;
    printf("storm: %d server%s, %d processes of each side, %d threads each, %d locks, %d s\n",
           run.server_count, run.server_count > 1 ? "s" : "", CREW / 2, THREADS, LOCKS,
           run.seconds);
    (void)fflush(stdout);
    if (!crew_begin(&crew, &run, MODE_STORM, CREW / 2, CREW / 2))
        return false;
    crew_work(&crew, run.seconds * 1000);
    crew_end(&crew);
    expect_all_free();
    struct record *records = ledger_records(crew.folder, sizeof(struct record), &count);
    if (records == NULL) {
        printf("\nThe ledger is unreadable or torn.\n");
        return false;
    }
    printf("%d kills, %d stops, a server stood still %d times; the wall clock stepped by %.3f ms\n",
           crew.killed, crew.stopped, crew.servers_frozen,
           (double)run.wall_step_ns / (double)MS_NS);
    bool progress = figures_of_storm(records, count, crew.board, run.seconds);
    struct findings findings = judge(records, count, run.server_count > 1);
    if (atomic_load(&crew.board->complaints) > 0)
        printf("\n%d complaints, the first: %s\n", atomic_load(&crew.board->complaints),
               crew.board->complaint);
    free(records);
    return has_passed(&findings, progress);
}

/* ---- Peace ----------------------------------------------------------------------------------- */

/* Runs a crew in peace, and judges it. NULL: it cannot be read; otherwise to be freed. */
static struct record *in_peace(const char *mode, int old, int new, int64_t duration_ms,
                               size_t *count, bool *passed)
{
    if (!crew_begin(&crew, &run, mode, old, new))
        return NULL;
    crew_work(&crew, duration_ms);
    crew_end(&crew);
    struct record *records = ledger_records(crew.folder, sizeof(struct record), count);
    if (records == NULL)
        return NULL;
    struct findings findings = judge(records, *count, run.server_count > 1);
    if (atomic_load(&crew.board->complaints) > 0)
        printf("%s\n", crew.board->complaint);
    *passed = !findings.unreadable && !findings.overlap && !findings.fences &&
              atomic_load(&crew.board->complaints) == 0;
    return records;
}

/* Fences must grow also where an older client reserves many that it does not use. */
static bool rush(void)
{
    size_t count = 0;
    bool passed = false;
    struct record *records =
        in_peace(MODE_RUSH, CALM_CREW / 2, CALM_CREW / 2, RUSH_MS, &count, &passed);
    printf("rush: %d processes of each side, %d threads each, one lock: %zu grants\n",
           CALM_CREW / 2, THREADS, count);
    free(records);
    return passed;
}

static bool calm_round(const char *mode, enum company company, struct calm_round *round)
{
    static const int old[] = {CALM_CREW, 0, CALM_CREW / 2};
    size_t count = 0;
    bool passed = false;
    struct record *records =
        in_peace(mode, old[company], CALM_CREW - old[company], CALM_MS, &count, &passed);
    if (records != NULL)
        *round = figures_of_calm(records, count, CALM_MS);
    free(records);
    return passed;
}

/* Companies take turns, each first in every third round, so that a busy minute hits all. */
static bool calm(const char *mode, void (*print)(struct calm_round rounds[COMPANIES][ROUNDS]))
{
    static struct calm_round rounds[COMPANIES][ROUNDS];
    bool passed = true;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < COMPANIES; i++) {
            enum company company = (enum company)((round + i) % COMPANIES);
            passed = calm_round(mode, company, &rounds[company][round]) && passed;
        }
    print(rounds);
    return passed;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* Runs at every exit, also when a helper gives up; children leave by _exit() and never get here. */
static void clean_up(void)
{
    if (getpid() != driver)
        return;
    crew_kill(&crew);
    if (!keep) {
        redis_server_end_all();
        return;
    }
    printf("kept: %s\n", run.servers[0]->folder);
    for (int i = 0; i < run.server_count; i++)
        redis_server_kill(run.servers[i]);
}

static void interrupt(int number)
{
    (void)number;
    exit(2);
}

int main(int count, char **arguments)
{
    if (!read_options(count, arguments)) {
        (void)fprintf(stderr,
                      "usage: %s --old WORKER --new WORKER [--servers 1|3] [--seconds N]\n"
                      "    [--seed S] [--measure] [--keep] [--sabotage delete|lie]\n",
                      arguments[0]);
        return 2;
    }
    driver = getpid();
    if (atexit(clean_up) != 0)
        return 2;
    (void)signal(SIGINT, interrupt);
    (void)signal(SIGTERM, interrupt);
    run_begin(&run);
    bool passed = storm();
    if (run.sabotage == SABOTAGE_NONE)
        passed = rush() && passed;
    if (measure)
        passed = calm(MODE_QUEUE, print_queue) && calm(MODE_NAMES, print_names) && passed;
    printf("\n%s: %d server%s, seed %llu\n", passed ? "PASS" : "FAIL", run.server_count,
           run.server_count > 1 ? "s" : "", (unsigned long long)run.seed);
    return passed ? 0 : 1;
}
