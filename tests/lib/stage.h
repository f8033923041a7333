/* SPDX-License-Identifier: MIT */
/* A stage for unit tests of the core: one core, one node double or those of a quorum, virtual time,
 * and a network that does what the script says. No socket, no thread, no sleep. Tests read as
 * scripts:
 *
 *     SETUP();
 *     ACQUIRE(1, "x", .wait_ms = 500);
 *     EXPECT(1, HF_OK);
 *     CUT();
 *     ADVANCE_MS(100);
 *
 * With SETUP(.servers = 3) there are nodes 0, 1 and 2, with clocks that run alike; what the network
 * does to one of them is said with its number:
 *
 *     STALL(2);
 *     INSPECT(1, "x");
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

enum {
    STAGE_CALLS = 720,
    STAGE_TOLD = 1200,
    STAGE_WIRES = HF_SERVERS_MAX * (HF_LINKS_MAX + 1),
    STAGE_UNLIMITED = -1
};

typedef struct stage_wire {
    bool open;
    hf__buffer to_node;
    hf__buffer to_client;
} stage_wire;

typedef struct stage_told { /* what on_event of a call's hold was told */
    int call;
    bool read; /* by EXPECT_TOLD */
    hf_state state;
    hf_reason reason;
    int64_t remaining_ms;
    char text[HF_REASON_MAX + 100];
} stage_told;

typedef struct stage {
    hf__core *core;
    int server_count;
    int link_count; /* of all nodes; those of the first come first */
    union {
        hf__url server; /* the first, for tests that have one */
        hf__url servers[HF_SERVERS_MAX];
    };
    union {
        struct node node; /* the same */
        struct node nodes[HF_SERVERS_MAX];
    };
    hf__instant now;
    stage_wire wires[STAGE_WIRES]; /* the links of all nodes, in order */
    hf__buffer late;
    hf__call calls[STAGE_CALLS];
    hf_hold *holds[STAGE_CALLS]; /* in the application's hands */
    hf__answer answers[STAGE_CALLS];
    hf_examination examination; /* by the last such query */
    hf__numbers by_server[HF_SERVERS_MAX];
    int told_count;
    uint64_t numbers;
    char last_log[300];
    int logged; /* lines so far */
    char last_warning[300];
    int warnings; /* of these lines */
    /* What the network does. */
    bool refuses;     /* connections */
    bool swallows;    /* connection attempts: neither yes nor no */
    bool deaf;        /* bytes do not reach the node */
    bool mute;        /* the node's bytes do not reach the client */
    bool trickles;    /* bytes arrive one by one */
    bool delays;      /* bytes to the node are kept until stage_deliver_late() */
    unsigned stalled; /* bit n: nothing moves on link n */
    unsigned muted;   /* bit n: the node's bytes on link n do not reach the client */
    unsigned down;    /* bit n: node n refuses connections */
    unsigned frozen;  /* bit n: nothing moves on any link of node n; it accepts connections */
    long cut_after;   /* so many more bytes, in both directions together, then every wire is cut */
    int connects;     /* attempts so far */
    int writes;       /* how often the core had bytes to write */
    bool own_memory;  /* the stage itself is allocating, not what is tested */
    bool polls;       /* every call does: there are no messages */
    bool listens_by_hand; /* the test asks what there is to tell by itself */
} stage;

#define STAGE_WALL_S  INT64_C(1700000000) /* what time it is when a connection is made */
#define STAGE_CHANNEL "hf:c:" STAGE_CLIENT
#define STAGE_CLIENT  "00000000000000000000000000000007"

extern stage the_stage;
extern stage_told stage_told_log[STAGE_TOLD];

/* Unlike those of the API, holds of the stage do not renew themselves and are not entered again,
 * unless a test wants it. */
typedef struct stage_acquire {
    const char *name;
    size_t name_length; /* 0: up to the NUL */
    int64_t lease_ms, wait_ms, retry_interval_ms, max_retries;
    int64_t renew_interval_ms; /* 0: no renewal */
    int64_t renew_timeout_ms;  /* 0: 500 */
    int64_t max_hold_ms, warn_ms;
    const char *owner, *label;
    uint64_t thread; /* 0: 1 */
    bool reenters;
    bool deaf; /* no on_event */
    bool fair;
    bool listens_later;
    int replicas;
} stage_acquire; /* it polls if retry_interval_ms or max_retries is given, else it queues */

typedef struct stage_token { /* what hf_detach() writes down */
    char value[300];
    char owner[HF_OWNER_MAX + 1];
    uint64_t fence, fence_top;
    int64_t lease_ms;
    bool late;
} stage_token;

typedef struct stage_setup {
    int unused;  /* so that SETUP() has something to initialise */
    int servers; /* of a quorum; 0: one */
    int64_t connect_timeout_ms, reply_timeout_ms, call_timeout_ms;
    int links;
    int local_turns;             /* 0: none, so every call is alone */
    int64_t max_lease_ms;        /* 0: a minute */
    int64_t drift_ppm, drift_ms; /* 0: 1 % and 2 ms */
    bool durable;                /* servers never forget */
    bool messages; /* there is a subscription, so those who wait queue; else they poll */
    const char *url;
    const char *side_prefix;
    hf_check checks; /* all of them; default: only a replica is refused */
} stage_setup;

void stage_begin(const stage_setup *setup);
void stage_end(void); /* frees all; everything that is left over is a leak that ASan reports */
bool stage_start_acquire(int call, const stage_acquire *options); /* false: no memory */
void stage_start(int call, hf__call_kind kind, int64_t lease_ms);
bool stage_start_query(int call, hf__query_kind kind, const char *name, const char *text,
                       uint64_t number); /* the same */
