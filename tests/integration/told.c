/* SPDX-License-Identifier: MIT */
/* See told.h. */
#include "told.h"

#include <stdio.h>

struct told told[MANY];
struct told told_back[MANY];

static void tell(struct told *place, hf_hold *hold, const hf_error *error)
{
    place->status = error->status;
    place->error = *error;
    place->hold = hold;
    place->thread = pthread_self();
    if (place->act != NULL)
        place->act(place);
    atomic_fetch_add(&place->times, 1);
}

void told_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    tell(arg, hold, error);
}

void told_released(void *arg, const hf_error *error)
{
    tell(arg, NULL, error);
}

void told_clear(struct told *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        places[i] = (struct told){0};
}

void told_clear_all(void)
{
    told_clear(told, MANY);
    told_clear(told_back, MANY);
}

size_t told_once(const struct told *places, size_t count)
{
    size_t once = 0;
    for (size_t i = 0; i < count; i++) {
        int times = atomic_load(&places[i].times);
        assert_in_range(times, 0, 1);
        once += times == 1;
    }
    return once;
}

void start_with(hf_client *client, struct told *place, const char *name,
                const hf_acquire_options *options)
{
    hf_error error;
    EXPECT(HF_OK, hf_acquire_async(client, name, options, told_acquired, place, &place->operation,
                                   &error));
    assert_true(place->operation != 0);
}

void start_numbered(hf_client *client, int number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "lock %d", number);
    start_with(client, &told[number], name, NULL);
}

void release_inside(struct told *place)
{
    if (hf_release_async(&place->hold, told_released, &told_back[place - told], NULL) != HF_OK)
        atomic_fetch_add(&place->times, 100);
}
