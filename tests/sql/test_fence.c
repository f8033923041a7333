/* SPDX-License-Identifier: MIT
 *
 * The fence guard in SQL, with the statements of examples/flashsale/fence_*.sql. `old` is a session
 * of a holder that was stopped past its lease, `new` one of its successor, whose fence is larger.
 *
 * HOLDFAST_SQL_URL says which database; without it, a SQLite file in a temporary folder. Its tables
 * account, fence_guard and history are dropped. */
#include "statements.h"

#include <db.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OLD_FENCE 5
#define NEW_FENCE 6
#define THING     1

static char folder[] = "/tmp/holdfast-sql-XXXXXX";
static char own_url[64];
static const char *url;
static struct db *old, *new;

static bool is_sqlite(void)
{
    return url == own_url;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* Runs a statement of the file, all by itself, and expects no trouble. */
static int64_t run(struct db *db, const char *name, const int64_t *parameters)
{
    int64_t number = db_run(db, statement(name), parameters);
    if (number < 0)
        fail_msg("%s: %s", name, db_why(db));
    return number;
}

static int64_t ask(struct db *db, const char *sql)
{
    int64_t number = db_run(db, sql, NULL);
    if (number < 0)
        fail_msg("%s: %s", sql, db_why(db));
    return number;
}

static bool raises_row(struct db *db, int64_t fence)
{
    return run(db, "raise_row", WITH(fence, THING, fence)) == 1;
}

static bool writes_row(struct db *db, int64_t balance, int64_t fence)
{
    return run(db, "write_row", WITH(balance, fence, THING, fence)) == 1;
}

static int64_t balance(struct db *db)
{
    return ask(db, "SELECT balance FROM account WHERE id = 1");
}

/* First thing in a transaction; what it came to is not looked at. */
static int64_t raise_guard(struct db *db, int64_t fence)
{
    db_run(db, statement("raise_guard"), WITH(THING, fence));
    return db_run(db, statement("read_guard"), WITH(THING));
}

/* A whole transaction over two tables. */
static enum db_trouble try_transfer(struct db *db, int64_t value, int64_t fence, bool *refused)
{
    db_begin(db);
    int64_t newest = raise_guard(db, fence);
    *refused = newest >= 0 && newest != fence;
    if (*refused)
        return db_rollback(db);
    db_run(db, "UPDATE account SET balance = ? WHERE id = 1", WITH(value));
    db_run(db, statement("add_history"), WITH(THING, fence, value, value));
    return db_commit(db);
}

/* Until the database has decided. True: done; false: the fence was too old. */
static bool transfers(struct db *db, int64_t value, int64_t fence)
{
    bool refused;
    enum db_trouble trouble;
    while ((trouble = try_transfer(db, value, fence, &refused)) == DB_AGAIN)
        ;
    if (trouble != DB_FINE)
        fail_msg("%s", db_why(db));
    return !refused;
}

/* ---- A row that keeps its fence -------------------------------------------------------------- */

static void one_who_wakes_up_late_is_refused(void **state)
{
    (void)state;
    assert_true(writes_row(old, 110, OLD_FENCE));
    assert_true(writes_row(new, 120, NEW_FENCE));
    assert_false(writes_row(old, 130, OLD_FENCE));
    assert_int_equal(balance(new), 120);
}

/* Also if that changes nothing: it must not look like a refusal. */
static void a_holder_may_write_again(void **state)
{
    (void)state;
    assert_true(writes_row(new, 120, NEW_FENCE));
    assert_true(writes_row(new, 120, NEW_FENCE));
    assert_true(raises_row(new, NEW_FENCE));
    assert_true(raises_row(new, NEW_FENCE));
    assert_true(writes_row(new, 121, NEW_FENCE));
    assert_int_equal(balance(new), 121);
}

/* Why the fence goes first: here it does not, and an update is lost. */
static void without_raising_first_a_late_write_can_slip_in(void **state)
{
    (void)state;
    int64_t seen_by_old = balance(old), seen_by_new = balance(new);
    assert_true(writes_row(old, seen_by_old + 1, OLD_FENCE));
    assert_true(writes_row(new, seen_by_new + 1, NEW_FENCE));
    assert_int_equal(balance(new), 101); /* two have added one */
}

static void what_is_read_after_raising_stays_true(void **state)
{
    (void)state;
    assert_true(raises_row(old, OLD_FENCE));
    int64_t seen_by_old = balance(old);
    assert_true(raises_row(new, NEW_FENCE));
    int64_t seen_by_new = balance(new);
    assert_false(writes_row(old, seen_by_old + 1, OLD_FENCE));
    assert_true(writes_row(new, seen_by_new + 1, NEW_FENCE));
    assert_false(raises_row(old, OLD_FENCE));
    assert_int_equal(balance(new), 101);
}

static void the_largest_fence_fits(void **state)
{
    (void)state;
    assert_true(writes_row(new, 120, INT64_MAX));
    assert_false(writes_row(old, 130, INT64_MAX - 1));
    assert_int_equal(balance(new), 120);
    assert_true(transfers(new, 121, INT64_MAX));
    assert_false(transfers(old, 131, INT64_MAX - 1));
}

/* ---- A guard for several tables -------------------------------------------------------------- */

static void a_late_transaction_changes_nothing(void **state)
{
    (void)state;
    assert_true(transfers(old, 110, OLD_FENCE));
    assert_true(transfers(new, 120, NEW_FENCE));
    assert_false(transfers(old, 130, OLD_FENCE));
    assert_true(transfers(new, 121, NEW_FENCE));
    assert_int_equal(balance(new), 121);
    assert_int_equal(ask(new, "SELECT count(*) FROM history"), 3);
}

static void *old_transfers(void *nothing)
{
    (void)nothing;
    return transfers(old, 130, OLD_FENCE) ? old : NULL;
}

/* Whether it waits for the new one or comes after it, it sees its fence. */
static void one_who_waits_for_a_newer_one_is_refused(void **state)
{
    (void)state;
    pthread_t thread;
    void *done;
    db_begin(new);
    assert_int_equal(raise_guard(new, NEW_FENCE), NEW_FENCE);
    assert_int_equal(pthread_create(&thread, NULL, old_transfers, NULL), 0);
    db_run(new, "UPDATE account SET balance = ? WHERE id = 1", WITH(120));
    assert_int_equal(db_commit(new), DB_FINE);
    pthread_join(thread, &done);
    assert_null(done);
    assert_int_equal(balance(new), 120);
}

static void *new_adds_one(void *nothing)
{
    (void)nothing;
    enum db_trouble trouble;
    do {
        db_begin(new);
        raise_guard(new, NEW_FENCE);
        int64_t seen = db_run(new, "SELECT balance FROM account WHERE id = 1", NULL);
        db_run(new, "UPDATE account SET balance = ? WHERE id = 1", WITH(seen + 1));
        trouble = db_commit(new);
    } while (trouble == DB_AGAIN);
    return trouble == DB_FINE ? new : NULL;
}

/* The old one is in the middle of its transaction, which began in time: what it writes is seen. */
static void one_who_waits_for_an_older_one_sees_what_it_wrote(void **state)
{
    (void)state;
    pthread_t thread;
    void *done;
    db_begin(old);
    assert_int_equal(raise_guard(old, OLD_FENCE), OLD_FENCE);
    assert_int_equal(pthread_create(&thread, NULL, new_adds_one, NULL), 0);
    db_run(old, "UPDATE account SET balance = ? WHERE id = 1", WITH(110));
    assert_int_equal(db_commit(old), DB_FINE);
    pthread_join(thread, &done);
    assert_non_null(done);
    assert_int_equal(balance(new), 111);
    assert_false(transfers(old, 130, OLD_FENCE));
}

/* It began, and has read, before there was a new one; so with REPEATABLE READ it lives in the past.
 * The database refuses it by the fence, or will not let it write at all (PostgreSQL, SQLite). */
static void a_snapshot_from_before_does_not_help(void **state)
{
    (void)state;
    ask(old, "BEGIN");
    assert_int_equal(ask(old, "SELECT count(*) FROM fence_guard"), 0);
    assert_true(transfers(new, 120, NEW_FENCE));
    int64_t newest = raise_guard(old, OLD_FENCE);
    assert_int_not_equal(newest, OLD_FENCE);
    enum db_trouble trouble = db_rollback(old);
    assert_true(newest == NEW_FENCE || trouble == DB_AGAIN);
    ask(old, "ROLLBACK");
    assert_false(transfers(old, 130, OLD_FENCE));
    assert_int_equal(balance(new), 120);
}

/* ---- Insert only ----------------------------------------------------------------------------- */

static void a_late_row_is_never_the_latest(void **state)
{
    (void)state;
    run(old, "add_history", WITH(THING, OLD_FENCE, 1, 110));
    run(new, "add_history", WITH(THING, NEW_FENCE, 1, 120));
    run(old, "add_history", WITH(THING, OLD_FENCE, 2, 130));
    assert_int_equal(run(new, "latest", WITH(THING)), 120);
    run(new, "add_history", WITH(THING, NEW_FENCE, 2, 121));
    assert_int_equal(run(new, "latest", WITH(THING)), 121);
    /* The same step once more, because its answer got lost. */
    assert_int_equal(db_run(new, statement("add_history"), WITH(THING, NEW_FENCE, 2, 121)), -1);
    assert_int_equal(db_rollback(new), DB_DUPLICATE);
}

/* ---- Before and after ------------------------------------------------------------------------ */

static const char *isolation;

static struct db *session(void)
{
    char why[256];
    struct db *db = db_open(url, why, sizeof why);
    if (db == NULL)
        fail_msg("%s: %s", url, why);
    if (isolation != NULL)
        ask(db, isolation);
    return db;
}

static int begin_test(void **state)
{
    (void)state;
    static const char *const tables[] = {"account", "fence_guard", "history"};
    static const char *const makers[] = {"create_account", "create_guard", "create_history"};
    char drop[64];
    old = session();
    new = session();
    for (int i = 0; i < 3; i++) {
        snprintf(drop, sizeof drop, "DROP TABLE IF EXISTS %s", tables[i]);
        ask(old, drop);
        run(old, makers[i], NULL);
    }
    ask(old, "INSERT INTO account (id, balance) VALUES (1, 100)");
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    db_close(old);
    db_close(new);
    return 0;
}

static void remove_folder(void)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char path[96];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", own_url, endings[i]);
        unlink(path);
    }
    rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

