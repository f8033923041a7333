#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""holdfast run: a command whose lock will not last is told, and dead before the lease can end."""
import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from running import BOUND, Running, is_alive, wait_until

# A command and a child of it, neither of which minds TERM.
STUBBORN = ('trap "" TERM; sh -c \'echo $$ >$DIR/inner; while :; do sleep 0.05; done\' & '
            'echo $$ >$DIR/outer; while :; do sleep 0.05; done')
# One that says that it was told.
POLITE = ('trap "date +%s%3N >$DIR/told; exit 0" TERM; echo $$ >$DIR/pid; '
          'while :; do sleep 0.01; done')


class Relay:
    """Between holdfast and its server; may cut off the connection with an answer in it."""

    def __init__(self, server, folder):
        self.url = f'unix://{folder}/relay'
        self.server = server
        self.cuts = False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f'{folder}/relay')
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server.path)
            threading.Thread(target=self.carry, args=(client, server), daemon=True).start()
            threading.Thread(target=self.carry_back, args=(client, server), daemon=True).start()

    def carry(self, client, server):
        with server:
            while data := client.recv(65536):
                if self.cuts and b'EVALSHA' in data:
                    self.cuts = False
                    client.shutdown(socket.SHUT_WR)
                server.sendall(data)

    @staticmethod
    def carry_back(client, server):
        with client:
            try:
                while data := server.recv(65536):
                    client.sendall(data)
            except OSError:
                pass  # one of them is gone

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Loss(Running):
    def start_stubborn(self, *words):
        running = self.start(*words, self.lock, '-c', STUBBORN)
        return running, [self.wait_for('outer'), self.wait_for('inner')]

    def test_of_a_silent_server_kills_before_the_lease_ends(self):
        running, pids = self.start_stubborn('--ttl', '4', '--timeout', '0.3')
        lease_end = self.wait_for_renewal()
        self.server.pause()
        self.dies_before(pids, lease_end)
        _, error = self.end_of(running, 122)
        self.assertIn('could not be renewed', error)

    def test_of_a_silent_server_needs_no_release_to_be_waited_for(self):
        for command in (POLITE, STUBBORN):
            running = self.start('--ttl', '2', self.lock, '-c', command)
            lease_end = self.wait_for_renewal()
            self.server.pause()
            self.end_of(running, 122)
            self.assertLess(time.time() * 1000, lease_end + 500, command)
            self.server.go_on()
            self.server.ask('DEL', self.lock)

    def test_needs_no_guard_for_that(self):
        running, pids = self.start_stubborn('--ttl', '4', '--timeout', '0.3')
        os.kill(self.guard_of(running), signal.SIGKILL)
        lease_end = self.wait_for_renewal()
        self.server.pause()
        self.dies_before(pids, lease_end)
        self.end_of(running, 122)

    def test_of_a_silent_server_tells_in_time(self):
        running = self.start('--ttl', '1.5', '--timeout', '0.3', self.lock, '-c', POLITE)
        self.wait_for('pid')
        lease_end = self.wait_for_renewal()
        self.server.pause()
        told = int(self.wait_for('told'))
        self.assertTrue(lease_end - 1000 < told < lease_end - 300, lease_end - told)
        self.end_of(running, 122)

    def test_a_server_that_comes_back_in_time_costs_nothing(self):
        running = self.start('--ttl', '3', self.lock, '-c', 'echo x >$DIR/held; cat',
                             stdin=subprocess.PIPE)
        self.wait_for('held')
        self.wait_for_renewal()
        self.server.pause()
        time.sleep(1.2)
        self.server.go_on()
        self.wait_for_renewal()
        self.end_hold(running)

    def test_is_told_also_if_nobody_reads_what_we_say(self):
        running = self.start('--ttl', '30', self.lock, '-c',
                             'head -c 65536 /dev/zero >&2; '  # as much as a pipe takes
                             'exec 2>/dev/null; ' + POLITE)
        self.wait_for('pid')
        asked = time.time() * 1000
        self.poke('revoke', self.lock)
        self.assertLess(int(self.wait_for('told')) - asked, 5000)
        self.assertEqual(running.wait(BOUND), 123)

    def test_of_a_key_that_somebody_deleted(self):
        running = self.start('--ttl', '1', '--json', self.lock, '-c', POLITE)
        self.wait_for('pid')
        self.server.ask('DEL', self.lock)
        self.wait_for('told')
        _, error = self.end_of(running, 122)
        self.assertIn('is lost', error.splitlines()[0])
        self.assertEqual(json.loads(error.splitlines()[-1])['outcome'], 'lost')

    def test_the_successor_of_a_lost_lock_is_left_alone(self):
        running, _ = self.start_stubborn('--ttl', '1', '--kill-after', '0.2')
        self.server.ask('SET', self.lock, 'another')
        self.end_of(running, 122)
        self.assertEqual(self.server.ask('GET', self.lock), 'another')
        self.server.ask('DEL', self.lock)

    def test_kill_after_is_the_time_between_term_and_kill(self):
        trap = 'trap "date +%s%3N >$DIR/told" TERM; echo $$ >$DIR/pid; while :; do sleep 0.01; done'
        running = self.start('--ttl', '3', '--kill-after', '0.7', self.lock, '-c', trap)
        pid = self.wait_for('pid')
        self.poke('break', self.lock)
        told = int(self.wait_for('told'))
        wait_until(lambda: not is_alive(pid), 'the end of the command')
        self.assertGreater(time.time() * 1000 - told, 600)
        _, error = self.end_of(running, 122)
        self.assertIn('broken', error)

    def test_kill_comes_at_once_if_wanted(self):
        running = self.start('--ttl', '1', '--on-lost', 'kill', self.lock, '-c', POLITE)
        self.wait_for('pid')
        self.server.ask('DEL', self.lock)
        self.end_of(running, 122)
        self.assertEqual(self.text('told'), '')

    def test_kill_before_the_end_of_the_lease_if_wanted(self):
        running, pids = self.start_stubborn('--ttl', '4', '--timeout', '0.3', '--on-lost', 'kill')
        lease_end = self.wait_for_renewal()
        self.server.pause()
        self.dies_before(pids, lease_end)
        self.end_of(running, 122)

    def test_may_be_ignored(self):
        running = self.start('--ttl', '0.6', '--on-lost', 'ignore', self.lock, '-c',
                             'trap "exit 1" TERM; echo x >$DIR/held; cat; exit 5',
                             stdin=subprocess.PIPE)
        self.wait_for('held')
        self.server.ask('DEL', self.lock)
        line = running.stderr.readline()
        self.assertIn('goes on without it', line)
        running.stdin.close()
        running.stdin = None
        self.end_of(running, 5)

    def test_that_shows_only_at_the_release(self):
        running = self.start('--ttl', '20', self.lock, '-c', 'echo x >$DIR/held; cat',
                             stdin=subprocess.PIPE)
        self.wait_for('held')
        self.server.ask('DEL', self.lock)
        running.stdin.close()
        running.stdin = None
        _, error = self.end_of(running, 122)
        self.assertIn('overlapped', error)

    def test_cannot_be_told_from_a_release_whose_answer_got_lost(self):
        relay = Relay(self.server, self.folder)
        self.addCleanup(relay.end)
        running = self.start('--url', relay.url, '--ttl', '20', self.lock, '-c',
                             'echo x >$DIR/held; cat; exit 5', stdin=subprocess.PIPE)
        self.wait_for('held')
        relay.cuts = True
        running.stdin.close()
        running.stdin = None
        _, error = self.end_of(running, 5)
        self.assertFalse(relay.cuts)
        self.assertIn('is not confirmed', error)
        self.assertIn('the lock was gone', error)
        self.assertFalse(self.is_held())

    def test_while_we_wait_for_a_stopped_command(self):
        running = self.start('--ttl', '1', self.lock, '-c', POLITE)
        os.kill(int(self.wait_for('pid')), signal.SIGSTOP)
        self.server.ask('DEL', self.lock)
        self.wait_for('told')
        self.end_of(running, 122)


