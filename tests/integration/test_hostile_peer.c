/* SPDX-License-Identifier: MIT */
/* Goal: a server that turns hostile in the middle of a conversation, at its first answer or at the
 * answer to an acquire, costs the call its time and the process a bounded amount of memory; the
 * connection is given up, and when a real server answers again everything works.
 *
 * Peers that are hostile from the first byte and stay so are in test_hostile.c. What the
 * connection for messages is fed with is in test_hostile_push.c, and answers that are well formed
 * but make no sense in test_hostile_answers.c.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "impostor.h"

enum { REPLY_MS = 100, CALL_MS = 150, FLOOD_MS = 200, GROWTH_MAX_KIB = 16 * 1024 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static hf_client *victim;
static hf_error error;
static struct impostor impostor;

static char nested[4 * 10000 + 1];       /* ten thousand arrays in each other */
static char widest[8 * 10 + 1];          /* arrays of the largest size in each other */
static char texts[16 + 16384 * 64];      /* as many texts as an array may have */
static char info[1024 * 1024];           /* an INFO without end and without what matters */
static char long_line[1024 * 1024 + 64]; /* the longest that is not refused, nearly */

/* AddressSanitizer keeps freed memory for a while, which would be counted as the library's. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}

static void fill_in(void)
{
    char *at = texts + snprintf(texts, sizeof(texts), "*16384\r\n");
    for (int i = 0; i < 10000; i++)
        memcpy(nested + (size_t)4 * (size_t)i, "*1\r\n", 5);
    for (int i = 0; i < 8; i++)
        memcpy(widest + (size_t)8 * (size_t)i, "*16384\r\n", 9);
    for (int i = 0; i < 16384; i++)
        at += sprintf(at, "$40\r\n%040d\r\n", i);
    memset(info, 'i', sizeof(info) - 1);
    memcpy(info, "+OK\r\n$1048000\r\n", 15);
    memcpy(info + 15 + 1048000, "\r\n", 3);
    memset(long_line, 'a', sizeof(long_line) - 1);
    memcpy(long_line, "-ERR ", 5);
    memcpy(long_line + 1024 * 1024 - 2, "\r\n", 3);
}

static int begin(void **state)
{
    fill_in();
    (void)start_server(state);
    impostor = impostor_start(server);
    return 0;
}

static int end(void **state)
{
    impostor_relent(&impostor);
    return close_clients(state);
}

static int end_all(void **state)
{
    process_end_all();
    return end_server(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void open_victim(int64_t reply_ms, int64_t call_ms)
{
    open_client_at(impostor.url, &victim,
                   HF_CLIENT(.reply_timeout_ms = reply_ms, .call_timeout_ms = call_ms));
}

static void expect_call_fails(int64_t call_ms)
{
    hf_hold *hold;
    int64_t start = now_ms();
    hf_status status = hf_acquire(victim, "lock", NULL, &hold, &error);
    EXPECT_TOOK(start, 0, call_ms);
    assert_null(hold);
    if (status != HF_EUNAVAILABLE && status != HF_EUNKNOWN && status != HF_ESERVER)
        fail_msg("%s: %s", hf_status_name(status), error.text);
    for (const char *at = error.text; *at != '\0'; at++)
        assert_in_range(*at, ' ', '~'); /* it may go to a terminal */
}

/* A machine that stands still for longer than the short time-outs here gets another chance. So does
 * a call that is answered by what a flood has left in the socket: answers have no names, and one
 * that comes between two calls is told from the next one's only by those who look. */
static void expect_works(void)
{
    hf_status status = HF_EUNKNOWN;
    for (int i = 0; i < 10 && status != HF_OK; i++) {
        hf_hold *hold;
        status = hf_acquire(victim, "lock", HF_ACQUIRE(.wait_ms = 10000), &hold, &error);
        if (status == HF_OK)
            status = hf_release(&hold, &error);
    }
    EXPECT(HF_OK, status);
}

static void suffer(enum moment moment, const struct attack *attack, int64_t call_ms)
{
    long long before = impostor_attacked(&impostor);
    impostor_attack(&impostor, moment, attack);
    memory_watch_begin();
    expect_call_fails(call_ms);
    int64_t growth = memory_growth_kib();
    if (impostor_attacked(&impostor) == before)
        fail_msg("%s: was not met", attack->name);
    if (growth > GROWTH_MAX_KIB)
        fail_msg("%s: took %lld KiB", attack->name, (long long)growth);
    impostor_relent(&impostor);
    expect_works();
}

/* At a greeting, a client must have no connection yet, or none any more. */
static void suffer_anew(const struct attack *attack, int64_t reply_ms, int64_t call_ms)
{
    open_victim(reply_ms, call_ms);
    suffer(AT_GREETING, attack, call_ms);
    EXPECT_STATUS(HF_OK, hf_close(victim));
    victim = NULL;
}

/* ---- One byte after the other ---------------------------------------------------------------- */

static const struct attack loris[] = {
    {.name = "a slow line", .says = "+", .repeats = "a", .pace_ms = 50},
    {.name = "a slow error", .says = "-", .repeats = "a", .pace_ms = 50},
    {.name = "a slow text", .says = "$100000\r\n", .repeats = "a", .pace_ms = 50},
    {.name = "a slow array", .says = "*16384\r\n", .repeats = ":1\r\n", .pace_ms = 50},
    {.name = "slow answers", .repeats = "+OK\r\n", .pace_ms = 50},
};

