/* SPDX-License-Identifier: MIT */
/* What the callbacks of operations were told. One struct for each operation, in static storage: a
 * callback that runs a second time, or after the test, must still find something to count in.
 */
#ifndef HOLDFAST_TESTS_TOLD_H
#define HOLDFAST_TESTS_TOLD_H

#include <pthread.h>

#include "../lib/process.h"

enum { MANY = 1000 }; /* operations of one test */

struct told {
    atomic_int times; /* written last, so whoever sees it may look at the rest */
    hf_status status;
    hf_error error;
    hf_hold *hold;
    pthread_t thread;
    hf_operation operation;
    void (*act)(struct told *); /* done in the callback; default nothing */
};

extern struct told told[MANY];
extern struct told told_back[MANY]; /* by the releases of what told[] was granted */

hf_acquired_function told_acquired; /* for arg struct told */
hf_done_function told_released;

/* Forgets what was told, of one or of many. */
void told_clear(struct told *places, size_t count);
void told_clear_all(void); /* told[] and told_back[] */
/* How many of these were told once; fails the test if any was told twice. */
size_t told_once(const struct told *places, size_t count);

/* Starts an operation that tells `place`. */
void start_with(hf_client *client, struct told *place, const char *name,
                const hf_acquire_options *options);
void start_numbered(hf_client *client, int number); /* for "lock <number>"; tells told[number] */
/* To act in told[]: gives back what was granted, which tells told_back[] at the same index. */
void release_inside(struct told *place);

/* Waits for the callback on the client's own thread, and expects that it ran once, with this. */
#define EXPECT_TOLD(told, wanted)                                                           \
    do {                                                                                    \
        WAIT_UNTIL(atomic_load(&(told)->times) > 0, 20000);                                 \
        assert_int_equal(atomic_load(&(told)->times), 1);                                   \
        expect_status((wanted), (told)->status, &(told)->error, #told, __FILE__, __LINE__); \
        assert_true((told)->hold == NULL || (told)->status == HF_OK);                       \
    } while (0)

#endif
