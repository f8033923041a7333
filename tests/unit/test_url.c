/* SPDX-License-Identifier: MIT */
/* Server URLs, one and several: every form that the header documents, and for every way to get one
 * wrong the position in the text. Whatever happens, a password is in no message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/url.h"
#include "gate.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void expect_same(const char *given, const char *expected)
{
    if (expected == NULL) {
        assert_null(given);
        return;
    }
    assert_non_null(given);
    assert_string_equal(given, expected);
}

/* ---- Good ones ---- */

static const struct {
    const char *text;
    const char *host;
    int port;
    const char *path;
    const char *user;
    const char *password;
    int database;
    const char *display;
} good[] = {
    {"redis://localhost", "localhost", 6379, NULL, NULL, NULL, 0, "localhost:6379"},
    {"redis://h/", "h", 6379, NULL, NULL, NULL, 0, "h:6379"},
    {"redis://h:1", "h", 1, NULL, NULL, NULL, 0, "h:1"},
    {"redis://h:65535/3", "h", 65535, NULL, NULL, NULL, 3, "h:65535"},
    {"redis://h/0", "h", 6379, NULL, NULL, NULL, 0, "h:6379"},
    {"redis://h/1000000", "h", 6379, NULL, NULL, NULL, 1000000, "h:6379"},
    {"redis://127.0.0.1:7000", "127.0.0.1", 7000, NULL, NULL, NULL, 0, "127.0.0.1:7000"},
    {"redis://:pw@h", "h", 6379, NULL, NULL, "pw", 0, "h:6379"},
    {"redis://me:pw@h:7/2", "h", 7, NULL, "me", "pw", 2, "h:7"},
    {"redis://me:@h", "h", 6379, NULL, "me", "", 0, "h:6379"},
    {"redis://:@h", "h", 6379, NULL, NULL, "", 0, "h:6379"},
    {"redis://me:a:b@h", "h", 6379, NULL, "me", "a:b", 0, "h:6379"},
    {"redis://me:a@b@h", "h", 6379, NULL, "me", "a@b", 0, "h:6379"},
    {"redis://a%40b%3Ac:%2f%3F%23%25@h", "h", 6379, NULL, "a@b:c", "/?#%", 0, "h:6379"},
    {"redis://:%e2%82%ac%01@h", "h", 6379, NULL, NULL, "\xe2\x82\xac\x01", 0, "h:6379"},
    {"redis://me@h", "h", 6379, NULL, "me", NULL, 0, "h:6379"},
    {"rediss://h", "h", 6379, NULL, NULL, NULL, 0, "h:6379"},
    {"rediss://me:pw@[::1]:7/2", "::1", 7, NULL, "me", "pw", 2, "[::1]:7"},
    {"redis://[::1]", "::1", 6379, NULL, NULL, NULL, 0, "[::1]:6379"},
    {"redis://[fe80::1%eth0]:7/1", "fe80::1%eth0", 7, NULL, NULL, NULL, 1, "[fe80::1%eth0]:7"},
    {"redis://u:p@[2001:db8::2]:70", "2001:db8::2", 70, NULL, "u", "p", 0, "[2001:db8::2]:70"},
    {"redis://[1.2.3.4]", "1.2.3.4", 6379, NULL, NULL, NULL, 0, "1.2.3.4:6379"},
    {"unix:///run/redis.sock", NULL, 0, "/run/redis.sock", NULL, NULL, 0, "/run/redis.sock"},
    {"unix:///", NULL, 0, "/", NULL, NULL, 0, "/"},
    {"unix:///s?db=15", NULL, 0, "/s", NULL, NULL, 15, "/s"},
    {"unix://me@/s", NULL, 0, "/s", "me", NULL, 0, "/s"},
    {"unix://:pw@/s", NULL, 0, "/s", NULL, "pw", 0, "/s"},
    {"unix://me:p%20w@/a/b?db=2", NULL, 0, "/a/b", "me", "p w", 2, "/a/b"},
    {"unix:///a@b:c", NULL, 0, "/a@b:c", NULL, NULL, 0, "/a@b:c"},
    {"unix:///a\tb\xff", NULL, 0, "/a\tb\xff", NULL, NULL, 0, "/a?b?"},
    {"unix:///a b", NULL, 0, "/a b", NULL, NULL, 0, "/a b"},
    {"unix:///a%2cb%25%3F?db=1", NULL, 0, "/a,b%?", NULL, NULL, 1, "/a,b%?"},
    {"redis://:a%2Cb@h", "h", 6379, NULL, NULL, "a,b", 0, "h:6379"},
    {"redis://:a b@h", "h", 6379, NULL, NULL, "a b", 0, "h:6379"},
};

