/* SPDX-License-Identifier: MIT */
/* Ids in order: whoever asks after another one was answered gets a larger id. So none is handed out
 * that was reserved before it was asked for. Those who ask while the server is being asked wait for
 * that to be over; then the first of them asks for all, and they get what it is given in the order
 * in which they came. Each is woken by itself, once.
 *
 * How long a round may last is up to the one who has waited longest, so that nobody waits longer
 * than a call may; one who has hardly any time left gives up alone, rather than make the others
 * give up with it. */
#include <semaphore.h>

#include "api/ids.h"
#include "core/fail.h"
#include "net/clock.h"

typedef struct asker {
    hf__node node; /* in waiting, then in a round */
    int64_t count;
    int64_t first;
    hf__instant ends;
    bool leads; /* is why it was woken; otherwise because it is done */
    sem_t wake;
    hf_status status;
    hf_error *error;
} asker;

bool hf__ids_order_init(hf__ids_order *order)
{
    hf__list_init(&order->waiting);
    return pthread_mutex_init(&order->mutex, NULL) == 0;
}

void hf__ids_order_end(hf__ids_order *order)
{
    pthread_mutex_destroy(&order->mutex);
}

static asker *first_of(const hf__list *list)
{
    hf__node *node = hf__list_first(list);
    return node != NULL ? HF__ENTRY(node, asker, node) : NULL;
}

/* It may be gone as soon as it is woken. */
static void answer(asker *one, hf_status status, int64_t first)
{
    one->status = status;
    one->first = first;
    sem_post(&one->wake);
}

/* ---- A round ---- */

/* All who wait, but for those that are too many; they are never more than a block has. */
static int64_t gather(hf__list *waiting, hf__list *round)
{
    int64_t count = 0;
    asker *next;
    hf__list_init(round);
    while ((next = first_of(waiting)) != NULL && count + next->count <= HF__IDS_BLOCK_MAX) {
        hf__list_remove(waiting, &next->node);
        hf__list_append(round, &next->node);
        count += next->count;
    }
    return count;
}

static void hand_out(hf__list *round, asker *self, hf_status status, const hf__ids_block *block,
                     const hf_error *why)
{
    int64_t at = block->first;
    asker *next;
    while ((next = first_of(round)) != NULL) {
        int64_t first = at;
        at += next->count;
        hf__list_remove(round, &next->node);
        if (status != HF_OK && next->error != NULL)
            *next->error = *why;
        if (next != self) {
            answer(next, status, first);
        } else {
            self->status = status;
            self->first = first;
        }
    }
}

/* Time enough for a round? */
static bool has_time(const hf_ids *ids, const asker *one, hf__instant now)
{
    return hf__between(now, one->ends).ns >= hf__span_ms(ids->client->call_timeout_ms).ns / 8;
}

/* The next one leads, if there is one. */
static void hand_on(hf_ids *ids)
{
    hf__ids_order *order = &ids->as.order;
    hf__instant now = hf__clock_now();
    pthread_mutex_lock(&order->mutex);
    asker *next = first_of(&order->waiting);
    while (next != NULL && !has_time(ids, next, now)) {
        hf__list_remove(&order->waiting, &next->node);
        hf__fail(next->error, HF_EUNAVAILABLE, "no ids in time: others were asking before");
        answer(next, HF_EUNAVAILABLE, 0);
        next = first_of(&order->waiting);
    }
    order->led = next != NULL;
    pthread_mutex_unlock(&order->mutex);
    if (next != NULL) {
        next->leads = true;
        sem_post(&next->wake);
    }
}

/* The one who leads is the first of those who wait. */
static void lead(hf_ids *ids, asker *self)
{
    hf__ids_order *order = &ids->as.order;
    hf__list round;
    hf__ids_block block = {0};
    hf_error why;
    pthread_mutex_lock(&order->mutex);
    int64_t count = gather(&order->waiting, &round);
    pthread_mutex_unlock(&order->mutex);
    hf_status status = hf__ids_reserve(ids, count, self->ends, &block, &why);
    hand_out(&round, self, status, &block, &why);
    hand_on(ids);
}

/* ---- Asking ---- */

/* Whether it leads at once. */
static bool line_up(hf__ids_order *order, asker *self)
{
    pthread_mutex_lock(&order->mutex);
    hf__list_append(&order->waiting, &self->node);
    bool leads = !order->led;
    order->led = true;
    pthread_mutex_unlock(&order->mutex);
    return leads;
}

hf_status hf__ids_order_take(hf_ids *ids, int64_t count, int64_t *first, hf_error *error)
{
    int cancel_state;
    hf_status status = hf__client_check(ids->client, error);
    if (status != HF_OK)
        return status;
    asker self = {.count = count, .error = error, .ends = hf__ids_deadline(ids)};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    sem_init(&self.wake, 0, 0);
    bool leads = line_up(&ids->as.order, &self);
    if (!leads) {
        while (sem_wait(&self.wake) != 0) /* EINTR */
            continue;
        leads = self.leads; /* not before: somebody else writes it */
    }
    if (leads)
        lead(ids, &self);
    sem_destroy(&self.wake);
    pthread_setcancelstate(cancel_state, NULL);
    *first = self.first;
    return self.status;
}