/* An errand, and with a `release` the hold of another call that leaves behind it; false: no memory.
 * What all servers of a quorum say to the last one is in the_stage.by_server. */
bool stage_start_errand(int call, const hf__errand *errand, int release);
hf_status stage_let_go(int call);
hf_status stage_detach(int call, stage_token *token); /* HF_EINVAL: the hold stays */
/* Of the options, those that hf_attach() looks at. False: no memory. */
bool stage_start_attach(int call, const stage_token *token, const stage_acquire *options);
void stage_cancel(int call);
void stage_cut(void);          /* every wire, with what is on it */
void stage_cut_link(int link); /* if it is there */
void stage_kill(int node);     /* its connections are cut, and it refuses new ones */
void stage_revive(int node);   /* with what it had; also after stage_stall() */
void stage_stall(int node);    /* it accepts connections, and says nothing any more */
void stage_say(int link, const char *bytes, size_t count); /* the node does, for no reason */
void stage_publish(const char *text, size_t length); /* somebody does, on the client's channel */
void stage_publish_at(int node, const char *text, size_t length);
void stage_deliver_late(void); /* what was delayed, to a node that answers nobody */
void stage_run(void);          /* until nothing moves any more, in no time */
void stage_advance_ms(int64_t ms);
void stage_settle(int call);     /* until the call is done, which it must be in half a minute */
void stage_pause_ms(int64_t ms); /* time of which the core hears only with the next event */
uint64_t stage_fence_of(const char *name); /* at the server; 0: unknown */
uint64_t stage_fence_at(int node, const char *name);
hf_hold *stage_hold(int call); /* in the application's hands */
int64_t stage_remaining_ms(int call);
const stage_told *stage_next_told(int call); /* the first that was not read; NULL: none */
void stage_install_gate(void); /* before the tests are run; the stage's own memory is exempt */

#define SETUP(...) stage_begin(&(stage_setup){.unused = 0, __VA_ARGS__})
#define FINISH()   stage_end()
#define ACQUIRE(call, ...) \
    assert_true(stage_start_acquire(call, &(stage_acquire){.name = __VA_ARGS__}))
#define ATTACH(call, token, ...) \
    assert_true(stage_start_attach(call, token, &(stage_acquire){.name = __VA_ARGS__}))
#define RELEASE(call)                   stage_start(call, HF__CALL_RELEASE, 0)
#define EXTEND(call, lease_ms)          stage_start(call, HF__CALL_EXTEND, lease_ms)
#define CLOSE(call)                     stage_start(call, HF__CALL_CLOSE, 0)
#define INSPECT(call, name)             QUERY(call, HF__QUERY_INSPECT, name, "", 0)
#define REVOKE(call, name, why)         QUERY(call, HF__QUERY_REVOKE, name, why, stage_fence_of(name))
#define BREAK(call, name, value, fence) QUERY(call, HF__QUERY_BREAK, name, value, fence)
#define SCAN(call, pattern, cursor)     QUERY(call, HF__QUERY_SCAN, "", pattern, cursor)
#define EXAMINE(call)                   QUERY(call, HF__QUERY_INFO, "", "", 0)
#define QUERY(call, ...)                assert_true(stage_start_query(call, __VA_ARGS__))
#define ERRAND(call, ...) \
    assert_true(stage_start_errand(call, &(hf__errand){.script = __VA_ARGS__}, 0))
#define CUT()                stage_cut()
#define KILL(node)           stage_kill(node)
#define REVIVE(node)         stage_revive(node)
#define STALL(node)          stage_stall(node)
#define SAY(text)            stage_publish(text, strlen(text))
#define SAY_AT(node, text)   stage_publish_at(node, text, strlen(text))
#define PAUSE_MS(ms)         stage_pause_ms(ms)
#define FENCE(call)          hf__hold_fence(stage_hold(call))
#define STATE(call)          hf__hold_state(stage_hold(call), the_stage.now)
#define ANSWER(call)         (&the_stage.answers[call])
#define ADVANCE_MS(ms)       stage_advance_ms(ms)
#define SETTLE(call)         stage_settle(call)
#define EXPECT_WAITING(call) assert_false(the_stage.calls[call].done)
#define EXPECT(call, expected)                                                  \
    do {                                                                        \
        assert_true(the_stage.calls[call].done);                                \
        assert_string_equal(hf_status_name(the_stage.calls[call].error.status), \
                            hf_status_name(expected));                          \
    } while (0)
#define EXPECT_TEXT(call, part) assert_non_null(strstr(the_stage.calls[call].error.text, part))
/* The next thing that this call's on_event was told; the others are still to be expected. */
#define EXPECT_TOLD(call, expected_state, expected_reason)                              \
    do {                                                                                \
        const stage_told *told = stage_next_told(call);                                 \
        assert_non_null(told);                                                          \
        stage_told_log[told - stage_told_log].read = true;                              \
        assert_string_equal(hf_state_name(told->state), hf_state_name(expected_state)); \
        assert_string_equal(hf_reason_text(told->reason),                               \
                            hf_reason_text(HF_REASON_##expected_reason));               \
    } while (0)
#define EXPECT_QUIET(call) assert_null(stage_next_told(call))
#define EXPECT_STATE(call, expected) \
    assert_string_equal(hf_state_name(STATE(call)), hf_state_name(expected))
#define EXPECT_KEY(name)    assert_non_null(node_get(&the_stage.node, name))
#define EXPECT_NO_KEY(name) assert_null(node_get(&the_stage.node, name))

#endif
