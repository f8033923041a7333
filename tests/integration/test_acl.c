/* SPDX-License-Identifier: MIT */
/* Goal: the rule for an administrator in docs/wire.md is enough, and nothing in it can be left out
 * unnoticed: whoever lacks one word of it is told which, by the first call that needs it, before
 * anything is done.
 *
 * The rule is read out of the document, word by word, and each word is taken out once. A word that
 * is new there is expected to behave like most: an acquire says HF_EDENIED and names it. Only for
 * messages there is a way around, and a line in the log.
 *
 * Redis 7.0 crashes when a script asks about permissions in the wrong way, so the script that asks
 * is also run by users, and with names, of many kinds.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protected.h"

enum { RULE_MAX = 1024, WORDS_MAX = 100, WORD = 40 };

static char rule[WORDS_MAX][WORD]; /* of docs/wire.md, behind the user's name */
static size_t rule_length;
static hf_client *second;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

/* ---- The rule -------------------------------------------------------------------------------- */

/* The line of docs/wire.md, as an administrator would copy it. */
static void read_rule(void)
{
    char line[RULE_MAX], *rest = NULL;
    FILE *document = fopen(HF_DOCS_DIR "/wire.md", "r");
    assert_non_null(document);
    while (rest == NULL && fgets(line, sizeof(line), document) != NULL)
        rest = strstr(line, "ACL SETUSER locker ");
    (void)fclose(document);
    assert_non_null(rest);
    rest += strlen("ACL SETUSER locker ");
    rule_length = 0;
    for (char *word; (word = strtok_r(rest, " \n", &rest)) != NULL;) {
        assert_true(rule_length < WORDS_MAX && strlen(word) < WORD);
        (void)snprintf(rule[rule_length++], WORD, "%s", word);
    }
    assert_true(rule_length > 20);
}

/* Makes the user "locker", by the rule with one word replaced; NULL: by nothing. A '%' is written
 * twice. */
static void permit_with(const char *replaced, const char *by)
{
    char command[RULE_MAX] = "ACL SETUSER locker reset";
    int found = replaced == NULL;
    for (size_t i = 0; i < rule_length; i++) {
        bool here = replaced != NULL && strcmp(rule[i], replaced) == 0;
        const char *word = here ? by : rule[i];
        size_t length = strlen(command);
        found += here;
        if (word == NULL)
            continue;
        int added = snprintf(command + length, sizeof(command) - length, " %s", word);
        assert_in_range(added, 1, sizeof(command) - length - 1);
    }
    assert_int_equal(found, 1);
    assert_string_equal(raw(server, command), "OK");
}

static void permit_all_but(const char *word)
{
    permit_with(word, NULL);
}

static void open_locker_with(hf_client **client, const char *side_prefix)
{
    char url[128];
    (void)snprintf(url, sizeof(url), "redis://locker:password@127.0.0.1:%d/1", server->port);
    open_client_at(url, client,
                   HF_CLIENT(.prefix = "shop:", .side_prefix = side_prefix, .reply_timeout_ms = 300,
                             .log = keep_log));
}

static void open_locker(hf_client **client)
{
    open_locker_with(client, NULL);
}

/* Somebody who may do everything, with the same locks. */
static void open_admin(hf_client **client)
{
    char url[128];
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d/1", server->port);
    open_client_at(url, client, HF_CLIENT(.prefix = "shop:"));
}

static int begin(void **state)
{
    (void)state;
    read_rule();
    forget_log();
    empty_server();
    assert_string_equal(raw(server, "SELECT 1"), "OK");
    assert_string_equal(raw(server, "SCRIPT FLUSH SYNC"), "OK");
    (void)raw(server, "ACL LOG RESET");
    hold = NULL;
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* As a word of its own, in whatever case. */
static bool names(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)) != NULL; at++) {
        bool begins = at == text || !isalnum((unsigned char)at[-1]);
        if (begins && !isalnum((unsigned char)at[length]))
            return true;
    }
    return false;
}

static void expect_names(const char *text, const char *word)
{
    if (!names(text, word))
        fail_msg("does not name %s: %s", word, text);
}

