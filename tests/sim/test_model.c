/* SPDX-License-Identifier: MIT */
/* Tests of the simulator's model server: its script host, its connections, what may happen to a
 * server, and that it behaves like a real one (honesty.c).
 *
 *   sim_model [operations [seed]]   tests; so many operations are compared, 20000 unless told
 *   sim_model bench                 how many script calls a second the model does
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "honesty.h"
#include "lua/scripts.h"
#include "model_words.h"
#include "stream.h"

static int64_t operations = 20000;
static uint64_t seed = 1;

/* ---- The script host ---- */

static void returned_values_become_replies(void **state)
{
    (void)state;
    EVAL("return 3.99", "3");
    EVAL("return -3.99", "-3");
    EVAL("return false", "(nil)");
    EVAL("return true", "1");
    EVAL("return", "(nil)");
    EVAL("return {1, 'two', false, nil, 5}", "[1 two (nil)]");
    EVAL("return {err = 'MY words'}", "-MY words");
    EVAL("return {ok = 'fine'}", "fine");
    EVAL("return {KEYS[1], ARGV[1], #KEYS, #ARGV}", "[key argument 1 1]");
    EVAL("return string.format('%.0f', 2^53)", "9007199254740992");
}

static void replies_become_values(void **state)
{
    (void)state;
    EVAL("return type(redis.call('GET', 'none'))", "boolean");
    EVAL("return redis.call('SET', KEYS[1], 'x').ok", "OK");
    EVAL("return type(redis.call('INCR', 'number'))", "number");
    EVAL("return redis.call('HMGET', 'none', 'a')[1] == false", "1");
    EVAL("return redis.pcall('INCR', KEYS[1]).err", "ERR value is not an integer or out of range");
    EVAL("redis.call('SET', KEYS[1], 0.1) return redis.call('GET', KEYS[1])",
         "0.10000000000000001");
}

static void globals_are_read_only(void **state)
{
    (void)state;
    assert_non_null(
        strstr(RUN("EVAL", "x = 1", "0"), "Attempt to modify a readonly table script: "));
    assert_non_null(strstr(RUN("EVAL", "return x", "0"),
                           "-ERR user_script:1: Script attempted to access nonexistent global "
                           "variable 'x' script: "));
    static const char *const attacks[] = {
        "rawset(_G, 'x', 1)",   "_G.x = 1",   "redis.call = 1",        "string.format = nil",
        "setmetatable(_G, {})", "math.x = 1", "loadstring('x = 1')()", "getfenv(0).x = 1",
        "getfenv(pcall).x = 1"};
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
        assert_non_null(strstr(RUN("EVAL", attacks[i], "0"), "Attempt to modify a readonly table"));
    EVAL("KEYS[1] = 'mine' return KEYS[1]", "mine");
    EVAL("return KEYS[1]", "key");
    static const char *const absent[] = {"print",   "os",    "io",    "require",
                                         "package", "debug", "dofile"};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        char body[64];
        (void)snprintf(body, sizeof(body), "return %s", absent[i]);
        assert_non_null(strstr(RUN("EVAL", body, "0"), "nonexistent global variable"));
    }
}

static void errors_tell_their_place(void **state)
{
    (void)state;
    (void)RUN("RPUSH", "list", "x");
    EXPECT_RUN("-WRONGTYPE Operation against a key holding the wrong kind of value script: "
               "cefc3a65715339d474cd476157bd54f98a1e15b5, on @user_script:2.",
               "EVAL", "\nreturn redis.call('GET', 'list')", "0");
}

static void random_numbers_start_with_the_process(void **state)
{
    (void)state;
    const char *script = "return math.random(1000000)";
    EXPECT_RUN("396465", "EVAL", script, "0");
    EXPECT_RUN("840486", "EVAL", script, "0");
    sim_server_restart(server, NULL);
    EXPECT_RUN("396465", "EVAL", script, "0");
}

/* ---- Servers ---- */

static const char *spoilt(const char *name, const char *body)
{
    (void)body;
    return strcmp(name, "release") == 0 ? "return 'spoilt'" : NULL;
}

