/* SPDX-License-Identifier: MIT */
/* Goal: whatever comes over the connection for messages, the one who waits goes on waiting, calls
 * on other connections are served meanwhile, memory is bounded, and when the server makes sense
 * again a release still reaches who waits. What is not the protocol ends that connection, and so
 * does one who says a byte now and then; what could be messages is no reason to.
 *
 * One client waits through all attacks of a test. Its subscription is ended by the server before
 * each, so that it comes again and meets the impostor.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "impostor.h"

enum {
    REPLY_MS = 200,
    PATIENT_MS = 700, /* the answer to a PING stands behind megabytes of other things */
    STAND_MS = 250,
    LONG_MS = 60000,
    GROWTH_MAX_KIB = 16 * 1024
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SAYS(text_of_it)                       \
    {                                          \
        .name = text_of_it, .says = text_of_it \
    }

static hf_client *victim;
static hf_client *holder;
static hf_hold *held;
static hf_error error;
static struct impostor impostor;
static struct attempt waiter;

static char large_message[1024 * 1024]; /* as large as one may be */
static char large_note[1024 * 1024];
static char digits[1024 * 1024];

/* AddressSanitizer keeps freed memory for a while, which would be counted as the library's. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}

static void fill_message(char *place, const char *start, char filler)
{
    enum { LENGTH = 1000000 };
    memset(place, filler, 1024 * 1024 - 1);
    int header = sprintf(place, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s", LENGTH, start);
    place[header] = filler;
    size_t end = (size_t)header - strlen(start) + LENGTH;
    memcpy(place + end, "\r\n", 3);
}

static int begin(void **state)
{
    fill_message(large_message, "", 'm');
    fill_message(large_note, "r 1 1:", '\x1b');
    fill_message(digits, "g 1 1", '1');
    (void)start_server(state);
    impostor = impostor_start(server);
    return 0;
}

static int end_all(void **state)
{
    process_end_all();
    return end_server(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static bool is_subscribed(void)
{
    return strcmp(raw(server, "PUBSUB CHANNELS hf:c:*"), "(array of 1)") == 0;
}

/* Somebody holds the lock, and the victim waits for it. */
static int begin_with(int64_t reply_ms)
{
    empty_server();
    open_client(&holder);
    open_client_at(impostor.url, &victim, HF_CLIENT(.reply_timeout_ms = reply_ms));
    held = acquire_with(holder, HF_ACQUIRE(.lease_ms = LONG_MS));
    attempt_begin(&waiter, victim, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == 1, 10000);
    return 0;
}

static int begin_test(void **state)
{
    (void)state;
    return begin_with(REPLY_MS);
}

static int begin_patiently(void **state)
{
    (void)state;
    return begin_with(PATIENT_MS);
}

static int end(void **state)
{
    impostor_relent(&impostor);
    hf_release(&held, NULL);
    int result = close_clients(state); /* which ends the wait, if the test has failed */
    hf_release(&waiter.hold, NULL);
    return result;
}

static void be_struck(const struct attack *attack)
{
    long long before = impostor_attacked(&impostor);
    impostor_attack(&impostor, AT_MESSAGES, attack);
    memory_watch_begin();
    (void)raw(server, "CLIENT KILL TYPE pubsub");
    WAIT_UNTIL(impostor_attacked(&impostor) > before, 10000);
}

