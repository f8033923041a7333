/* SPDX-License-Identifier: MIT */
/* See permits.h. */
#include "permits.h"

#define SECOND_NS INT64_C(1000000000)

bool permits_rule(uint64_t seed)
{
    return (seed * 0xd1342543de82ef95u >> 33) % 6 == 0;
}

static void note(sim_permits *p, int64_t now_ns)
{
    for (int i = 0; i < SIM_FORBIDDEN_MAX; i++)
        if (p->locks >> i & 1)
            p->denied_ns[i] = now_ns;
}

void permits_toggle_lock(sim_permits *p, int lock, int64_t now_ns)
{
    note(p, now_ns);
    p->locks ^= 1U << lock;
}

void permits_set_messages(sim_permits *p, sim_denial messages)
{
    p->messages = messages;
    p->was_deaf = p->was_deaf || messages != SIM_ALLOWED;
    p->deaf_ns = 0;
}

void permits_lift(sim_permits *p, int64_t now_ns)
{
    note(p, now_ns);
    p->locks = 0;
    permits_set_messages(p, SIM_ALLOWED);
}

void permits_apply(const sim_permits *p, sim_server *server, int connection,
                   const char *const *lock_names, int lock_count)
{
    const char *forbidden[SIM_FORBIDDEN_MAX] = {0};
    for (int i = 0; i < lock_count; i++)
        forbidden[i] = p->locks >> i & 1 ? lock_names[i] : NULL;
    sim_server_deny(server, connection, p->messages);
    sim_server_forbid(server, connection, forbidden);
}

bool permits_denied_since(const sim_permits *p, int lock, int64_t since_ns)
{
    return (p->locks >> lock & 1) != 0 ||
           (p->denied_ns[lock] > 0 && p->denied_ns[lock] >= since_ns);
}

/* The first time makes it want messages, and they take no longer than to connect. */
bool permits_may_queue(sim_permits *p, bool deaf, int64_t now_ns)
{
    if (!deaf)
        p->deaf_ns = 0;
    else if (p->deaf_ns == 0)
        p->deaf_ns = now_ns;
    return !deaf || now_ns - p->deaf_ns < SECOND_NS;
}
