/* SPDX-License-Identifier: MIT
 *
 * A session with whichever database the URL names. Keeps the one piece of state that the drivers
 * need not know: the first trouble of a transaction, after which nothing more is sent until
 * somebody has been told. */
#include "db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct db {
    const struct db_driver *driver;
    void *session;
    bool in_transaction;
    enum db_trouble trouble;
    struct db_words why;
};

static const struct {
    const char *scheme;
    const struct db_driver *driver;
} drivers[] = {
#ifdef FLASHSALE_POSTGRES
    {"postgres://", &db_postgres}, {"postgresql://", &db_postgres},
#endif
#ifdef FLASHSALE_MYSQL
    {"mysql://", &db_mysql},       {"mariadb://", &db_mysql},
#endif
    {"sqlite:", &db_sqlite},
};

static const struct db_driver *driver_for(const char *url)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strncmp(url, drivers[i].scheme, strlen(drivers[i].scheme)) == 0)
            return drivers[i].driver;
    return strstr(url, "://") == NULL ? &db_sqlite : NULL;
}

struct db *db_open(const char *url, char *why, size_t capacity)
{
    struct db *db = calloc(1, sizeof *db);
    if (db == NULL) {
        snprintf(why, capacity, "out of memory");
        return NULL;
    }
    db->driver = driver_for(url);
    if (db->driver == NULL)
        snprintf(db->why.text, sizeof db->why.text, "no driver for it was built in");
    else
        db->session = db->driver->open(url, &db->why);
    if (db->session == NULL) {
        snprintf(why, capacity, "%s", db->why.text);
        free(db);
        return NULL;
    }
    return db;
}

void db_close(struct db *db)
{
    if (db == NULL)
        return;
    db->driver->close(db->session);
    free(db);
}

static int count_parameters(const char *sql)
{
    int count = 0;
    for (; *sql != '\0'; sql++)
        count += *sql == '?';
    return count;
}

int64_t db_run(struct db *db, const char *sql, const int64_t *parameters)
{
    int64_t number = 0;
    if (db->trouble != DB_FINE)
        return -1;
    db->trouble =
        db->driver->run(db->session, sql, count_parameters(sql), parameters, &number, &db->why);
    return db->trouble == DB_FINE ? number : -1;
}

void db_begin(struct db *db)
{
    db->in_transaction = db_run(db, db->driver->begin, NULL) >= 0;
}

static enum db_trouble tell(struct db *db)
{
    enum db_trouble trouble = db->trouble;
    db->trouble = DB_FINE;
    return trouble;
}

enum db_trouble db_commit(struct db *db)
{
    if (db->in_transaction && db_run(db, "COMMIT", NULL) >= 0)
        db->in_transaction = false;
    return db_rollback(db);
}

enum db_trouble db_rollback(struct db *db)
{
    enum db_trouble trouble = tell(db);
    if (db->in_transaction) {
        struct db_words ignored; /* it may be over already, with the trouble */
        int64_t none;
        db->driver->run(db->session, "ROLLBACK", 0, NULL, &none, &ignored);
        db->in_transaction = false;
    }
    return trouble;
}

const char *db_why(const struct db *db)
{
    return db->why.text;
}