static void mutants_keep_their_sha1(void **state)
{
    (void)state;
    const hf__script *release = &hf__scripts[HF__SCRIPT_RELEASE];
    EXPECT_RUN(release->sha1, "SCRIPT", "LOAD", release->body);
#define RELEASE_WORDS "5", "lock", "queue", "fence", "notes", "holders", "me", "0", "1000"
    EXPECT_RUN("0", "EVALSHA", release->sha1, RELEASE_WORDS);
    sim_server_set_change(server, spoilt);
    EXPECT_RUN("spoilt", "EVALSHA", release->sha1, RELEASE_WORDS);
    EXPECT_RUN("spoilt", "EVAL", release->body, RELEASE_WORDS);
    sim_server_set_change(server, NULL);
    EXPECT_RUN("0", "EVALSHA", release->sha1, RELEASE_WORDS);
}

static void scripts_end_with_the_run(void **state)
{
    (void)state;
    const char *sha1 = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"; /* return 1 */
    EXPECT_RUN(sha1, "SCRIPT", "LOAD", "return 1");
    EXPECT_RUN("1", "EVALSHA", sha1, "0");
    sim_server_flush_scripts(server);
    EXPECT_RUN("-NOSCRIPT No matching script. Please use EVAL.", "EVALSHA", sha1, "0");
    EXPECT_RUN("1", "EVAL", "return 1", "0");
    sim_server_restart(server, NULL);
    EXPECT_RUN("[0]", "SCRIPT", "EXISTS", sha1);
}

static void trouble_answers_script_calls(void **state)
{
    (void)state;
    sim_server_set_trouble(server, "BUSY Redis is busy running a script.");
    EXPECT_RUN("-BUSY Redis is busy running a script.", "EVAL", "return 1", "0");
    EXPECT_RUN("PONG", "PING");
    sim_server_set_trouble(server, NULL);
    EXPECT_RUN("1", "EVAL", "return 1", "0");
}

static void keys_expire_by_the_clock_that_is_set(void **state)
{
    (void)state;
    int64_t wall_us = 1800000000000000;
    sim_server_set_time(server, wall_us);
    EXPECT_RUN("OK", "SET", "a", "1", "PX", "100");
    advance_ms(&wall_us, 100);
    EXPECT_RUN("0", "PTTL", "a");
    advance_ms(&wall_us, 1);
    EXPECT_RUN("-2", "PTTL", "a");
    EXPECT_RUN("OK", "SET", "a", "1", "PX", "100");
    advance_ms(&wall_us, -5000);
    EXPECT_RUN("5100", "PTTL", "a");
}

static void a_replica_hides_what_has_expired(void **state)
{
    (void)state;
    int64_t wall_us = 1800000000000000;
    sim_server_set_time(server, wall_us);
    EXPECT_RUN("OK", "SET", "a", "1", "PX", "100");
    sim_server_set_role(server, true);
    EXPECT_RUN("-READONLY You can't write against a read only replica.", "DEL", "a");
    advance_ms(&wall_us, 200);
    EXPECT_RUN("(nil)", "GET", "a");
    advance_ms(&wall_us, -200);
    EXPECT_RUN("1", "GET", "a");
}

typedef struct seen {
    char text[256];
    size_t length;
} seen;

static void see(void *arg, const char *key, size_t length, const char *type, int64_t remaining_ms)
{
    seen *all = arg;
    all->length +=
        (size_t)snprintf(all->text + all->length, sizeof(all->text) - all->length, "%.*s %s %lld;",
                         (int)length, key, type, (long long)remaining_ms);
}

static void a_restart_brings_an_image_back(void **state)
{
    (void)state;
    seen all = {.length = 0};
    (void)RUN("SET", "b", "1", "PX", "100");
    (void)RUN("ZADD", "a", "1", "x", "2", "y");
    (void)RUN("HSET", "c", "f", "v");
    (void)RUN("RPUSH", "d", "1", "2");
    sim_image *image = sim_server_copy(server);
    (void)RUN("FLUSHALL");
    char run_id[600];
    (void)snprintf(run_id, sizeof(run_id), "%s", RUN("INFO", "server"));
    sim_server_restart(server, image);
    sim_image_free(image);
    assert_string_not_equal(run_id, RUN("INFO", "server"));
    sim_server_keys(server, see, &all);
    assert_string_equal(all.text, "b string 100;a zset -1;c hash -1;d list -1;");
    EXPECT_RUN("[x 1 y 2]", "ZRANGE", "a", "0", "-1", "WITHSCORES");
    assert_string_equal(sim_server_get(server, "b", 1), "1");
    sim_server_evict(server, "b", 1);
    assert_null(sim_server_get(server, "b", 1));
}

