/* SPDX-License-Identifier: MIT */
/* See quorum.h. */
#include "quorum.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

struct quorum quorum;

/* ---- Beginning and end ----------------------------------------------------------------------- */

const char *quorum_run_id(int number)
{
    static char run_id[41];
    const char *field = strstr(raw(quorum.servers[number], "INFO server"), "run_id:");
    assert_non_null(field);
    assert_int_equal(sscanf(field, "run_id:%40[0-9a-f]", run_id), 1);
    return run_id;
}

void quorum_give_vote(int number)
{
    const char *answer =
        raw(quorum.servers[number], "SET hf:run %b", quorum_run_id(number), (size_t)40);
    assert_string_equal(answer, "OK");
    assert_int_equal(raw_number(quorum.servers[number], "APPEND hf:run %b", " 1", (size_t)2), 42);
}

static void start_with(int count, const struct redis_server_options *options)
{
    quorum = (struct quorum){.count = count};
    for (int i = 0; i < count; i++) {
        quorum.servers[i] = redis_server_start(options);
        assert_non_null(quorum.servers[i]);
        quorum_give_vote(i);
    }
}

void quorum_start(int count)
{
    start_with(count, NULL);
}

void quorum_start_durable(int count)
{
    start_with(count, &(struct redis_server_options){.keeps_data = true});
}

int quorum_end(void **state)
{
    for (int i = 0; i < quorum.count; i++)
        if (quorum.frozen[i])
            quorum_thaw(i);
    return end_everything(state);
}

const char *quorum_urls(int count)
{
    static char urls[1024];
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(urls + length, sizeof(urls) - length, "%s%s", i > 0 ? "," : "",
                                   quorum.servers[i]->url);
    return urls;
}

const char *quorum_address(int number)
{
    static char address[32];
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", quorum.servers[number]->port);
    return address;
}

/* ---- Trouble --------------------------------------------------------------------------------- */

void quorum_kill(int number)
{
    redis_server_kill(quorum.servers[number]);
    quorum.frozen[number] = false;
}

void quorum_freeze(int number)
{
    redis_server_freeze(quorum.servers[number]);
    quorum.frozen[number] = true;
}

void quorum_thaw(int number)
{
    redis_server_thaw(quorum.servers[number]);
    quorum.frozen[number] = false;
}

void quorum_restart(int number)
{
    redis_server_restart(quorum.servers[number]);
    quorum.frozen[number] = false;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static bool runs(int number)
{
    return quorum.servers[number]->pid != 0 && !quorum.frozen[number];
}

int quorum_running(void)
{
    int running = 0;
    for (int i = 0; i < quorum.count; i++)
        running += runs(i);
    return running;
}

int quorum_held(void)
{
    int held = 0;
    for (int i = 0; i < quorum.count; i++)
        held += runs(i) && raw_number(quorum.servers[i], "EXISTS lock") == 1;
    return held;
}

/* Its votes have different numbers, but all begin with the client. */
int quorum_held_by(const hf_hold *hold)
{
    char value[64];
    int held = 0;
    assert_true(hf_owner(hold, value, sizeof(value)) > 32);
    for (int i = 0; i < quorum.count; i++)
        held += runs(i) && strncmp(raw(quorum.servers[i], "GET lock"), value, 32) == 0;
    return held;
}

long long quorum_queued(int number)
{
    return raw_number(quorum.servers[number], "ZCOUNT %s 0 +inf", side_key('q'));
}

bool quorum_all_queued(long long waiters)
{
    for (int i = 0; i < quorum.count; i++)
        if (runs(i) && quorum_queued(i) != waiters)
            return false;
    return true;
}

void quorum_forget_lock(void)
{
    for (int i = 0; i < quorum.count; i++)
        for (const char *kind = "qwh"; runs(i) && *kind != '\0'; kind++)
            (void)raw(quorum.servers[i], "DEL lock %s", side_key(*kind));
}

long long quorum_scripts(void)
{
    long long scripts = 0;
    for (int i = 0; i < quorum.count; i++)
        scripts += runs(i) ? scripts_run(quorum.servers[i]) : 0;
    return scripts;
}

void quorum_serves_both(struct process *waiters[2], uint64_t fence)
{
    struct pollfd lines[2] = {{.fd = waiters[0]->line, .events = POLLIN},
                              {.fd = waiters[1]->line, .events = POLLIN}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(poll(lines, 2, QUORUM_PATIENCE_MS), 1);
        int next = lines[0].revents != 0 ? 0 : 1;
        EXPECT_HEARD(waiters[next], "HF_OK");
        uint64_t own = (uint64_t)ask_number(waiters[next], "fence");
        assert_true(own > fence);
        fence = own;
        ASK(waiters[next], "release", "HF_OK");
    }
}
