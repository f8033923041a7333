#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""holdfast run: if holdfast itself is killed, stopped or hangs, its command does not outlive the
lease."""
import ctypes
import errno
import os
import signal
import struct
import subprocess
import time
import unittest

from running import Running, is_alive, state_of, wait_until
from test_run_loss import POLITE, STUBBORN


def without_pidfd_open():
    """In a new process: the kernel is one that does not have that call, by a seccomp filter."""
    pidfd_open, refuse, allow = 434, 0x00050000 | errno.ENOSYS, 0x7fff0000
    load, equal, give = 0x20, 0x15, 0x06
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in (
        (load, 0, 0, 0), (equal, 0, 1, pidfd_open), (give, 0, 0, refuse), (give, 0, 0, allow))))
    program = struct.pack('HxxxxxxQ', 4, ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if prctl(no_new_privileges, 1, 0, 0, 0) != 0 or prctl(set_seccomp, filter_mode, program) != 0:
        raise OSError(ctypes.get_errno(), 'no seccomp')


class Guard(Running):
    def start_stubborn(self, *words):
        running = self.start(*words, self.lock, '-c', STUBBORN)
        return running, [self.wait_for('outer'), self.wait_for('inner')]

    def test_kills_a_stubborn_command_and_its_child_if_holdfast_is_killed(self):
        running, pids = self.start_stubborn('--ttl', '4')
        lease_end = self.wait_for_renewal()
        running.kill()
        self.dies_before(pids, lease_end)
        self.assertTrue(self.is_held(), 'the lease is still there')

    def test_the_same_late_in_the_lease(self):
        running, pids = self.start_stubborn('--ttl', '4', '--timeout', '0.3', '--kill-after', '0.4')
        lease_end = self.wait_for_renewal()
        self.server.pause()
        wait_until(lambda: time.time() * 1000 > lease_end - 300, 'little time')
        running.kill()
        self.dies_before(pids, lease_end)

    def test_tells_a_polite_one_at_once(self):
        running = self.start('--ttl', '20', self.lock, '-c', POLITE)
        self.wait_for('pid')
        killed = time.time() * 1000
        running.kill()
        self.assertLess(int(self.wait_for('told')) - killed, 3000)

    def test_ends_a_stopped_one_too(self):
        running = self.start('--ttl', '20', self.lock, '-c', POLITE)
        pid = int(self.wait_for('pid'))
        os.kill(pid, signal.SIGSTOP)
        running.kill()
        wait_until(lambda: not is_alive(pid), 'the end of the command', 5)

    def test_kills_if_holdfast_is_stopped(self):
        running, pids = self.start_stubborn('--ttl', '4')
        lease_end = self.wait_for_renewal()
        running.send_signal(signal.SIGSTOP)
        self.dies_before(pids, lease_end)
        running.send_signal(signal.SIGCONT)
        self.end_of(running, 122)

    def test_leaves_a_margin_if_there_is_nothing_but_kill(self):
        running, pids = self.start_stubborn('--ttl', '3', '--kill-after', '0')
        lease_end = self.wait_for_renewal()
        running.send_signal(signal.SIGSTOP)
        self.dies_before(pids, lease_end - 50)
        running.send_signal(signal.SIGCONT)
        self.end_of(running, 122)

    def test_kills_at_once_if_wanted(self):
        running = self.start('--on-lost', 'kill', self.lock, '-c', POLITE)
        pid = self.wait_for('pid')
        running.kill()
        wait_until(lambda: not is_alive(pid), 'the end of the command', 5)

    def test_leaves_the_command_alone_if_loss_is_ignored(self):
        running = self.start('--on-lost', 'ignore', self.lock, '-c', 'echo $$ >$DIR/pid; cat; '
                             'echo x >$DIR/end', stdin=subprocess.PIPE)
        self.wait_for('pid')
        running.kill()
        running.wait()
        running.stdin.close()
        running.stdin = None
        self.wait_for('end')

    def test_ends_only_the_command_in_the_foreground(self):
        running = self.start('--foreground', '--ttl', '4', self.lock, '--', 'bash', '-c', STUBBORN)
        outer, inner = self.wait_for('outer'), self.wait_for('inner')
        lease_end = self.wait_for_renewal()
        running.kill()
        self.dies_before([outer], lease_end)
        self.assertTrue(is_alive(inner))
        os.kill(int(inner), signal.SIGKILL)

    def test_that_could_not_end_one_in_the_foreground_starts_nothing(self):
        error = self.refuses('--foreground', self.lock, '-c', 'echo x >$DIR/started', code=125,
                             preexec_fn=without_pidfd_open)
        self.assertIn('pidfd_open', error)
        self.assertEqual(self.text('started'), '')
        self.run_it(self.lock, 'true', preexec_fn=without_pidfd_open)
        self.run_it('--foreground', '--on-lost', 'ignore', self.lock, 'true',
                    preexec_fn=without_pidfd_open)

    def test_ends_those_whom_the_command_left_behind(self):
        """holdfast is killed while it waits for them to end, with the command already gone."""
        running = self.start('--ttl', '3', '--kill-after', '1', self.lock, '--', 'bash', '-c',
                             f"({STUBBORN}) >/dev/null 2>&1 & "
                             'until [ -s $DIR/inner ]; do sleep 0.01; done; echo $$ >$DIR/pid')
        pids = [self.wait_for('outer'), self.wait_for('inner')]
        first = self.wait_for('pid')
        wait_until(lambda: state_of(first) == '', 'the end of the command')
        lease_end = self.server.ask('PEXPIRETIME', self.lock)
        running.kill()
        self.assertTrue(is_alive(pids[1]), 'it was killed too late')
        self.dies_before(pids[1:], lease_end)

    def test_goes_too_if_nothing_was_started(self):
        holder = self.hold()
        waiting = self.wait_in_line()
        guard = self.guard_of(waiting)
        waiting.kill()
        wait_until(lambda: not is_alive(guard), 'the end of the guard')
        self.end_hold(holder)

    def test_has_a_session_of_its_own_and_minds_no_signal(self):
        running = self.start(self.lock, '-c', POLITE)
        self.wait_for('pid')
        guard = self.guard_of(running)
        wait_until(lambda: os.getsid(guard) == guard, 'a session')
        wait_until(lambda: len(os.listdir(f'/proc/{guard}/fd')) == 5, 'nothing else is open')
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            os.kill(guard, number)
        running.kill()
        self.wait_for('told')

    def test_that_was_killed_is_missed(self):
        running = self.start(self.lock, '-c', 'echo x >$DIR/held; cat', stdin=subprocess.PIPE)
        self.wait_for('held')
        os.kill(self.guard_of(running), signal.SIGKILL)
        self.assertIn('guard', running.stderr.readline())
        self.end_hold(running)

    def test_that_was_stopped_does_not_hold_us_up(self):
        running = self.start(self.lock, '-c', 'echo x >$DIR/held; cat', stdin=subprocess.PIPE)
        self.wait_for('held')
        guard = self.guard_of(running)
        os.kill(guard, signal.SIGSTOP)
        wait_until(lambda: state_of(guard) == 'T', 'a stop')
        self.end_hold(running)
        self.assertFalse(is_alive(guard))

    def test_finds_the_command_whenever_holdfast_is_killed(self):
        for i in range(30):
            running = self.start('--on-lost', 'kill', self.lock + str(i), 'sleep', '60')
            time.sleep(i * 0.001)
            running.kill()
            running.wait()
        wait_until(lambda: not self.ours(), 'the end of all', 5)


if __name__ == '__main__':
    unittest.main()
