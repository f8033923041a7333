/* SPDX-License-Identifier: MIT */
/* An observer on the stage, and what it is told, for those who test observers. */
#ifndef HF_TESTS_WATCH_H
#define HF_TESTS_WATCH_H

#include "rival.h"
#include "stage.h"

static hf_observer *observer; /* the one that the test works with */

static inline void hear(void *arg, const hf_sight *sight)
{
    (void)arg;
    (void)sight;
}

static inline void watch(const char *name)
{
    observer = hf__observer_new((hf__slice){"", 0}, hf__slice_text(name), hear, &observer);
    assert_non_null(observer);
    hf__event event = {.kind = HF__EVENT_OBSERVE, .observer = observer, .now = the_stage.now};
    hf__core_step(the_stage.core, &event);
    stage_run();
}

static inline void stop_watching(void)
{
    hf__event event = {.kind = HF__EVENT_UNOBSERVE, .observer = observer, .now = the_stage.now};
    hf__core_step(the_stage.core, &event);
    observer = NULL;
    stage_run();
}

static inline void watch_begin(void)
{
    SETUP(.messages = true);
    rival_begin();
}

static inline void watch_end(void)
{
    if (observer != NULL)
        stop_watching();
    rival_end();
    FINISH();
}

/* The next thing that the observer is told; false: there is none. */
static inline bool next_sight(hf_sight *sight)
{
    hf__sight told;
    if (!hf__core_next_sight(the_stage.core, &told))
        return false;
    assert_ptr_equal(told.function, hear);
    assert_ptr_equal(told.arg, &observer);
    assert_true(hf__core_is_seeing(the_stage.core, observer));
    hf__sight another;
    assert_false(hf__core_next_sight(the_stage.core, &another)); /* one at a time */
    hf__core_sight_told(the_stage.core);
    *sight = told.sight;
    return true;
}

static inline hf_sight expect_seen(hf_sight_kind kind, const char *client, uint64_t number)
{
    hf_sight sight = {.kind = HF_SEEN_MISSED};
    assert_true(next_sight(&sight));
    assert_int_equal(sight.kind, kind);
    assert_string_equal(sight.who.client_id, client);
    assert_int_equal(sight.who.number, number);
    return sight;
}

static inline void expect_nothing(void)
{
    hf_sight sight;
    assert_false(next_sight(&sight));
}

#endif
