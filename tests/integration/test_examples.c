/* SPDX-License-Identifier: MIT */
/* Goal: the examples of clients in a loop do what they show: three jobs, one after the other, with
 * growing fences, also while somebody else has the lock at first; and the first of them says so
 * when no server is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static hf_client *client;
static hf_error error;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static char output[4096];
static FILE *running;

static void run_example(const char *program)
{
    char command[512];
    (void)snprintf(command, sizeof(command), "%s %s", program, server->url);
    running = popen(command, "r");
    assert_non_null(running);
}

static int finish_example(void)
{
    size_t length = fread(output, 1, sizeof(output) - 1, running);
    output[length] = '\0';
    return pclose(running);
}

/* The lines "works" come in the order of the fences, and one at a time. */
static void expect_three_jobs(void)
{
    unsigned long long last = 0;
    int works = 0, ends = 0;
    for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *fence = strstr(line, "fence ");
        if (fence != NULL) {
            assert_int_equal(works, ends); /* the one before has released it */
            assert_true(strtoull(fence + 6, NULL, 10) > last);
            last = strtoull(fence + 6, NULL, 10);
            works++;
        } else {
            expect_says(line, "HF_OK");
            ends++;
        }
    }
    assert_int_equal(works, 3);
    assert_int_equal(ends, 3);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void expect_works(const char *program)
{
    empty_server();
    run_example(program);
    assert_int_equal(finish_example(), 0);
    expect_three_jobs();
}

static void expect_waits(const char *program)
{
    empty_server();
    open_client(&client);
    hf_hold *hold = NULL;
    EXPECT(HF_OK, hf_acquire(client, "order:42", NULL, &hold, &error));
    long long before = scripts_run(server);
    run_example(program);
    WAIT_UNTIL(scripts_run(server) >= before + 3, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_int_equal(finish_example(), 0);
    expect_three_jobs();
}

static void expect_fails_without_server(const char *program)
{
    struct redis_server *usual = server;
    server = redis_server_start(NULL);
    redis_server_kill(server);
    run_example(program);
    assert_int_not_equal(finish_example(), 0);
    expect_says(output, "HF_EUNAVAILABLE");
    server = usual;
}

static void an_epoll_loop(void **state)
{
    (void)state;
    expect_works(HF_EXAMPLES_DIR "/holdfast-epoll-loop");
    expect_waits(HF_EXAMPLES_DIR "/holdfast-epoll-loop");
    expect_fails_without_server(HF_EXAMPLES_DIR "/holdfast-epoll-loop");
}

#ifdef HF_WITH_LIBUV
static void a_loop_of_libuv(void **state)
{
    (void)state;
    expect_works(HF_EXAMPLES_DIR "/holdfast-uv-loop");
    expect_waits(HF_EXAMPLES_DIR "/holdfast-uv-loop");
}
#endif

#define TEST(name) cmocka_unit_test_teardown(name, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_epoll_loop),
#ifdef HF_WITH_LIBUV
        TEST(a_loop_of_libuv),
#endif
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