static void expect_nothing_there(void)
{
    assert_string_equal(raw(server, "DBSIZE"), "0");
}

/* At once, however long the caller is ready to wait, and without a trace. */
static void expect_denied(hf_client *client, const hf_acquire_options *options, const char *word)
{
    hf_hold *none;
    hf_acquire_options patient = *options;
    patient.wait_ms = 20000;
    int64_t start = now_ms();
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", &patient, &none, &error));
    EXPECT_TOOK(start, 0, 500);
    assert_null(none);
    expect_names(error.text, word);
    expect_nothing_there();
}

static bool count_lock(void *arg, const hf_inspection *inspection)
{
    (void)inspection;
    ++*(int *)arg;
    return true;
}

static atomic_int sights[HF_SEEN_MISSED + 1];

static void see(void *arg, const hf_sight *sight)
{
    (void)arg;
    atomic_fetch_add(&sights[sight->kind], 1);
}

static hf_observer *observe(hf_client *client)
{
    hf_observer *observer;
    for (int i = 0; i <= HF_SEEN_MISSED; i++)
        atomic_store(&sights[i], 0);
    EXPECT(HF_OK, hf_observe(client, "lock", 0, see, NULL, &observer, &error));
    WAIT_UNTIL(atomic_load(&sights[HF_SEEN_FREE]) + atomic_load(&sights[HF_SEEN_HELD]) == 1, 5000);
    return observer;
}

/* ---- Everything that the library does at a server -------------------------------------------- */

/* Takes it twice as one owner, so that the holders' key is written, renewed and shortened. */
static void share(hf_client *client)
{
    hf_hold *holds[2];
    const hf_acquire_options *options = HF_ACQUIRE(.owner = "request 7", .lease_ms = 5000);
    for (int i = 0; i < 2; i++)
        EXPECT(HF_OK, hf_acquire(client, "shared", options, &holds[i], &error));
    EXPECT(HF_OK, hf_extend(holds[0], 20000, &error));
    for (int i = 0; i < 2; i++)
        EXPECT(HF_OK, hf_release(&holds[i], &error));
}

static void be_renewed(hf_client *client)
{
    uint64_t before = stats_of(client)->renewals;
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 1500, .renew_interval_ms = 50));
    WAIT_UNTIL(stats_of(client)->renewals >= before + 2, 5000);
    release(&hold);
}

