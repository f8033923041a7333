# SPDX-License-Identifier: MIT
"""Measures loops of pairs: processes with tasks that acquire, work and release. Warm-up is run in
the same processes and not counted; whoever overlaps, also then, has no result."""
import contextlib
import time

from . import drivers, processes, records

PATIENCE = 40  # seconds for a task to end its turn: longer than three leases


class Stage:
    """What a workload needs: servers, the commands of the drivers, a folder, and how long."""

    def __init__(self, park, commands, folder, options, deadline=float('inf')):
        self.park, self.commands, self.folder = park, commands, folder
        self.seconds, self.warm_up = options.seconds, options.warm_up
        self.repetitions, self.deadline = options.repetitions, deadline
        self.live = []

    def time_is_up(self):
        return time.monotonic() > self.deadline

    def end(self):
        """Nothing more is begun, and what is under way fails soon."""
        self.deadline = 0
        for driver in list(self.live):
            driver.process.kill()

    @contextlib.contextmanager
    def drivers(self, peer, url, lock, count=1, part='', **options):
        """So many processes that are ready. `part` tells groups of one peer and lock apart."""
        options = {'tasks': 1, 'own_locks': 0, 'section_us': 0, 'lease_ms': 10000, 'wait': 1,
                   **options}
        with contextlib.ExitStack() as stack:
            team = []
            for number in range(count):
                driver = drivers.Driver(self.commands[peer.name], self.folder,
                                        f'{lock}{part}-{number}', peer.name, url, lock, **options)
                self.live.append(driver)
                stack.callback(self.live.remove, driver)
                stack.callback(driver.close)
                team.append(driver)
            for driver in team:
                driver.wait_ready()
            yield team


class Snapshot:
    """Counters at one moment."""

    def __init__(self, team, server):
        self.at = time.monotonic_ns()
        self.client_cpu = processes.cpu_seconds([driver.process.pid for driver in team])
        self.server_cpu = server.cpu_seconds()
        self.counters = server.counters()


def read_all(team):
    return [a for driver in team for a in records.read(driver.records, driver.number)]


def finish(team):
    """Stops all, and gathers what they have to say."""
    for driver in team:
        driver.stop()
    outcomes = [driver.outcome(PATIENCE) for driver in team]
    errors = [error for outcome in outcomes for error in outcome.get('errors', [])]
    return outcomes, errors


def java_warm_up(count):
    """Seconds more, for its compilers to get to work: they compete if there are several."""
    return 2 + 0.75 * count


def run_pairs(stage, peer, server, url=None, before=None, after=None, own_locks=0, **options):
    """Runs and measures. `before` and `after` do something to the servers around it."""
    with stage.drivers(peer, url or server.url, 'bench', own_locks=own_locks, **options) as team:
        if before:
            before()
        try:
            for driver in team:
                driver.go()
            time.sleep(stage.warm_up + (java_warm_up(len(team)) if peer.driver == 'java' else 0))
            start = Snapshot(team, server)
            time.sleep(stage.seconds)
            end = Snapshot(team, server)
            _, errors = finish(team)
        finally:
            if after:
                after()
        acquisitions = read_all(team)
    overlapping = records.overlaps(acquisitions, own_locks=bool(own_locks))
    if overlapping:
        raise drivers.Invalid(f'INVALID: {overlapping} acquisitions overlap with another one')
    return Measured(acquisitions, start, end, errors, options.get('tasks', 1) * len(team))


class Measured:
    """The acquisitions between two snapshots, and what they cost."""

    def __init__(self, acquisitions, start, end, errors, holders):
        self.all = records.within(acquisitions, start.at, end.at)
        self.seconds = (end.at - start.at) / 1e9
        if not self.all:
            why = f': {errors[0]}' if errors else ''
            raise drivers.Failed(f'nobody got the lock within {self.seconds:.1f} s{why}')
        self.start, self.end, self.errors, self.holders = start, end, errors, holders

    def rate(self):
        return len(self.all) / self.seconds

    def change_rate(self):
        return len(records.neighbours(self.all)) / self.seconds

    def costs(self):
        """For each acquisition."""
        count = len(self.all)
        costs = {'client_cpu_us': (self.end.client_cpu - self.start.client_cpu) * 1e6 / count,
                 'server_cpu_us': (self.end.server_cpu - self.start.server_cpu) * 1e6 / count}
        for name, value in self.end.counters.items():
            costs[name] = (value - self.start.counters[name]) / count
        return costs

    def first_error(self):
        return {'error': self.errors[0]} if self.errors else {}
