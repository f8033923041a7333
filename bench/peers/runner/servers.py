# SPDX-License-Identifier: MIT
"""The servers that the peers need: private ones, on free ports of 127.0.0.1, with their data in a
temporary folder that is removed in the end. They are started when first asked for, and all are
stopped by their process ids, whatever happens."""
import glob
import itertools
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from . import processes

START_BOUND = 60  # seconds


class CannotStart(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def unprivileged(name):
    """Databases refuse to run as root: arguments for a process as somebody else, if we are root."""
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        entry = pwd.getpwnam('nobody')
    return {'user': entry.pw_uid, 'group': entry.pw_gid, 'extra_groups': []}


class Server:
    """One server process. Subclasses say how it is prepared, started and asked."""
    kind = program = None
    account = None  # who it runs as, if we are root and it must not

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.port = free_port()
        self.more = unprivileged(self.account) if self.account else {}
        if self.more:
            os.chown(self.folder, self.more['user'], self.more['group'])
        self.log = open(self.folder / 'log', 'wb')
        self.prepare()
        self.process = processes.start(self.command(), stdin=subprocess.DEVNULL, stdout=self.log,
                                       stderr=self.log, cwd=self.folder, **self.more)
        try:
            self.wait_until_it_answers()
        except CannotStart:
            self.stop()
            raise

    def prepare(self):
        pass

    def run(self, command):
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              stdout=self.log, stderr=self.log, cwd=self.folder, check=False,
                              **self.more)
        if done.returncode != 0:
            raise CannotStart(f'{command[0]} failed: {self.last_words()}')

    def last_words(self):
        lines = (self.folder / 'log').read_text(errors='replace').split('\n')
        return next((line.strip() for line in reversed(lines) if line.strip()), 'it said nothing')

    def wait_until_it_answers(self):
        limit = time.monotonic() + START_BOUND
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise CannotStart(f'{self.kind} does not start: {self.last_words()}')
            time.sleep(0.05)

    def answers(self):
        try:
            return self.ask() is not None
        except OSError:
            return False

    def ask(self):
        """Something that only a server which is ready answers."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=2):
            return True

    def cpu_seconds(self):
        return processes.cpu_seconds(processes.family(self.process.pid))

    def counters(self):
        """What the server says that it has done, by name; nothing if it does not say."""
        return {}

    def spent_ms(self, _lock, _lease_ms):
        """Of the lease of a lock; None if the server cannot be asked."""
        return None

    def clear(self):
        pass

    def stall(self):
        processes.signal_all(processes.family(self.process.pid), signal.SIGSTOP)

    def go_on(self):
        processes.signal_all(processes.family(self.process.pid), signal.SIGCONT)

    def stop(self):
        processes.end(self.process)
        self.log.close()


LONGEST = """\
local longest = 0
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
    local left = redis.call('PTTL', key)
    if left > longest and left <= tonumber(ARGV[2]) then longest = left end
end
return longest"""


class Redis(Server):
    kind = 'redis'

    def command(self):
        return ['redis-server', '--port', self.port, '--bind', '127.0.0.1', '--save', '',
                '--appendonly', 'no', '--dir', self.folder]

    @property
    def url(self):
        return f'redis://127.0.0.1:{self.port}'

    def call(self, *words):
        """One command on a connection of its own; whatever comes back until it is quiet."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=5) as connection:
            request = f'*{len(words)}\r\n' + ''.join(f'${len(w)}\r\n{w}\r\n' for w in words)
            connection.sendall(request.encode())
            stream = connection.makefile('rb')
            first = stream.readline()
            if first.startswith(b'$'):
                return stream.read(int(first[1:])).decode()
            return first.decode().strip()

    def ask(self):
        return '+PONG' if self.call('PING') == '+PONG' else None

    def info(self):
        lines = self.call('INFO', 'everything').splitlines()
        return dict(line.split(':', 1) for line in lines if ':' in line)

    def counters(self):
        info = self.info()
        return {'commands': int(info['total_commands_processed']),
                'reads': int(info['total_reads_processed'])}

    def uptime_s(self):
        return int(self.info()['uptime_in_seconds'])

    def spent_ms(self, lock, lease_ms):
        """Libraries keep other things, with longer expiries, beside the lock."""
        return lease_ms - int(self.call('EVAL', LONGEST, '0', f'*{lock}', str(lease_ms))[1:])

    def clear(self):
        self.call('FLUSHALL')


