/* SPDX-License-Identifier: MIT
 *
 * GET_LOCK() and RELEASE_LOCK() of MariaDB, which belong to the connection and end with it. A wait
 * without limit is one of a week. Names of locks are the runner's and need no quoting; one that has
 * a quote in it is refused by the server.
 */
#include <mysql.h>
#include <stdio.h>

#include "wire.h"

#define WEEK_S         604800
#define STATEMENT_SIZE (LOCK_NAME_SIZE + 64)

void *wire_dial(const struct settings *settings, char *problem)
{
    char user[64], host[128];
    unsigned port;
    if (sscanf(settings->url, "mysql://%63[^@]@%127[^:]:%u", user, host, &port) != 3) {
        problem_set(problem, "not mysql://user@host:port: %s", settings->url);
        return NULL;
    }
    MYSQL *connection = mysql_init(NULL);
    if (connection != NULL &&
        mysql_real_connect(connection, host, user, NULL, NULL, port, NULL, 0) != NULL)
        return connection;
    problem_set(problem, "%s", connection != NULL ? mysql_error(connection) : "out of memory");
    wire_hang_up(connection);
    return NULL;
}

void wire_hang_up(void *connection)
{
    if (connection != NULL)
        mysql_close(connection);
}

/* 1 or 0 as the statement says, -1 if it says neither. */
static int ask(MYSQL *connection, const char *statement, char *problem)
{
    int answer = -1;
    MYSQL_RES *result = NULL;
    if (mysql_query(connection, statement) == 0)
        result = mysql_store_result(connection);
    MYSQL_ROW row = result != NULL ? mysql_fetch_row(result) : NULL;
    if (row != NULL && row[0] != NULL)
        answer = row[0][0] == '1';
    else
        problem_set(problem, "%s: %s", statement, mysql_error(connection));
    if (result != NULL)
        mysql_free_result(result);
    return answer;
}

static enum outcome acquire(void *arg, char *problem)
{
    const struct wire_place *place = arg;
    char statement[STATEMENT_SIZE];
    snprintf(statement, sizeof statement, "SELECT GET_LOCK('%s', %d)", place->lock,
             place->settings->wait ? WEEK_S : 0);
    int answer = ask(place->connection, statement, problem);
    if (answer < 0)
        return FAILED;
    return answer == 1 ? GOT : REFUSED;
}

static bool release(void *arg, char *problem)
{
    const struct wire_place *place = arg;
    char statement[STATEMENT_SIZE];
    snprintf(statement, sizeof statement, "SELECT RELEASE_LOCK('%s')", place->lock);
    return ask(place->connection, statement, problem) == 1;
}

static const char *const peers[] = {"mariadb", NULL};

const struct backend backend = {.peers = peers,
                                WIRE_PLACES,
                                .acquire = acquire,
                                .release = release,
                                .lasts = true,
                                .refusal = "GET_LOCK is no source of ids"};
