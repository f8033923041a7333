/* SPDX-License-Identifier: MIT */
/* What the server's error texts mean for us. Where a Redis 7.0.15 could be made to say it, the text
 * is its own (wrong type, out of memory, replicas, permissions, passwords, unknown script); the
 * doubly wrapped ones are from reports of Redis 5 and 6; the others are as documented. In 6, an
 * error that a command itself raises inside a script is wrapped once ("@user_script:5: WRONGTYPE
 * ..."); one that the script engine raises before the command runs (out of memory, read-only,
 * permissions) carries the place a second time ("@user_script:5: @user_script: 5: -OOM ..."). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/state.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define SHA             "24ef20ae6677799927844fd0b8402d8ca02e5ca8"
#define ON_LINE_12      " script: " SHA ", on @user_script:12."
#define WRAPPED         "ERR Error running script (call to f_" SHA "): @user_script:5: "
#define WRAPPED_TWICE   WRAPPED "@user_script: 5: -"

typedef struct verdict_case {
    const char *text;
    hf__verdict verdict;
    hf_status status;
} verdict_case;

static hf__verdict judge(const char *text, size_t length, hf_error *error)
{
    hf__reply reply = {.kind = HF__REPLY_ERROR, .text = text, .length = length};
    memset(error, 'x', sizeof(*error)); /* all of it must be set */
    return hf__judge(&reply, "host:6379", error);
}

static void expect_verdicts(const verdict_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf_error error;
        hf__verdict verdict = judge(cases[i].text, strlen(cases[i].text), &error);
        if (verdict != cases[i].verdict || error.status != cases[i].status)
            fail_msg("\"%s\": verdict %d, %s", cases[i].text, (int)verdict,
                     hf_status_name(error.status));
        assert_non_null(memchr(error.text, '\0', sizeof(error.text)));
        assert_memory_equal(error.text, "host:6379 ", 10);
    }
}

