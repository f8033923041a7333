# SPDX-License-Identifier: MIT
"""Drivers, from outside: processes that say `ready`, are told `go` and `stop`, and write down what
happened. bench/peers/README.md has the contract."""
import json
import queue
import subprocess
import threading
import time

from . import processes

CANNOT = 3  # the exit code of what a peer cannot do
READY_BOUND = 60  # seconds


class CannotDo(Exception):
    """The peer does not have what the workload is about."""


class Failed(Exception):
    """The driver did not do what it was asked."""


class TooLate(Failed):
    """Not within its time."""


class Invalid(Exception):
    """Two held one lock at the same time."""


class Driver:
    """One process. Lines that it prints are kept with the time at which they came."""

    def __init__(self, command, folder, number, peer, url, lock, **options):
        self.number = number
        self.records = f'{folder}/{peer}-{number}.records'
        words = {'peer': peer, 'url': url, 'lock': lock, 'records': self.records, **options}
        arguments = [w for key, value in words.items()
                     for w in ('--' + key.replace('_', '-'), str(value))]
        self.errors = open(f'{folder}/{peer}-{number}.errors', 'w+', encoding='utf-8',
                           errors='replace')
        try:
            self.process = processes.start([*command, *arguments], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=self.errors, text=True)
        except OSError:
            self.errors.close()
            raise
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic_ns(), line.strip()))
        self.lines.put((time.monotonic_ns(), None))

    def line(self, word, bound):
        """The next line that begins with the word, and when it came. Others are passed over."""
        limit = time.monotonic() + bound
        while True:
            try:
                at, text = self.lines.get(timeout=max(limit - time.monotonic(), 0))
            except queue.Empty:
                raise TooLate(f'no {word!r} within {bound} s') from None
            if text is None:
                raise self.failure(f'it ended before {word!r}')
            if text.startswith(word):
                return at, text

    def failure(self, what):
        code = self.process.wait()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors if line.strip()]
        if code == CANNOT:
            return CannotDo(lines[-1] if lines else 'it says that it cannot')
        return Failed(f'{what} with {code}: {lines[-1] if lines else "it said nothing"}')

    def say(self, word):
        try:
            self.process.stdin.write(word + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # what it has to say about that is found by whoever waits for its lines

    def wait_ready(self):
        self.line('ready', READY_BOUND)

    def go(self):
        self.say('go')

    def stop(self):
        self.say('stop')

    def outcome(self, bound):
        """What it says in the end."""
        _, text = self.line('{', bound)
        try:
            code = self.process.wait(bound)
        except subprocess.TimeoutExpired:
            raise Failed('it does not end') from None
        if code != 0:
            raise self.failure('it ended')
        return json.loads(text)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.process.stdin.close()
        self.reader.join()
        self.process.stdout.close()
        self.errors.close()
