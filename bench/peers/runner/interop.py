# SPDX-License-Identifier: MIT
"""Holdfast and libraries of other languages contend for one key: the same drivers as for speed, and
the same look for overlaps, over the records of both sides together.

  tries     8 tasks of each side, single tries, until both have had it WANTED times
  waiting   a task of each side, both of which wait; in the end Holdfast stops first, so that the
            other side has to take over
  crash     a holder of one side is killed; one who waits on the other side gets the lock when the
            lease is over, and not before"""
import contextlib
import shutil
import time

from . import about, catalogue, drivers, install, measure, records, servers, session, tables

WANTED = 1000
TASKS = 8
ROUND_S, ROUNDS = 3, 20
LEASE_MS = 2000
EARLY_MS = 2  # the server's clock has milliseconds
LATE_MS = 3000  # beyond the lease
HOLDFAST = catalogue.BY_NAME['holdfast']


class Pair:
    """Holdfast and one other, at one server, each with its name for the same key."""

    def __init__(self, stage, other):
        self.stage, self.other = stage, other
        self.server = stage.park.the('redis')
        self.names = {HOLDFAST.name: other.interop.format('interop'), other.name: 'interop'}

    def drivers(self, peer, **options):
        return self.stage.drivers(peer, self.server.url, self.names[peer.name],
                                  part=f'-{peer.name}', **options)

    def contend(self, wait, tasks, seconds):
        """The acquisitions of both sides, and what went wrong in their eyes."""
        self.server.clear()
        with self.drivers(HOLDFAST, tasks=tasks, wait=wait) as ours, \
                self.drivers(self.other, tasks=tasks, wait=wait) as theirs:
            for driver in ours + theirs:
                driver.go()
            time.sleep(seconds)
            _, errors = measure.finish(ours)
            if wait:
                time.sleep(seconds)
            errors += measure.finish(theirs)[1]
            return measure.read_all(ours), measure.read_all(theirs), errors


def check(overlapping, errors):
    if overlapping:
        raise drivers.Invalid(f'{overlapping} acquisitions overlap')
    if errors:
        raise drivers.Failed(errors[0])


def run_tries(pair):
    ours, theirs = 0, 0
    for _ in range(ROUNDS):
        of_us, of_them, errors = pair.contend(0, TASKS, ROUND_S)
        check(records.overlaps(of_us + of_them), errors)
        ours, theirs = ours + len(of_us), theirs + len(of_them)
        if min(ours, theirs) >= WANTED:
            return {'ours': ours, 'theirs': theirs}
    raise drivers.Failed(f'only {ours} and {theirs} acquisitions in {ROUNDS * ROUND_S} s')


def run_waiting(pair):
    of_us, of_them, errors = pair.contend(1, 1, ROUND_S)
    check(records.overlaps(of_us + of_them), errors)
    crossings = len(records.neighbours(of_us + of_them))  # each side has one task
    if not of_us or not of_them or not crossings:
        raise drivers.Failed(f'{len(of_us)} and {len(of_them)} acquisitions: one side got nothing')
    return {'waited_ours': len(of_us), 'waited_theirs': len(of_them), 'crossings': crossings}


def run_crash(pair, holder, waiter):
    """How long after the end of the lease the other side got it, in ms."""
    pair.server.clear()
    with pair.drivers(holder, mode='die', lease_ms=LEASE_MS) as holders, \
            pair.drivers(waiter, mode='queue', lease_ms=LEASE_MS) as waiters:
        asked_at = time.monotonic_ns()
        holders[0].go()
        held_at, _ = holders[0].line('held', 30)
        waiters[0].go()
        time.sleep(0.3)
        holders[0].kill()
        _, text = waiters[0].line('granted', 30)
    granted_at = int(text.split()[1])
    if granted_at < asked_at + (LEASE_MS - EARLY_MS) * 1e6:
        raise drivers.Invalid('the lock was granted before the lease of the dead was over')
    late_ms = (granted_at - held_at) / 1e6 - LEASE_MS
    if late_ms > LATE_MS:
        raise drivers.Failed(f'the lock was granted {late_ms:.0f} ms late')
    return max(late_ms, 0)  # the holder has said so a little after it was granted


def run_pair(stage, other):
    """A row of the matrix."""
    row = {'peer': other.name}
    try:
        pair = Pair(stage, other)
        row.update(run_tries(pair))
        row.update(run_waiting(pair))
        row['they_die'] = run_crash(pair, other, HOLDFAST)
        row['we_die'] = run_crash(pair, HOLDFAST, other)
    except (drivers.CannotDo, drivers.Failed, drivers.Invalid, servers.CannotStart,
            OSError) as problem:
        row['problem'] = f'{type(problem).__name__}: {problem}'
    return row


def run(options, root):
    home = options.build / 'peers'
    folder = home / 'records'
    peers = [p for p in catalogue.choose(options.peers) if p.interop]
    commands, refusals = install.install_all([HOLDFAST, *peers], home, session.say)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = []
    with servers.Park() as park, contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        stage = measure.Stage(park, commands, folder, options)
        for peer in peers:
            known = refusals.get(peer.name) or refusals.get(HOLDFAST.name)
            rows.append({'peer': peer.name, 'problem': known} if known
                        else run_pair(stage, peer))
            session.say(str(rows[-1]))
    if not options.peers:
        (root / 'docs' / 'interop.md').write_text(document(about.versions(root), rows), 'utf-8')
    return 1 if any('problem' in row for row in rows) else 0


HEAD = """\
# Interoperability

Written by `make interop`; do not edit.

A lock of Holdfast is a plain string key with a value and an expiry, so libraries of other languages that do the same can contend for it. Here the real
ones do, on one server and one key, in the versions that are named.

- *tries*: eight tasks of each side try without waiting, until both have had the lock at least {wanted:,} times. The records of both sides together
  have no acquisition that overlaps with another one.
- *waiting*: one task of each side waits for the lock, in its own way: Holdfast looks every 100 ms while somebody holds it who cannot hand it on, others
  poll. Who has just released it is the first to ask again, so each keeps it for a while; *crossings* are the times that it went from one side to the
  other. In the end Holdfast stops, and the other side goes on. Where several of Holdfast wait, they pass the lock on among themselves, and who polls comes
  when they are done.
- *crash*: a holder is killed, with a lease of {lease} ms; one who waits on the other side gets the lock when the lease is over, and not before:
  so many ms later.

"""

COLUMNS = [('tries: Holdfast', 'ours'), ('the other', 'theirs'),
           ('waiting: Holdfast', 'waited_ours'), ('the other', 'waited_theirs'),
           ('crossings', 'crossings'),
           ('crash of the other, ms', 'they_die'), ('of Holdfast, ms', 'we_die')]


def document(versions, rows):
    head = ['', 'version', *(name for name, _ in COLUMNS), '']
    lines = []
    for row in rows:
        verdict = tables.cell(row.get('problem', 'no overlap'))
        lines.append([catalogue.BY_NAME[row['peer']].title, versions.get(row['peer'], '–'),
                      *(whole(row.get(key)) for _, key in COLUMNS), verdict])
    return HEAD.format(wanted=WANTED, lease=LEASE_MS) + tables.table(head, lines, left=2) + '\n'


def whole(value):
    return '–' if value is None else f'{value:,.0f}'