static void slow_greetings(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(loris); i++)
        suffer_anew(&loris[i], REPLY_MS, CALL_MS);
}

static void slow_answers(void **state)
{
    (void)state;
    open_victim(REPLY_MS, CALL_MS);
    expect_works();
    for (size_t i = 0; i < COUNT(loris); i++)
        suffer(AT_CALL, &loris[i], CALL_MS);
}

/* It is the time-out of a reply that ends it, not that of the call, which has time for more. */
static void a_slow_connection_is_given_up_for_another(void **state)
{
    (void)state;
    hf_hold *hold;
    open_victim(REPLY_MS, 10000);
    expect_works();
    long long before = impostor_attacked(&impostor);
    impostor_attack(&impostor, AT_CALL, &loris[2]);
    EXPECT(HF_EUNKNOWN, hf_acquire(victim, "lock", HF_ACQUIRE(.wait_ms = 1500), &hold, &error));
    assert_in_range(impostor_attacked(&impostor) - before, 2, 1500 / REPLY_MS);
    impostor_relent(&impostor);
    expect_works();
}

/* ---- Too much -------------------------------------------------------------------------------- */

static const struct attack limits[] = {
    {.name = "an endless line", .says = "+", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "an endless error", .says = "-ERR ", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "an endless number", .says = ":", .repeats = "0000000000000000"},
    {.name = "an endless length", .says = "$", .repeats = "1111111111111111"},
    {.name = "an endless count", .says = "*", .repeats = "0000000000000000"},
    {.name = "a long error", .repeats = long_line},
    {.name = "a long INFO", .says = info},
    {.name = "512 MiB", .says = "$536870912\r\n", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "2^63 - 1 bytes", .says = "$9223372036854775807\r\n", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "2^63 - 3 bytes", .says = "$9223372036854775805\r\n", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "2^64 bytes", .says = "$18446744073709551616\r\n"},
    {.name = "-2 bytes", .says = "$-2\r\n"},
    {.name = "-2^63 bytes", .says = "$-9223372036854775808\r\n"},
    {.name = "2^31 elements", .says = "*2147483648\r\n", .repeats = ":1\r\n"},
    {.name = "2^31 - 1 elements", .says = "*2147483647\r\n", .repeats = ":1\r\n"},
    {.name = "10^9 elements", .says = "*1000000000\r\n", .repeats = ":1\r\n"},
    {.name = "2^63 elements", .says = "*9223372036854775808\r\n", .repeats = ":1\r\n"},
    {.name = "16385 elements", .says = "*16385\r\n", .repeats = ":1\r\n"},
    {.name = "-2 elements", .says = "*-2\r\n"},
    {.name = "8 deep", .says = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"},
    {.name = "10 000 deep", .says = nested},
    {.name = "wide and deep", .says = widest, .repeats = ":1\r\n"},
    {.name = "wide and wide", .says = "*16384\r\n", .repeats = "*300\r\n"},
    {.name = "empty arrays", .says = "*16384\r\n", .repeats = "*0\r\n"},
    {.name = "many texts", .says = texts},
};

static void too_much_at_the_greeting(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(limits); i++)
        suffer_anew(&limits[i], 2000, FLOOD_MS);
}

static void too_much_for_an_answer(void **state)
{
    (void)state;
    open_victim(2000, CALL_MS);
    expect_works();
    for (size_t i = 0; i < COUNT(limits); i++)
        suffer(AT_CALL, &limits[i], CALL_MS);
}

/* A flood of answers to questions that nobody asked, behind one that was. */
static void too_many_answers(void **state)
{
    (void)state;
    static const struct attack attacks[] = {
        {.name = "numbers", .repeats = ":1\r\n"},
        {.name = "refusals", .repeats = "*3\r\n:0\r\n:1000\r\n$4\r\nthey\r\n"},
        {.name = "errors", .repeats = "-BUSY x\r\n"},
        {.name = "unknown scripts", .repeats = "-NOSCRIPT x\r\n"},
    };
    hf_hold *hold;
    open_victim(REPLY_MS, CALL_MS);
    expect_works();
    for (size_t i = 0; i < COUNT(attacks); i++) {
        impostor_attack(&impostor, AT_CALL, &attacks[i]);
        memory_watch_begin();
        int64_t start = now_ms();
        assert_int_not_equal(hf_acquire(victim, "lock", HF_ACQUIRE(.wait_ms = 300), &hold, &error),
                             HF_OK);
        EXPECT_TOOK(start, 0, 300);
        assert_in_range(memory_growth_kib(), 0, GROWTH_MAX_KIB);
        impostor_relent(&impostor);
        expect_works();
    }
}

#define TEST(function) cmocka_unit_test_teardown(function, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(slow_greetings),
        TEST(slow_answers),
        TEST(a_slow_connection_is_given_up_for_another),
        TEST(too_much_at_the_greeting),
        TEST(too_much_for_an_answer),
        TEST(too_many_answers),
    };
    return cmocka_run_group_tests_name("a server that turns hostile", tests, begin, end_all);
}
