#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the unit tests of a quorum, and of load, notice deliberate bugs (src/base/mutant.h):

  mutants.py FOLDER        FOLDER has the programs mutable_*; see CMakeLists.txt

Each program must pass as it is, and under each of its mutants a test of it must fail that does not
fail without: a crash, a program that does not end, or a mutant that it does not know catches
nothing. A mutant of mutant.h that has no program here is a failure too.
"""
import os
import re
import subprocess
import sys

MUTABLE = {  # the program that must fail -> the mutants under which it must
    'ballot': ['vote-twice', 'late-grant-kept', 'deadline-first'],
    'ballot_fence': ['fence-not-raised', 'fence-unheld', 'raised-gone'],
    'flow': ['window-wide'],
    'ids_quorum': ['ids-no-jump', 'ids-minority', 'ids-unkept'],
    'majority': ['healed-counted', 'healed-same-round'],
    'majority_calls': ['release-granters'],
    'standing': ['restarted-votes', 'floor-early', 'mute-trusted'],
    'turns': ['turn-replans'],
    'vote': ['yield-decided', 'yield-old-id', 'inquire-dropped', 'silence-awaited', 'ticket-zero',
             'deaf-keeps'],
    'watchdog': ['pace-constant'],
}
FIRST = 'vote-twice'  # in mutant.h: those before it have nothing to do with a quorum
SECONDS = 60


def all_mutants():
    path = os.path.join(os.path.dirname(__file__), '../../src/base/mutant.h')
    names = re.findall(r'^    HF__MUTANT_(\w+)', open(path, encoding='utf-8').read(), re.M)
    return [name.lower().replace('_', '-') for name in names]


def run(folder, program, mutant=None):
    """Whether it passed, and the tests that failed, or what went wrong instead."""
    environment = {k: v for k, v in os.environ.items() if k != 'HOLDFAST_MUTANT'}
    if mutant:
        environment['HOLDFAST_MUTANT'] = mutant
    try:
        done = subprocess.run([os.path.join(folder, 'mutable_' + program)], env=environment,
                              capture_output=True, text=True, errors='replace', timeout=SECONDS,
                              check=False)
    except subprocess.TimeoutExpired:
        return False, [], 'does not end'
    output = done.stdout + done.stderr
    failed = re.findall(r'^\[  FAILED  \] (\w+)$', output, re.M)
    return done.returncode == 0, list(dict.fromkeys(failed)), output.strip()[-200:]


def main(folder):
    faults = 0
    print('%-22s %-14s %s' % ('mutant', 'caught in', 'by'))
    for program, mutants in MUTABLE.items():
        passed, always, output = run(folder, program)
        if not passed:
            print('%-22s %-14s FAILED: %s' % ('(none)', program, ' '.join(always) or output))
            faults += 1
        for mutant in mutants:
            passed, failed, output = run(folder, program, mutant)
            caught = [name for name in failed if name not in always]
            instead = 'SURVIVED' if passed or failed else 'NOT CAUGHT: ' + output
            print('%-22s %-14s %s' % (mutant, program, caught[0] if caught else instead))
            faults += not caught
    every, known = all_mutants(), [name for names in MUTABLE.values() for name in names]
    of_quorum = every[every.index(FIRST):]
    for name in sorted((set(of_quorum) - set(known)) | (set(known) - set(every))):
        print('%-22s %-14s %s' % (name, '-', 'is in mutant.h, or here, and not in both'))
        faults += 1
    print('%d mutants, %d faults' % (len(known), faults))
    return faults > 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
