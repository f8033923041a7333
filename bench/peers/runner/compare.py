# SPDX-License-Identifier: MIT
"""Compares two saved results, of `make bench` or `make bench-peers`: is B slower than A?

Rows are compared by the ratio to their baseline where they have one, for it was measured at the
same time on the same machine; otherwise by their value. A difference counts when it is larger than
NOISE and than what the runs of both differ among themselves."""
from . import results, tables

NOISE = 0.10


def key_of(row):
    return row['workload'], row.get('peer', '')


def figure(row, both_ratios):
    return row['ratio'] if both_ratios else row.get('value')


def scatter(row):
    """Half of what the runs differ, as a share of their median."""
    runs = [run for run in row.get('runs', []) if run is not None]
    middle = row.get('value')
    return (max(runs) - min(runs)) / 2 / middle if len(runs) > 1 and middle else 0


def verdict(a, b):
    """(figure of A, of B, B / A, word), where a word in capitals is a slow-down."""
    ratios = a.get('ratio') is not None and b.get('ratio') is not None
    before, after = figure(a, ratios), figure(b, ratios)
    if before is None and after is None:
        return before, after, None, 'no number in either'
    if after is None:
        return before, after, None, f'FAILED: {b.get("problem", "no number")}'
    if before is None:
        return before, after, None, 'new number'
    if not before or 'better' not in b:
        return before, after, None, 'cannot tell'
    change = after / before
    worse = change - 1 if b['better'] == 'less' else 1 / change - 1 if change else float('inf')
    allowed = max(NOISE, scatter(a) + scatter(b))
    if worse > allowed:
        return before, after, change, 'SLOWER'
    return before, after, change, 'faster' if -worse > allowed else 'the same'


def lines(rows_a, rows_b):
    """One for each that is in both or in A alone, and whether it is a slow-down."""
    later = {key_of(row): row for row in rows_b}
    for a in rows_a:
        b = later.get(key_of(a))
        name = ' '.join(key_of(a)).strip()
        if b is None:
            yield f'{name:<28} only in A', False
            continue
        before, after, change, word = verdict(a, b)
        shown = '–' if change is None else f'{change:.2f}'
        quick = ' (a quick run says little)' if a.get('quick') or b.get('quick') else ''
        yield (f'{name:<28} {tables.number(before):>12} {tables.number(after):>12} {shown:>7}  '
               f'{word}{quick}', word[:1].isupper())


def run(path_a, path_b, say):
    """Says it all; 1 if something is slower."""
    _, rows_a = results.load(path_a)
    _, rows_b = results.load(path_b)
    say(f'{"":<28} {"A":>12} {"B":>12} {"B / A":>7}')
    slower = 0
    for line, worse in lines(rows_a, rows_b):
        say(line)
        slower += worse
    say(f'{slower} slower beyond noise' if slower else 'nothing is slower beyond noise')
    return 1 if slower else 0
