/* SPDX-License-Identifier: MIT
 *
 * SQLite: a file that all processes open. In WAL mode readers do not wait for the writer, of whom
 * there is one at a time; the others wait in busy(). A writer that is killed leaves nothing behind
 * but what it had committed.
 *
 * A transaction begins as IMMEDIATE. A plain BEGIN takes the right to write only with the first
 * write, and if somebody else has written since its first read, it never gets it. */
#include "db.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUSY_PAUSE_US 500
#define BUSY_LIMIT    60000 /* pauses: 30 s */

/* SQLite's own handler soon sleeps for 100 ms at a time, which is long in a flash sale. */
static int busy(void *nothing, int times)
{
    (void)nothing;
    usleep(BUSY_PAUSE_US);
    return times < BUSY_LIMIT;
}

static enum db_trouble trouble_of(sqlite3 *session, struct db_words *why)
{
    snprintf(why->text, sizeof why->text, "%s", sqlite3_errmsg(session));
    switch (sqlite3_extended_errcode(session)) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
        return DB_DUPLICATE;
    default:
        break;
    }
    return sqlite3_errcode(session) == SQLITE_BUSY ? DB_AGAIN : DB_BROKEN;
}

static void sqlite_close(void *session)
{
    sqlite3_close(session);
}

static void *sqlite_open(const char *url, struct db_words *why)
{
    sqlite3 *session = NULL;
    const char *path = strncmp(url, "sqlite:", 7) == 0 ? url + 7 : url;
    if (sqlite3_open(path, &session) == SQLITE_OK) {
        sqlite3_busy_handler(session, busy, NULL);
        if (sqlite3_exec(session, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", NULL,
                         NULL, NULL) == SQLITE_OK)
            return session;
    }
    snprintf(why->text, sizeof why->text, "%s: %s", path, sqlite3_errmsg(session));
    sqlite3_close(session);
    return NULL;
}

static enum db_trouble sqlite_run(void *opaque, const char *sql, int count,
                                  const int64_t *parameters, int64_t *number, struct db_words *why)
{
    sqlite3 *session = opaque;
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(session, sql, -1, &statement, NULL) != SQLITE_OK)
        return trouble_of(session, why);
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, i + 1, parameters[i]);
    int step = sqlite3_step(statement);
    if (sqlite3_column_count(statement) > 0)
        *number = step == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    else
        *number = sqlite3_changes64(session);
    bool good = step == SQLITE_ROW || step == SQLITE_DONE;
    enum db_trouble trouble = good ? DB_FINE : trouble_of(session, why);
    sqlite3_finalize(statement);
    return trouble;
}

const struct db_driver db_sqlite = {"BEGIN IMMEDIATE", sqlite_open, sqlite_close, sqlite_run};
