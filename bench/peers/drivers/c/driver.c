/* SPDX-License-Identifier: MIT
 *
 * A driver's main(): reads the options, opens the session of its backend and runs the mode.
 *
 * Exit code: 0 when it has done what it was asked, 1 when it could not (one line on stderr says
 * why), 2 for bad arguments, 3 for a mode that this kind of lock does not have.
 */
#include "driver.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_us(int64_t duration_us)
{
    struct timespec duration = {.tv_sec = duration_us / 1000000,
                                .tv_nsec = duration_us % 1000000 * 1000};
    if (duration_us > 0)
        nanosleep(&duration, NULL);
}

void problem_set(char *problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, PROBLEM_SIZE, format, arguments);
    va_end(arguments);
}

bool wait_for_go(void)
{
    char line[64];
    puts("ready");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL && strcmp(line, "go\n") == 0;
}

/* Whatever comes next ends the run: the word, or the end of the one who has started us. */
void wait_for_stop(struct run *run)
{
    char line[64];
    char *ignored = fgets(line, sizeof line, stdin);
    (void)ignored;
    atomic_store(&run->stopped, true);
}

static const struct {
    const char *name;
    enum mode mode;
    int (*run)(struct run *run);
} modes[] = {{"pairs", MODE_PAIRS, run_pairs},
             {"hold", MODE_HOLD, run_hold},
             {"die", MODE_DIE, run_die},
             {"queue", MODE_QUEUE, run_queue},
             {"ids", MODE_IDS, run_ids}};

enum { MODES = sizeof modes / sizeof modes[0] };

static bool set_mode(struct settings *settings, const char *name)
{
    for (int i = 0; i < MODES; i++)
        if (strcmp(modes[i].name, name) == 0) {
            settings->mode = modes[i].mode;
            return true;
        }
    return false;
}

static bool set_option(struct settings *settings, int option, const char *value)
{
    switch (option) {
    case 'p':
        settings->peer = value;
        return true;
    case 'u':
        settings->url = value;
        return true;
    case 'l':
        settings->lock = value;
        return true;
    case 'r':
        settings->records = value;
        return true;
    case 't':
        settings->tasks = (int)strtol(value, NULL, 10);
        return settings->tasks > 0;
    case 'o':
        settings->own_locks = strcmp(value, "1") == 0;
        return true;
    case 's':
        settings->section_us = strtoll(value, NULL, 10);
        return true;
    case 'a':
        settings->pause_us = strtoll(value, NULL, 10);
        return true;
    case 'e':
        settings->lease_ms = strtoll(value, NULL, 10);
        return settings->lease_ms > 0;
    case 'w':
        settings->wait = strcmp(value, "1") == 0;
        return true;
    case 'm':
        return set_mode(settings, value);
    default:
        return false;
    }
}

static bool read_options(struct settings *settings, int argc, char **argv)
{
    static const struct option options[] = {
        {"peer", required_argument, NULL, 'p'},       {"url", required_argument, NULL, 'u'},
        {"lock", required_argument, NULL, 'l'},       {"records", required_argument, NULL, 'r'},
        {"tasks", required_argument, NULL, 't'},      {"own-locks", required_argument, NULL, 'o'},
        {"section-us", required_argument, NULL, 's'}, {"pause-us", required_argument, NULL, 'a'},
        {"lease-ms", required_argument, NULL, 'e'},   {"wait", required_argument, NULL, 'w'},
        {"mode", required_argument, NULL, 'm'},       {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (!set_option(settings, option, optarg))
            return false;
    return optind == argc && settings->peer != NULL && settings->url != NULL &&
           settings->lock != NULL && strlen(settings->lock) < LOCK_NAME_SIZE / 2 &&
           (settings->records != NULL || settings->mode != MODE_PAIRS);
}

static bool peer_is_ours(const char *peer)
{
    for (const char *const *name = backend.peers; *name != NULL; name++)
        if (strcmp(*name, peer) == 0)
            return true;
    return false;
}

static bool mode_is_possible(enum mode mode)
{
    return (mode != MODE_HOLD || backend.lasts) && (mode != MODE_IDS || backend.take_ids != NULL);
}

static int open_and_run(const struct settings *settings)
{
    char problem[PROBLEM_SIZE] = "";
    struct run run = {.settings = settings, .session = backend.open(settings, problem)};
    if (run.session == NULL) {
        fprintf(stderr, "%s\n", problem);
        return 1;
    }
    int code = 2;
    for (int i = 0; i < MODES; i++)
        if (modes[i].mode == settings->mode)
            code = modes[i].run(&run);
    backend.close(run.session);
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = {.tasks = 1, .lease_ms = 10000, .wait = true, .mode = MODE_PAIRS};
    if (!read_options(&settings, argc, argv) || !peer_is_ours(settings.peer)) {
        fprintf(stderr, "bad arguments\n");
        return 2;
    }
    if (!mode_is_possible(settings.mode)) {
        fprintf(stderr, "%s\n", backend.refusal);
        return 3;
    }
    if (strchr(settings.url, ',') != NULL && !backend.several_servers) {
        fprintf(stderr, "a lock lives on one server\n");
        return 3;
    }
    return open_and_run(&settings);
}
