/* SPDX-License-Identifier: MIT
 *
 * What the parts of the demo share: demo.c tells the story, demo_stage.c keeps its books,
 * demo_worker.c is one contending process, demo_screen.c is the terminal. Workers report to the
 * story through one pipe, as fixed records that the kernel keeps whole; the story orders each
 * worker about through a pipe of its own.
 */
#ifndef DEMO_H
#define DEMO_H

#include <holdfast.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DEMO_WORKERS  5
#define DEMO_LEASE_MS 2000

enum event_kind {
    EVENT_WAITS,   /* wants the lock */
    EVENT_ENTERED, /* is inside; remaining_ms and fence of its hold */
    EVENT_HALTED,  /* has read the counter, not yet written it, and stays there until told; again
                      and again, with remaining_ms of its hold */
    EVENT_WROTE,   /* has written the counter */
    EVENT_SKIPPED, /* found its hold ended, so it did not write */
    EVENT_LEFT,    /* is outside again; status of the release */
    EVENT_FAILED   /* gave up; status and text */
};

struct event {
    int worker;
    enum event_kind kind;
    hf_status status;
    int64_t at_us;
    int64_t remaining_ms;
    uint64_t fence;
    char text[160];
};

/* Orders, one byte each. */
#define ORDER_HALT 'h' /* halt in the middle of your next turn */
#define ORDER_GO   'g' /* go on from there */
#define ORDER_QUIT 'q' /* end after this turn */

struct worker_setup {
    int worker;
    const char *url; /* NULL: work without a lock */
    const char *counter_path;
    int event_fd;
    int order_fd;
};

/* Runs in a child process and ends it. */
_Noreturn void worker_run(const struct worker_setup *setup);

/* The counter file holds one number of fixed width, so that reading and writing it are one system
 * call each and nobody ever sees half a number. -1 and false on failure. */
long counter_read(const char *path);
bool counter_write(const char *path, long number);

int64_t demo_now_us(void); /* CLOCK_MONOTONIC, the same in all processes */

/* On a terminal, a block of lines is redrawn in place while what was said scrolls above it.
 * Elsewhere, only plain lines: no colours, no cursor movement. */
#define SCREEN_LINES_MAX 10
#define SCREEN_LINE_SIZE 160

enum colour { PLAIN, GREEN, RED, YELLOW };

struct screen_line {
    enum colour colour;
    char text[SCREEN_LINE_SIZE];
};

void screen_open(void);
bool screen_is_live(void);
void screen_say(enum colour colour, const char *format, ...) __attribute__((format(printf, 2, 3)));
void screen_draw(const struct screen_line *lines, int count); /* only if live */
void screen_keep(void); /* leaves the block where it is and goes on below it */

/* The stage: the workers as the story sees them. */

enum worker_state { OUTSIDE, WAITING, INSIDE, KILLED, STOPPED };

struct worker_view {
    pid_t pid; /* 0 once it has ended and was waited for */
    int order_fd;
    enum worker_state state;
    int64_t since_us;    /* of the state */
    int64_t hold_end_us; /* while INSIDE, and what was left when it was KILLED or STOPPED */
    int64_t longest_wait_us;
    uint64_t fence; /* of its last hold */
    long increments;
    bool skipped; /* once found its hold ended and did not write */
};

struct stage {
    const char *url; /* NULL: the act without a lock */
    char counter_path[512];
    int event_fd;
    bool failed;
    bool everybody_left; /* end of the event pipe */
    int64_t act_start_us;
    int64_t next_frame_us;
    struct worker_view workers[DEMO_WORKERS];
};

double seconds(int64_t duration_us); /* not below 0 */
long sum_of_increments(const struct stage *stage);

/* Says a line with the time in this act. */
void say_at(const struct stage *stage, enum colour colour, int64_t at_us, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void draw_live(const struct stage *stage);

#define ANYBODY -1

/* Follows the workers until one of them (or ANYBODY) reports `kind` at or after since_us. False on
 * time-out, failure, Ctrl-C, or when all workers have left. */
bool follow_until(struct stage *stage, int worker, enum event_kind kind, int64_t since_us,
                  int64_t until_us, struct event *event);

extern volatile sig_atomic_t demo_interrupted; /* Ctrl-C and its like */

#endif
