# SPDX-License-Identifier: MIT
"""The workloads in which locks are held for long, or in which somebody dies: W5, W6, W7. They
mostly wait, so several peers run them at the same time, each with its own names or servers."""
import contextlib
import random
import time

from . import drivers, measure, processes, records

HELD = 10000
HOLD_LEASE_MS = 10000
HOLD_BOUND = 60  # seconds to acquire all of them
KILL_LEASE_MS = 3000
KILL_AFTER_S = 0.6  # less than a third of the lease, so before the first renewal
QUEUED_BEFORE, QUEUED_BEHIND = 9, 10
LINE_UP_S = 0.5  # for those that were told to wait to be in the line
GRANT_BOUND = 30  # seconds, three leases


@contextlib.contextmanager
def own_server(stage, peer):
    """What is counted at a server must be of one peer alone; only Redis is used by several."""
    if peer.server != 'redis':
        yield stage.park.the(peer.server)
        return
    server = stage.park.start('redis')
    try:
        yield server
    finally:
        stage.park.stop(server)


def run_holding(stage, peer):
    """Three leases, counted from when all locks are held."""
    with own_server(stage, peer) as server, \
            stage.drivers(peer, server.url, 'held', tasks=HELD, mode='hold',
                          lease_ms=HOLD_LEASE_MS) as team:
        began = time.monotonic()
        team[0].go()
        team[0].line('held', HOLD_BOUND)
        taken = time.monotonic() - began
        start = measure.Snapshot(team, server)
        time.sleep(3 * HOLD_LEASE_MS / 1000)
        end = measure.Snapshot(team, server)
        memory = processes.memory_mb(team[0].process.pid)
        team[0].stop()
        outcome = team[0].outcome(HOLD_BOUND)
    seconds = (end.at - start.at) / 1e9
    rates = {name: (value - start.counters[name]) / seconds
             for name, value in end.counters.items()}
    client, server = ((after - before) * 1000 / seconds for before, after in
                      ((start.client_cpu, end.client_cpu), (start.server_cpu, end.server_cpu)))
    return {'value': client + server, 'client_cpu': client, 'server_cpu': server, **rates,
            'memory_mb': memory, 'lost': outcome['lost'], 'acquire_s': taken}


def run_killed(stage, peer):
    """From the kill to the grant of one who had begun to wait at a moment of chance. `excess` is
    what came on top of the lease of the dead, as the server counts it if that can be asked: what
    the driver says is later."""
    server = stage.park.the(peer.server)
    lock = f'killed-{peer.name}'
    with stage.drivers(peer, server.url, lock, mode='die', lease_ms=KILL_LEASE_MS) as holders, \
            stage.drivers(peer, server.url, lock, mode='queue', lease_ms=KILL_LEASE_MS,
                          part='-waiter') as waiters:
        holders[0].go()
        held_at, _ = holders[0].line('held', GRANT_BOUND)
        time.sleep(random.uniform(0, KILL_AFTER_S / 2))
        waiters[0].go()
        spent_ms = server.spent_ms(lock, KILL_LEASE_MS)
        if spent_ms is None:
            spent_ms = time.monotonic() * 1000 - held_at / 1e6
        time.sleep(max(0, KILL_AFTER_S - spent_ms / 1000))
        killed_at = time.monotonic_ns()
        holders[0].kill()
        granted_at = grant_time(waiters[0])
    if granted_at < killed_at:
        raise drivers.Invalid('INVALID: the lock was granted while its holder was alive')
    numbers = {'value': (granted_at - killed_at) / 1e6}
    if peer.lasting:
        numbers['excess'] = numbers['value'] - (KILL_LEASE_MS - KILL_AFTER_S * 1000)
    return numbers


def grant_time(waiter):
    """As the waiter says, in ns."""
    _, text = waiter.line('granted', GRANT_BOUND)
    return int(text.split()[1])


def run_queue(stage, peer):
    """Twenty wait in line behind a holder; one in the middle is killed; the holder releases. How
    long until all others have been served, and the longest pause between two of them."""
    if not peer.ordered:
        raise drivers.CannotDo('does not keep an order')
    server = stage.park.the(peer.server)
    lock = f'queue-{peer.name}'
    line = [('before', QUEUED_BEFORE), ('victim', 1), ('behind', QUEUED_BEHIND)]
    with contextlib.ExitStack() as stack:
        holder, = stack.enter_context(
            stage.drivers(peer, server.url, lock, section_us=int(5 * LINE_UP_S * 1e6)))
        groups = [stack.enter_context(stage.drivers(peer, server.url, lock, tasks=tasks,
                                                    mode='queue', part=f'-{name}'))[0]
                  for name, tasks in line]
        for driver in (holder, *groups):
            driver.go()
            time.sleep(LINE_UP_S)
        holder.stop()  # after this turn
        groups[1].kill()
        try:
            grants = [grant_time(groups[i]) for i in (0, 2) for _ in range(line[i][1])]
        except drivers.TooLate:
            raise drivers.TooLate(f'somebody still waits {GRANT_BOUND} s later') from None
        holder.outcome(GRANT_BOUND)
        released_at = records.read(holder.records, 0)[0].leaving
    moments = [released_at, *sorted(grants)]
    return {'value': (moments[-1] - moments[0]) / 1e6,
            'pause': max(b - a for a, b in zip(moments, moments[1:])) / 1e6}