static void documented_forms_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        hf_error error = {.status = HF_OK};
        hf__url url;
        if (hf__url_parse(good[i].text, &url, &error) != HF_OK)
            fail_msg("%s: %s", good[i].text, error.text);
        expect_same(url.host, good[i].host);
        expect_same(url.path, good[i].path);
        assert_int_equal(url.tls, strncmp(good[i].text, "rediss:", 7) == 0);
        expect_same(url.user, good[i].user);
        expect_same(url.password, good[i].password);
        assert_int_equal(url.port, good[i].port);
        assert_int_equal(url.database, good[i].database);
        assert_string_equal(url.display, good[i].display);
        hf__url_free(&url);
        assert_null(url.host); /* freed twice is fine */
        hf__url_free(&url);
    }
}

static void the_longest_names_fit(void **state)
{
    (void)state;
    char text[400];
    hf__url url;
    hf_error error;
    snprintf(text, sizeof(text), "redis://%0253d", 0);
    assert_int_equal(hf__url_parse(text, &url, &error), HF_OK);
    assert_int_equal(strlen(url.host), 253);
    assert_int_equal(strlen(url.display), sizeof(url.display) - 1); /* cut, not overrun */
    hf__url_free(&url);
    snprintf(text, sizeof(text), "unix:///%0106d", 0);
    assert_int_equal(hf__url_parse(text, &url, &error), HF_OK);
    assert_int_equal(strlen(url.path), 107); /* with a NUL all that a socket address takes */
    assert_string_equal(url.display, url.path);
    hf__url_free(&url);
}

/* ---- Bad ones ---- */

