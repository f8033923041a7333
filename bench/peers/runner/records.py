# SPDX-License-Identifier: MIT
"""What the records of the drivers say. All statistics are computed here, for all peers alike.

A record is one acquisition: when it was asked for, entered, left and released, in nanoseconds of
the machine's monotonic clock, so that records of several processes can be merged. Two acquisitions
of one lock overlap if one was entered before the other was left: then the lock is none, and the
whole measurement is invalid."""
from collections import namedtuple

Acquisition = namedtuple('Acquisition', 'process task asked entered leaving released')

FIELDS = 5  # of a line


def read(path, process):
    """The acquisitions of one driver; `process` tells them from those of others."""
    with open(path, encoding='ascii') as file:
        numbers = list(map(int, file.read().split()))
    if len(numbers) % FIELDS != 0:
        raise ValueError(f'{path} does not have {FIELDS} numbers in each line')
    columns = [numbers[i::FIELDS] for i in range(FIELDS)]
    return [Acquisition(process, *row) for row in zip(*columns)]


def by_time(acquisitions):
    return sorted(acquisitions, key=lambda a: a.entered)


def overlaps(acquisitions, own_locks=False):
    """How many acquisitions were entered while the same lock had not been left by another."""
    left, count = {}, 0
    for a in by_time(acquisitions):
        lock = a.task if own_locks else None
        if a.entered < left.get(lock, a.entered):
            count += 1
        left[lock] = max(a.leaving, left.get(lock, a.leaving))
    return count


def within(acquisitions, start, end):
    return [a for a in acquisitions if start <= a.entered < end]


def neighbours(acquisitions):
    """Those that followed each other with a change of the holder, of one lock."""
    ordered = by_time(acquisitions)
    return [(a, b) for a, b in zip(ordered, ordered[1:])
            if (a.process, a.task) != (b.process, b.task)]


def hand_overs(acquisitions):
    """From the leaving of one to the entering of the next, in ns, if the next had been waiting."""
    return [b.entered - a.leaving for a, b in neighbours(acquisitions) if b.asked <= a.leaving]


def pairs(acquisitions):
    """What acquire and release took together, in ns, without the work between them."""
    return [a.entered - a.asked + a.released - a.leaving for a in acquisitions]


def waits(acquisitions):
    return [a.entered - a.asked for a in acquisitions]


def sections(acquisitions):
    return [a.leaving - a.entered for a in acquisitions]


def quantile(values, share):
    """The smallest value that at least this share of them does not exceed; None of none."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -(-len(ordered) * share // 1)  # rounded up
    return ordered[max(int(rank), 1) - 1]


def spread_us(values_ns):
    """p50, p99 and max of times, in microseconds."""
    ordered = sorted(values_ns)
    if not ordered:
        return {'p50': None, 'p99': None, 'max': None}
    return {'p50': quantile(ordered, 0.50) / 1000, 'p99': quantile(ordered, 0.99) / 1000,
            'max': ordered[-1] / 1000}


def median(values):
    """Of the numbers among them; the mean of the two in the middle of an even count."""
    ordered = sorted(v for v in values if v is not None)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def shares(acquisitions, holders):
    """The fewest and the most acquisitions that one of so many tasks has got."""
    counts = {}
    for a in acquisitions:
        counts[a.process, a.task] = counts.get((a.process, a.task), 0) + 1
    fewest = min(counts.values()) if len(counts) == holders else 0
    return fewest, max(counts.values(), default=0)