static void plain_errors(void **state)
{
    static const verdict_case cases[] = {
        {"NOSCRIPT No matching script. Please use EVAL.", HF__VERDICT_RELOAD, HF_EUNAVAILABLE},
        {"LOADING Redis is loading the dataset in memory", HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
         HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {"OOM command not allowed when used memory > 'maxmemory'.", HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist "
         "to disk.",
         HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {"NOREPLICAS Not enough good replicas to write.", HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {"TRYAGAIN Multiple keys request during rehashing of slot", HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {"CLUSTERDOWN Hash slot not served", HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {"READONLY You can't write against a read only replica.", HF__VERDICT_MOVED,
         HF_EUNAVAILABLE},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
         HF__VERDICT_MOVED, HF_EUNAVAILABLE},
        {"ERR max number of clients reached", HF__VERDICT_MOVED, HF_EUNAVAILABLE},
        {"MOVED 16287 127.0.0.1:7001", HF__VERDICT_FINAL, HF_ESERVER},
        {"ASK 16287 127.0.0.1:7001", HF__VERDICT_FINAL, HF_ESERVER},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", HF__VERDICT_FINAL,
         HF_ESERVER},
        {"NOAUTH Authentication required.", HF__VERDICT_FINAL, HF_EDENIED},
        {"WRONGPASS invalid username-password pair or user is disabled.", HF__VERDICT_FINAL,
         HF_EDENIED},
        {"NOPERM this user has no permissions to run the 'eval' command", HF__VERDICT_FINAL,
         HF_EDENIED},
        {"NOPERM this user has no permissions to access one of the keys used as arguments",
         HF__VERDICT_KEY, HF_EDENIED},
        {"DENIED Redis is running in protected mode because protected mode is enabled",
         HF__VERDICT_FINAL, HF_EDENIED},
        {"ERR AUTH <password> called without any password configured for the default user. Are you "
         "sure your configuration is correct?",
         HF__VERDICT_FINAL, HF_EDENIED},
        {"ERR invalid password", HF__VERDICT_FINAL, HF_EDENIED},
        {"ERR DB index is out of range", HF__VERDICT_FINAL, HF_ESERVER},
        {"ERR unknown command `EVALSHA`, with args beginning with:", HF__VERDICT_FINAL, HF_ESERVER},
        {"ERR", HF__VERDICT_FINAL, HF_ESERVER},
        {"OOM", HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {"", HF__VERDICT_FINAL, HF_ESERVER},
    };
    (void)state;
    expect_verdicts(cases, COUNT_OF(cases));
}

static void codes_are_whole_words_at_the_start(void **state)
{
    static const verdict_case cases[] = {
        {"OOMPH of another kind", HF__VERDICT_FINAL, HF_ESERVER},
        {"BUSYKEY Target key name already exists.", HF__VERDICT_FINAL, HF_ESERVER},
        {"BUSYGROUP Consumer Group name already exists", HF__VERDICT_FINAL, HF_ESERVER},
        {"ERR something with OOM inside", HF__VERDICT_FINAL, HF_ESERVER},
        {"oom in small letters", HF__VERDICT_FINAL, HF_ESERVER},
        {" OOM after a space", HF__VERDICT_FINAL, HF_ESERVER},
        {"ERR value @user_script:5: OOM is no error of a script", HF__VERDICT_FINAL, HF_ESERVER},
    };
    (void)state;
    expect_verdicts(cases, COUNT_OF(cases));
}

static void errors_inside_scripts_of_7_0(void **state)
{
    static const verdict_case cases[] = {
        {"OOM command not allowed when used memory > 'maxmemory'." ON_LINE_12, HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {"READONLY You can't write against a read only replica." ON_LINE_12, HF__VERDICT_MOVED,
         HF_EUNAVAILABLE},
        {"NOREPLICAS Not enough good replicas to write." ON_LINE_12, HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {"WRONGTYPE Operation against a key holding the wrong kind of value" ON_LINE_12,
         HF__VERDICT_FINAL, HF_ESERVER},
    };
    (void)state;
    expect_verdicts(cases, COUNT_OF(cases));
}

static void errors_of_commands_inside_scripts_of_6_2(void **state)
{
    static const verdict_case cases[] = {
        {WRAPPED "WRONGTYPE Operation against a key holding the wrong kind of value",
         HF__VERDICT_FINAL, HF_ESERVER},
        {WRAPPED "OOM command not allowed when used memory > 'maxmemory'.", HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {WRAPPED "-OOM command not allowed when used memory > 'maxmemory'.", HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {WRAPPED "ERR value is not an integer or out of range", HF__VERDICT_FINAL, HF_ESERVER},
        {"ERR Error running script (call to f_" SHA ")", HF__VERDICT_FINAL, HF_ESERVER},
        {"ERR Error running script (call to f_" SHA "): @user_script:5:", HF__VERDICT_FINAL,
         HF_ESERVER},
        {WRAPPED, HF__VERDICT_FINAL, HF_ESERVER},
    };
    (void)state;
    expect_verdicts(cases, COUNT_OF(cases));
}

/* As reported from real servers, such as redis/redis issue 8623 and spring-data-redis issue 3042.
 */
static void errors_of_the_script_engine_of_6_2(void **state)
{
    static const verdict_case cases[] = {
        {WRAPPED_TWICE "OOM command not allowed when used memory > 'maxmemory'.  ",
         HF__VERDICT_PASSING, HF_EUNAVAILABLE},
        {WRAPPED_TWICE "READONLY You can't write against a read only replica.  ", HF__VERDICT_MOVED,
         HF_EUNAVAILABLE},
        {WRAPPED_TWICE "NOREPLICAS Not enough good replicas to write.  ", HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
        {WRAPPED_TWICE "MISCONF Redis is configured to save RDB snapshots", HF__VERDICT_PASSING,
         HF_EUNAVAILABLE},
    };
    (void)state;
    expect_verdicts(cases, COUNT_OF(cases));
}

/* The user may run EVALSHA but not a command that the script uses: a matter of permissions, though
 * these versions do not say NOPERM. */
static void permissions_inside_scripts(void **state)
{
    static const verdict_case cases[] = {
        {"NOPERM ACL failure in script: User bob has no permissions to run the 'set' command" //
         ON_LINE_12,
         HF__VERDICT_FINAL, HF_EDENIED},
        {"ERR The user executing the script can't run this command or subcommand" ON_LINE_12,
         HF__VERDICT_COMMAND, HF_EDENIED},
        {WRAPPED "@user_script: 5: The user executing the script can't run this command or "
                 "subcommand",
         HF__VERDICT_COMMAND, HF_EDENIED},
    };
    (void)state;
    expect_verdicts(cases, COUNT_OF(cases));
}

static void the_servers_words_are_shown_and_made_printable(void **state)
{
    static const char text[] = "WRONGTYPE a\tb\x1b[31mc\xff\x7f\0d";
    (void)state;
    hf_error error;
    judge(text, sizeof(text) - 1, &error);
    assert_non_null(strstr(error.text, "WRONGTYPE a?b?[31mc???d"));
    for (const char *at = error.text; *at != '\0'; at++)
        assert_in_range(*at, ' ', '~');
    judge("WHAT is this", 12, &error);
    assert_string_equal(error.text, "host:6379 refuses: WHAT is this");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char text[5001], server[160];
    hf_error error;
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "NOPERM ", 7);
    assert_int_equal(judge(text, sizeof(text) - 1, &error), HF__VERDICT_FINAL);
    assert_int_equal(error.status, HF_EDENIED);
    assert_non_null(memchr(error.text, '\0', sizeof(error.text)));
    memset(server, 's', sizeof(server) - 1);
    server[sizeof(server) - 1] = '\0';
    hf__reply reply = {.kind = HF__REPLY_ERROR, .text = text, .length = sizeof(text) - 1};
    hf__judge(&reply, server, &error);
    assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
}

static void what_may_pass(void **state)
{
    (void)state;
    for (int status = HF_OK; status <= HF_ENOTHELD; status++) {
        bool passing = status == HF_EBUSY || status == HF_EUNAVAILABLE || status == HF_EUNKNOWN;
        assert_int_equal(hf__may_pass((hf_status)status), passing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_errors),
        cmocka_unit_test(codes_are_whole_words_at_the_start),
        cmocka_unit_test(errors_inside_scripts_of_7_0),
        cmocka_unit_test(errors_of_commands_inside_scripts_of_6_2),
        cmocka_unit_test(errors_of_the_script_engine_of_6_2),
        cmocka_unit_test(permissions_inside_scripts),
        cmocka_unit_test(the_servers_words_are_shown_and_made_printable),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(what_may_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
