/* SPDX-License-Identifier: MIT */
/* holdfast-chaos: live faults. A real server, real processes, a network of ours in between, and
 * faults from a seed; then the judge of the simulator (tests/lib/history.h) reads what everybody
 * believed.
 *
 *     holdfast-chaos --seconds N --seed S [--keep] [--sabotage] [--expect-fail]
 *
 * --keep         leaves the run's folder: ledger, counters, the server's log and data
 * --sabotage     the foreign program deletes keys that are not its own; must end in an overlap
 * --expect-fail  exit status 0 if, and only if, an overlap was found
 *
 * The seed decides what is tried. Real time is not repeatable, so the same seed gives a similar
 * run, not the same one. Everything started here dies with this process and is ended by its number.
 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "storm.h"

enum { SECONDS_MAX = 86400 };

static struct chaos chaos = {.seed = 1, .seconds = 10};
static struct storm storm;
static pid_t driver;
static volatile int interrupted;

/* ---- The board ------------------------------------------------------------------------------- */

void complain(struct board *board, const char *format, ...)
{
    if (atomic_fetch_add(&board->complaints, 1) != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(board->complaint, sizeof(board->complaint), format, arguments);
    va_end(arguments);
}

void raise_to(atomic_llong *most, long long value)
{
    long long seen = atomic_load(most);
    while (value > seen && !atomic_compare_exchange_weak(most, &seen, value))
        ;
}

void lock_name(char name[16], int lock)
{
    (void)snprintf(name, 16, "lock-%d", lock);
}

static struct board *board_new(void)
{
    struct board *board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return NULL;
    for (int i = 0; i < LOCKS; i++)
        atomic_store(&board->held_by[i], -1);
    return board;
}

/* ---- The program ----------------------------------------------------------------------------- */

static bool read_number(const char *text, unsigned long long most, unsigned long long *number)
{
    char *end;
    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0' && *number <= most;
}

static bool read_options(int count, char **arguments)
{
    static const struct option known[] = {
        {"seconds", required_argument, NULL, 's'}, {"seed", required_argument, NULL, 'r'},
        {"keep", no_argument, NULL, 'k'},          {"sabotage", no_argument, NULL, 'b'},
        {"expect-fail", no_argument, NULL, 'x'},   {NULL, 0, NULL, 0},
    };
    unsigned long long number;
    int option;
    while ((option = getopt_long(count, arguments, "", known, NULL)) != -1) {
        if (option == 's' && read_number(optarg, SECONDS_MAX, &number) && number > 0)
            chaos.seconds = (int)number;
        else if (option == 'r' && read_number(optarg, UINT64_MAX, &number))
            chaos.seed = number;
        else if (option == 'k')
            chaos.keep = true;
        else if (option == 'b')
            chaos.sabotage = true;
        else if (option == 'x')
            chaos.expect_fail = true;
        else
            return false;
    }
    return optind == count;
}

/* Runs at every exit, also when a helper gives up; children leave by _exit() and never get here. */
static void clean_up(void)
{
    if (getpid() != driver)
        return;
    storm_end(&storm);
    if (chaos.keep)
        printf("kept: %s\n", chaos.folder);
    else
        redis_server_end_all();
}

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

int main(int count, char **arguments)
{
    if (!read_options(count, arguments)) {
        (void)fprintf(stderr,
                      "usage: %s --seconds N --seed S [--keep] [--sabotage] [--expect-fail]\n",
                      arguments[0]);
        return 2;
    }
    driver = getpid();
    chaos.board = board_new();
    if (chaos.board == NULL || atexit(clean_up) != 0)
        return 2;
    (void)signal(SIGINT, interrupt);
    (void)signal(SIGTERM, interrupt);
    if (!storm_begin(&storm, &chaos)) {
        (void)fprintf(stderr, "cannot start\n");
        return 2;
    }
    storm_blow(&storm, &interrupted);
    storm_settle(&storm);
    const char *leftovers = storm_leftovers(&storm);
    struct verdict verdict = report(&chaos, arguments[0], leftovers);
    if (interrupted) {
        printf("interrupted, so this was not the whole run\n");
        return 2;
    }
    if (chaos.expect_fail)
        return verdict.overlap ? 0 : 1;
    return verdict.passed ? 0 : 1;
}