static const struct {
    const char *text;
    int position; /* of the character, counted from 1 */
    const char *part;
} bad[] = {
    {"", 1, "rediss:// or unix://"},
    {"localhost:6379", 1, "rediss:// or unix://"},
    {"http://h", 1, "rediss:// or unix://"},
    {"REDIS://h", 1, "rediss:// or unix://"},
    {"redis:/h", 1, "rediss:// or unix://"},
    {" redis://h", 1, "rediss:// or unix://"},
    {"redis://", 9, "host name"},
    {"redis://:6379", 9, "host name"},
    {"redis:///0", 9, "host name"},
    {"redis://[]", 10, "host name"},
    {"redis://u:p@", 13, "host name"},
    {"redis://u:p@:1", 13, "host name"},
    {"redis://::1", 9, "host name"},
    {"redis://[::1", 9, "without ']'"},
    {"redis://[::1/]", 9, "without ']'"},
    {"redis://[::1]x", 14, "port can follow"},
    {"redis://a b", 10, "cannot be in a host name"},
    {"redis://a\tb", 10, "cannot be in a host name"},
    {"redis://h\xc3\xb6st", 10, "cannot be in a host name"},
    {"redis://a]b", 10, "cannot be in a host name"},
    {"redis://h\n", 10, "cannot be in a host name"},
    {"redis://h:", 11, "port from 1 to 65535"},
    {"redis://h:0", 11, "port from 1 to 65535"},
    {"redis://h:65536", 11, "port from 1 to 65535"},
    {"redis://h:99999999999999999999", 11, "port from 1 to 65535"},
    {"redis://h:-1", 11, "port from 1 to 65535"},
    {"redis://h:x", 11, "port from 1 to 65535"},
    {"redis://h: 1", 11, "port from 1 to 65535"},
    {"redis://fe80::1", 14, "port from 1 to 65535"},
    {"redis://h/x", 11, "database number"},
    {"redis://h/-1", 11, "database number"},
    {"redis://h/1/2", 11, "database number"},
    {"redis://h/1?x", 11, "database number"},
    {"redis://h/1000001", 11, "database number"},
    {"redis://h/ ", 11, "database number"},
    {"redis://h?db=1", 10, "nothing of the kind"},
    {"redis://h#x", 10, "nothing of the kind"},
    {"redis://@h", 9, "password belongs before '@'"},
    {"redis://u:%@h", 11, "hexadecimal"},
    {"redis://u:%4@h", 11, "hexadecimal"},
    {"redis://u:%zz@h", 11, "hexadecimal"},
    {"redis://u:%4z@h", 11, "hexadecimal"},
    {"redis://u:%-1@h", 11, "hexadecimal"},
    {"redis://u:a%00@h", 12, "hexadecimal"},
    {"redis://%g1:p@h", 9, "hexadecimal"},
    {"unix://", 8, "absolute path"},
    {"unix://path", 8, "absolute path"},
    {"unix://host/path", 8, "no host"},
    {"unix://u:p@host/x", 12, "no host"},
    {"unix://@/p", 8, "password belongs before '@'"},
    {"unix://u:%zz@/p", 10, "hexadecimal"},
    {"unix:///p?x", 10, "?db=NUMBER"},
    {"unix:///p?", 10, "?db=NUMBER"},
    {"unix:///p?db=", 14, "database number"},
    {"unix:///p?db=x", 14, "database number"},
    {"unix:///p?db=1&x", 14, "database number"},
    {"unix:///p%", 10, "hexadecimal"},
    {"unix:///p%00", 10, "hexadecimal"},
    {"unix:///a,b", 10, "written as %2C"},
    {"unix:///a,/b", 10, "written as %2C"},
    {"unix://u:p,w@/s", 11, "written as %2C"},
    {"redis://u:p,w@h", 12, "written as %2C"},
    {"redis://u,v:p@h", 10, "written as %2C"},
    {"redis://a,u:p@h", 10, "written as %2C"},
    {"redis://u:p@a,v:q@b", 14, "written as %2C"},
    {",", 1, "rediss:// or unix://"},
    {",redis://h", 1, "rediss:// or unix://"},
};

static void expect_bad(const char *text, int position, const char *part)
{
    char start[64];
    hf_error error = {.status = HF_OK};
    hf__url url;
    snprintf(start, sizeof(start), "bad URL at character %d: ", position);
    if (hf__url_parse(text, &url, &error) != HF_EINVAL)
        fail_msg("%s was taken", text);
    assert_int_equal(error.status, HF_EINVAL);
    if (strncmp(error.text, start, strlen(start)) != 0 || strstr(error.text, part) == NULL)
        fail_msg("%s: expected \"%s...%s\", got \"%s\"", text, start, part, error.text);
    assert_null(url.host); /* nothing is left of it */
    assert_null(url.path);
    assert_null(url.user);
    assert_null(url.password);
}

static void errors_point_at_the_character(void **state)
{
    (void)state;
    char text[400];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_bad(bad[i].text, bad[i].position, bad[i].part);
    snprintf(text, sizeof(text), "redis://%0254d", 0);
    expect_bad(text, 9, "host name of 1 to 253");
    snprintf(text, sizeof(text), "unix:///%0107d", 0);
    expect_bad(text, 8, "107 characters");
    snprintf(text, sizeof(text), "unix:///%0106d%%41", 0);
    expect_bad(text, 8, "107 characters");
}

static void the_error_may_be_null(void **state)
{
    (void)state;
    hf__url url;
    assert_int_equal(hf__url_parse("redis://h:x", &url, NULL), HF_EINVAL);
}

/* ---- Lists ---- */

/* What is expected is written as one server after the other: scheme, credentials, display and
 * database. */
