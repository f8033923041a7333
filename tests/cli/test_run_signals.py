#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""holdfast run: every signal in every phase reaches whom it should, and leaves no process, no lock
and no place in the queue behind."""
import os
import signal
import subprocess
import unittest

from running import Running, is_alive, state_of, wait_until

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
          signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 5)
HARMLESS = (signal.SIGWINCH, signal.SIGCONT, signal.SIGURG)


class WhileWaiting(Running):
    def test_it_leaves_the_queue(self):
        holder = self.hold()
        for number in ENDING:
            with self.subTest(signal=number):
                waiting = self.wait_in_line()
                waiting.send_signal(number)
                self.end_of(waiting, 128 + number)
                self.assertEqual(self.queue_length(), 0)
        self.assertEqual(self.text('started'), '')
        self.end_hold(holder)
        self.assertFalse(self.is_held())

    def test_harmless_ones_change_nothing(self):
        holder = self.hold()
        waiting = self.wait_in_line()
        for number in HARMLESS:
            waiting.send_signal(number)
        self.end_hold(holder)
        self.end_of(waiting, 0)
        self.assertEqual(self.text('started'), 'x')

    def test_one_that_was_ignored_before_us_stays_ignored(self):
        holder = self.hold()
        waiting = self.wait_in_line(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        waiting.send_signal(signal.SIGHUP)
        self.end_hold(holder)
        self.end_of(waiting, 0)

    def test_it_stops_and_goes_on(self):
        holder = self.hold()
        waiting = self.wait_in_line()
        waiting.send_signal(signal.SIGTSTP)
        wait_until(lambda: state_of(waiting.pid) == 'T', 'a stop')
        waiting.send_signal(signal.SIGCONT)
        wait_until(lambda: state_of(waiting.pid) != 'T', 'going on')
        self.end_hold(holder)
        self.end_of(waiting, 0)

    def test_the_server_is_silent(self):
        holder = self.hold()
        waiting = self.wait_in_line('--timeout', '0.5')
        self.server.pause()
        waiting.send_signal(signal.SIGTERM)
        self.end_of(waiting, 128 + signal.SIGTERM)
        self.server.go_on()
        self.end_hold(holder)


class JustGranted(Running):
    """It is stopped while it waits and continued with both: the lock and the signal."""

    def granted_with(self, number):
        holder = self.hold()
        waiting = self.wait_in_line('--ttl', '10')
        waiting.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(waiting.pid) == 'T', 'a stop')
        before = self.server.ask('GET', self.lock)
        self.end_hold(holder)
        wait_until(lambda: self.server.ask('GET', self.lock) not in (None, before), 'the grant')
        waiting.send_signal(number)
        waiting.send_signal(signal.SIGCONT)
        return waiting

    def test_the_command_is_not_started_and_the_lock_goes_back(self):
        for number in ENDING:
            with self.subTest(signal=number):
                self.end_of(self.granted_with(number), 128 + number)
                self.assertEqual(self.text('started'), '')
                self.assertFalse(self.is_held())
                os.unlink(self.path('held'))

    def test_a_lease_that_was_slept_through_starts_nothing(self):
        holder = self.hold()
        waiting = self.wait_in_line('--ttl', '1', '-w', '1')
        waiting.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(waiting.pid) == 'T', 'a stop')
        self.end_hold(holder)
        wait_until(self.is_held, 'the grant')
        wait_until(lambda: not self.is_held(), 'the end of the lease')
        other = self.hold()
        waiting.send_signal(signal.SIGCONT)
        waiting.wait(timeout=30)
        self.assertIn(waiting.returncode, (75, 122))
        self.assertEqual(self.text('started'), '')
        self.end_hold(other)

    def test_a_harmless_one_changes_nothing(self):
        self.end_of(self.granted_with(signal.SIGWINCH), 0)
        self.assertEqual(self.text('started'), 'x')


class WhileRunning(Running):
    def test_the_whole_group_gets_it(self):
        for number in ENDING:
            with self.subTest(signal=number):
                running = self.start(self.lock, '-c', 'echo $$ >$DIR/outer; '
                                     'sh -c "echo \\$\\$ >$DIR/inner; exec sleep 60"; true')
                pids = [self.wait_for('outer'), self.wait_for('inner')]
                running.send_signal(number)
                self.end_of(running, 128 + number)
                for pid in pids:
                    self.assertFalse(is_alive(pid), 'also the grandchild')
                self.assertFalse(self.is_held())
                os.unlink(self.path('outer'))
                os.unlink(self.path('inner'))

    def test_the_command_may_answer_it(self):
        running = self.start(self.lock, '-c',
                             'trap "echo usr1 >$DIR/told" USR1; trap "exit 9" TERM; '
                             'echo x >$DIR/ready; while :; do sleep 0.01; done')
        self.wait_for('ready')
        running.send_signal(signal.SIGUSR1)
        self.assertEqual(self.wait_for('told'), 'usr1')
        running.send_signal(signal.SIGTERM)
        self.end_of(running, 9)
        self.assertFalse(self.is_held())

    def test_harmless_ones_reach_it_too(self):
        running = self.start(self.lock, '-c',
                             'trap "echo winch >$DIR/told; exit 0" WINCH; echo x >$DIR/ready; '
                             'while :; do sleep 0.01; done')
        self.wait_for('ready')
        running.send_signal(signal.SIGWINCH)
        self.assertEqual(self.wait_for('told'), 'winch')
        self.end_of(running, 0)

    def test_in_the_foreground_only_the_command_gets_it(self):
        running = self.start('--foreground', self.lock, '--', 'bash', '-c',
                             'sleep 60 & echo $! >$DIR/pid; wait')
        pid = int(self.wait_for('pid'))
        self.assertEqual(os.getpgid(pid), os.getpgid(running.pid))
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=30)
        self.assertEqual(running.returncode, 128 + signal.SIGTERM)
        self.assertTrue(is_alive(pid), 'it is not ours')
        self.assertFalse(self.is_held())
        os.kill(pid, signal.SIGKILL)

    def test_it_stops_and_goes_on_with_the_command(self):
        # exec: a shell whose child is stopped between vfork() and exec() does not stop itself.
        running = self.start(self.lock, '-c', 'echo $$ >$DIR/pid; exec cat', stdin=subprocess.PIPE)
        pid = self.wait_for('pid')
        running.send_signal(signal.SIGTSTP)
        wait_until(lambda: state_of(running.pid) == 'T' == state_of(pid), 'both stopped')
        running.send_signal(signal.SIGCONT)
        wait_until(lambda: 'T' not in (state_of(running.pid), state_of(pid)), 'both going on')
        self.end_hold(running)

    def test_a_stopped_command_is_ended_too(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(signal=number):
                running = self.start(self.lock, '-c', 'echo $$ >$DIR/pid; exec sleep 60')
                pid = int(self.wait_for('pid'))
                os.kill(pid, signal.SIGSTOP)
                wait_until(lambda: state_of(pid) == 'T', 'a stop')
                running.send_signal(number)
                self.end_of(running, 128 + number)
                os.unlink(self.path('pid'))

    def test_a_command_that_somebody_else_stopped_keeps_its_lock(self):
        running = self.start('--ttl', '0.6', self.lock, '-c', 'echo $$ >$DIR/pid; cat',
                             stdin=subprocess.PIPE)
        pid = int(self.wait_for('pid'))
        os.kill(pid, signal.SIGSTOP)
        self.wait_for_renewal()
        self.wait_for_renewal()
        os.kill(pid, signal.SIGCONT)
        self.end_hold(running)


class WhileReleasing(Running):
    def test_the_release_is_finished_with_the_code_of_the_command(self):
        for number in ENDING:
            with self.subTest(signal=number):
                running = self.start(self.lock, '-c', 'echo $$ >$DIR/pid; cat; exit 5',
                                     stdin=subprocess.PIPE)
                pid = self.wait_for('pid')
                self.server.pause()
                running.stdin.close()
                running.stdin = None
                wait_until(lambda: state_of(pid) == '', 'the end of the command')
                running.send_signal(number)
                self.server.go_on()
                self.end_of(running, 5)
                self.assertFalse(self.is_held())
                os.unlink(self.path('pid'))

    def test_a_silent_server_is_not_waited_for_longer_than_a_call(self):
        running = self.start('--timeout', '0.5', '--ttl', '1', self.lock, '-c',
                             'echo $$ >$DIR/pid; cat; exit 5', stdin=subprocess.PIPE)
        self.wait_for('pid')
        self.server.pause()
        running.stdin.close()
        running.stdin = None
        _, error = self.end_of(running, 5)
        self.assertIn('is not confirmed', error)
        self.server.go_on()
        wait_until(lambda: not self.is_held(), 'the end of the lease', 5)


if __name__ == '__main__':
    unittest.main()
