/* SPDX-License-Identifier: MIT */
/* See server.h. Whatever is said is given to the core in a block of exactly its size, so that
 * reading beyond it is seen; and the longest time that was ever said is remembered, because no hold
 * may last longer. */
#include "server.h"

#include <inttypes.h>
#include <string.h>

#include "core/name.h"
#include "core/state.h" /* kinds of requests */
#include "machine.h"

enum { REPLY_SIZE = 1024 };

/* In a block of exactly this size, so that reading beyond it is seen. */
static void feed(int link, const void *bytes, size_t count)
{
    if (link < 0 || count == 0)
        return;
    char *exact = machine_allocate(count);
    memcpy(exact, bytes, count);
    machine_step(
        (hf__event){.kind = HF__EVENT_BYTES, .link = link, .bytes = exact, .count = count});
    free(exact);
}

static void feed_text(const char *text)
{
    feed(machine_choose_link(PORT_OPEN), text, strlen(text));
}

void say_anything(void)
{
    int link = machine_choose_link(PORT_OPEN);
    input bytes = input_take(&m.in, (size_t)input_byte(&m.in) % 64 + 1);
    m.said_ms = HF_MS_MAX; /* who knows */
    feed(link, bytes.at, bytes.left);
}

static size_t append(char *text, size_t length, const char *more)
{
    size_t count = strlen(more);
    REQUIRE(length + count < REPLY_SIZE);
    memcpy(text + length, more, count + 1);
    return length + count;
}

static size_t append_info(char *text, size_t length, uint8_t choice)
{
    char info[200], bulk[240];
    snprintf(info, sizeof(info),
             "redis_version:7.%d\r\nrun_id:%040d\r\nrole:%s\r\nmaxmemory:%d\r\n"
             "maxmemory_policy:volatile-ttl\r\naof_enabled:%d\r\n",
             choice % 8, choice % 4, choice >= 240 ? "slave" : "master", choice & 1, choice & 2);
    snprintf(bulk, sizeof(bulk), "$%zu\r\n%s\r\n", strlen(info), info);
    return append(text, length, bulk);
}

/* Up to who the server is, which both kinds of links ask. */
static size_t answer_introduction(char *text, uint8_t choice)
{
    size_t length =
        append(text, 0, m.server.password != NULL ? "+OK\r\n+OK\r\n+OK\r\n" : "+OK\r\n");
    length = append_info(text, length, choice);
    return append_info(text, length, choice);
}

/* Behind the introduction there are two more of INFO, TIME, perhaps a question about permissions,
 * and the scripts. */
static bool asks_permissions(int link)
{
    unsigned usual = (m.server.password != NULL ? 3 : 1) + 5 + HF__SCRIPT_LOADED;
    return link >= 0 && m.core->links[link].greeting_length > usual;
}

