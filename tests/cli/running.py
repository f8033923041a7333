# SPDX-License-Identifier: MIT
"""Shared by the tests of `holdfast run`: a server, commands under locks, and the certainty that no
process outlives its test. Every process of a test carries a mark in its environment, which its
children and the guard inherit."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import uuid

HOLDFAST = os.environ['HOLDFAST']
POKE = os.environ['HOLDFAST_POKE']
BOUND = 30  # seconds; what takes longer hangs


def wait_until(condition, what, bound=BOUND):
    end = time.monotonic() + bound
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'not within {bound} s: {what}')
        time.sleep(0.003)


def state_of(pid):
    """As ps shows it; '' if there is no such process."""
    try:
        with open(f'/proc/{pid}/stat', encoding='latin-1') as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    except OSError:
        return ''


def is_alive(pid):
    return state_of(pid) not in ('', 'Z', 'X')


def parent_of(pid):
    with open(f'/proc/{pid}/stat', encoding='latin-1') as file:
        return int(file.read().rsplit(')', 1)[1].split()[1])


class Server:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='hf-', dir='/tmp')
        self.path = self.folder + '/socket'
        self.url = 'unix://' + self.path
        self.process = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', self.path, '--save', '', '--dir',
             self.folder], stdout=subprocess.DEVNULL)
        wait_until(self.answers, 'the server')

    def answers(self):
        try:
            return self.ask('PING') == 'PONG'
        except OSError:
            return False

    def ask(self, *words):
        """One command, one simple answer: text, number or None."""
        message = f'*{len(words)}\r\n'.encode()
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            message += f'${len(data)}\r\n'.encode() + data + b'\r\n'
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(BOUND)
            peer.connect(self.path)
            peer.sendall(message)
            with peer.makefile('rb') as stream:
                line = stream.readline().decode().strip()
                if line[:1] == '$':
                    return None if line == '$-1' else stream.read(int(line[1:])).decode()
                return int(line[1:]) if line[:1] == ':' else line[1:]

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(self.process.pid) == 'T', 'a stopped server')

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Running(unittest.TestCase):
    """One server for all tests of a class; a lock of its own for each."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.end)

    def setUp(self):
        self.mark = uuid.uuid4().hex
        self.lock = 'lock-' + self.mark[:8]
        self.folder = tempfile.mkdtemp(prefix='hf-', dir='/tmp')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.nobody_is_left)
        self.addCleanup(self.server.go_on)
        self.environment = {'PATH': os.environ['PATH'], 'HOME': self.folder, 'MARK': self.mark,
                            'HOLDFAST_URL': self.server.url, 'DIR': self.folder}
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'TSAN_OPTIONS'):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    # Processes

    def ours(self):
        """The pids of all processes of this test that live."""
        found, mark = [], f'MARK={self.mark}'.encode()
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/environ', 'rb') as file:
                    if mark in file.read() and is_alive(pid):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def nobody_is_left(self):
        try:
            wait_until(lambda: not self.ours(), 'the end of all processes', 5)
        except AssertionError:
            left = self.ours()
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f'left behind: {left}') from None

    def start(self, *words, env=None, stdin=subprocess.DEVNULL, **more):
        process = subprocess.Popen([HOLDFAST, 'run', *words], stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env={**self.environment, **(env or {})}, **more)
        self.addCleanup(self.close, process)
        return process

    @staticmethod
    def close(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def end_of(self, process, code):
        """Its standard output and error, when it has exited with that code."""
        output, error = process.communicate(timeout=BOUND)
        self.assertEqual(process.returncode, code, (output, error))
        return output, error

    def run_it(self, *words, code=0, **more):
        return self.end_of(self.start(*words, **more), code)

    def refuses(self, *words, code=64, **more):
        """The one sentence with which it is refused."""
        output, error = self.run_it(*words, code=code, **more)
        self.assertEqual(output, '')
        self.assertRegex(error, r'\Aholdfast: [^\n]+\n\Z')
        return error

    def poke(self, *words, code=0):
        done = subprocess.run([POKE, self.server.url, *words], capture_output=True, text=True,
                              timeout=BOUND, check=False, env=self.environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.strip()

    def guard_of(self, process):
        def find():
            for pid in self.ours():
                with open(f'/proc/{pid}/comm', encoding='latin-1') as file:
                    if file.read() == 'holdfast-guard\n' and parent_of(pid) == process.pid:
                        return pid
            return None
        return wait_until(find, 'the guard')

    # Files that commands write for us

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        """What a command has written there, once there is a whole line; '' until then."""
        try:
            with open(self.path(name), encoding='utf-8') as file:
                text = file.read()
                return text.strip() if text.endswith('\n') else ''
        except FileNotFoundError:
            return ''

    def wait_for(self, name):
        return wait_until(lambda: self.text(name), f'the file {name}')

    # Locks

    def is_held(self, name=None):
        return self.server.ask('EXISTS', name or self.lock) == 1

    def hold(self, *words):
        """Somebody who holds the lock until end_hold()."""
        process = self.start(*words, self.lock, '--', 'sh', '-c', 'echo x >$DIR/held; cat',
                             stdin=subprocess.PIPE)
        self.wait_for('held')
        return process

    def end_hold(self, process):
        process.stdin.close()
        process.stdin = None
        self.end_of(process, 0)

    def queue_length(self):
        return int(self.poke('look', self.lock).split()[1])

    def wait_in_line(self, *words, **more):
        """Somebody who waits for the lock."""
        process = self.start(*words, self.lock, '--', 'sh', '-c', 'echo x >$DIR/started', **more)
        wait_until(lambda: self.queue_length() == 1, 'somebody in the queue')
        return process

    def wait_for_renewal(self):
        """When the lease ends, in ms, right after it was renewed."""
        before = self.server.ask('PEXPIRETIME', self.lock)
        return wait_until(lambda: max(0, self.server.ask('PEXPIRETIME', self.lock) - before),
                          'a renewal') + before

    def dies_before(self, pids, lease_end):
        for pid in pids:
            wait_until(lambda: not is_alive(pid), f'the end of {pid}')
        self.assertLess(time.time() * 1000, lease_end, 'dead, but too late')
