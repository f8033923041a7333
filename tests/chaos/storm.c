/* SPDX-License-Identifier: MIT */
/* See storm.h. The driver has one thread and one loop: it looks after its children and its server,
 * fires the next fault when its time has come, and sleeps a little. Faults are in a table with
 * weights; which one comes, whom it hits and for how long is drawn from the seed.
 *
 * A process that is stopped, by us or by itself (worker.c), is found by waitpid() and let go on
 * after a while. A process that is killed is replaced at once by a fresh one, with a number that
 * was never used before.
 *
 * Everything stays within the assumptions of docs/safety.md: the server keeps its data over a
 * restart, because it writes every change to disk before it answers. So an overlap is a bug.
 */
#include "storm.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "register.h"
#include "ticker.h"

enum { FAULT_PAUSE_LEAST_MS = 20, FAULT_PAUSE_MOST_MS = 300, SETTLE_BOUND_MS = 20000 };

static void count(struct storm *storm, enum fault_kind fault)
{
    (void)atomic_fetch_add(&storm->chaos->board->faults[fault], 1);
}

static int between(struct storm *storm, int least, int most)
{
    return chance_between(&storm->chance, least, most);
}

/* ---- Children -------------------------------------------------------------------------------- */

static bool holds_something(const struct storm *storm, int slot)
{
    const struct board *board = storm->chaos->board;
    for (int i = 0; i < LOCKS; i++)
        if (atomic_load(&board->held_by[i]) == slot &&
            atomic_load(&board->held_until[i]) > now_ns())
            return true;
    return false;
}

static void child_start(struct storm *storm, int slot)
{
    pid_t parent = getpid();
    uint32_t number = ++storm->started;
    pid_t pid = fork();
    if (pid == 0) {
        die_with_parent(parent);
        if (slot == storm->chaos->clients)
            foreign_run(storm->chaos, slot, number);
        else
            client_run(storm->chaos, slot, number);
        _exit(0);
    }
    if (pid < 0)
        complain(storm->chaos->board, "cannot fork");
    storm->children[slot] = (struct child){.pid = pid > 0 ? pid : 0};
}

/* From a short nap to well beyond the longest lease. */
static int64_t stop_ns(struct storm *storm)
{
    bool beyond = chance_percent(&storm->chance, 40);
    return MS_NS *
           (beyond ? between(storm, LEASE_MOST_MS, LEASE_MOST_MS + 800) : between(storm, 10, 500));
}

static void child_stopped(struct storm *storm, int slot)
{
    count(storm, FAULT_CLIENT_STOPPED);
    if (holds_something(storm, slot))
        count(storm, FAULT_STOPPED_IN_HOLD);
    storm->children[slot].thaw_at_ns = now_ns() + stop_ns(storm);
}

