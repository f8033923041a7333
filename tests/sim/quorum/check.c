/* SPDX-License-Identifier: MIT */
/* What must be true of beliefs, asked after every step of anybody.
 *
 * Within the assumptions, no two parties have a valid hold of one lock at the same moment of true
 * time. And what makes it so: a hold that is valid by its own deadline is there, with a value of
 * its own, at a majority of the servers, of which those count too that have forgotten it and have
 * no vote. That is stronger, and finds a bug long before two holders meet. In all worlds: a hold
 * that has once been invalid stays so, and a call ends in time. */
#include <string.h>

#include "core/state.h"
#include "quorum.h"

bool check_valid(const world *w, const client *c, const handle *h)
{
    return hf__hold_remaining(h->hold, client_now(w, c)).ns > 0;
}

bool check_label(const handle *h, char label[LABEL_SIZE])
{
    hf__slice value = hf__hold_value(h->real);
    size_t at = value.length;
    while (at > 0 && value.bytes[at - 1] != '/')
        at--;
    if (at == 0 || value.length - at >= LABEL_SIZE)
        return false;
    memcpy(label, value.bytes + at, value.length - at);
    label[value.length - at] = '\0';
    return true;
}

static void check_majority(world *w, int index, const handle *h)
{
    char label[LABEL_SIZE], shown[NODES_MAX + 1] = "";
    int count = 0;
    if (!check_label(h, label)) {
        world_fail(w, "client %d.%d: its hold has lost its label", index, h->actor);
        return;
    }
    for (int i = 0; i < w->plan.nodes; i++) {
        node *n = &w->nodes[i];
        bool has = node_has(n, &h->wish, label) && !(h->first_healed > 0 && h->untried[i]);
        bool excused = n->forgot && !node_votes(n);
        shown[i] = has ? 'x' : excused ? 'o' : '.';
        count += has || excused;
    }
    if (count < w->plan.quorum)
        world_fail(w, "client %d.%d believes to hold %s as %s, which only %s have (o: forgot)",
                   index, h->actor, lock_names[h->wish.lock], label, shown);
}

static void check_alone(world *w, int index, const handle *h)
{
    for (int i = 0; i <= index; i++) {
        const client *c = &w->clients[i];
        for (int k = 0; c->alive && k < HANDLES_MAX; k++) {
            const handle *other = &c->handles[k];
            if (other->hold == NULL || other->wish.lock != h->wish.lock ||
                other->wish.party == h->wish.party || !check_valid(w, c, other))
                continue;
            w->stats.overlaps++;
            if (w->plan.kind != KIND_JUMPY)
                world_fail(w, "clients %d.%d (%s) and %d.%d (%s) both hold %s", index, h->actor,
                           h->wish.label, i, other->actor, other->wish.label,
                           lock_names[h->wish.lock]);
        }
    }
}

/* At how many servers the lock was denied to the client, at some time since. */
static int count_denied(const world *w, int index, int lock, int64_t since_ns)
{
    int count = 0;
    for (int i = 0; i < w->plan.nodes; i++)
        count += permits_denied_since(&w->clients[index].permits[i], lock, since_ns);
    return count;
}

/* Where nothing but permissions goes wrong, a hold that is renewed in good time is lost only if its
 * own lock was denied at so many servers that no majority is left: not for another one's sake. */
static void check_own_fault(world *w, int index, const handle *h)
{
    const hf_hold *hold = h->real;
    int64_t since_ns = w->run.now_ns - hold->lease.ns - hold->lease.ns / 20 - MS(50);
    bool in_time = hold->watch.interval.ns > 0 && 2 * hold->watch.interval.ns <= hold->lease.ns;
    if (w->plan.permissions && in_time && hold->watch.max_hold.ns == 0 &&
        count_denied(w, index, h->wish.lock, since_ns) <= w->plan.nodes - w->plan.quorum)
        world_fail(w, "client %d.%d: lost %s for the sake of another lock", index, h->actor,
                   lock_names[h->wish.lock]);
}

/* Where nothing goes wrong, no hold that is renewed gets lost, whatever else is done. */
static void check_lost(world *w, int index, const handle *h)
{
    if (w->plan.kind == KIND_QUIET && !h->nested && !h->moved && h->wish.interval_ms > 0)
        world_fail(w, "client %d.%d: %s was renewed where nothing went wrong, and is lost", index,
                   h->actor, h->wish.label);
}

static void check_handle(world *w, int index, handle *h)
{
    bool valid = check_valid(w, &w->clients[index], h);
    if (valid && h->lost)
        world_fail(w, "client %d.%d: its hold of %s is valid again", index, h->actor,
                   lock_names[h->wish.lock]);
    if (!valid && !h->lost) {
        check_own_fault(w, index, h);
        check_lost(w, index, h);
    }
    h->lost |= !valid;
    if (!valid)
        return;
    check_alone(w, index, h);
    if (w->plan.kind != KIND_JUMPY)
        check_majority(w, index, h);
}

void check_beliefs(world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        client *c = &w->clients[i];
        for (int k = 0; c->alive && k < HANDLES_MAX; k++)
            if (c->handles[k].hold != NULL)
                check_handle(w, i, &c->handles[k]);
    }
}

/* ---- Calls ---- */

static void check_bound(world *w, int index, const actor *a)
{
    const client *c = &w->clients[index];
    if (a->bound_ns == INT64_MAX)
        return;
    int64_t took_ns = w->run.now_ns - a->call_began_ns - (c->paused_total_ns - a->paused_before_ns);
    int64_t allowed_ns = a->bound_ns + a->bound_ns / 15 + MS(2); /* its clock may be slow */
    if (took_ns > allowed_ns)
        world_fail(w, "client %d.%d: a call took %lld ms instead of %lld", index, a->subject.actor,
                   (long long)(took_ns / 1000000), (long long)(a->bound_ns / 1000000));
}

void check_call(world *w, int index, int number)
{
    const actor *a = &w->clients[index].actors[number];
    hf_status status = a->call.error.status;
    check_bound(w, index, a);
    bool denied =
        status == HF_EDENIED && count_denied(w, index, a->subject.wish.lock, a->call_began_ns) > 0;
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_ESERVER ||
        (status == HF_EDENIED && !denied))
        world_fail(w, "client %d.%d: %s: %s", index, number, hf_status_name(status),
                   a->call.error.text);
    w->stats.losses += status == HF_ELOST;
    if (a->call.kind == HF__CALL_EXTEND)
        w->stats.extends += status == HF_OK;
    if (a->call.kind != HF__CALL_ACQUIRE)
        return;
    w->stats.grants += status == HF_OK;
    w->stats.contended += status == HF_OK && w->run.now_ns - a->call_began_ns > MS(30);
    w->stats.refusals += status == HF_EBUSY;
    w->stats.unknowns += status == HF_EUNKNOWN;
}
