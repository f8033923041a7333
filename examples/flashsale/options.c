/* SPDX-License-Identifier: MIT
 *
 * The command line. */
#include "sale.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: holdfast-flashsale [OPTIONS]\n"
    "Sells few items to many buyers, in six ways, and counts what came of it.\n"
    "  --redis URL      the Redis server (default redis://localhost); names begin with flashsale:\n"
    "  --db URL         a file (SQLite), postgres://... or mysql://...; the tables flashsale_item\n"
    "                   and flashsale_order are made anew there (default: a temporary file)\n"
    "  --buyers N       how many want one (default 1000); each clicks twice\n"
    "  --stock N        how many there are (default 100)\n"
    "  --processes N    of the shop (default 4)\n"
    "  --threads N      of each process (default 8)\n"
    "  --chaos          processes are killed and stopped in the middle of a sale, and replaced;\n"
    "                   needs a stock of at least 4\n"
    "  --only LIST      only some of the ways, such as 1,3\n"
    "  --seed N         who comes when, and who is struck (default 1)\n"
    "Exit code 0: all as promised; 1: not; 2: cannot even begin; 130: interrupted\n";

static bool parse_number(const char *text, long least, long most, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    *number = (int)value;
    return *text != '\0' && *end == '\0' && value >= least && value <= most;
}

static bool parse_list(const char *text, bool *chosen)
{
    memset(chosen, 0, STRATEGIES * sizeof *chosen);
    for (;;) {
        int which = *text - '1';
        if (which < 0 || which >= STRATEGIES)
            return false;
        chosen[which] = true;
        if (text[1] == '\0')
            return true;
        if (text[1] != ',')
            return false;
        text += 2;
    }
}

static bool take(struct options *options, int option, const char *value)
{
    int seed;
    switch (option) {
    case 'r':
        options->redis_url = value;
        return true;
    case 'd':
        options->db_url = value;
        return true;
    case 'b':
        return parse_number(value, 1, 1000000, &options->buyers);
    case 's':
        return parse_number(value, 1, 1000000, &options->stock);
    case 'p':
        return parse_number(value, 1, 64, &options->processes);
    case 't':
        return parse_number(value, 1, 64, &options->threads);
    case 'c':
        options->chaos = true;
        return true;
    case 'o':
        return parse_list(value, options->chosen);
    case 'e':
        if (!parse_number(value, 0, 1000000000, &seed))
            return false;
        options->seed = (unsigned int)seed;
        return true;
    default:
        return false;
    }
}

bool options_parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"redis", required_argument, NULL, 'r'},
                                          {"db", required_argument, NULL, 'd'},
                                          {"buyers", required_argument, NULL, 'b'},
                                          {"stock", required_argument, NULL, 's'},
                                          {"processes", required_argument, NULL, 'p'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"chaos", no_argument, NULL, 'c'},
                                          {"only", required_argument, NULL, 'o'},
                                          {"seed", required_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *options = (struct options){.buyers = 1000,
                                .stock = 100,
                                .processes = 4,
                                .threads = 8,
                                .seed = 1,
                                .redis_url = "redis://localhost"};
    memset(options->chosen, true, sizeof options->chosen);
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (take(options, option, optarg))
            continue;
        fputs(usage, stderr);
        return false;
    }
    if (optind == argc && (!options->chaos || options->stock >= MISHAPS_MAX))
        return true;
    fputs(usage, stderr);
    return false;
}
