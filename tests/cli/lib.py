# SPDX-License-Identifier: MIT
"""Shared by the tests of the command: processes with a bound, in a world of their own."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HOLDFAST = os.environ['HOLDFAST']
PROBE = os.environ['HOLDFAST_PROBE']
BOUND = 30  # seconds; what takes longer hangs


def wait_until(condition, what, bound=BOUND):
    end = time.monotonic() + bound
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'not within {bound} s: {what}')
        time.sleep(0.005)


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='latin-1') as file:
            return file.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except OSError:
        return False


class World(unittest.TestCase):
    """A folder that is home and runtime folder, and nothing of our own environment."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hf-', dir='/tmp')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.end_servers)
        self.environment = {'PATH': os.environ['PATH'], 'HOME': self.folder,
                            'XDG_RUNTIME_DIR': self.folder}
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'TSAN_OPTIONS'):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def servers(self):
        """The pids of the redis-servers that work below our folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/comm', encoding='latin-1') as file:
                    name = file.read().strip()
                folder = os.readlink(f'/proc/{pid}/cwd')
            except OSError:
                continue
            inside = folder == self.folder or folder.startswith(self.folder + '/')
            if name == 'redis-server' and inside and is_alive(pid):
                found.append(int(pid))
        return found

    def end_servers(self):
        for pid in self.servers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.servers(), 'the end of the servers')

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def start(self, *words, program=HOLDFAST, env=None, stdin=subprocess.DEVNULL,
              stdout=subprocess.PIPE, **more):
        return subprocess.Popen([program, *words], env={**self.environment, **(env or {})},
                                stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                **more)

    def run_it(self, *words, code=0, program=HOLDFAST, env=None, stdin=None, **more):
        """Runs to the end and expects the exit code; the result has stdout and stderr."""
        done = subprocess.run([program, *words], env={**self.environment, **(env or {})},
                              input=stdin, capture_output=True, text=not isinstance(stdin, bytes),
                              timeout=BOUND, check=False, **more)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def json_of(self, *words, **more):
        return json.loads(self.run_it(*words, **more).stdout)

    def refuses(self, *words, code=64, **more):
        """The one sentence with which it is refused."""
        done = self.run_it(*words, code=code, **more)
        self.assertEqual(done.stdout, '')
        self.assertRegex(done.stderr, r'\Aholdfast: [^\n]+\n\Z')
        return done.stderr
