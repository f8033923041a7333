/* SPDX-License-Identifier: MIT */
/* See wired.h. Assertions belong to the test's own thread; the hook only counts. */
#include "wired.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

bool wired_seeing = true, wired_blind = false;

hf_client *open_client(const hf_client_options *options)
{
    hf_client *client = NULL;
    hf_error error;
    assert_int_equal(hf_open("redis://node", options, &client, &error), HF_OK);
    assert_int_equal(error.status, HF_OK);
    assert_non_null(client);
    return client;
}

/* Says what went wrong, not only that it did. */
void expect_status(hf_status given, hf_status expected, const hf_error *error)
{
    if (given != expected)
        fail_msg("%s instead of %s: %s", hf_status_name(given), hf_status_name(expected),
                 error->text);
    assert_int_equal(error->status, given);
    assert_int_equal(error->text[0] == '\0', given == HF_OK);
}

hf_hold *acquire(hf_client *client, const char *name, const hf_acquire_options *options)
{
    hf_hold *hold = NULL;
    hf_error error;
    hf_status status = hf_acquire(client, name, options, &hold, &error);
    expect_status(status, HF_OK, &error);
    assert_non_null(hold);
    return hold;
}

void fail_to_acquire(hf_client *client, const char *name, const hf_acquire_options *options,
                     hf_status expected, const char *part)
{
    hf_hold *hold = (hf_hold *)&options;
    hf_error error;
    hf_status status = hf_acquire(client, name, options, &hold, &error);
    assert_null(status != HF_OK ? hold : NULL);
    expect_status(status, expected, &error);
    if (strstr(error.text, part) == NULL)
        fail_msg("\"%s\" does not tell of \"%s\"", error.text, part);
}

void release(hf_hold **hold, hf_status expected)
{
    hf_error error;
    hf_status status = hf_release(hold, &error);
    expect_status(status, expected, &error);
    assert_null(*hold);
}

void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int count_acquires(void)
{
    int count;
    WIRES_GET(count, node.acquires);
    return count;
}

int count_opens(void)
{
    int count;
    WIRES_GET(count, opens);
    return count;
}

void hold_for_somebody(const char *name)
{
    node_set(&wires_lock()->node, name, "somebody", -1);
    wires_unlock();
}

void drop_for_somebody(const char *name)
{
    node_delete(&wires_lock()->node, name);
    wires_unlock();
}

atomic_int lines;
atomic_int bad_lines;
char last_line[300];
static _Thread_local int depth;
static _Thread_local void (*armed)(void); /* what the hook does once on this thread */

void hook(void *arg, hf_log_level level, const char *text)
{
    assert_ptr_equal(arg, &lines);
    atomic_fetch_add(&lines, 1);
    if (level < HF_LOG_DEBUG || level > HF_LOG_ERROR || text[0] == '\0' || strchr(text, '\n'))
        atomic_fetch_add(&bad_lines, 1);
    if (armed == NULL)
        return;
    snprintf(last_line, sizeof(last_line), "%s", text);
    if (depth++ == 0)
        armed();
    if (--depth == 0)
        armed = NULL;
}

void arm(void (*act)(void))
{
    armed = act;
}

int wired_begin(void **state)
{
    armed = NULL;
    depth = 0;
    gate_open();
    wires_begin(*(const bool *)*state);
    return 0;
}

int wired_end(void **state)
{
    (void)state;
    int opens, closes;
    WIRES_GET(opens, opens);
    WIRES_GET(closes, closes);
    wires_end();
    if (opens != closes)
        print_error("%d connections opened, %d closed\n", opens, closes);
    return opens != closes;
}

void wired_install_gate(void)
{
    gate_exempt = wires_working;
    gate_install();
}