class Revoked(Running):
    def test_ends_the_command_with_a_code_of_its_own(self):
        running = self.start('--json', self.lock, '-c', POLITE)
        self.wait_for('pid')
        self.poke('revoke', self.lock, 'maintenance \x1b at noon')
        self.wait_for('told')
        _, error = self.end_of(running, 123)
        self.assertIn('maintenance ? at noon', error.splitlines()[0])
        self.assertEqual(json.loads(error.splitlines()[-1])['outcome'], 'revoked')
        self.assertFalse(self.is_held())

    def test_kills_one_that_does_not_end_and_keeps_the_lock_until_then(self):
        running = self.start('--kill-after', '0.5', self.lock, '-c', STUBBORN)
        pids = [self.wait_for('outer'), self.wait_for('inner')]
        waiting = self.wait_in_line()
        self.poke('revoke', self.lock, '')
        self.wait_for('started')
        for pid in pids:
            self.assertFalse(is_alive(pid), 'nobody was granted it before')
        self.end_of(running, 123)
        self.end_of(waiting, 0)

    def test_may_be_ignored(self):
        running = self.start('--on-lost', 'ignore', self.lock, '-c',
                             'trap "exit 1" TERM; echo x >$DIR/held; cat', stdin=subprocess.PIPE)
        self.wait_for('held')
        self.poke('revoke', self.lock, 'please')
        self.assertIn('please', running.stderr.readline())
        self.assertTrue(self.is_held())
        self.end_hold(running)


if __name__ == '__main__':
    unittest.main()
