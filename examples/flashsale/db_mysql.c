/* SPDX-License-Identifier: MIT
 *
 * MariaDB and MySQL through MariaDB's connector. CLIENT_FOUND_ROWS matters: without it an UPDATE
 * counts the rows that it has changed, not those that it has found, so writing the same values
 * again would look as if the condition had failed. */
#include "db.h"

#include <mysql.h>
#include <mysqld_error.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT_IS_OLD 1020 /* ER_CHECKREAD, with innodb_snapshot_isolation */

struct address {
    char text[512]; /* cut into pieces, to which the others point; NULL: not given */
    char *user, *password, *host, *database, *socket;
    unsigned int port;
};

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void library_begin(void)
{
    mysql_library_init(0, NULL, NULL);
}

/* Cuts `text` at the first separator and returns what is behind it; NULL: there is none. */
static char *cut(char *text, char separator)
{
    char *at = text == NULL ? NULL : strchr(text, separator);
    if (at != NULL)
        *at++ = '\0';
    return at;
}

static void address_parse(const char *url, struct address *address)
{
    snprintf(address->text, sizeof address->text, "%s", strstr(url, "://") + 3);
    char *query = cut(address->text, '?');
    address->database = cut(address->text, '/');
    address->host = cut(address->text, '@');
    address->user = address->host != NULL ? address->text : NULL;
    if (address->host == NULL)
        address->host = address->text;
    address->password = cut(address->user, ':');
    const char *port = cut(address->host, ':');
    address->port = port == NULL ? 0 : (unsigned int)strtoul(port, NULL, 10);
    address->socket = query != NULL && strncmp(query, "socket=", 7) == 0 ? query + 7 : NULL;
    if (address->socket != NULL || *address->host == '\0')
        address->host = NULL;
}

static void mysql_end(void *session)
{
    mysql_close(session);
}

static void *mysql_begin(const char *url, struct db_words *why)
{
    struct address address;
    address_parse(url, &address);
    pthread_once(&library_once, library_begin);
    MYSQL *session = mysql_init(NULL);
    if (session == NULL) {
        snprintf(why->text, sizeof why->text, "out of memory");
        return NULL;
    }
    if (mysql_real_connect(session, address.host, address.user, address.password, address.database,
                           address.port, address.socket, CLIENT_FOUND_ROWS) != NULL)
        return session;
    snprintf(why->text, sizeof why->text, "%s", mysql_error(session));
    mysql_close(session);
    return NULL;
}

static enum db_trouble trouble_of(unsigned int number, const char *text, struct db_words *why)
{
    snprintf(why->text, sizeof why->text, "%s", text);
    switch (number) {
    case ER_DUP_ENTRY:
        return DB_DUPLICATE;
    case ER_LOCK_DEADLOCK:
    case ER_LOCK_WAIT_TIMEOUT:
    case SNAPSHOT_IS_OLD:
        return DB_AGAIN;
    default:
        return DB_BROKEN;
    }
}

/* Without parameters: as text, for BEGIN and its like are not to be had as prepared statements
 * everywhere. */
static enum db_trouble run_plain(MYSQL *session, const char *sql, int64_t *number,
                                 struct db_words *why)
{
    if (mysql_query(session, sql) != 0)
        return trouble_of(mysql_errno(session), mysql_error(session), why);
    MYSQL_RES *result = mysql_store_result(session);
    if (result == NULL) {
        *number = (int64_t)mysql_affected_rows(session);
        return DB_FINE;
    }
    MYSQL_ROW row = mysql_fetch_row(result);
    *number = row != NULL && row[0] != NULL ? strtoll(row[0], NULL, 10) : 0;
    mysql_free_result(result);
    return DB_FINE;
}

static bool fetch_number(MYSQL_STMT *statement, int64_t *number)
{
    if (mysql_stmt_field_count(statement) == 0) {
        *number = (int64_t)mysql_stmt_affected_rows(statement);
        return true;
    }
    MYSQL_BIND place = {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = number};
    *number = 0;
    if (mysql_stmt_bind_result(statement, &place) != 0)
        return false;
    int fetched = mysql_stmt_fetch(statement);
    return fetched == 0 || fetched == MYSQL_NO_DATA;
}

static enum db_trouble mysql_run(void *session, const char *sql, int count,
                                 const int64_t *parameters, int64_t *number, struct db_words *why)
{
    if (count == 0)
        return run_plain(session, sql, number, why);
    MYSQL_BIND binds[DB_PARAMETERS_MAX] = {{0}};
    int64_t values[DB_PARAMETERS_MAX];
    MYSQL_STMT *statement = count <= DB_PARAMETERS_MAX ? mysql_stmt_init(session) : NULL;
    if (statement == NULL)
        return trouble_of(0, "too many parameters, or out of memory", why);
    for (int i = 0; i < count; i++) {
        values[i] = parameters[i];
        binds[i] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &values[i]};
    }
    bool good = mysql_stmt_prepare(statement, sql, strlen(sql)) == 0 &&
                mysql_stmt_bind_param(statement, binds) == 0 &&
                mysql_stmt_execute(statement) == 0 && fetch_number(statement, number);
    enum db_trouble trouble =
        good ? DB_FINE : trouble_of(mysql_stmt_errno(statement), mysql_stmt_error(statement), why);
    mysql_stmt_close(statement);
    return trouble;
}

const struct db_driver db_mysql = {"START TRANSACTION", mysql_begin, mysql_end, mysql_run};
