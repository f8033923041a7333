# SPDX-License-Identifier: MIT
"""Is the new side slower than the old one? Says so from the rounds in which both took turns.

A figure is a number that each round of a row gives for each side: the row's value and, where the
row has one, its ratio to its baseline, which was measured within milliseconds of it.

The noise of a figure is the largest of three spreads: of the old side's rounds, of the new side's
rounds, and of the change from old to new in each round. A spread is the distance from the lowest to
the highest round. For each four rounds beyond the fifth, the lowest and the highest are left out:
so more rounds give a sharper verdict, and not a blunter one. Two equal sides whose rounds scatter
at random are called slower about once in a thousand figures, and less often with more rounds:
whoever sees one slower row among fifty repeats that row with nine rounds.

A figure is slower when the median change exceeds its noise. A row is slower when its value is; or
when its ratio is, and the value does not say the opposite: a baseline that has become faster makes
the ratio worse, although nothing has become slower."""
import statistics

FEWEST_ROUNDS = 5


def spread(rounds):
    """From the lowest to the highest, without those that are left out."""
    left_out = (len(rounds) - FEWEST_ROUNDS) // 4
    kept = sorted(rounds)[left_out:len(rounds) - left_out]
    return kept[-1] - kept[0]


def judge(old, new, better):
    """One figure. Changes and noises are shares of the old median; where that is 0, amounts."""
    sign = 1 if better == 'less' else -1
    changes = [sign * (after - before) for before, after in zip(old, new)]
    unit = abs(statistics.median(old)) or 1
    noises = {'old': spread(old) / unit, 'new': spread(new) / unit,
              'change': spread(changes) / unit}
    noise, change = max(noises.values()), statistics.median(changes) / unit
    word = 'slower' if change > noise else 'faster' if -change > noise else 'the same'
    return {'old': statistics.median(old), 'new': statistics.median(new), 'slow_down': change,
            'noise': noise, 'noises': noises, 'word': word}


def numbers(rounds, key):
    found = [row.get(key) for row in rounds]
    return found if found and None not in found else None


def verdict(old, new, better):
    """Of what both sides said of one row in each round: the verdict and, if there are numbers, each
    figure and which of them has decided."""
    problems = [row['problem'] for row in new if 'problem' in row]
    if problems:
        return {'verdict': f'FAILED: {problems[0]}'}
    if any('problem' in row for row in old):
        return {'verdict': 'failed in old'}
    figures = {}
    for key in ('value', 'ratio', 'cpu_us'):
        before, after = numbers(old, key), numbers(new, key)
        if before and after:
            figures[key] = judge(before, after, 'less' if key == 'cpu_us' else better)
    key = deciding(figures)
    return {'verdict': figures[key]['word'], 'judged_by': key, **figures}


def deciding(figures):
    value, ratio = figures['value'], figures.get('ratio')
    if not ratio or value['word'] != 'the same' or ratio['word'] == 'the same':
        return 'value'
    return 'ratio' if ratio['slow_down'] * value['slow_down'] > 0 else 'value'
