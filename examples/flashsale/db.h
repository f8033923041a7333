/* SPDX-License-Identifier: MIT
 *
 * Just enough of a database for the sale, the same for SQLite, PostgreSQL and MariaDB or MySQL.
 * Parameters and results are whole numbers; a statement has `?` where a parameter goes.
 *
 * Errors stick, as with a FILE: after one, statements do nothing and come to -1, until
 * db_commit() or db_rollback() has told of it. So a strategy reads as the SQL that it is, and asks
 * once, at its end. A session is for one thread, and not for the child of a fork(). */
#ifndef FLASHSALE_DB_H
#define FLASHSALE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;

enum db_trouble {
    DB_FINE,
    DB_DUPLICATE, /* a unique key has that value already                                  */
    DB_AGAIN,     /* a deadlock, or others were in the way: the same again may well work  */
    DB_BROKEN     /* anything else; db_why() says what                                    */
};

/* sqlite:PATH or just a path; postgres://...; mysql://user[:password]@host[:port]/database, with
 * ?socket=PATH for a unix socket. NULL: `why` says why not. */
struct db *db_open(const char *url, char *why, size_t capacity);
void db_close(struct db *db); /* NULL is fine */

#define WITH(...) ((const int64_t[]){__VA_ARGS__})

/* Runs one statement with its parameters, WITH(...) or NULL. A SELECT comes to the first number of
 * its first row, or 0 if there is none; other statements to how many rows they have found, whether
 * or not they changed them. */
int64_t db_run(struct db *db, const char *sql, const int64_t *parameters);

void db_begin(struct db *db);
/* The first trouble since the last of these two calls. db_commit() commits only if there was none;
 * without db_begin() both just tell. */
enum db_trouble db_commit(struct db *db);
enum db_trouble db_rollback(struct db *db);

const char *db_why(const struct db *db); /* about the last trouble, for people */

/* ---- For those who write a driver ------------------------------------------------------------ */

#define DB_PARAMETERS_MAX 8

struct db_words {
    char text[256];
};

struct db_driver {
    const char *begin; /* opens a transaction that will write */
    void *(*open)(const char *url, struct db_words *why);
    void (*close)(void *session);
    enum db_trouble (*run)(void *session, const char *sql, int count, const int64_t *parameters,
                           int64_t *number, struct db_words *why);
};

extern const struct db_driver db_sqlite;
#ifdef FLASHSALE_POSTGRES
extern const struct db_driver db_postgres;
#endif
#ifdef FLASHSALE_MYSQL
extern const struct db_driver db_mysql;
#endif

#endif