static void write_down(const hf__url *urls, int count, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(
            text + used, capacity - used, "%s%s %s:%s@%s/%d", i > 0 ? " | " : "",
            urls[i].tls ? "tls" : "plain", urls[i].user != NULL ? urls[i].user : "-",
            urls[i].password != NULL ? urls[i].password : "-", urls[i].display, urls[i].database);
}

static const struct {
    const char *text;
    const char *servers;
} lists[] = {
    {"redis://h", "plain -:-@h:6379/0"},
    {"redis://a,b", "plain -:-@a:6379/0 | plain -:-@b:6379/0"},
    {"redis://a:1,b:2,c/3", "plain -:-@a:1/3 | plain -:-@b:2/3 | plain -:-@c:6379/3"},
    {"redis://u:p@a,b:2/0", "plain u:p@a:6379/0 | plain u:p@b:2/0"},
    {"rediss://:p@[::1],[::2]:7,c", "tls -:p@[::1]:6379/0 | tls -:p@[::2]:7/0 | tls -:p@c:6379/0"},
    {"redis://u@a,b/", "plain u:-@a:6379/0 | plain u:-@b:6379/0"},
    {"redis://a,redis://b", "plain -:-@a:6379/0 | plain -:-@b:6379/0"},
    {"redis://a redis://b", "plain -:-@a:6379/0 | plain -:-@b:6379/0"},
    {"redis://a/1,\n\t ,redis://b/2", "plain -:-@a:6379/1 | plain -:-@b:6379/2"},
    {"redis://u:p@a:1/1 rediss://v:q@b,unix:///s?db=4",
     "plain u:p@a:1/1 | tls v:q@b:6379/0 | plain -:-@/s/4"},
    {"unix:///s,unix:///t unix://u:p@/v", "plain -:-@/s/0 | plain -:-@/t/0 | plain u:p@/v/0"},
    {"unix:///s x,redis://a,b", "plain -:-@/s x/0 | plain -:-@a:6379/0 | plain -:-@b:6379/0"},
    {"redis://a:1,a:2", "plain -:-@a:1/0 | plain -:-@a:2/0"},
    {"unix:///redis,redis://redis", "plain -:-@/redis/0 | plain -:-@redis:6379/0"},
    {"redis://:a b@x,y", "plain -:a b@x:6379/0 | plain -:a b@y:6379/0"},
};

static void lists_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        hf__url urls[HF_SERVERS_MAX];
        char found[1000];
        int count = -1;
        hf_error error;
        if (hf__urls_parse(lists[i].text, urls, HF_SERVERS_MAX, &count, &error) != HF_OK)
            fail_msg("%s: %s", lists[i].text, error.text);
        write_down(urls, count, found, sizeof(found));
        assert_string_equal(found, lists[i].servers);
        for (int k = 0; k < count; k++)
            hf__url_free(&urls[k]);
    }
}

static void expect_bad_list(const char *text, int position, const char *part)
{
    char start[64];
    hf_error error = {.status = HF_OK};
    hf__url urls[HF_SERVERS_MAX];
    int count = -1;
    snprintf(start, sizeof(start), "bad URL at character %d: ", position);
    if (hf__urls_parse(text, urls, HF_SERVERS_MAX, &count, &error) != HF_EINVAL)
        fail_msg("%s was taken", text);
    assert_int_equal(error.status, HF_EINVAL);
    assert_int_equal(count, 0);
    if (strncmp(error.text, start, strlen(start)) != 0 || strstr(error.text, part) == NULL)
        fail_msg("%s: expected \"%s...%s\", got \"%s\"", text, start, part, error.text);
    for (int i = 0; i < HF_SERVERS_MAX; i++)
        assert_true(urls[i].host == NULL && urls[i].path == NULL && urls[i].user == NULL &&
                    urls[i].password == NULL);
}