/* The answers to a whole greeting: one for each thing that is asked. */
void say_greeting(void)
{
    char text[REPLY_SIZE];
    uint8_t choice = input_byte(&m.in);
    size_t length = answer_introduction(text, choice);
    length = append_info(text, length, choice);
    length = append_info(text, length, choice);
    length = append(text, length, "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
    int link = machine_choose_link(PORT_OPEN);
    if (asks_permissions(link))
        length = append(text, length, choice == 239 ? "*1\r\n$3\r\nDEL\r\n" : "*0\r\n");
    for (int i = 0; i < HF__SCRIPT_LOADED; i++)
        length = append(text, length, "+sha\r\n");
    feed(link, text, length);
}

static int64_t choose_integer(void)
{
    static const int64_t usual[] = {10000, 0, 1, -1, -2, 100, HF_MS_MAX, INT64_MAX, INT64_MIN};
    uint8_t byte = input_byte(&m.in);
    int64_t integer = byte < 9 ? usual[byte] : byte * 40;
    int64_t believed = integer < HF_MS_MAX ? integer : HF_MS_MAX;
    if (believed > m.said_ms)
        m.said_ms = believed;
    return integer;
}

/* A number of milliseconds, in the form in which the next reply is expected. */
void say_integer(void)
{
    char text[8 + HF__BATCH_MAX * 32];
    int64_t integer = choose_integer();
    int link = machine_choose_link(PORT_OPEN);
    unsigned group = 0;
    int expected = link >= 0 ? machine_expected(link, &group) : -1;
    if (expected == HF__REQUEST_ACQUIRE && integer == -1) {
        snprintf(text, sizeof(text), "*1\r\n:-1\r\n");
    } else if (expected == HF__REQUEST_ACQUIRE) {
        snprintf(text, sizeof(text), "*2\r\n:%" PRId64 "\r\n:%" PRId64 "\r\n", ++m.fence, integer);
    } else if (expected == HF__REQUEST_RENEW && machine_expects_refresh(link)) {
        bool all = integer > 0; /* else none */
        int length = snprintf(text, sizeof(text), "*%u\r\n:%u\r\n", all ? 1 : 1 + group, group);
        for (unsigned i = 1; i <= group && !all; i++)
            length += snprintf(text + length, sizeof(text) - (size_t)length, ":%u\r\n", i);
    } else if (expected == HF__REQUEST_RENEW) {
        int length = snprintf(text, sizeof(text), "*%u\r\n", group);
        for (unsigned i = 0; i < group; i++)
            length +=
                snprintf(text + length, sizeof(text) - (size_t)length, ":%" PRId64 "\r\n", integer);
    } else {
        snprintf(text, sizeof(text), ":%" PRId64 "\r\n", integer);
    }
    feed(link, text, strlen(text));
}

/* The answers to a call of renewals, each of its own kind. */
void say_batch(void)
{
    static const struct {
        const char *before, *after; /* the number; without `after` there is none */
    } kinds[] = {{"", ""},
                 {":0\r\n", NULL},
                 {"*2\r\n", "$6\r\n1:give\r\n"},
                 {"*2\r\n", "$6\r\n2:give\r\n"},
                 {"*2\r\n:0\r\n$1\r\n9\r\n", NULL},
                 {"*2\r\n:0\r\n$1\r\n0\r\n", NULL},
                 {"-BUSY x\r\n", NULL},
                 {"$-1\r\n", NULL}};
    char text[REPLY_SIZE * 8], number[32];
    unsigned group = 0;
    snprintf(number, sizeof(number), ":%" PRId64 "\r\n", choose_integer());
    int link = machine_choose_link(PORT_OPEN);
    if (link < 0 || machine_expected(link, &group) != HF__REQUEST_RENEW)
        return;
    int length = snprintf(text, sizeof(text), "*%u\r\n", group);
    for (unsigned i = 0; i < group; i++) {
        uint8_t kind = input_byte(&m.in) % 16;
        kind = kind < 8 ? kind : 0;
        bool with_number = kinds[kind].after != NULL;
        length +=
            snprintf(text + length, sizeof(text) - (size_t)length, "%s%s%s", kinds[kind].before,
                     with_number ? number : "", with_number ? kinds[kind].after : "");
    }
    feed(link, text, strlen(text));
}

void say_to_query(void)
{
    static const char *const replies[] = {
        "*7\r\n$17\r\nclient:1@host:1/1\r\n:1000\r\n$1\r\n7\r\n:0\r\n*0\r\n:0\r\n*0\r\n",
        "*7\r\n$5\r\nowner\r\n:1000\r\n$1\r\n7\r\n:1\r\n*2\r\n$1\r\nv\r\n:9\r\n:1\r\n*2\r\n$"
        "17\r\nclient:2@host:1/1\r\n:5\r\n",
        "*7\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n*0\r\n:9\r\n*2\r\n$1\r\nw\r\n:-9\r\n",
        "*7\r\n$3\r\nabc\r\n:-1\r\n$1\r\n7\r\n:99\r\n*1\r\n$1\r\nv\r\n:0\r\n*0\r\n",
        ":1\r\n",
        "*2\r\n$1\r\n0\r\n*0\r\n",
        "*2\r\n$2\r\n17\r\n*2\r\n$1\r\nk\r\n$2\r\nkk\r\n",
        "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nk\r\n:1\r\n"};
    feed_text(replies[input_byte(&m.in) % 8]);
}

void say_bare_integer(void)
{
    char text[32];
    snprintf(text, sizeof(text), ":%" PRId64 "\r\n", choose_integer());
    feed_text(text);
}

/* Held by a stranger, or by one of our own holds. */
void say_busy(void)
{
    char text[REPLY_SIZE], holder[64];
    snprintf(holder, sizeof(holder), "client:%d@host:1/1", input_byte(&m.in) % CALLS);
    snprintf(text, sizeof(text), "*3\r\n:0\r\n:%" PRId64 "\r\n$%zu\r\n%s\r\n", choose_integer(),
             strlen(holder), holder);
    feed_text(text);
}

/* The same, and queued. */
void say_queued(void)
{
    static const char *const places[] = {"1",    "2", "8",  "9",
                                         "1000", "0", "-1", "9223372036854775807"};
    char text[REPLY_SIZE];
    uint8_t choice = input_byte(&m.in);
    snprintf(text, sizeof(text), "*5\r\n:0\r\n:%" PRId64 "\r\n$4\r\nthey\r\n:%s\r\n:%d\r\n",
             choose_integer(), places[choice % 8], choice >> 3 & 1);
    feed_text(text);
}

void say_granted(void)
{
    char text[REPLY_SIZE];
    snprintf(text, sizeof(text), "*3\r\n:%" PRId64 "\r\n:%" PRId64 "\r\n:1\r\n", m.fence += 70,
             choose_integer());
    feed_text(text);
}

/* ---- On the link of messages ---- */

static void feed_push(const char *text)
{
    feed(machine_push_link(PORT_OPEN), text, strlen(text));
}

#define NUMSUB     "*2\r\n$1\r\nc\r\n:0\r\n"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$11\r\nhf:c:client\r\n:1\r\n"

void say_push_greeting(void)
{
    static const char *const answers[] = {
        (":0\r\n" NUMSUB "+PONG\r\n" SUBSCRIBED), ("-NOPERM x\r\n" NUMSUB "+PONG\r\n" SUBSCRIBED),
        ":0\r\n-NOPERM x\r\n-NOPERM x\r\n", (":0\r\n" NUMSUB "+PONG\r\n-LOADING x\r\n")};
    char text[REPLY_SIZE];
    size_t length = answer_introduction(text, input_byte(&m.in));
    uint8_t choice = input_byte(&m.in);
    append(text, length, answers[choice < 252 ? 0 : choice - 252]);
    feed_push(text);
}

static void feed_message(const char *text)
{
    char message[REPLY_SIZE];
    snprintf(message, sizeof(message), "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%zu\r\n%s\r\n",
             strlen(text), text);
    feed_push(message);
}

void say_message(void)
{
    char text[REPLY_SIZE / 2];
    uint8_t kind = input_byte(&m.in);
    uint64_t number = m.numbers - input_byte(&m.in) % 8;
    if (kind < 160)
        snprintf(text, sizeof(text), "g %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %d", number,
                 machine_copies() - kind % 3 + (kind % 16 == 15), m.fence += 70, choose_integer(),
                 kind >> 5 & 1);
    else if (kind < 200)
        snprintf(text, sizeof(text), "i %" PRIu64, number);
    else if (kind < 230)
        snprintf(text, sizeof(text), "r %" PRIu64 " %" PRId64 ":give", number,
                 m.fence + kind % 3 * 32);
    else
        snprintf(text, sizeof(text), "x %" PRIu64 " %" PRId64, number, m.fence + kind % 3 * 32);
    feed_message(text);
}

void say_sight(void)
{
    static const char *const words[] = {"granted", "released", "waiting", "revoked",
                                        "broken",  "granted",  "",        "granted 1"};
    char channel[64], text[REPLY_SIZE / 2], message[REPLY_SIZE];
    uint8_t choice = input_byte(&m.in);
    const char *name = choice & 1 ? "b" : "a";
    size_t length = (size_t)snprintf(channel, sizeof(channel), "hf:e:");
    length +=
        hf__side_key(channel + length, HF__SLICE(""), 'f', (hf__slice){name, 1}, hf__slot(name, 1));
    snprintf(text, sizeof(text), "%s %" PRId64 " %" PRId64 " client:1@host:1/1",
             words[choice >> 1 & 7], m.fence + (choice >> 4 & 3), choose_integer());
    if (choice >= 192)
        snprintf(message, sizeof(message), "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:2\r\n",
                 length, (int)length, channel);
    else
        snprintf(message, sizeof(message), "*3\r\n$7\r\nmessage\r\n$%zu\r\n%.*s\r\n$%zu\r\n%s\r\n",
                 length, (int)length, channel, strlen(text), text);
    feed_push(message);
}

void say_pong(void)
{
    feed_push("*2\r\n$4\r\npong\r\n$0\r\n\r\n");
}

/* As a message, or as it is. */
void say_push_anything(void)
{
    char text[72] = "";
    bool bare = input_byte(&m.in) < 64;
    input bytes = input_take(&m.in, (size_t)input_byte(&m.in) % 64 + 1);
    m.said_ms = HF_MS_MAX; /* who knows */
    if (bytes.left > 0)
        memcpy(text, bytes.at, bytes.left);
    if (bare)
        feed(machine_push_link(PORT_OPEN), bytes.at, bytes.left);
    else
        feed_message(text);
}

void say_error(void)
{
    static const char *const errors[] = {
        "-NOSCRIPT No matching script.\r\n",
        "-LOADING x\r\n",
        "-BUSY x\r\n",
        "-OOM x\r\n",
        "-READONLY x\r\n",
        "-MASTERDOWN x\r\n",
        "-ERR max number of clients reached\r\n",
        "-WRONGTYPE x\r\n",
        "-NOAUTH x\r\n",
        "-NOPERM x\r\n",
        "-MOVED 1 x\r\n",
        "-\r\n",
        "-ERR Error running script (call to f_1): @user_script:5: -OOM x\r\n",
        "-ERR unknown\r\n"};
    feed_text(errors[input_byte(&m.in) % (sizeof(errors) / sizeof(errors[0]))]);
}