/* In milliseconds, or, with sanitizers and a machine that has other things to do, not too many. */
static void use_another_lock(const struct attack *attack)
{
    hf_hold *other = NULL;
    int64_t start = now_ms();
    EXPECT(HF_OK, hf_acquire(victim, "other", NULL, &other, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
    if (now_ms() - start > 2 * SLACK_MS)
        fail_msg("%s: others were not served for %lld ms", attack->name,
                 (long long)(now_ms() - start));
}

static void expect_undisturbed(const struct attack *attack)
{
    int64_t growth = memory_growth_kib();
    if (attempt_is_over(&waiter))
        fail_msg("believed: %s", attack->name);
    if (growth > GROWTH_MAX_KIB)
        fail_msg("%s: took %lld KiB", attack->name, (long long)growth);
    assert_true(hf_is_valid(held));
}

static void calm_down(void)
{
    impostor_relent(&impostor);
    WAIT_UNTIL(is_subscribed() && queued() == 1, 10000);
}

/* The connection was given up: so it was made anew, and struck again. */
static void expect_given_up(const struct attack *attack)
{
    long long before = impostor_attacked(&impostor);
    be_struck(attack);
    for (int64_t stop = now_ms() + 10000; impostor_attacked(&impostor) < before + 2; sleep_ms(5))
        if (now_ms() > stop)
            fail_msg("not given up: %s", attack->name);
    use_another_lock(attack);
    expect_undisturbed(attack);
    calm_down();
}

static void expect_kept(const struct attack *attack, int64_t for_ms)
{
    int served = 0;
    be_struck(attack);
    long long before = impostor_attacked(&impostor);
    for (int64_t stop = now_ms() + for_ms; now_ms() < stop; served++)
        use_another_lock(attack);
    assert_true(served >= 1);
    expect_undisturbed(attack);
    if (impostor_attacked(&impostor) != before)
        fail_msg("given up: %s", attack->name);
    calm_down();
}

static void expect_handed_over(void)
{
    int64_t start = now_ms();
    EXPECT(HF_OK, hf_release(&held, &error));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, 2000);
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
}

/* ---- Not the protocol ------------------------------------------------------------------------ */

static const struct attack not_the_protocol[] = {
    {.name = "a slow message",
     .says = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1000\r\n",
     .repeats = "m",
     .pace_ms = 50},
    {.name = "a slow line", .says = "+", .repeats = "a", .pace_ms = 50},
    {.name = "silence", .says = NULL},
    {.name = "an endless line", .says = "+", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "an endless error", .says = "-", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "an endless length", .says = "$", .repeats = "1111111111111111"},
    {.name = "512 MiB", .says = "*3\r\n$536870912\r\n", .repeats = "aaaaaaaaaaaaaaaa"},
    {.name = "2^63 - 1", .says = "*3\r\n$9223372036854775807\r\n", .repeats = "aaaaaaaaaaaa"},
    {.name = "10^9 elements", .says = "*1000000000\r\n", .repeats = "$7\r\nmessage\r\n"},
    {.name = "endless nesting", .repeats = "*3\r\n"},
    {.name = "arrays of arrays", .says = "*16384\r\n", .repeats = "*300\r\n"},
    {.name = "endless numbers", .repeats = ":1\r\n"},
    {.name = "endless pongs", .repeats = "*2\r\n$4\r\npong\r\n$0\r\n\r\n"},
    SAYS("+PONG\r\n"),
    SAYS("$-1\r\n"),
    SAYS("*0\r\n"),
    SAYS("*1\r\n$7\r\nmessage\r\n"),
    SAYS("*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nm\r\n"),
    SAYS("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n"),
    SAYS("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*0\r\n"),
    SAYS("*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$1\r\nm\r\n"),
    SAYS("*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"),
    SAYS(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"),
    SAYS("*3\r\n$11\r\nunsubscribe\r\n$4\r\nhf:c\r\n:0\r\n"),
    SAYS("*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"),
    SAYS("*3\r\n$10\r\ninvalidate\r\n$1\r\nc\r\n$1\r\nm\r\n"),
};

static void what_is_not_the_protocol_ends_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(not_the_protocol); i++)
        expect_given_up(&not_the_protocol[i]);
    expect_handed_over();
}

/* ---- Too many messages ----------------------------------------------------------------------- */

#define MESSAGE(length, text) "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$" length "\r\n" text "\r\n"
#define FLOOD(name_of_it, text)                                    \
    {                                                              \
        .name = name_of_it, .repeats = text, .answers_pings = true \
    }

static const struct attack floods[] = {
    FLOOD("large messages", large_message),
    FLOOD("large notes", large_note),
    FLOOD("large numbers", digits),
    FLOOD("empty messages", MESSAGE("0", "")),
    FLOOD("grants of nothing", MESSAGE("11", "g 2 1 9 9 0")),
    FLOOD("news of waiters", MESSAGE("3", "i 1")),
    FLOOD("requests", MESSAGE("7", "r 1 1:x")),
    FLOOD("breaks of others", MESSAGE("7", "x 77 99")),
    FLOOD("grants beyond 2^63", MESSAGE("29", "g 1 9223372036854775808 9 9 0")),
    FLOOD("grants below 0", MESSAGE("12", "g 1 -1 9 9 0")),
    FLOOD("grants with zeroes", MESSAGE("20", "g 01 0000000001 9 9 ")),
    FLOOD("subscriptions to others", "*3\r\n$9\r\nsubscribe\r\n$5\r\nother\r\n:2\r\n"),
    FLOOD("ends of what nobody watches", "*3\r\n$11\r\nunsubscribe\r\n$6\r\nhf:e:x\r\n:1\r\n"),
    FLOOD("sights of what nobody watches",
          "*3\r\n$7\r\nmessage\r\n$6\r\nhf:e:x\r\n$14\r\ngranted 1 9 ab\r\n"),
    FLOOD("errors", "-ERR x\r\n"),
};

static void a_flood_of_messages_is_endured(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(floods); i++)
        expect_kept(&floods[i], STAND_MS);
    expect_kept(&floods[0], 3 * PATIENT_MS); /* much longer than a silent connection is kept */
    expect_handed_over();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_the_protocol_ends_the_connection),
        cmocka_unit_test_setup_teardown(a_flood_of_messages_is_endured, begin_patiently, end),
    };
    return cmocka_run_group_tests_name("hostile messages", tests, begin, end_all);
}
