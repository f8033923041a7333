/* SPDX-License-Identifier: MIT */
/* Words in which tests talk to one model server. */
#ifndef HF_SIM_MODEL_WORDS_H
#define HF_SIM_MODEL_WORDS_H

#include <string.h>

#include "redis_server.h" /* cmocka, and servers that end with the test */
#include "server.h"

static sim_server *server;

static int setup(void **state)
{
    (void)state;
    server = sim_server_new();
    sim_server_set_time(server, 1700000000000000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sim_server_free(server);
    redis_server_end_all();
    return 0;
}

#define RUN(...)                                                                                \
    sim_server_run(server, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), \
                   (const char *[]){__VA_ARGS__})
#define EXPECT_RUN(wanted, ...) assert_string_equal(RUN(__VA_ARGS__), wanted)
#define EVAL(body, wanted)      EXPECT_RUN(wanted, "EVAL", body, "1", "key", "argument")

static void advance_ms(int64_t *wall_us, int64_t ms)
{
    *wall_us += ms * 1000;
    sim_server_set_time(server, *wall_us);
}

static void say(int connection, const char *bytes)
{
    sim_server_receive(server, connection, bytes, strlen(bytes));
}

#define EXPECT_SAID(connection, wanted)                                \
    do {                                                               \
        const char *said_ = NULL;                                      \
        size_t count_ = sim_server_output(server, connection, &said_); \
        assert_int_equal(count_, sizeof(wanted) - 1);                  \
        if (count_ > 0)                                                \
            assert_memory_equal(said_, wanted, count_);                \
        sim_server_taken(server, connection, count_);                  \
    } while (0)

#endif