static void look_and_take_away(hf_client *client)
{
    static hf_inspection inspection;
    int seen = 0;
    hold = acquire_with(client, NULL);
    EXPECT(HF_OK, hf_inspect(client, "lock", 0, &inspection, &error));
    assert_true(inspection.held);
    EXPECT(HF_OK, hf_list(client, NULL, count_lock, &seen, &error));
    assert_int_equal(seen, 1);
    EXPECT(HF_OK, hf_revoke(client, "lock", 0, "please", &error));
    EXPECT(HF_OK, hf_extend(hold, 20000, &error));
    EXPECT(HF_OK, hf_break(client, "lock", 0, NULL, &error));
    EXPECT(HF_ELOST, hf_extend(hold, 20000, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

/* One waits in the queue, behind notes that were left there, the other watches and hands it on. */
static void hand_over(hf_client *client, hf_client *waiting, bool fair)
{
    static hf_inspection inspection;
    hf_observer *observer = observe(client);
    hold = acquire_with(client, NULL);
    attempt_begin(&waiter, waiting, "lock", HF_ACQUIRE(.wait_ms = 10000, .fair = fair));
    do {
        EXPECT(HF_OK, hf_inspect(client, "lock", 0, &inspection, &error));
    } while (inspection.queue_length == 0 && !attempt_is_over(&waiter));
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    WAIT_UNTIL(atomic_load(&sights[HF_SEEN_WAITING]) == 1, 5000);
    WAIT_UNTIL(atomic_load(&sights[HF_SEEN_GRANTED]) == 2, 5000);
    release(&waiter.hold);
    WAIT_UNTIL(atomic_load(&sights[HF_SEEN_RELEASED]) == 2, 5000);
    hf_observe_end(&observer);
}

/* A release leaves a tombstone after an acquire went unanswered on a connection that was given up,
 * here because the reply timeout passes while the server stands still. */
static void leave_a_tombstone(hf_client *client)
{
    hf_hold *none;
    redis_server_freeze(server);
    attempt_begin(&waiter, client, "lock", HF_ACQUIRE(.wait_ms = 10000));
    sleep_ms(500); /* for the reply timeout to pass */
    redis_server_thaw(server);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &none, &error));
    release(&waiter.hold);
}

static void do_everything(hf_client *client, hf_client *other)
{
    share(client);
    assert_string_equal(raw(server, "SCRIPT FLUSH SYNC"), "OK"); /* so that EVAL is sent */
    be_renewed(client);
    look_and_take_away(client);
    hand_over(client, other, false);
    hand_over(other, client, true);
    leave_a_tombstone(client);
}

/* ---- Enough ---------------------------------------------------------------------------------- */

/* Fails unless the server has run every command that the rule allows: what is not run by any of
 * this is not needed. */
static void expect_all_used(void)
{
    static char statistics[64 * 1024];
    char wanted[64];
    (void)snprintf(statistics, sizeof(statistics), "%s", raw(server, "INFO commandstats"));
    for (size_t i = 0; i < rule_length; i++) {
        if (rule[i][0] != '+')
            continue;
        (void)snprintf(wanted, sizeof(wanted), "cmdstat_%s:calls=", rule[i] + 1);
        if (strstr(statistics, wanted) == NULL)
            fail_msg("%s is allowed, but nothing needs it", rule[i]);
    }
}

static void expect_nothing_was_refused(void)
{
    assert_string_equal(raw(server, "ACL LOG"), "(array of 0)");
    assert_int_equal(logged("denie") + logged("NOPERM"), 0);
}

static void the_documented_rule_is_enough(void **state)
{
    (void)state;
    permit_with(NULL, NULL);
    open_locker(&alice);
    open_locker(&second);
    do_everything(alice, second);
    expect_all_used();
    expect_nothing_was_refused();
    assert_string_equal(raw(server, "EXISTS shop:lock shop:shared"), "0");
    /* The marks of both slots, the tombstone, what says so, and the note that it was broken. */
    assert_string_equal(raw(server, "DBSIZE"), "5");
}

/* With a side prefix, one pattern of keys does for all. */
static void one_pattern_is_enough_with_a_side_prefix(void **state)
{
    (void)state;
    permit_all_but("~hf:*");
    open_locker_with(&alice, "shop:");
    open_locker_with(&second, "shop:");
    do_everything(alice, second);
    expect_nothing_was_refused();
    assert_string_equal(raw(server, "DBSIZE"), "5");
    assert_int_equal(keys_like("shop:hf:*"), 5);
}

/* ---- Needed ---------------------------------------------------------------------------------- */

static const struct {
    const char *word, *named; /* in the log */
} for_messages[] = {{"&hf:c:*", "hf:c:*"},
                    {"&hf:e:*", "hf:e:*"},
                    {"+subscribe", "'subscribe'"},
                    {"+unsubscribe", "'unsubscribe'"},
                    {"+publish", "'publish'"},
                    {"+pubsub|numsub", "'pubsub|numsub'"},
                    {"+ping", "'ping'"}};

/* What they are for, NULL: for more than messages. */
static const char *message_word(const char *word)
{
    for (size_t i = 0; i < sizeof(for_messages) / sizeof(for_messages[0]); i++)
        if (strcmp(word, for_messages[i].word) == 0)
            return for_messages[i].named;
    return NULL;
}

static bool is_permission(const char *word)
{
    return strchr("+~&", word[0]) != NULL;
}

static void without_list(const char *word)
{
    int seen = 0;
    EXPECT(HF_EDENIED, hf_list(alice, NULL, count_lock, &seen, &error));
    expect_names(error.text, word + 1);
    hold = acquire_with(alice, NULL);
    release(&hold);
}

/* For one that takes it alone, and one that shares it: the scripts are the same. */
static void without(const char *word)
{
    const char *named = word + 1;
    if (word[0] == '~')
        named = strcmp(word, "~shop:*") == 0 ? "access to shop:lock" : "access to hf:q:";
    permit_all_but(word);
    open_locker(&alice);
    if (strcmp(word, "+scan") == 0) {
        without_list(word);
    } else {
        expect_denied(alice, HF_ACQUIRE(.owner = NULL), named);
        expect_denied(alice, HF_ACQUIRE(.owner = "request 7"), named);
    }
    (void)hf_close(alice);
    alice = NULL;
    empty_server();
}

static void every_word_is_needed_and_named(void **state)
{
    (void)state;
    int words = 0;
    for (size_t i = 0; i < rule_length; i++)
        if (is_permission(rule[i]) && message_word(rule[i]) == NULL) {
            without(rule[i]);
            words++;
        }
    assert_true(words >= 30);
}

/* Alice lacks a word for messages. She waits and watches all the same, and says in the log what it
 * is that she lacks. */
static void without_messages(const char *word)
{
    forget_log();
    permit_all_but(word);
    open_admin(&bob);
    open_locker(&alice);
    hf_observer *observer = observe(alice);
    hold = acquire_with(bob, NULL);
    attempt_begin(&waiter, alice, "lock", HF_ACQUIRE(.wait_ms = 20000));
    WAIT_UNTIL(atomic_load(&sights[HF_SEEN_GRANTED]) > 0, 5000);
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    release(&waiter.hold);
    hf_observe_end(&observer);
    hold = acquire_with(alice, NULL);
    release(&hold);
    WAIT_UNTIL(logged(message_word(word)) == 1, 5000);
    assert_int_equal(logged("no messages"), 1);
    assert_int_equal(keys_like("shop:*") + keys_like("hf:[qh]:*"), 0);
    EXPECT_STATUS(HF_OK, hf_close(alice));
    EXPECT_STATUS(HF_OK, hf_close(bob));
    alice = bob = NULL;
}

static void without_messages_there_is_another_way(void **state)
{
    (void)state;
    int words = 0;
    for (size_t i = 0; i < rule_length; i++)
        if (message_word(rule[i]) != NULL) {
            without_messages(rule[i]);
            words++;
        }
    assert_int_equal(words, sizeof(for_messages) / sizeof(for_messages[0]));
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void half_a_permission_for_keys_is_none(void **state)
{
    (void)state;
    static const char *const halves[][3] = {
        {"~shop:*", "%%R~shop:*", "access to shop:lock"},
        {"~shop:*", "%%W~shop:*", "access to shop:lock"},
        {"~hf:*", "%%R~hf:*", "access to hf:q:"},
        {"~hf:*", "%%W~hf:*", "access to hf:q:"},
        {"~hf:*", "~hf:[qfhm]:*", "access to hf:w:"},
        {"~hf:*", "~hf:[qwhm]:*", "access to hf:f:"},
        {"~hf:*", "~hf:[qfwm]:*", "access to hf:h:"},
        {"~hf:*", "~hf:[qfwh]:*", "access to hf:m:"},
        {"~shop:*", "~shop:other", "access to shop:lock"},
    };
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        permit_with(halves[i][0], halves[i][1]);
        open_locker(&alice);
        expect_denied(alice, HF_ACQUIRE(.owner = NULL), halves[i][2]);
        EXPECT_STATUS(HF_OK, hf_close(alice));
        alice = NULL;
    }
}

static void every_call_names_the_key(void **state)
{
    (void)state;
    static hf_inspection inspection;
    permit_all_but("~shop:*");
    open_locker(&alice);
    EXPECT(HF_EDENIED, hf_inspect(alice, "lock", 0, &inspection, &error));
    expect_names(error.text, "shop:lock");
    EXPECT(HF_EDENIED, hf_revoke(alice, "lock", 0, NULL, &error));
    expect_names(error.text, "shop:lock");
    EXPECT(HF_EDENIED, hf_break(alice, "lock", 0, NULL, &error));
    expect_names(error.text, "shop:lock");
}

/* ---- Before anything is taken ---------------------------------------------------------------- */

/* Whatever is the first call on the connection, an acquire that could not be released fails. */
static void a_lock_that_could_not_be_given_back_is_not_taken(void **state)
{
    (void)state;
    int seen = 0;
    permit_all_but("+del");
    open_locker(&alice);
    EXPECT(HF_EDENIED, hf_list(alice, NULL, count_lock, &seen, &error));
    expect_denied(alice, HF_ACQUIRE(.owner = NULL), "del");
    EXPECT(HF_EDENIED, hf_revoke(alice, "lock", 0, NULL, &error));
    expect_names(error.text, "del");
}

/* An operator's user that may look, and change nothing: with it calls that look work. */
static void one_who_may_only_look_may_look(void **state)
{
    (void)state;
    static hf_inspection inspection;
    int seen = 0;
    permit_with(NULL, NULL);
    assert_string_equal(raw(server, "ACL SETUSER locker -@write"), "OK");
    open_admin(&bob);
    open_locker(&alice);
    hold = acquire_with(bob, NULL);
    EXPECT(HF_OK, hf_inspect(alice, "lock", 0, &inspection, &error));
    assert_true(inspection.held);
    EXPECT(HF_OK, hf_list(alice, NULL, count_lock, &seen, &error));
    assert_int_equal(seen, 1);
    EXPECT(HF_EDENIED, hf_revoke(alice, "lock", 0, NULL, &error));
    expect_names(error.text, "hset");
    release(&hold);
    hf_hold *none;
    EXPECT(HF_EDENIED, hf_acquire(alice, "lock", HF_ACQUIRE(.wait_ms = 20000), &none, &error));
    expect_names(error.text, "set");
    expect_names(error.text, "del");
    expect_only_fences();
}

/* ---- Rights that change ---------------------------------------------------------------------- */

/* What she holds stays hers until its lease is over, and is hers again if the right comes back. */
static void a_right_is_withdrawn_and_given_back(void **state)
{
    (void)state;
    hf_hold *none;
    permit_with(NULL, NULL);
    open_locker(&alice);
    hold = acquire_for(alice, 20000);
    assert_string_equal(raw(server, "ACL SETUSER locker -zadd"), "OK");
    EXPECT(HF_EDENIED, hf_acquire(alice, "other", HF_ACQUIRE(.owner = "me"), &none, &error));
    expect_names(error.text, "zadd");
    assert_string_equal(raw(server, "EXISTS shop:other"), "0");
    assert_string_equal(raw(server, "ACL SETUSER locker resetkeys"), "OK");
    EXPECT(HF_EDENIED, hf_extend(hold, 0, &error));
    assert_true(hf_is_valid(hold));
    EXPECT(HF_EDENIED, hf_acquire(alice, "other", NULL, &none, &error));
    expect_names(error.text, "shop:other");
    assert_string_equal(raw(server, "ACL SETUSER locker ~shop:* ~hf:* +zadd"), "OK");
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    expect_free(alice);
}

/* The release is refused, says why, and is done in the background when it may be. */
static void a_release_that_is_denied_is_made_up_for(void **state)
{
    (void)state;
    permit_with(NULL, NULL);
    open_locker(&alice);
    hold = acquire_for(alice, 30000);
    assert_string_equal(raw(server, "ACL SETUSER locker -del"), "OK");
    EXPECT(HF_EDENIED, hf_release(&hold, &error));
    assert_null(hold);
    expect_names(error.text, "del");
    assert_string_equal(raw(server, "ACL SETUSER locker +del"), "OK");
    WAIT_UNTIL(raw_number(server, "EXISTS shop:lock") == 0, 10000);
}

/* ---- The question does not harm the server --------------------------------------------------- */

static char *read_script(size_t *length)
{
    static char script[8192];
    FILE *file = fopen(HF_SCRIPTS "permissions.lua", "r");
    assert_non_null(file);
    *length = fread(script, 1, sizeof(script), file);
    (void)fclose(file);
    assert_true(*length > 0 && *length < sizeof(script));
    return script;
}

static void ask(redisContext *context, const char *what, const char *key, size_t key_length)
{
    size_t length;
    const char *script = read_script(&length);
    redisReply *reply = redisCommand(context, "EVAL %b 0 %s %b %b", script, length, what, key,
                                     key_length, key, key_length);
    if (reply == NULL)
        fail_msg("the server is gone: %s", context->errstr);
    assert_true(reply->type == REDIS_REPLY_ARRAY || reply->type == REDIS_REPLY_ERROR);
    if (reply->type == REDIS_REPLY_ERROR)
        assert_string_equal(reply->str,
                            "NOPERM this user has no permissions to run the 'eval' command");
    freeReplyObject(reply);
}

static void ask_all(redisContext *context)
{
    static char binary[256], longest[HF_NAME_MAX];
    for (size_t i = 0; i < sizeof(binary); i++)
        binary[i] = (char)i;
    memset(longest, 'n', sizeof(longest));
    const struct {
        const char *bytes;
        size_t length;
    } keys[] = {{"", 0},
                {"shop:lock", 9},
                {"a b  c", 6},
                {"a\r\nb\n", 5},
                {"key", 3},
                {"%s%n%d", 6},
                {"*", 1},
                {"{}}{", 4},
                {"SET", 3},
                {binary, 256},
                {longest, HF_NAME_MAX}};
    static const char *const questions[] = {"commands", "all", "keys"};
    for (size_t q = 0; q < 3; q++)
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            ask(context, questions[q], keys[k].bytes, keys[k].length);
}

static void no_user_and_no_name_brings_the_server_down(void **state)
{
    (void)state;
    static const char *const users[] = {
        "resetkeys +@all",
        "allkeys &* nocommands",
        "allkeys &* nocommands +eval",
        "resetkeys resetchannels nocommands +eval",
        "allkeys resetchannels +@all",
        "%R~* +@all",
        "%W~* +@all",
        "~shop:* ~* +@all -@write",
        "~shop:* +@all -@read",
        "~shop:* +@all -@dangerous",
        "~shop:* nocommands +eval +set +get +del",
        "~shop:* nocommands +eval (~hf:* +@all)",
        "(~shop:* +@all) +eval",
        "(%R~shop:* +@read) (%W~shop:* +@write) +eval",
    };
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        char command[RULE_MAX];
        (void)snprintf(command, sizeof(command), "ACL SETUSER locker reset on >password %s",
                       users[i]);
        /* Selectors have blanks in them, so hiredis must not cut them: they are cut by hand. */
        redisContext *admin = redisConnectUnix(server->socket);
        const char *words[32] = {NULL};
        size_t count = 0;
        for (char *at = command; *at != '\0';) {
            words[count++] = at;
            char *end = *at == '(' ? strchr(at, ')') + 1 : at + strcspn(at, " ");
            at = *end != '\0' ? end + 1 : end;
            *end = '\0';
        }
        redisReply *reply = redisCommandArgv(admin, (int)count, words, NULL);
        assert_non_null(reply);
        assert_string_equal(reply->str, "OK");
        freeReplyObject(reply);
        reply = redisCommand(admin, "AUTH locker password");
        assert_non_null(reply);
        assert_string_equal(reply->str, "OK");
        freeReplyObject(reply);
        ask_all(admin);
        redisFree(admin);
        assert_string_equal(raw(server, "PING"), "PONG");
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_documented_rule_is_enough),
        TEST(one_pattern_is_enough_with_a_side_prefix),
        TEST(every_word_is_needed_and_named),
        TEST(without_messages_there_is_another_way),
        TEST(half_a_permission_for_keys_is_none),
        TEST(every_call_names_the_key),
        TEST(a_lock_that_could_not_be_given_back_is_not_taken),
        TEST(one_who_may_only_look_may_look),
        TEST(a_right_is_withdrawn_and_given_back),
        TEST(a_release_that_is_denied_is_made_up_for),
        TEST(no_user_and_no_name_brings_the_server_down),
    };
    return cmocka_run_group_tests_name("permissions", tests, start_server, end_server);
}