static void a_scan_sees_what_stays(void **state)
{
    (void)state;
    static const char *const keys[] = {"a1", "b1", "a2", "b2", "a3"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        (void)RUN("SET", keys[i], "x");
    EXPECT_RUN("[2 [a1]]", "SCAN", "0", "MATCH", "a*", "COUNT", "2");
    (void)RUN("DEL", "b1");
    (void)RUN("SET", "a4", "x");
    EXPECT_RUN("[4 [a2]]", "SCAN", "2", "MATCH", "a*", "COUNT", "2");
    EXPECT_RUN("[0 [a3 a4]]", "SCAN", "4", "MATCH", "a*", "COUNT", "2");
}

static void commands_arrive_in_pieces(void **state)
{
    (void)state;
    const char *text = "*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n*1\r\n$4\r\nPING\r\n";
    sim_server_connect(server, 7);
    for (const char *at = text; *at != '\0'; at++)
        sim_server_receive(server, 7, at, 1);
    EXPECT_SAID(7, "$3\r\na\r\n\r\n+PONG\r\n");
    say(7, "*1\r\n$4\r\nPI");
    sim_server_disconnect(server, 7);
    sim_server_connect(server, 7);
    say(7, "*1\r\n$4\r\nPING\r\n");
    EXPECT_SAID(7, "+PONG\r\n");
    say(7, "hello\r\n*1\r\n$4\r\nPING\r\n");
    EXPECT_SAID(7, "-ERR Protocol error\r\n");
}

/* The bytes of a server that begins with nothing and is told what the seed says. */
static sim_buffer bytes_said(uint64_t from_seed)
{
    sim_buffer said = {NULL, 0, 0, 0};
    sim_stream stream = {.random = from_seed};
    sim_server *other = sim_server_new();
    sim_server_connect(other, 0);
    for (int i = 0; i < 3000; i++) {
        hf__buffer request = {.bytes = NULL};
        const char *bytes = NULL;
        stream.now_ms = 1700000000000 + i * 500;
        sim_server_set_time(other, stream.now_ms * 1000);
        stream_next(&stream);
        assert_true(hf__resp_encode(&request, stream.words, (size_t)stream.count));
        sim_server_receive(other, 0, hf__buffer_front(&request), hf__buffer_length(&request));
        hf__buffer_free(&request);
        size_t count = sim_server_output(other, 0, &bytes);
        sim_buffer_append(&said, bytes, count);
        sim_server_taken(other, 0, count);
    }
    sim_server_free(other);
    return said;
}

static void the_same_seed_gives_the_same_bytes(void **state)
{
    (void)state;
    sim_buffer first = bytes_said(7);
    void *elsewhere = malloc(100000); /* so that addresses are others */
    sim_buffer second = bytes_said(7);
    assert_true(sim_equal(sim_buffer_slice(&first), sim_buffer_slice(&second)));
    assert_true(first.end > 10000);
    free(elsewhere);
    sim_buffer_free(&first);
    sim_buffer_free(&second);
}

static void it_behaves_like_a_real_server(void **state)
{
    (void)state;
    honesty_compare(seed, operations);
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "bench") == 0)
        return model_bench();
    if (count > 1)
        operations = strtoll(words[1], NULL, 10);
    if (count > 2)
        seed = strtoull(words[2], NULL, 10);
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(returned_values_become_replies),
        TEST(replies_become_values),
        TEST(globals_are_read_only),
        TEST(errors_tell_their_place),
        TEST(random_numbers_start_with_the_process),
        TEST(mutants_keep_their_sha1),
        TEST(scripts_end_with_the_run),
        TEST(trouble_answers_script_calls),
        TEST(keys_expire_by_the_clock_that_is_set),
        TEST(a_replica_hides_what_has_expired),
        TEST(a_restart_brings_an_image_back),
        TEST(a_scan_sees_what_stays),
        TEST(commands_arrive_in_pieces),
        TEST(the_same_seed_gives_the_same_bytes),
        TEST(it_behaves_like_a_real_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
