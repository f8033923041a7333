#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A driver that keeps the contract of bench/peers/README.md and has no lock: --peer says how it
misbehaves."""
import sys
import time


def main():
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    behaviour = options['--peer']
    if behaviour == 'cannot':
        print('it has no such thing', file=sys.stderr)
        return 3
    if behaviour == 'broken':
        print('no server', file=sys.stderr)
        return 1
    print('ready', flush=True)
    sys.stdin.readline()
    turns, now = [], time.monotonic_ns()
    stop = sys.stdin.readline()
    while stop and now < time.monotonic_ns():
        turns.append((now, now + 1000, now + 2000, now + 3000))
        now += 1000000
    if behaviour == 'overlapping':
        turns.append((turns[0][0], turns[0][1] + 500, turns[0][2] + 500, turns[0][3]))
    with open(options['--records'], 'w', encoding='ascii') as file:
        file.writelines('0 %d %d %d %d\n' % turn for turn in turns)
    errors = '["it was late"]' if behaviour == 'late' else '[]'
    print('{"acquisitions": %d, "refused": 0, "errors": %s}' % (len(turns), errors))
    return 5 if behaviour == 'failing' else 0


if __name__ == '__main__':
    sys.exit(main())