static const struct {
    const char *text;
    int position;
    const char *part;
} bad_lists[] = {
    {"redis://a,", 11, "host name of 1"},
    {"redis://a,,b", 11, "host name of 1"},
    {"redis://,a", 9, "host name of 1"},
    {"redis://a, b", 11, "cannot be in a host name"},
    {"redis://a b", 10, "cannot be in a host name"},
    {"redis://a,b:x", 13, "port from 1 to 65535"},
    {"redis://a:x,b", 11, "port from 1 to 65535"},
    {"redis://[::1,b]", 9, "without ']'"},
    {"redis://a/1,b", 11, "database number"},
    {"redis://a,redis://b:0", 21, "port from 1 to 65535"},
    {"redis://a,redis://", 19, "host name of 1"},
    {"redis://a,http://b", 16, "port from 1 to 65535"},
    {"redis://a redis://b,", 21, "host name of 1"},
    {"redis://a redis://b ", 20, "cannot be in a host name"},
    {"redis://a redis://b?x", 20, "nothing of the kind"},
    {"redis://a unix://b", 18, "absolute path"},
    {"unix:///a?db=1,redis://a/x", 26, "database number"},
    {"redis://u:p@a redis://u:p,q@b", 26, "written as %2C"},
    {"redis://a,a", 11, "listed twice"},
    {"redis://a,A:6379", 11, "listed twice"},
    {"redis://a/1 redis://a/2", 21, "listed twice"},
    {"redis://a,rediss://u:p@a", 24, "listed twice"},
    {"redis://[::1],redis://[::1]", 23, "listed twice"},
    {"redis://a,b,unix:///s,unix:///%73?db=1", 30, "listed twice"},
    {"redis://1,2,3,4,5,6,7,8,9,10", 27, "more than 9 servers"},
    {"redis://1,2,3,4,5,6,7,8,9 redis://10", 27, "more than 9 servers"},
};

static void errors_in_lists_point_at_the_character(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_lists); i++)
        expect_bad_list(bad_lists[i].text, bad_lists[i].position, bad_lists[i].part);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_bad_list(bad[i].text, bad[i].position, bad[i].part);
}

static void nine_servers_fit(void **state)
{
    (void)state;
    hf__url urls[HF_SERVERS_MAX];
    int count;
    hf_error error;
    assert_int_equal(
        hf__urls_parse("redis://1,2,3,4,5,6 unix:///7,rediss://8,9", urls, 9, &count, &error),
        HF_OK);
    assert_int_equal(count, HF_SERVERS_MAX);
    assert_string_equal(urls[8].host, "9");
    for (int i = 0; i < count; i++)
        hf__url_free(&urls[i]);
}

/* ---- Passwords ---- */

/* Each goes wrong somewhere else, before, in or after the password. */
static const char *const leaky[] = {
    "redis//:s3cret@h",          "http://u:s3cret@h",         "rediss://u:s3cret@",
    "redis://@s3cret",           "redis://u:s3cret%@h",       "redis://u:%s3cret@h",
    "redis://u:s3cret@",         "redis://u:s3cret@h:x",      "redis://u:s3cret@h/x",
    "redis://u:s3cret@h?x",      "redis://u:s3cret@[h",       "redis://u:s3cret/x@h",
    "redis://u:s3cret?x@h",      "redis://u:s3cret#x@h",      "redis://u:s3cret@h h",
    "redis://u:s3cret@h:99999",  "unix://u:s3cret@",          "unix://u:s3cret@host/p",
    "unix://@s3cret/p",          "unix://u:s3cret@/p?x",      "unix://u:s3cret/x@/p",
    "unix://u:s3cret@/p?db=x",   "redis://u:%73%33cret%@h",   "redis://u:s3cret",
    "redis:// :s3cret@h:s3cret", "redis://u:p@h:s3cret/0",    "redis://h/s3cret",
    "redis://u:s3cret@a,a",      "redis://u:s,s3cret@a",      "redis://u:s3cret@a,redis://a",
    "redis://a,u:s3cret@b",      "redis://a redis://s3cret@", "redis://a,redis://u:s3cret,x@b",
};

