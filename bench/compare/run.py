#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the benchmark of an older commit with that of this tree.

  run.py --old COMMIT [--rounds N] [--workloads a,b] [--quick]

Builds the commit in build/old, unless it is there already, and lets the two holdfast-bench
binaries take turns: workload by workload, in at least five rounds, each side first in every other
round. A round measures once where both sides know --repeat, else as often as the old side does by
itself. verdict.py judges. All rounds are saved in build/compare/results.json. Exits with 1 when a
row is slower or has failed."""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import verdict

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = ('w4-8', 'w4-64', 'w4h', 'w5')  # the rows of each come from one run
SIDES = ('old', 'new')


def parse(words=None):
    parser = argparse.ArgumentParser(description='an older commit and this tree take turns')
    parser.add_argument('--old', required=True, metavar='COMMIT')
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build')
    parser.add_argument('--rounds', type=int, default=verdict.FEWEST_ROUNDS)
    parser.add_argument('--workloads', default='', help='names, with commas; default: all')
    parser.add_argument('--quick', action='store_true', help='short runs; needs more rounds')
    options = parser.parse_args(words)
    if options.rounds < verdict.FEWEST_ROUNDS:
        parser.error(f'at least {verdict.FEWEST_ROUNDS} rounds, or there is no noise to measure')
    return options


# ---- The old side ----

def git(*words):
    return subprocess.run(['git', '-C', ROOT, *words], check=True, stdout=subprocess.PIPE).stdout


def build_old(commit, build):
    """Its benchmark; where it was built before, that one."""
    done = subprocess.run([ROOT / 'tools' / 'build-old', build, commit], check=True,
                          stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip()) / 'build' / 'bench' / 'holdfast-bench'


# ---- Rows ----

def belongs(row, name):
    """As holdfast-bench sees it: a name selects itself and what follows it after a dash."""
    return row == name or row.startswith(name + '-')


def listed(program):
    text = subprocess.run([program, '--list'], check=True, stdout=subprocess.PIPE, text=True).stdout
    return text.split()


def choose(rows, wanted):
    if not wanted:
        return [row for row in rows if not belongs(row, 'scale')]
    names = wanted.split(',')
    for name in names:
        if not any(belongs(row, name) for row in rows):
            sys.exit(f'no workload {name}')
    return [row for row in rows if any(belongs(row, name) for name in names)]


def groups(rows):
    """Rows that run in one process, by the name that stands for them."""
    found = {}
    for row in rows:
        head = min((name for name in (*SHARED, *rows) if belongs(row, name)), key=len)
        found.setdefault(head, []).append(row)
    return found


# ---- Rounds ----

def flags_for(programs, quick):
    """The same for both sides."""
    if quick:
        return ['--quick']
    helps = [subprocess.run([program, '--help'], check=True, stdout=subprocess.PIPE,
                            text=True).stdout for program in programs.values()]
    return ['--repeat', '1'] if all('--repeat' in text for text in helps) else []


def run_once(program, flags, rows):
    """What the benchmark says of these rows, and the processor seconds of the whole run: of the
    program and of all its children, which it waits for."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'rows')
        process = subprocess.Popen([program, *flags, '--json', path, *rows],
                                   stdout=subprocess.DEVNULL)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.send_signal(signal.SIGTERM)  # it ends its servers
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            sys.exit(f'{program} {" ".join(rows)}: ended with {process.returncode}')
        with open(path, encoding='utf-8') as file:
            found = {row['workload']: row for row in map(json.loads, file)}
    return found, usage.ru_utime + usage.ru_stime


def take_turns(programs, flags, rows, rounds):
    """{side: [(rows, seconds) of each round]}"""
    outcomes = {side: [] for side in SIDES}
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            outcomes[side].append(run_once(programs[side], flags, rows))
    return outcomes


def record_of(row, outcomes):
    """What is saved of one row."""
    rounds = {side: [found[row] for found, _ in outcomes[side]] for side in SIDES}
    first = rounds['new'][0]
    record = {'workload': row, 'unit': first['unit'], 'better': first['better'],
              **verdict.verdict(rounds['old'], rounds['new'], first['better'])}
    for side in SIDES:
        record[f'{side}_rounds'] = [
            {**{key: found[row][key] for key in ('value', 'ratio', 'cpu_us', 'problem')
                if key in found[row]}, 'run_cpu_s': round(seconds, 3)}
            for found, seconds in outcomes[side]]
    return record


