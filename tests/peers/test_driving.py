#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the runner makes of drivers that keep the contract, and of those that do not. The driver is
fake_driver.py; no server and no lock is needed."""
import os
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / 'bench' / 'peers'))

from runner import (catalogue, drivers, install, install_common, measure, records,  # noqa: E402
                    session, workloads)

FAKE = [sys.executable, str(HERE / 'fake_driver.py')]


class NoServer:
    url = 'none://'

    def cpu_seconds(self):
        return 0.0

    def counters(self):
        return {'commands': 7}


class Driving(unittest.TestCase):
    def run_as(self, behaviour):
        with tempfile.TemporaryDirectory() as folder:
            options = types.SimpleNamespace(seconds=0.1, warm_up=0.05, repetitions=None)
            stage = measure.Stage(None, {behaviour: FAKE}, folder, options)
            peer = catalogue.peer(behaviour, behaviour, 'c')
            return measure.run_pairs(stage, peer, NoServer())

    def test_a_good_one_is_measured(self):
        measured = self.run_as('good')
        self.assertEqual(measured.holders, 1)
        self.assertEqual(records.spread_us(records.pairs(measured.all))['p50'], 2)
        self.assertEqual(measured.costs()['commands'], 0)
        self.assertEqual(measured.first_error(), {})
        for a in measured.all:
            self.assertTrue(measured.start.at <= a.entered < measured.end.at)

    def test_an_overlap_is_no_result(self):
        with self.assertRaisesRegex(drivers.Invalid, '1 acquisitions overlap'):
            self.run_as('overlapping')

    def test_who_cannot_says_why(self):
        with self.assertRaisesRegex(drivers.CannotDo, 'it has no such thing'):
            self.run_as('cannot')

    def test_who_fails_says_why(self):
        with self.assertRaisesRegex(drivers.Failed, 'no server'):
            self.run_as('broken')
        with self.assertRaisesRegex(drivers.Failed, 'ended with 5'):
            self.run_as('failing')

    def test_errors_are_passed_on(self):
        self.assertEqual(self.run_as('late').first_error(), {'error': 'it was late'})

    def test_a_program_that_is_not_there_is_a_fault(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(OSError):
            drivers.Driver([os.path.join(folder, 'none')], folder, 0, 'x', 'none://', 'lock')


class Installing(unittest.TestCase):
    def test_who_cannot_be_installed_is_named_and_others_go_on(self):
        def install_one(peer, _):
            reason = f'{install.PEERS.parent.parent}/x is missing'
            return install_common.CannotInstall(reason) if peer.driver == 'go' else ['driver']
        peers = [catalogue.BY_NAME[name] for name in ('redsync', 'redlock', 'redis-semaphore')]
        with unittest.mock.patch.object(install, 'install_one', install_one):
            commands, refusals = install.install_all(peers, 'build', lambda _: None)
        self.assertEqual(commands, {'redlock': ['driver'], 'redis-semaphore': ['driver']})
        self.assertEqual(refusals, {'redsync': 'cannot be installed: ./x is missing'})


class Time(unittest.TestCase):
    def test_every_workload_has_its_share(self):
        chosen = [workloads.BY_NAME[name] for name in ('w1', 'w4', 'w9')]  # 11, 19 and 3
        self.assertEqual(session.ends(chosen, 100, 430), [210, 400, 430])


class Outcomes(unittest.TestCase):
    W1, PEER = workloads.BY_NAME['w1'], catalogue.BY_NAME['redsync']

    def row(self, *outcomes, refusals=None):
        return session.row_of(self.W1, self.PEER, refusals or {}, list(outcomes))

    def test_one_failure_of_three_is_a_note(self):
        row = self.row({'value': 1}, drivers.Failed('gone'), {'value': 3})
        self.assertEqual((row['value'], row['error']), (2, '1 of 3 runs failed: gone'))

    def test_one_overlap_of_three_is_no_result(self):
        row = self.row({'value': 1}, {'value': 3}, drivers.Invalid('two at once'))
        self.assertEqual((row['value'], row['problem']), (None, 'two at once'))

    def test_only_failures_are_no_result(self):
        self.assertEqual(self.row(drivers.Failed('a'), drivers.Failed('b'))['problem'], 'b')

    def test_who_cannot_is_told_from_who_failed(self):
        self.assertTrue(self.row(drivers.CannotDo('no ids'))['cannot'])
        self.assertNotIn('cannot', self.row(drivers.Failed('gone')))

    def test_who_is_not_installed_is_named(self):
        row = self.row(refusals={'redsync': 'cannot be installed: no Go'})
        self.assertEqual(row['problem'], 'cannot be installed: no Go')

    def test_the_hopeless_are_not_asked_again(self):
        self.assertTrue(session.hopeless(drivers.CannotDo('')))
        self.assertTrue(session.hopeless(drivers.TooLate('')))
        self.assertFalse(session.hopeless(drivers.Failed('')))
        self.assertFalse(session.hopeless({'value': 1}))


if __name__ == '__main__':
    unittest.main()
