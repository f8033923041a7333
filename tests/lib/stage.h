/* SPDX-License-Identifier: MIT */
/* A stage for unit tests of the core: one core, one node double, virtual time, and a network that
 * does what the script says. No socket, no thread, no sleep. Tests read as scripts:
 *
 *     SETUP();
 *     ACQUIRE(1, "x", .wait_ms = 500);
 *     EXPECT(1, HF_OK);
 *     CUT();
 *     ADVANCE_MS(100);
 */
#ifndef HF_TESTS_STAGE_H
#define HF_TESTS_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/core.h"
#include "node.h"

enum { STAGE_CALLS = 16, STAGE_UNLIMITED = -1 };

typedef struct stage_wire {
    bool open;
    hf__buffer to_node;
    hf__buffer to_client;
} stage_wire;

typedef struct stage {
    hf__core *core;
    hf__url server;
    struct node node;
    hf__instant now;
    stage_wire wires[HF_LINKS_MAX];
    hf__buffer late;
    hf__call calls[STAGE_CALLS];
    hf_hold *holds[STAGE_CALLS]; /* in the application's hands */
    uint64_t numbers;
    char last_log[300];
    /* What the network does. */
    bool refuses;    /* connections */
    bool swallows;   /* connection attempts: neither yes nor no */
    bool deaf;       /* bytes do not reach the node */
    bool mute;       /* the node's bytes do not reach the client */
    bool trickles;   /* bytes arrive one by one */
    bool delays;     /* bytes to the node are kept until stage_deliver_late() */
    long cut_after;  /* so many more bytes, in both directions together, then every wire is cut */
    int connects;    /* attempts so far */
    bool own_memory; /* the stage itself is allocating, not what is tested */
} stage;

extern stage the_stage;

typedef struct stage_acquire {
    const char *name;
    size_t name_length; /* 0: up to the NUL */
    int64_t lease_ms, wait_ms, retry_interval_ms, max_retries;
} stage_acquire;

typedef struct stage_setup {
    int unused; /* so that SETUP() has something to initialise */
    int64_t connect_timeout_ms, reply_timeout_ms, call_timeout_ms;
    int links;
    const char *url;
} stage_setup;

void stage_begin(const stage_setup *setup);
void stage_end(void); /* frees all; everything that is left over is a leak that ASan reports */
bool stage_start_acquire(int call, const stage_acquire *options); /* false: no memory */
void stage_start(int call, hf__call_kind kind, int64_t lease_ms);
hf_status stage_let_go(int call);
void stage_cancel(int call);
void stage_cut(void);          /* every wire, with what is on it */
void stage_deliver_late(void); /* what was delayed, to a node that answers nobody */
void stage_run(void);          /* until nothing moves any more, in no time */
void stage_advance_ms(int64_t ms);
int64_t stage_remaining_ms(int call);

#define SETUP(...) stage_begin(&(stage_setup){.unused = 0, __VA_ARGS__})
#define FINISH()   stage_end()
#define ACQUIRE(call, ...) \
    assert_true(stage_start_acquire(call, &(stage_acquire){.name = __VA_ARGS__}))
#define RELEASE(call)          stage_start(call, HF__CALL_RELEASE, 0)
#define EXTEND(call, lease_ms) stage_start(call, HF__CALL_EXTEND, lease_ms)
#define CLOSE(call)            stage_start(call, HF__CALL_CLOSE, 0)
#define CUT()                  stage_cut()
#define ADVANCE_MS(ms)         stage_advance_ms(ms)
#define EXPECT_WAITING(call)   assert_false(the_stage.calls[call].done)
#define EXPECT(call, expected)                                                  \
    do {                                                                        \
        assert_true(the_stage.calls[call].done);                                \
        assert_string_equal(hf_status_name(the_stage.calls[call].error.status), \
                            hf_status_name(expected));                          \
    } while (0)
#define EXPECT_TEXT(call, part) assert_non_null(strstr(the_stage.calls[call].error.text, part))
#define EXPECT_KEY(name)        assert_non_null(node_get(&the_stage.node, name))
#define EXPECT_NO_KEY(name)     assert_null(node_get(&the_stage.node, name))

#endif