static void no_error_shows_a_password(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(leaky); i++) {
        hf_error error = {.status = HF_OK};
        hf__url url;
        hf_client *client;
        if (hf__url_parse(leaky[i], &url, &error) == HF_OK)
            fail_msg("%s was taken", leaky[i]);
        assert_true(strlen(error.text) > 0);
        assert_null(strstr(error.text, "s3cret"));
        assert_int_equal(hf_open(leaky[i], NULL, &client, &error), HF_EINVAL);
        assert_null(client);
        assert_null(strstr(error.text, "s3cret"));
    }
}

static void the_display_shows_no_credentials(void **state)
{
    (void)state;
    hf__url url;
    hf_error error;
    assert_int_equal(hf__url_parse("redis://us3r:s3cret@h:1/2", &url, &error), HF_OK);
    assert_string_equal(url.display, "h:1");
    hf__url_free(&url);
    assert_int_equal(hf__url_parse("unix://us3r:s3cret@/p?db=1", &url, &error), HF_OK);
    assert_string_equal(url.display, "/p");
    hf__url_free(&url);
}

/* Freeing wipes up to the NUL; so after decoding nothing may be left behind it. */
static void decoding_leaves_no_rest_of_the_password_behind(void **state)
{
    (void)state;
    static const char encoded[] = "%41%42%43s3cret";
    hf__url url;
    hf_error error;
    assert_int_equal(hf__url_parse("redis://:%41%42%43s3cret@h", &url, &error), HF_OK);
    size_t left_over = 0;
    for (size_t i = strlen(url.password); i < strlen(encoded); i++)
        left_over += url.password[i] != '\0';
    hf__url_free(&url);
    assert_int_equal(left_over, 0);
}

/* ---- Memory ---- */

static void every_allocation_may_fail(void **state)
{
    static const struct {
        const char *text;
        long allocations;
    } cases[] = {{"redis://me:pw@h:1/2", 3}, {"unix://me:pw@/s?db=1", 3}, {"redis://h", 1}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf__url url;
        hf_error error;
        for (long refused = 0; refused < cases[i].allocations; refused++) {
            gate_fail_at(refused);
            assert_int_equal(hf__url_parse(cases[i].text, &url, &error), HF_ENOMEM);
            assert_true(gate_open());
            assert_int_equal(error.status, HF_ENOMEM);
            assert_null(url.host);
            assert_null(url.path);
            assert_null(url.user);
            assert_null(url.password);
        }
        gate_fail_at(cases[i].allocations);
        assert_int_equal(hf__url_parse(cases[i].text, &url, &error), HF_OK);
        assert_false(gate_open());
        hf__url_free(&url);
    }
}

/* All copies of the credentials, and what was there before the failure, are freed. */
static void every_allocation_of_a_list_may_fail(void **state)
{
    static const char text[] = "redis://me:pw@a,b unix:///s";
    enum { ALLOCATIONS = 3 + 3 + 1 };
    (void)state;
    hf__url urls[HF_SERVERS_MAX];
    hf_error error;
    int count;
    for (long refused = 0; refused < ALLOCATIONS; refused++) {
        gate_fail_at(refused);
        assert_int_equal(hf__urls_parse(text, urls, 9, &count, &error), HF_ENOMEM);
        assert_true(gate_open());
        assert_int_equal(error.status, HF_ENOMEM);
        assert_int_equal(count, 0);
    }
    gate_fail_at(ALLOCATIONS);
    assert_int_equal(hf__urls_parse(text, urls, 9, &count, &error), HF_OK);
    assert_false(gate_open());
    for (int i = 0; i < count; i++)
        hf__url_free(&urls[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_forms_are_understood),
        cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(errors_point_at_the_character),
        cmocka_unit_test(the_error_may_be_null),
        cmocka_unit_test(lists_are_understood),
        cmocka_unit_test(errors_in_lists_point_at_the_character),
        cmocka_unit_test(nine_servers_fit),
        cmocka_unit_test(no_error_shows_a_password),
        cmocka_unit_test(the_display_shows_no_credentials),
        cmocka_unit_test(decoding_leaves_no_rest_of_the_password_behind),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_of_a_list_may_fail),
    };
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
