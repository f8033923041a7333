#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""holdfast run on a terminal: the line while it waits, who may read, and stopping."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unittest

from running import HOLDFAST, Running, state_of, wait_until


class Terminal(Running):
    """holdfast leads a session on a pseudo-terminal, or is a job of a shell that does."""

    def setUp(self):
        super().setUp()
        self.seen = ''
        self.environment['TERM'] = 'xterm'

    def on_terminal(self, *words, width=200):
        pid, self.screen = pty.fork()
        if pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, width, 0, 0))
                os.execvpe(words[0], list(words), self.environment)
            finally:
                os._exit(99)
        self.addCleanup(os.close, self.screen)
        self.addCleanup(self.bury, pid)
        return pid

    @staticmethod
    def bury(pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def read(self):
        while select.select([self.screen], [], [], 0)[0]:
            try:
                self.seen += os.read(self.screen, 4096).decode(errors='replace')
            except OSError:
                return

    def shows(self, pattern):
        def look():
            self.read()
            return re.search(pattern, self.seen)
        try:
            return wait_until(look, f'"{pattern}" on the terminal', 10)
        except AssertionError as error:
            raise AssertionError(f'{error}; it shows {self.seen!r}') from None

    def type(self, text):
        os.write(self.screen, text.encode())

    def exit_code(self, pid):
        """Reads what it writes until it ends: a full terminal would hold it up."""
        def is_over():
            self.read()
            return state_of(pid) in ('Z', '')
        wait_until(is_over, 'the end')
        self.read()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Live(Terminal):
    def test_line_says_who_holds_it_and_how_many_come_before_us(self):
        holder = self.hold('--label', 'nightly')
        before = self.wait_in_line()
        pid = self.on_terminal(HOLDFAST, 'run', self.lock, 'echo', 'it ran')
        line = self.shows(r'\r\x1b\[Kwaiting for (\S+) \(\d+ s\): held by (\S+), pid (\d+) '
                          r'\(nightly\) for \d+ s, 1 waiting before us')
        self.assertEqual((line.group(1), line.group(3)), (self.lock, str(holder.pid)))
        self.seen = ''
        self.shows('waiting for')  # once a second
        self.end_hold(holder)
        self.end_of(before, 0)
        self.shows(r'\r\x1b\[Kit ran')
        self.assertEqual(self.exit_code(pid), 0)

    def test_line_is_cut_to_the_width(self):
        holder = self.hold()
        pid = self.on_terminal(HOLDFAST, 'run', '-w', '1', self.lock, 'true', width=30)
        line = self.shows(r'\x1b\[K(waiting for [^\r]*)').group(1)
        self.assertEqual(self.exit_code(pid), 75)
        self.assertLess(len(line), 30)
        self.end_hold(holder)

    def test_there_is_none_if_quiet_or_on_a_dumb_terminal(self):
        holder = self.hold()
        pid = self.on_terminal(HOLDFAST, 'run', '-q', '-w', '0.5', self.lock, 'true')
        self.assertEqual((self.exit_code(pid), self.seen), (75, ''))
        self.environment['TERM'] = 'dumb'
        pid = self.on_terminal(HOLDFAST, 'run', '-w', '0.5', self.lock, 'true')
        self.assertEqual(self.exit_code(pid), 75)
        self.assertNotIn('\x1b', self.seen)
        self.end_hold(holder)

    def test_a_key_that_interrupts_ends_the_wait(self):
        holder = self.hold()
        pid = self.on_terminal(HOLDFAST, 'run', self.lock, 'true')
        self.shows('waiting for')
        self.type('\x03')
        self.assertEqual(self.exit_code(pid), 130)
        self.assertEqual(self.queue_length(), 0)
        self.end_hold(holder)

    def test_a_silent_server_does_not_keep_signals_away(self):
        holder = self.hold()
        pid = self.on_terminal(HOLDFAST, 'run', '--timeout', '0.5', self.lock, 'true')
        self.shows('waiting for')
        self.server.pause()
        began = time.monotonic()
        self.shows('does not answer')
        self.assertLess(time.monotonic() - began, 4, 'it gives up soon')
        began = time.monotonic()
        self.type('\x03')
        self.assertEqual(self.exit_code(pid), 130)
        self.assertLess(time.monotonic() - began, 3)
        self.server.go_on()
        self.end_hold(holder)


class Reading(Terminal):
    def test_the_command_reads_from_the_terminal(self):
        for words in ([], ['--foreground']):
            with self.subTest(words=words):
                self.seen = ''
                pid = self.on_terminal(HOLDFAST, 'run', *words, self.lock, '-c',
                                       'read line; echo "got $line"')
                self.type('hello\n')
                self.shows('got hello')
                self.assertEqual(self.exit_code(pid), 0)

    def test_a_key_that_interrupts_reaches_the_command_once(self):
        pid = self.on_terminal(HOLDFAST, 'run', self.lock, '-c',
                               'trap "echo told" INT; echo ready; until read x; do :; done; exit 4')
        self.shows('ready')
        self.type('\x03')
        self.shows('told')
        self.type('x\n')
        self.assertEqual(self.exit_code(pid), 4)
        self.assertEqual(self.seen.count('told'), 1)

    def test_without_it_as_input_needs_the_foreground(self):
        script = "'echo x | $HOLDFAST run {} $LOCK -c \"read y </dev/tty; echo got \\$y\"'"
        self.environment.update(HOLDFAST=HOLDFAST, LOCK=self.lock)
        pid = self.on_terminal('bash', '--norc', '-c', 'eval ' + script.format(''))
        self.shows('use --foreground')
        self.type('\x03')
        self.exit_code(pid)
        pid = self.on_terminal('bash', '--norc', '-c', 'eval ' + script.format('--foreground'))
        self.type('hello\n')
        self.shows('got hello')
        self.assertEqual(self.exit_code(pid), 0)

    def test_the_terminal_is_ours_again_afterwards(self):
        pid = self.on_terminal('bash', '--norc', '-c',
                               f'{HOLDFAST} run {self.lock} true; read line; echo "got $line"')
        self.type('hello\n')
        self.shows('got hello')
        self.assertEqual(self.exit_code(pid), 0)


class Stopping(Terminal):
    def test_as_a_job_of_a_shell(self):
        for words in ('', '--foreground'):
            with self.subTest(words=words):
                self.seen = ''
                pid = self.on_terminal('bash', '--norc', '-i')
                self.type(f'PS1=; {HOLDFAST} run {words} {self.lock} -c '
                          '\'echo begun; read x; echo "got $x"\'\n')
                self.shows('[\r\n]begun')
                self.type('\x1a')
                self.shows('Stopped')
                self.type('echo in $((40 + 2))\n')
                self.shows('in 42')
                self.type('fg\n')
                self.shows('fg\r?\n.*holdfast')
                self.type('word\n')
                self.shows('got word')
                self.type('exit 3\n')
                self.assertEqual(self.exit_code(pid), 3)
                self.assertFalse(self.is_held())


if __name__ == '__main__':
    unittest.main()