static int run_all(const char *level)
{
    const struct CMUnitTest tests[] = {
        TEST(one_who_wakes_up_late_is_refused),
        TEST(a_holder_may_write_again),
        TEST(without_raising_first_a_late_write_can_slip_in),
        TEST(what_is_read_after_raising_stays_true),
        TEST(the_largest_fence_fits),
        TEST(a_late_transaction_changes_nothing),
        TEST(one_who_waits_for_a_newer_one_is_refused),
        TEST(one_who_waits_for_an_older_one_sees_what_it_wrote),
        TEST(a_snapshot_from_before_does_not_help),
        TEST(a_late_row_is_never_the_latest),
    };
    isolation = level;
    return cmocka_run_group_tests_name(level == NULL ? "fence in SQL" : level, tests, NULL, NULL);
}

int main(void)
{
    /* MariaDB's SERIALIZABLE is left out: there, who has read keeps others from writing. */
    static const char *const postgres_levels[] = {
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", NULL};
    static const char *const mariadb_levels[] = {
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", NULL};
    int failed = 0;
    url = getenv("HOLDFAST_SQL_URL");
    if (url == NULL) {
        if (mkdtemp(folder) == NULL)
            return 1;
        snprintf(own_url, sizeof own_url, "%s/fence.db", folder);
        url = own_url;
    }
    statements_load(url);
    if (is_sqlite()) {
        failed = run_all(NULL);
        remove_folder();
        return failed;
    }
    const char *const *level = strncmp(url, "postgres", 8) == 0 ? postgres_levels : mariadb_levels;
    for (; *level != NULL; level++)
        failed += run_all(*level);
    return failed;
}