def save(path, records):
    path.write_text('[\n' + ',\n'.join(map(json.dumps, records)) + '\n]\n', encoding='utf-8')


# ---- What is printed ----

HEAD = (f'{"":<24} {"old":>10} {"new":>10} {"":4} {"slow-down":>10} {"noise":>8} '
        f'{"by ratio":>9} {"noise":>8} {"cpu us old":>10} {"new":>9}')


def share(figure, key):
    """In percent of the old median; where that is 0, the amount itself."""
    return f'{100 * figure[key]:.1f} %' if figure['old'] else f'{figure[key]:.2f}'


def processor_us(record, side):
    found = verdict.numbers(record[f'{side}_rounds'], 'cpu_us')
    return '-' if not found else f'{statistics.median(found):.2f}'


def judged(record, key, widths):
    """The slow-down of a figure, and its noise."""
    cells = [share(record[key], cell) if key in record else '-' for cell in ('slow_down', 'noise')]
    return ' '.join(f'{cell:>{width}}' for cell, width in zip(cells, widths))


def line_of(record):
    if 'judged_by' not in record:
        return f'{record["workload"]:<24} {record["verdict"]}'
    value = record['value']
    words = [record['verdict'] + (' by its ratio' if record['judged_by'] == 'ratio' else '')]
    if takes_more_processor(record):
        words.append(f'{share(record["cpu_us"], "slow_down")} more processor time')
    return (f'{record["workload"]:<24} {value["old"]:>10.2f} {value["new"]:>10.2f} '
            f'{record["unit"]:4} {judged(record, "value", (10, 8))} '
            f'{judged(record, "ratio", (9, 8))} '
            f'{processor_us(record, "old"):>10} {processor_us(record, "new"):>9}  '
            + ', '.join(words))


def is_worse(record):
    return record['verdict'] == 'slower' or record['verdict'].startswith('FAILED')


def takes_more_processor(record):
    return record.get('cpu_us', {}).get('word') == 'slower'


def summary(records):
    worse, more = sum(map(is_worse, records)), sum(map(takes_more_processor, records))
    return (f'{worse} slower beyond their noise, or failed; {more} take more processor time '
            'beyond its noise')


# ---- All of it ----

def compare(programs, options, home, about):
    """Runs, prints and saves; 1 if something is worse."""
    known = {side: listed(programs[side]) for side in SIDES}
    both = [row for row in known['new'] if row in known['old']]
    alone = {row: side for side in SIDES for row in known[side] if row not in both}
    chosen = choose([*both, *alone], options.workloads)
    flags = flags_for(programs, options.quick)
    records = []
    print(HEAD, flush=True)
    for rows in groups([row for row in chosen if row in both]).values():
        outcomes = take_turns(programs, flags, rows, options.rounds)
        for record in (record_of(row, outcomes) for row in rows):
            print(line_of(record), flush=True)
            records.append(record)
        save(home / 'results.json', [{'about': {**about, 'flags': flags}}, *records])
    for record in ({'workload': row, 'verdict': f'only in {alone[row]}'}
                   for row in chosen if row in alone):
        print(line_of(record))
        records.append(record)
    save(home / 'results.json', [{'about': {**about, 'flags': flags}}, *records])
    print(summary(records))
    return 1 if any(map(is_worse, records)) else 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    options = parse()
    build = options.build.resolve()
    commit = git('rev-parse', '--verify', options.old + '^{commit}').decode().strip()
    programs = {'old': build_old(commit, build),
                'new': build / 'bench' / 'holdfast-bench'}
    about = {'old': commit, 'new': git('describe', '--always', '--dirty').decode().strip(),
             'rounds': options.rounds, 'date': time.strftime('%Y-%m-%d', time.gmtime())}
    (build / 'compare').mkdir(exist_ok=True)
    return compare(programs, options, build / 'compare', about)


if __name__ == '__main__':
    sys.exit(main())
