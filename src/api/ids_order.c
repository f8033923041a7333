/* SPDX-License-Identifier: MIT */
/* Ids in order: whoever asks after another one was answered gets a larger id. So none is handed out
 * that was reserved before it was asked for. A few rounds may be under way at once; those who ask
 * meanwhile wait for one to be over. Then the first of them asks for all, and they get what it is
 * given in the order in which they came. Each is woken by itself, once.
 *
 * How long a round may last is up to the one who has waited longest, so that nobody waits longer
 * than a call may; one who has hardly any time left gives up alone, rather than make the others
 * give up with it. */
#include <semaphore.h>

#include "api/ids.h"
#include "core/fail.h"
#include "net/clock.h"

/* With one, the server waits for us while we wake those who were answered, and we for it; with
 * more, each round has fewer, and costs the server as much. On a quorum each takes a lock, so it is
 * one. */
enum { ROUNDS_MAX = 3 };

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

/* The one who leads and all who wait, but for those that are too many for a block. */
static int64_t gather(hf__list *waiting, asker *self, hf__list *round)
{
    int64_t count = self->count;
    asker *next;
    hf__list_init(round);
    hf__list_append(round, &self->node);
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

/* The next one leads, if there is one, and is in nobody else's round then. */
static void hand_on(hf_ids *ids)
{
    hf__ids_order *order = &ids->as.order;
    hf__instant now = hf__clock_now();
    asker *next;
    bool leads = false;
    pthread_mutex_lock(&order->mutex);
    while (!leads && (next = first_of(&order->waiting)) != NULL) {
        hf__list_remove(&order->waiting, &next->node);
        leads = has_time(ids, next, now);
        if (!leads) {
            hf__fail(next->error, HF_EUNAVAILABLE, "no ids in time: others were asking before");
            answer(next, HF_EUNAVAILABLE, 0);
        }
    }
    order->rounds -= !leads;
    pthread_mutex_unlock(&order->mutex);
    if (leads) {
        next->leads = true;
        sem_post(&next->wake);
    }
}

static void lead(hf_ids *ids, asker *self)
{
    hf__ids_order *order = &ids->as.order;
    hf__list round;
    hf__ids_block block = {0};
    hf_error why;
    pthread_mutex_lock(&order->mutex);
    int64_t count = gather(&order->waiting, self, &round);
    pthread_mutex_unlock(&order->mutex);
    hf_status status = hf__ids_reserve(ids, count, self->ends, &block, &why);
    hand_out(&round, self, status, &block, &why);
    hand_on(ids);
}

/* ---- Asking ---- */

/* Whether it leads at once. */
static bool line_up(hf_ids *ids, asker *self)
{
    hf__ids_order *order = &ids->as.order;
    int most = ids->client->server_count > 1 ? 1 : ROUNDS_MAX;
    pthread_mutex_lock(&order->mutex);
    bool leads = order->rounds < most;
    if (leads)
        order->rounds++;
    else
        hf__list_append(&order->waiting, &self->node);
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
    bool leads = line_up(ids, &self);
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