static void child_ended(struct storm *storm, int slot, int status)
{
    struct board *board = storm->chaos->board;
    storm->children[slot].pid = 0;
    bool as_it_should = WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(&board->stop);
    if (!as_it_should)
        complain(board, "the process in slot %d ended by itself, %s %d", slot,
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void child_look_after(struct storm *storm, int slot)
{
    struct child *child = &storm->children[slot];
    int status;
    if (child->pid == 0)
        return;
    if (waitpid(child->pid, &status, WNOHANG | WUNTRACED) == child->pid) {
        if (WIFSTOPPED(status))
            child_stopped(storm, slot);
        else
            child_ended(storm, slot, status);
    }
    bool settling = atomic_load(&storm->chaos->board->stop);
    if (child->thaw_at_ns != 0 && (settling || now_ns() >= child->thaw_at_ns)) {
        (void)kill(child->pid, SIGCONT);
        child->thaw_at_ns = 0;
    }
}

static void kill_and_reap(pid_t *pid)
{
    int status;
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, &status, 0);
    *pid = 0;
}

/* ---- The server ------------------------------------------------------------------------------ */

static bool server_is_there(const struct storm *storm)
{
    return storm->server_back_at_ns == 0;
}

static void server_bring_back(struct storm *storm)
{
    if (storm->server_frozen)
        redis_server_thaw(storm->server);
    else
        redis_server_restart(storm->server);
    storm->server_frozen = false;
    storm->server_back_at_ns = 0;
}

static void server_look_after(struct storm *storm)
{
    if (!server_is_there(storm) && now_ns() >= storm->server_back_at_ns)
        server_bring_back(storm);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void stop_somebody(struct storm *storm)
{
    struct child *child = &storm->children[between(storm, 0, storm->chaos->clients)];
    if (child->pid != 0 && child->thaw_at_ns == 0)
        (void)kill(child->pid, SIGSTOP);
}

static void kill_somebody(struct storm *storm)
{
    int slot = between(storm, 0, storm->chaos->clients);
    if (storm->children[slot].pid == 0)
        return;
    count(storm, FAULT_CLIENT_KILLED);
    if (holds_something(storm, slot))
        count(storm, FAULT_KILLED_IN_HOLD);
    kill_and_reap(&storm->children[slot].pid);
    child_start(storm, slot);
}

static void restart_server(struct storm *storm)
{
    if (!server_is_there(storm))
        return;
    redis_server_kill(storm->server);
    storm->server_back_at_ns = now_ns() + between(storm, 0, 600) * MS_NS;
    count(storm, FAULT_SERVER_RESTARTED);
}

static void stop_server(struct storm *storm)
{
    if (!server_is_there(storm))
        return;
    redis_server_freeze(storm->server);
    storm->server_frozen = true;
    storm->server_back_at_ns = now_ns() + between(storm, 20, LEASE_MOST_MS) * MS_NS;
    count(storm, FAULT_SERVER_STOPPED);
}

static void flush_scripts(struct storm *storm)
{
    if (server_is_there(storm) && strcmp(raw(storm->server, "SCRIPT FLUSH"), "OK") == 0)
        count(storm, FAULT_SCRIPTS_FLUSHED);
}

static void kill_connections(struct storm *storm)
{
    if (server_is_there(storm) &&
        strtoll(raw(storm->server, "CLIENT KILL TYPE normal"), NULL, 10) > 0)
        count(storm, FAULT_CONNECTIONS_KILLED);
}

static void kill_subscriptions(struct storm *storm)
{
    if (server_is_there(storm) &&
        strtoll(raw(storm->server, "CLIENT KILL TYPE pubsub"), NULL, 10) > 0)
        count(storm, FAULT_SUBSCRIPTIONS_KILLED);
}

/* Some troubles are for the connections that grants come on, and for these alone. */
static void order(struct storm *storm, enum proxy_trouble trouble, int amount, int lasts_ms)
{
    const struct proxy_order order = {
        .trouble = trouble,
        .share_percent = chance_percent(&storm->chance, 20) ? 100 : between(storm, 10, 50),
        .amount = amount,
        .lasts_ms = lasts_ms,
        .subscriptions = trouble != TROUBLE_NONE && trouble != TROUBLE_REFUSE &&
                         chance_percent(&storm->chance, 30)};
    if (!proxy_order(&storm->proxy, &order))
        complain(storm->chaos->board, "the proxy takes no orders");
}

static void order_delay(struct storm *storm)
{
    order(storm, TROUBLE_DELAY, between(storm, 1, 100), between(storm, 100, 1000));
}

static void order_jitter(struct storm *storm)
{
    bool beyond = chance_percent(&storm->chance, 40); /* a lease */
    int most_ms = beyond ? LEASE_MOST_MS + 500 : between(storm, 5, 300);
    order(storm, TROUBLE_JITTER, most_ms, between(storm, 100, 1000));
}

static void order_stall(struct storm *storm)
{
    order(storm, TROUBLE_STALL, between(storm, 50, LEASE_MOST_MS + 500), between(storm, 0, 300));
}

static void order_cut(struct storm *storm)
{
    bool early = chance_percent(&storm->chance, 50);
    order(storm, TROUBLE_CUT, early ? 200 : 5000, between(storm, 0, 300));
}

static void order_swallow(struct storm *storm)
{
    order(storm, TROUBLE_SWALLOW, between(storm, 1, 400), between(storm, 0, 200));
}

static void order_refuse(struct storm *storm)
{
    order(storm, TROUBLE_REFUSE, 0, between(storm, 50, 700));
    kill_connections(storm); /* so that somebody comes to be refused */
}

static void order_calm(struct storm *storm)
{
    order(storm, TROUBLE_NONE, 0, 0);
}

static const struct {
    int weight;
    void (*fire)(struct storm *storm);
} faults[] = {
    {18, stop_somebody}, {8, kill_somebody},      {4, restart_server}, {3, stop_server},
    {4, flush_scripts},  {5, kill_connections},   {8, order_delay},    {8, order_jitter},
    {12, order_stall},   {14, order_cut},         {10, order_swallow}, {5, order_refuse},
    {20, order_calm},    {5, kill_subscriptions},
};

static void fire_some_fault(struct storm *storm)
{
    int sum = 0;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sum += faults[i].weight;
    int drawn = between(storm, 0, sum - 1);
    size_t i = 0;
    while (drawn >= faults[i].weight)
        drawn -= faults[i++].weight;
    faults[i].fire(storm);
}

/* ---- The run --------------------------------------------------------------------------------- */

static void look_after_all(struct storm *storm)
{
    for (int slot = 0; slot <= storm->chaos->clients; slot++)
        child_look_after(storm, slot);
    server_look_after(storm);
}

static bool make_counters(const struct chaos *chaos)
{
    const int64_t zero = 0;
    for (int i = 0; i < LOCKS; i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/counter-%d", chaos->folder, i);
        int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        bool made = file >= 0 && write(file, &zero, sizeof(zero)) == (ssize_t)sizeof(zero);
        if (file >= 0)
            (void)close(file);
        if (!made || !register_make(chaos->folder, i))
            return false;
    }
    return true;
}

static pid_t watch_start(struct board *board)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        die_with_parent(parent);
        ticker_watch(board);
    }
    return pid;
}

