#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""holdfast run: a command that changes its user cannot be signalled by holdfast. The tests start
holdfast as an ordinary user around a set-user-ID program that becomes root for good, as sudo does.
Only root can set that up, so everybody else skips these tests."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from running import BOUND, HOLDFAST, Running, is_alive, wait_until

BECOME = os.environ['HOLDFAST_BECOME']
USER = 54321  # nobody's


@unittest.skipUnless(os.geteuid() == 0, 'only root can make a set-user-ID program of another user')
class OtherUser(Running):
    def setUp(self):
        super().setUp()
        os.chmod(self.server.folder, 0o755)
        os.chmod(self.server.path, 0o777)
        os.chmod(self.folder, 0o777)
        self.holdfast = shutil.copy(HOLDFAST, self.path('holdfast'))
        self.become = shutil.copy(BECOME, self.path('become'))
        os.chmod(self.holdfast, 0o755)
        os.chmod(self.become, 0o4755)
        self.addCleanup(self.let_it_end)
        self.environment['SHELL'] = '/bin/sh'
        self.runs = 0

    def start(self, *words, user=USER):
        """What it says on standard error goes to a file, so that the guard can go on there."""
        self.runs += 1
        path = self.path(f'said{self.runs}')
        with open(path, 'wb') as said:
            process = subprocess.Popen([self.holdfast, 'run', *words], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=said,
                                       env=self.environment, user=user, group=user,
                                       extra_groups=[])
        process.said = path
        self.addCleanup(self.close, process)
        return process

    @staticmethod
    def said(process):
        with open(process.said, encoding='utf-8') as file:
            return file.read()

    def says(self, process, word):
        """What it has said so far, once that has come."""
        try:
            wait_until(lambda: word in self.said(process), word)
        except AssertionError as failure:
            raise AssertionError(f'{failure}; said was: {self.said(process)}') from None
        return self.said(process)

    def start_become(self, *options):
        """A run of the program, and its pid."""
        running = self.start(*options, self.lock, '--', self.become, self.path('pid'))
        return running, int(self.wait_for('pid'))

    def let_it_end(self):
        with open(self.path('pid.end'), 'w', encoding='utf-8'):
            pass

    def ends(self, process, code):
        """All that it has said, when it has exited with that code."""
        self.let_it_end()
        self.assertEqual(process.wait(BOUND), code, self.said(process))
        return self.said(process)

    def test_a_warning_comes_before_it_is_started(self):
        running, _ = self.start_become('--ttl', '2')
        error = self.ends(running, 7)
        self.assertEqual(error.count('\n'), 1, error)
        self.assertIn(self.become, error)
        self.assertIn('uid 0', error)
        self.assertFalse(self.is_held())

    def test_the_warning_finds_it_in_the_path(self):
        self.environment['PATH'] = f'/nowhere::{self.folder}:/usr/bin:/bin'
        running = self.start(self.lock, '--', 'become', self.path('pid'))
        self.wait_for('pid')
        self.assertIn(self.become, self.ends(running, 7))

    def test_there_is_no_warning_where_there_is_no_danger(self):
        self.let_it_end()
        for user, owner, words in ((0, 0, ()), (0, USER, ()), (USER, USER, ()),
                                   (USER, 0, ('--on-lost', 'ignore')), (USER, 0, ('-q',))):
            os.chown(self.become, owner, owner)
            os.chmod(self.become, 0o4755)
            running = self.start(*words, self.lock, '--', self.become, self.path('pid'), user=user)
            self.assertEqual(self.ends(running, 7), '', (user, owner, words))
            os.remove(self.path('pid'))  # the next user could not write there
        os.chown(self.become, 0, 0)
        os.chmod(self.become, 0o2755)
        running = self.start(self.lock, '--', self.become, self.path('pid'))
        self.assertEqual(self.ends(running, 7), '', 'set-group-ID')

    def test_one_that_keeps_its_real_user_is_ended_as_usual(self):
        running = self.start('--ttl', '2', '--timeout', '0.3', self.lock, '--', self.become,
                             self.path('pid'), 'keep')
        pid = self.wait_for('pid')
        lease_end = self.wait_for_renewal()
        self.server.pause()
        self.dies_before([pid], lease_end)
        self.assertNotIn('cannot send', self.ends(running, 122))

    def test_a_lost_lock_is_told_loudly_with_pid_and_user(self):
        running, pid = self.start_become('--ttl', '1.5', '--timeout', '0.3')
        self.server.pause()
        error = self.says(running, 'RUNS ON WITHOUT THE LOCK')
        self.assertTrue(is_alive(pid))
        for signal_name in ('TERM', 'KILL'):
            self.assertIn(f'cannot send {signal_name} to the command', error)
        self.assertEqual(error.count(f'pid {pid} (become, uid 0)'), 3, error)
        self.server.go_on()
        self.assertEqual(self.start('-w', '5', self.lock, 'true').wait(BOUND), 0, 'others get it')
        self.assertIsNone(running.poll(), 'it waits for the command')
        self.assertNotIn('guard', self.ends(running, 122))

    def test_the_same_if_somebody_deletes_the_key(self):
        running, pid = self.start_become('--ttl', '0.9')
        self.server.ask('DEL', self.lock)
        error = self.says(running, 'RUNS ON WITHOUT THE LOCK')
        self.assertIn(f'pid {pid} ', error)
        self.ends(running, 122)

    def outlasts(self, running, seconds=1.5):
        """The lock is kept for longer than its lease while the command lives."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertTrue(self.is_held(), 'the lock is gone')
            self.assertIsNone(running.poll())
            time.sleep(0.02)

    def test_a_lock_that_is_asked_for_is_kept_until_the_command_ends(self):
        running, pid = self.start_become('--ttl', '0.9')
        self.poke('revoke', self.lock, 'please')
        error = self.says(running, 'is kept until it has ended')
        self.assertIn(f'pid {pid} (become, uid 0)', error)
        self.outlasts(running)
        self.assertTrue(is_alive(pid))
        self.assertEqual(self.ends(running, 123), error, 'nothing more is said')
        self.assertFalse(self.is_held())

    def test_so_is_one_that_is_held_for_max_hold(self):
        running, pid = self.start_become('--ttl', '0.9', '--max-hold', '0.5')
        self.says(running, 'is kept until it has ended')
        self.outlasts(running)
        self.assertTrue(is_alive(pid))
        self.ends(running, 122)
        self.assertFalse(self.is_held())

    def test_a_lock_that_was_kept_may_be_lost_later(self):
        running, _ = self.start_become('--ttl', '0.9')
        self.poke('revoke', self.lock, 'please')
        self.says(running, 'is kept until it has ended')
        self.server.ask('DEL', self.lock)
        self.says(running, 'RUNS ON WITHOUT THE LOCK')
        self.ends(running, 122)

    def test_what_a_script_leaves_behind_is_waited_for(self):
        """The shell can be signalled, so kill(2) on the group succeeds; its child cannot."""
        running = self.start('--ttl', '0.9', self.lock, '-c',
                             f'{self.become} {self.path("pid")} >/dev/null 2>&1 & '
                             f'until [ -s {self.path("pid")} ]; do sleep 0.01; done; exit 3')
        pid = int(self.wait_for('pid'))
        self.says(running, 'is kept until it has ended')
        self.outlasts(running)
        self.assertTrue(is_alive(pid))
        self.assertNotIn('guard', self.ends(running, 3))
        self.assertFalse(self.is_held())

    def test_a_part_of_the_group_that_cannot_be_signalled_is_named(self):
        running = self.start('--ttl', '0.9', self.lock, '-c',
                             f'{self.become} {self.path("pid")}; true')
        pid = int(self.wait_for('pid'))
        self.poke('revoke', self.lock, 'please')
        error = self.says(running, 'is kept until it has ended')
        self.assertIn(f'cannot send TERM to the command, for part of it runs as another user: '
                      f'pid {pid} (become, uid 0)\n', error)
        self.outlasts(running)
        self.ends(running, 123)
        self.assertFalse(self.is_held())

    def test_a_signal_that_cannot_be_passed_on_is_told(self):
        running, pid = self.start_become('--ttl', '2')
        running.send_signal(signal.SIGINT)
        error = self.says(running, 'cannot send INT')
        self.assertIn(f'pid {pid} (become, uid 0)', error)
        self.ends(running, 7)

    def test_in_the_foreground(self):
        running, pid = self.start_become('--foreground', '--ttl', '1.5', '--timeout', '0.3')
        self.server.pause()
        error = self.says(running, 'RUNS ON WITHOUT THE LOCK')
        self.assertEqual(error.count(f'pid {pid} (become, uid 0)'), 3, error)
        self.ends(running, 122)

    def guard_tells(self, *options, number=signal.SIGKILL, word='has died'):
        running, pid = self.start_become(*options, '--ttl', '0.9')
        guard = self.guard_of(running)
        running.send_signal(number)
        error = self.says(running, 'RUNS ON WITHOUT THE LOCK')
        self.assertIn(f'pid {pid} (become, uid 0)', error)
        self.assertIn(f'holdfast {word}, and its guard cannot end the command', error)
        wait_until(lambda: not is_alive(guard), 'the end of the guard')
        self.assertTrue(is_alive(pid))
        return running

    def test_the_guard_tells_it_if_holdfast_has_died(self):
        self.guard_tells()

    def test_the_guard_tells_it_in_the_foreground_too(self):
        self.guard_tells('--foreground')

    def test_the_guard_tells_it_if_holdfast_is_stopped(self):
        running = self.guard_tells(number=signal.SIGSTOP, word='stands still')
        running.send_signal(signal.SIGCONT)
        self.assertNotIn('guard process was ended', self.ends(running, 122))


if __name__ == '__main__':
    unittest.main()