class Etcd(Server):
    kind = 'etcd'

    def command(self):
        client, peer = self.url, f'http://127.0.0.1:{free_port()}'
        return ['etcd', '--data-dir', self.folder / 'data', '--listen-client-urls', client,
                '--advertise-client-urls', client, '--listen-peer-urls', peer,
                '--initial-advertise-peer-urls', peer, '--initial-cluster', f'default={peer}']

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def ask(self):
        with socket.create_connection(('127.0.0.1', self.port), timeout=2) as connection:
            connection.sendall(b'GET /health HTTP/1.0\r\n\r\n')
            return True if b'"health":"true"' in connection.makefile('rb').read() else None


class ZooKeeper(Server):
    """tickTime bounds the sessions: they may last from two to twenty ticks."""
    kind = 'zookeeper'

    def prepare(self):
        (self.folder / 'zoo.cfg').write_text(
            f'dataDir={self.folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n'
            'tickTime=500\nmaxClientCnxns=0\nadmin.enableServer=false\n')

    def command(self):
        return ['java', '-cp', '/usr/share/java/zookeeper.jar',
                'org.apache.zookeeper.server.quorum.QuorumPeerMain', self.folder / 'zoo.cfg']

    @property
    def url(self):
        return f'zookeeper://127.0.0.1:{self.port}'

    def ask(self):
        with socket.create_connection(('127.0.0.1', self.port), timeout=2) as connection:
            connection.sendall(b'srvr')
            return True if b'Mode:' in connection.makefile('rb').read() else None


class Postgres(Server):
    kind, account = 'postgres', 'postgres'

    def tool(self, name):
        found = sorted(glob.glob(f'/usr/lib/postgresql/*/bin/{name}'))
        return found[-1] if found else name

    def prepare(self):
        self.run([self.tool('initdb'), '-D', self.folder / 'data', '-U', 'peers', '-A', 'trust',
                  '--no-sync'])

    def command(self):
        settings = {'listen_addresses': '127.0.0.1', 'port': self.port, 'max_connections': 200,
                    'unix_socket_directories': self.folder, 'max_locks_per_transaction': 256}
        return [self.tool('postgres'), '-D', self.folder / 'data',
                *(word for key, value in settings.items() for word in ('-c', f'{key}={value}'))]

    @property
    def url(self):
        return f'postgresql://peers@127.0.0.1:{self.port}/postgres'

    def ask(self):
        done = subprocess.run([self.tool('pg_isready'), '-q', '-h', '127.0.0.1', '-p',
                               str(self.port)], check=False)
        return True if done.returncode == 0 else None


class MariaDB(Server):
    kind, account = 'mariadb', 'mysql'

    def prepare(self):
        self.run(['mariadb-install-db', '--no-defaults', f'--datadir={self.folder}/data',
                  '--auth-root-authentication-method=normal', '--skip-test-db'])

    def command(self):
        return ['mariadbd', '--no-defaults', f'--datadir={self.folder}/data',
                f'--port={self.port}', '--bind-address=127.0.0.1', f'--socket={self.folder}/socket',
                f'--pid-file={self.folder}/pid', '--max-connections=200']

    @property
    def url(self):
        return f'mysql://root@127.0.0.1:{self.port}'


KINDS = {server.kind: server for server in (Redis, Etcd, ZooKeeper, Postgres, MariaDB)}


class Park:
    """All servers of a run."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='holdfast-peers-')
        os.chmod(self.folder, 0o755)
        self.started, self.shared, self.failures = [], {}, {}
        self.lock, self.places = threading.Lock(), itertools.count()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wake()
        for server in self.started:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, kind):
        """A new one."""
        place = os.path.join(self.folder, f'{kind}-{next(self.places)}')
        try:
            server = KINDS[kind](place)
        except OSError as error:
            raise CannotStart(f'{kind} cannot be started: {error}') from error
        self.started.append(server)
        return server

    def stop(self, server):
        self.started.remove(server)
        server.stop()

    def the(self, kind):
        """The one of that kind that all share. One that could not be started is not tried again."""
        with self.lock:
            if kind in self.failures:
                raise CannotStart(self.failures[kind])
            try:
                if kind not in self.shared:
                    self.shared[kind] = self.start(kind)
            except CannotStart as error:
                self.failures[kind] = str(error)
                raise
            return self.shared[kind]

    def wake(self, kind=None):
        """Only servers of that kind, or all. The others stand still: one that has been measured
        may have something left to do, and would do it while the next one is."""
        for server in self.started:
            if kind in (None, server.kind):
                server.go_on()
            else:
                server.stall()

    def quorum(self, count):
        """So many servers of Redis that do not know of each other."""
        nodes = self.shared.setdefault('quorum', [])
        while len(nodes) < count:
            nodes.append(self.start('redis'))
        return nodes[:count]