bool storm_begin(struct storm *storm, struct chaos *chaos)
{
    static const struct redis_server_options keeping = {.keeps_data = true};
    *storm = (struct storm){.chaos = chaos, .chance = chance_for(chaos->seed, 0)};
    storm->server = redis_server_start(&keeping);
    (void)snprintf(chaos->folder, sizeof(chaos->folder), "%s", storm->server->folder);
    (void)snprintf(chaos->server_socket, sizeof(chaos->server_socket), "%s", storm->server->socket);
    chaos->clients = between(storm, CLIENTS_MIN, CLIENTS_MAX);
    if (!make_counters(chaos) || !proxy_start(&storm->proxy, chaos))
        return false;
    storm->watch = watch_start(chaos->board);
    for (int slot = 0; slot <= chaos->clients; slot++)
        child_start(storm, slot);
    return storm->watch > 0;
}

void storm_blow(struct storm *storm, const volatile int *interrupted)
{
    int64_t end_ns = now_ns() + storm->chaos->seconds * 1000 * MS_NS;
    storm->next_fault_ns = now_ns() + 300 * MS_NS; /* some of the first grants in peace */
    while (now_ns() < end_ns && !*interrupted) {
        look_after_all(storm);
        if (now_ns() >= storm->next_fault_ns) {
            fire_some_fault(storm);
            storm->next_fault_ns =
                now_ns() + between(storm, FAULT_PAUSE_LEAST_MS, FAULT_PAUSE_MOST_MS) * MS_NS;
        }
        sleep_ms(5);
    }
}

void storm_settle(struct storm *storm)
{
    struct board *board = storm->chaos->board;
    int64_t give_up_ns = now_ns() + SETTLE_BOUND_MS * MS_NS;
    bool all_ended = false;
    atomic_store(&board->stop, true);
    order_calm(storm);
    storm->server_back_at_ns = storm->server_back_at_ns == 0 ? 0 : 1;
    while (!all_ended && now_ns() < give_up_ns + atomic_load(&board->longest_stall_ns)) {
        all_ended = true;
        look_after_all(storm);
        for (int slot = 0; slot <= storm->chaos->clients; slot++)
            all_ended = all_ended && storm->children[slot].pid == 0;
        sleep_ms(5);
    }
    if (!all_ended)
        complain(board, "a process does not finish within %d ms of the end", SETTLE_BOUND_MS);
}

/* Fences, marks of slots and notes are kept for an hour or so, but never for ever. */
static const char leftover_keys[] =
    "local left = {} "
    "for _, key in ipairs(redis.call('KEYS', '*')) do "
    "  local kept = string.match(key, '^hf:[fmw]:') and redis.call('PTTL', key) > 0 "
    "  if not kept then left[#left + 1] = key end "
    "end "
    "return table.concat(left, ' ')";

const char *storm_leftovers(struct storm *storm)
{
    kill_and_reap(&storm->proxy.pid);  /* what it still had for the server is gone with it */
    sleep_ms(2 * LEASE_MOST_MS + 100); /* a queue is kept for two leases of who joined it */
    return raw(storm->server, "EVAL %s 0", leftover_keys);
}

void storm_end(struct storm *storm)
{
    for (int slot = 0; slot <= CLIENTS_MAX; slot++)
        kill_and_reap(&storm->children[slot].pid);
    kill_and_reap(&storm->proxy.pid);
    kill_and_reap(&storm->watch);
    if (storm->server != NULL)
        redis_server_kill(storm->server);
}
