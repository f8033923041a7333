#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The statistics of the comparison with peers: overlaps are found, changes of the holder are told
from re-takes, quantiles and medians are right."""
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'bench', 'peers'))

from runner import records  # noqa: E402
from runner.records import Acquisition  # noqa: E402


def held(process, task, entered, leaving, asked=None, released=None):
    return Acquisition(process, task, entered if asked is None else asked, entered, leaving,
                       leaving if released is None else released)


class Reading(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile('w', suffix='.records') as file:
            file.write(text)
            file.flush()
            return records.read(file.name, 7)

    def test_a_line_is_an_acquisition(self):
        self.assertEqual(self.read('0 1 2 3 4\n1 5 6 7 8\n'),
                         [Acquisition(7, 0, 1, 2, 3, 4), Acquisition(7, 1, 5, 6, 7, 8)])

    def test_no_line_is_none(self):
        self.assertEqual(self.read(''), [])

    def test_a_line_that_was_cut_is_a_fault(self):
        with self.assertRaises(ValueError):
            self.read('0 1 2 3 4\n1 5 6\n')


class Overlaps(unittest.TestCase):
    def test_turns_do_not_overlap(self):
        self.assertEqual(records.overlaps([held(0, 0, 10, 20), held(1, 0, 20, 30)]), 0)

    def test_who_enters_too_early_overlaps(self):
        self.assertEqual(records.overlaps([held(1, 0, 19, 30), held(0, 0, 10, 20)]), 1)

    def test_a_long_hold_overlaps_with_all_that_come_within_it(self):
        self.assertEqual(records.overlaps([held(0, 0, 0, 100), held(1, 0, 10, 20),
                                           held(2, 0, 50, 60)]), 2)

    def test_a_task_may_overlap_with_itself(self):
        self.assertEqual(records.overlaps([held(0, 0, 0, 100), held(0, 0, 50, 60)]), 1)

    def test_other_locks_do_not_count(self):
        both = [held(0, 0, 0, 100), held(0, 1, 10, 20)]
        self.assertEqual(records.overlaps(both, own_locks=True), 0)
        self.assertEqual(records.overlaps(both, own_locks=False), 1)

    def test_own_locks_overlap_too(self):
        self.assertEqual(records.overlaps([held(0, 3, 0, 100), held(1, 3, 10, 20)],
                                          own_locks=True), 1)


class Changes(unittest.TestCase):
    def test_a_retake_is_no_change(self):
        turns = [held(0, 0, 0, 1), held(0, 0, 2, 3), held(0, 1, 4, 5), held(1, 1, 6, 7)]
        self.assertEqual(len(records.neighbours(turns)), 2)

    def test_order_is_by_entering(self):
        turns = [held(0, 0, 4, 5), held(1, 0, 2, 3), held(0, 0, 0, 1)]
        self.assertEqual(len(records.neighbours(turns)), 2)

    def test_a_hand_over_is_to_one_who_waited(self):
        turns = [held(0, 0, 0, 10), held(1, 0, 13, 20, asked=5), held(0, 0, 40, 50, asked=30)]
        self.assertEqual(records.hand_overs(turns), [3])

    def test_the_window_counts_by_entering(self):
        turns = [held(0, 0, 9, 12), held(0, 0, 10, 11), held(0, 0, 19, 30), held(0, 0, 20, 21)]
        self.assertEqual([a.entered for a in records.within(turns, 10, 20)], [10, 19])

    def test_shares_know_who_got_nothing(self):
        turns = [held(0, 0, 0, 1), held(0, 0, 2, 3), held(1, 0, 4, 5)]
        self.assertEqual(records.shares(turns, 2), (1, 2))
        self.assertEqual(records.shares(turns, 3), (0, 2))
        self.assertEqual(records.shares([], 3), (0, 0))


class Numbers(unittest.TestCase):
    def test_a_pair_is_both_calls_without_the_work(self):
        self.assertEqual(records.pairs([Acquisition(0, 0, 100, 130, 1000, 1005)]), [35])

    def test_medians(self):
        self.assertEqual(records.median([3, 1, 2]), 2)
        self.assertEqual(records.median([4, 1, 2, 3]), 2.5)
        self.assertEqual(records.median([None, 5]), 5)
        self.assertIsNone(records.median([]))
        self.assertIsNone(records.median([None]))

    def test_quantiles(self):
        hundred = list(range(100, 0, -1))
        self.assertEqual(records.quantile(hundred, 0.50), 50)
        self.assertEqual(records.quantile(hundred, 0.99), 99)
        self.assertEqual(records.quantile([1, 2, 3], 0.99), 3)
        self.assertEqual(records.quantile([7], 0.5), 7)
        self.assertIsNone(records.quantile([], 0.5))

    def test_spread_is_in_microseconds(self):
        self.assertEqual(records.spread_us([1000, 2000, 9000]),
                         {'p50': 2, 'p99': 9, 'max': 9})
        self.assertEqual(records.spread_us([]), {'p50': None, 'p99': None, 'max': None})


if __name__ == '__main__':
    unittest.main()
