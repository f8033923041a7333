# SPDX-License-Identifier: MIT
"""What the tests of the verbs share: servers of their own on unix sockets in temporary folders, the
command under test (from the environment, HOLDFAST), and the verbs run(), start() and wait_until().

Nothing sleeps to hope for an order: wait_until() polls up to a bound. Every process that was started
is ended by its test, and the end of each test asserts that none is left."""
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

HOLDFAST = os.environ.get('HOLDFAST', 'build/asan/holdfast')
BOUND_S = 20  # for things that happen at once, on a machine that is busy


def wait_until(true, bound_s=BOUND_S):
    end = time.monotonic() + bound_s
    while True:
        result = true()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError('not within %g s' % bound_s)
        time.sleep(0.01)


class Server:
    """A redis-server; `extra` are more arguments."""

    def __init__(self, *extra, folder=None, password=None):
        self.folder = folder or tempfile.mkdtemp(prefix='hf-verbs-')
        self.socket = os.path.join(self.folder, 'redis')
        self.url = 'unix://' + self.socket
        self.password = password
        words = ['redis-server', '--port', '0', '--unixsocket', self.socket, '--dir', self.folder,
                 '--save', '', '--logfile', os.path.join(self.folder, 'log')]
        if password:
            words += ['--requirepass', password]
        self.process = subprocess.Popen(words + list(extra), stdout=subprocess.DEVNULL)
        wait_until(lambda: self.cli('PING') == 'PONG')

    def cli(self, *words):
        secret = ['-a', self.password, '--no-auth-warning'] if self.password else []
        return subprocess.run(['redis-cli', '-s', self.socket, *secret, *words],
                              capture_output=True, text=True).stdout.strip()

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def end(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def line(self):
        assert self.out.endswith('\n') and self.out.count('\n') == 1, repr(self.out)
        return self.out[:-1]

    def __repr__(self):
        return 'exit %s, stdout %r, stderr %r' % (self.code, self.out, self.err)


class VerbTest(unittest.TestCase):
    """A server for all tests of a class, emptied before each."""
    server_words = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.server_words)

    @classmethod
    def tearDownClass(cls):
        cls.server.end()

    def setUp(self):
        self.server.cli('FLUSHALL')
        self.started = []
        self.addCleanup(self.expect_nobody)

    def expect_nobody(self):
        left = [p for p in self.started if p.poll() is None]
        for process in left:
            process.kill()
        for process in self.started:
            process.wait()
            for end in (process.stdin, process.stdout, process.stderr):
                if end:
                    end.close()
        self.assertEqual(left, [], 'processes were left behind')

    def environment(self, more):
        base = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'HOLDFAST_URL': self.server.url}
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'TSAN_OPTIONS'):
            if name in os.environ:
                base[name] = os.environ[name]
        base.update(more or {})
        return {name: value for name, value in base.items() if value is not None}

    def run_it(self, *words, input=None, env=None):
        done = subprocess.run([HOLDFAST, *words], input=input if input is not None else '',
                              capture_output=True, text=True, timeout=BOUND_S,
                              env=self.environment(env))
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *words, env=None):
        process = subprocess.Popen([HOLDFAST, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment(env))
        self.started.append(process)
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=BOUND_S)
        return Result(process.returncode, out, err)

    def expect(self, code, *words, **more):
        result = self.run_it(*words, **more)
        self.assertEqual(result.code, code, result)
        if code not in (0, 1):
            self.assertTrue(result.err.startswith('holdfast: '), result)
            self.assertEqual(result.err.count('\n'), 1, result)
        return result

    def acquire(self, name, *options):
        return self.expect(0, 'acquire', '-n', *options, name).line

    def status(self, name):
        return self.run_it('status', '--json', name).json

    def waiters(self, name):
        return self.status(name)['queue_length']

    def on_terminal(self, *words, answer=None, prompt=None, columns=None, env=None):
        """Runs it with a pseudo-terminal for everything; returns the exit code and what it shows.
        Once the prompt is there, the answer is typed."""
        pid, end = pty.fork()
        if pid == 0:
            if columns:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
            os.execve(HOLDFAST, [HOLDFAST, *words], self.environment({'TERM': 'xterm', **(env or {})}))
        shown, typed = b'', answer is None
        limit = time.monotonic() + BOUND_S
        while time.monotonic() < limit:
            if select.select([end], [], [], 0.1)[0]:
                try:
                    more = os.read(end, 65536)
                except OSError:  # the other side is gone
                    break
                if not more:
                    break
                shown += more
            if not typed and prompt.encode() in shown:
                os.write(end, (answer + '\n').encode())
                typed = True
        os.close(end)
        _, status = os.waitpid(pid, 0)
        self.assertTrue(typed, 'it did not ask: %r' % shown)
        return os.waitstatus_to_exitcode(status), shown.decode()
