# SPDX-License-Identifier: MIT
"""A run: installs, starts servers, goes through the workloads with the peers in turns, and saves
after each workload, so that a run which is interrupted has kept what it learned."""
import concurrent.futures
import itertools
import random
import shutil
import threading
import time

from . import about, catalogue, drivers, install, measure, results, servers, workloads


def say(text):
    print(text, flush=True)


def measure_all(options, root):
    began = time.monotonic()
    peers = catalogue.choose(options.peers)
    chosen = catalogue.choose(options.workloads, workloads.BY_NAME, 'workload')
    home = options.build / 'peers'
    home.mkdir(parents=True, exist_ok=True)
    commands, refusals = install.install_all(peers, home, say)
    folder = home / 'records'
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    rows = [{'about': about.collect(options, peers, chosen, root)}]
    # Processes end with the thread that has started them, so there is one pool for the whole run.
    with concurrent.futures.ThreadPoolExecutor(len(peers)) as pool, servers.Park() as park:
        stage = measure.Stage(park, commands, folder, options, began + options.minutes * 60)
        try:
            for workload, end in zip(chosen, ends(chosen, time.monotonic(), stage.deadline)):
                say(f'\n{workload.name}: {workload.title} (after {time.monotonic() - began:.0f} s)')
                rows += run_workload(pool, stage, workload, peers, refusals, end)
                rows[0]['about']['seconds'] = time.monotonic() - began
                results.save(home / 'results.json', rows)
        finally:
            stage.end()  # also when we are interrupted
    shutil.rmtree(folder)
    say(f'{home / "results.json"} after {time.monotonic() - began:.0f} s')
    return home / 'results.json'


def ends(chosen, began, deadline):
    """When each workload should be over, so that the last one has its share of the time."""
    shares = list(itertools.accumulate(workload.share for workload in chosen))
    return [began + (deadline - began) * share / shares[-1] for share in shares]


def run_workload(pool, stage, workload, peers, refusals, end):
    """Peers take turns: each has its first repetition before anyone has a second. Where time is
    short there are fewer, which the column of the runs shows."""
    peers = [peer for peer in peers if peer.only in (None, workload.name)]
    outcomes = {peer.name: [] for peer in peers}
    for turn in range(stage.repetitions or workload.repetitions):
        began = time.monotonic()
        ready = [peer for peer in peers if peer.name not in refusals and
                 not any(hopeless(outcome) for outcome in outcomes[peer.name])]
        random.Random(f'{workload.name} {turn}').shuffle(ready)  # nobody always follows the same
        for peer, outcome in run_turn(pool, stage, workload, ready):
            outcomes[peer.name].append(outcome)
        now = time.monotonic()
        if now + (now - began) > end:
            break
    rows = [row_of(workload, peer, refusals, outcomes[peer.name]) for peer in peers]
    for row in rows:
        tell(row)
    return rows


def hopeless(outcome):
    """What another attempt would not change, or must not."""
    return isinstance(outcome, (drivers.CannotDo, drivers.Invalid, drivers.TooLate,
                                servers.CannotStart))


def row_of(workload, peer, refusals, outcomes):
    if peer.name in refusals:
        return results.failed(workload, peer, refusals[peer.name])
    numbers = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    problems = [outcome for outcome in outcomes if not isinstance(outcome, dict)]
    if problems and (not numbers or isinstance(problems[-1], drivers.Invalid)):
        return results.failed(workload, peer, str(problems[-1]),
                              isinstance(problems[-1], drivers.CannotDo))
    row = results.combine(workload, peer, numbers)
    if problems:
        row['error'] = f'{len(problems)} of {len(outcomes)} runs failed: {problems[0]}'
    return row


def run_turn(pool, stage, workload, peers):
    """Each peer once, as many at the same time as the workload bears."""
    stage.park.wake()
    rooms = threading.Semaphore(workload.together)
    return zip(peers, pool.map(lambda peer: run_one(rooms, stage, workload, peer), peers))


def run_one(rooms, stage, workload, peer):
    """What was measured, or what went wrong."""
    try:
        with rooms:
            if stage.time_is_up():
                raise drivers.TooLate('not measured: the time was up')
            if workload.together == 1:
                stage.park.wake(peer.server)
            return workload.run(stage, peer)
    except (drivers.CannotDo, drivers.Invalid, drivers.Failed, servers.CannotStart, OSError) as problem:
        return problem


def tell(row):
    if row['value'] is None and 'problem' in row:
        say(f'  {row["peer"]:<16} {row["problem"]}')
        return
    words = [f'{key} {number(row[key])}' for key in ('p50', 'p99', 'rate') if row.get(key)]
    error = f'  errors: {row["error"]}' if 'error' in row else ''
    say(f'  {row["peer"]:<16} {number(row["value"])} {row["unit"]}  {"  ".join(words)}{error}')


def number(value):
    return '-' if value is None else f'{value:,.1f}'
