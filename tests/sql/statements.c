/* SPDX-License-Identifier: MIT
 *
 * Reads a file of named statements: "-- name: NAME", then the statement, which ends with the
 * semicolon at the end of a line. Everything else is a comment. */
#include "statements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS_MAX 16
#define MARK           "-- name: "

static struct {
    char name[64];
    char text[512];
} statements[STATEMENTS_MAX];
static int count;

static const char *path_for(const char *url)
{
    if (strncmp(url, "postgres", 8) == 0)
        return HF_SQL_DIR "/fence_postgres.sql";
    if (strncmp(url, "mysql", 5) == 0)
        return HF_SQL_DIR "/fence_mariadb.sql";
    return HF_SQL_DIR "/fence_sqlite.sql";
}

static void begin_statement(const char *line)
{
    size_t length = strcspn(line, " \n");
    assert_true(count < STATEMENTS_MAX && length < sizeof statements[0].name);
    memcpy(statements[count].name, line, length);
    statements[count].name[length] = '\0';
    statements[count].text[0] = '\0';
}

/* True when the statement is complete. */
static bool add_line(const char *line)
{
    char *text = statements[count].text;
    size_t used = strlen(text), length = strcspn(line, "\n");
    bool complete = length > 0 && line[length - 1] == ';';
    length -= complete ? 1 : 0;
    assert_true(used + length + 2 < sizeof statements[0].text);
    snprintf(text + used, sizeof statements[0].text - used, "%.*s ", (int)length, line);
    return complete;
}

void statements_load(const char *url)
{
    char line[256];
    bool inside = false;
    FILE *file = fopen(path_for(url), "r");
    assert_non_null(file);
    count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, MARK, strlen(MARK)) == 0) {
            assert_false(inside);
            begin_statement(line + strlen(MARK));
            inside = true;
        } else if (inside && add_line(line)) {
            inside = false;
            count++;
        }
    }
    fclose(file);
    assert_false(inside);
}

const char *statement(const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(statements[i].name, name) == 0)
            return statements[i].text;
    fail_msg("no statement is called %s", name);
    return NULL;
}
