# SPDX-License-Identifier: MIT
"""The workloads W1 to W4h and W9: each runs one peer once and returns its numbers. `value` is the
one that peers are ranked by; what the others mean stands in WORKLOADS. outages.py has those in
which something fails."""
import time
from collections import namedtuple

from . import drivers, measure, outages, records

# `better` says which values are, `together` how many peers may run at once without disturbing each
# other, because they mostly wait, and `share` is its part of the time.
Workload = namedtuple('Workload', 'name title unit better run together repetitions share')

QUORUM = 5
SECTION_US, PAUSE_US = 2000, 10000  # eight of these want more than there is of the lock


def run_alone(stage, peer):
    """By the rate, which is that of the mean: the median jumps with where the scheduler has put
    client and server, and does not see what that costs the others."""
    server = fresh(stage, peer)
    measured = measure.run_pairs(stage, peer, server)
    return {'value': measured.rate(), **records.spread_us(records.pairs(measured.all)),
            **measured.costs(), **measured.first_error()}


def run_own_locks(stage, peer):
    server = fresh(stage, peer)
    measured = measure.run_pairs(stage, peer, server, tasks=32, own_locks=1)
    return {'value': measured.rate(), **records.spread_us(records.pairs(measured.all)),
            **measured.costs(), **measured.first_error()}


def run_contended(stage, peer, **options):
    server = fresh(stage, peer)
    measured = measure.run_pairs(stage, peer, server, **options)
    fewest, most = records.shares(measured.all, measured.holders)
    waits = records.spread_us(records.waits(measured.all))
    return {'value': measured.change_rate(), 'rate': measured.rate(),
            **records.spread_us(records.hand_overs(measured.all)),
            'wait_p99': waits['p99'], 'wait_max': waits['max'], 'fewest': fewest, 'most': most,
            **measured.costs(), **measured.first_error(),
            'section': records.median(records.sections(measured.all)) / 1000}


def run_threads(stage, peer):
    return run_contended(stage, peer, tasks=16)


def run_processes(stage, peer):
    return run_contended(stage, peer, count=8)


def run_working(stage, peer):
    """The ideal is that of its own sections: sleeps are longer than asked for, by platform."""
    numbers = run_contended(stage, peer, count=8, section_us=SECTION_US,
                            pause_us=PAUSE_US)
    return {**numbers, 'of_ideal': numbers['value'] * numbers['section'] / 1e6}


def run_quorum(stage, peer):
    if peer.server != 'redis':
        raise drivers.CannotDo('does not run on several independent servers')
    nodes = stage.park.quorum(QUORUM)
    wait_for_votes(nodes)
    for node in nodes:
        node.clear()
    measured = measure.run_pairs(stage, peer, nodes[0], url=','.join(node.url for node in nodes),
                                 before=nodes[-1].stall, after=nodes[-1].go_on)
    times = records.spread_us(records.pairs(measured.all))
    return {'value': times['p50'], **times, 'rate': measured.rate(), **measured.first_error()}


def wait_for_votes(nodes):
    """Holdfast lets no server vote that is younger than the longest lease, here 10 s."""
    while min(node.uptime_s() for node in nodes) < 12:
        time.sleep(0.5)


def run_ids(stage, peer):
    server = fresh(stage, peer)
    with stage.drivers(peer, server.url, 'ids', mode='ids') as team:
        team[0].go()
        time.sleep(stage.seconds)
        team[0].stop()
        outcome = team[0].outcome(measure.PATIENCE)
    return {'value': outcome['ids'] / outcome['seconds']}


def fresh(stage, peer):
    server = stage.park.the(peer.server)
    server.clear()
    return server


WORKLOADS = [
    Workload('w1', 'alone: one task, one lock that nobody else wants', 'pairs/s', 'more', run_alone,
             together=1, repetitions=3, share=11),
    Workload('w2', '32 tasks with a lock each, one process', 'pairs/s', 'more', run_own_locks,
             together=1, repetitions=3, share=11),
    Workload('w3', '16 tasks, one lock, one process', 'changes/s', 'more', run_threads,
             together=1, repetitions=3, share=11),
    Workload('w4', '8 processes, one lock', 'changes/s', 'more', run_processes,
             together=1, repetitions=3, share=19),
    Workload('w4h', '8 processes, one lock, 2 ms of work under it', 'changes/s', 'more',
             run_working, together=1, repetitions=3, share=19),
    Workload('w5', '10 000 held locks for three leases', 'ms/s', 'less', outages.run_holding,
             together=2, repetitions=1, share=18),
    Workload('w6', 'the holder is killed', 'ms', 'less', outages.run_killed,
             together=4, repetitions=3, share=5),
    Workload('w7', 'one of 20 who wait in line is killed', 'ms', 'less', outages.run_queue,
             together=2, repetitions=3, share=7),
    Workload('w8', 'five servers, one of which stands still', 'us', 'less', run_quorum,
             together=1, repetitions=3, share=4),
    Workload('w9', 'ids', 'ids/s', 'more', run_ids, together=1, repetitions=3, share=3),
]

BY_NAME = {w.name: w for w in WORKLOADS}
