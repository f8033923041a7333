#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The private server of --local: one for all processes, in a folder that is ours alone, with nothing
of the process that happened to start it; and the verb `server`."""
import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import time
import unittest

import lib

STARTS = 50


class Local(lib.World):
    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.folder, 'holdfast')
        self.socket = os.path.join(self.place, 'redis.sock')

    def server(self, *words, **more):
        return self.run_it('server', *words, **more)

    def status(self, **more):
        return self.json_of('server', 'status', '--json', **more)

    def pid(self):
        pid = self.status()['pid']
        self.assertEqual(self.servers(), [pid])
        return pid

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        lib.wait_until(lambda: not lib.is_alive(pid), 'its end')

    def ask(self, *words):
        """The answer of the server to a command, as it is."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(lib.BOUND)
            link.connect(self.socket)
            parts = [f'${len(word)}\r\n{word}\r\n' for word in words]
            link.sendall(f'*{len(words)}\r\n{"".join(parts)}'.encode())
            return link.recv(65536).decode()

    def setting(self, name):
        return self.ask('CONFIG', 'GET', name).split('\r\n')[4]


class Life(Local):
    def test_nothing_runs_and_nothing_is_made_by_a_look(self):
        self.assertEqual(self.status(code=1), {'running': False, 'scope': 'this machine only',
                                               'folder': self.place, 'socket': self.socket})
        self.assertIn('is not running (this machine only)', self.server('status', code=1).stdout)
        self.server('stop')
        self.assertFalse(os.path.exists(self.place))

    def test_start_is_found_by_status_and_again_by_start(self):
        done = self.server('start')
        self.assertEqual((done.stdout, done.stderr), ('', ''))
        found, pid = self.status(), self.pid()
        self.assertEqual((found['running'], found['append_only']), (True, True))
        self.assertRegex(found['version'], r'^\d+\.\d+\.\d+')
        self.assertGreaterEqual(found['uptime_ms'], 0)
        text = self.server('status').stdout
        for word in ('is running (this machine only)', str(pid), self.socket, self.place):
            self.assertIn(word, text)
        self.server('start')
        self.assertEqual(self.pid(), pid)

    def test_verbose_says_where_and_that_it_is_this_machine_only(self):
        said = self.server('start', '--verbose').stderr
        self.assertIn(f'unix://{self.socket}: this machine only', said)
        self.assertIn(f'pid {self.pid()}', said)

    def test_start_and_stop_print_json_if_asked(self):
        self.assertEqual(self.json_of('server', '--json', 'start')['pid'], self.pid())
        self.assertFalse(self.json_of('server', 'stop', '--json')['running'])

    def test_stop_ends_it_and_twice_is_fine(self):
        self.server('start')
        pid = self.pid()
        self.server('stop')
        self.assertFalse(lib.is_alive(pid))
        self.assertFalse(os.path.exists(self.socket))
        self.server('stop')
        self.status(code=1)

    def test_many_at_once_start_exactly_one(self):
        starting = [self.start('server', 'start') for _ in range(STARTS)]
        for process in starting:
            self.assertEqual(process.communicate(timeout=lib.BOUND), ('', ''))
        self.assertEqual([process.returncode for process in starting], [0] * STARTS)
        self.pid()
        with open(os.path.join(self.place, 'server.log'), encoding='utf-8') as log:
            self.assertEqual(log.read().count('just started'), 1)

    def test_many_at_once_start_a_killed_one_again(self):
        self.server('start')
        self.kill(self.pid())
        starting = [self.start('server', 'start') for _ in range(STARTS)]
        for process in starting:
            self.assertEqual(process.communicate(timeout=lib.BOUND), ('', ''))
        self.assertEqual([process.returncode for process in starting], [0] * STARTS)
        self.pid()

    def test_starts_and_stops_at_once_leave_one_or_none(self):
        working = [self.start('server', ('start', 'stop')[i % 2]) for i in range(20)]
        for process in working:
            output = process.communicate(timeout=lib.BOUND)
            self.assertEqual(process.returncode, 0, output)
        self.assertLessEqual(len(self.servers()), 1)
        self.server('start')
        self.pid()

    def test_a_killed_server_is_started_again_and_remembers(self):
        self.server('start')
        pid = self.pid()
        self.assertEqual(self.ask('SET', 'k', 'v', 'PX', '60000'), '+OK\r\n')
        before = time.monotonic()
        self.kill(pid)
        self.assertTrue(os.path.exists(self.socket))
        self.status(code=1)
        self.server('start')
        self.assertNotEqual(self.pid(), pid)
        self.assertEqual(self.ask('GET', 'k'), '$1\r\nv\r\n')
        left = int(self.ask('PTTL', 'k')[1:])
        passed = (time.monotonic() - before) * 1000
        self.assertTrue(0 < left <= 60000, left)
        self.assertLess(60000 - left, passed + 2000)

    def test_a_hold_outlives_the_server(self):
        """Killed and started again: it is still held, still renewed, and others are still refused."""
        holder = self.start('hold', '--local', program=lib.PROBE, stdin=lib.subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), 'held\n')
        fence = self.ask('GET', 'x')
        self.kill(self.pid())
        self.run_it('hold', '--local', program=lib.PROBE, code=75)
        self.assertEqual(self.ask('GET', 'x'), fence)
        end = int(self.ask('PEXPIRETIME', 'x')[1:])
        lib.wait_until(lambda: int(self.ask('PEXPIRETIME', 'x')[1:]) > end, 'a renewal')
        self.assertEqual(holder.communicate(timeout=lib.BOUND)[0], 'valid\n')
        self.assertEqual(holder.returncode, 0)
        self.assertEqual(self.ask('EXISTS', 'x'), ':0\r\n')

    def test_what_expires_while_it_is_down_is_gone(self):
        self.server('start')
        self.ask('SET', 'k', 'v', 'PX', '50')
        self.server('stop')
        time.sleep(0.05)
        self.server('start')
        self.assertEqual(self.ask('GET', 'k'), '$-1\r\n')

    def test_its_settings_are_those_that_locks_need(self):
        self.server('start')
        for name, value in (('appendonly', 'yes'), ('save', ''), ('port', '0'), ('databases', '1'),
                            ('maxmemory', '0'), ('maxmemory-policy', 'noeviction'),
                            ('appendfsync', 'no')):
            self.assertEqual(self.setting(name), value, name)

    def test_sessions_start_it(self):
        for words, env in ((['--local'], {}), (['--url', 'local:'], {}),
                           ([], {'HOLDFAST_URL': 'local:'})):
            found = self.json_of(*words, program=lib.PROBE, env=env)
            self.assertEqual((found['local'], found['url']), (True, f'unix://{self.socket}'))
            self.pid()
            self.server('stop')
        said = self.run_it('--local', '-v', program=lib.PROBE).stderr
        self.assertIn('this machine only', said)


class Detached(Local):
    """The server must keep nothing of whoever starts it."""

    def test_it_keeps_no_pipe_and_no_lock_open(self):
        end, other = os.pipe()
        self.server('start', pass_fds=[other])  # ends although it runs: nobody has our pipes
        os.close(other)
        self.assertEqual(os.read(end, 1), b'')
        os.close(end)
        kept = {os.readlink(f'/proc/{self.pid()}/fd/{n}') for n in (0, 1, 2)}
        self.assertEqual(kept, {'/dev/null', os.path.join(self.place, 'server.log')})
        self.assertEqual(os.readlink(f'/proc/{self.pid()}/fd/3'), self.place, 'it has that locked')
        with open(os.path.join(self.place, 'lock'), 'rb') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_it_starts_with_all_descriptors_closed(self):
        self.run_it('-c', f'"{lib.HOLDFAST}" server start <&- >&- 2>&-', program='/bin/sh')
        self.pid()

    def test_it_has_its_own_session_folder_and_signals(self):
        def spoil():
            os.umask(0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])

        self.server('start', preexec_fn=spoil)
        pid = self.pid()
        self.assertNotIn(os.getsid(pid), (os.getsid(0), pid))
        self.assertEqual(os.readlink(f'/proc/{pid}/cwd'), self.place)
        with open(f'/proc/{pid}/status', encoding='utf-8') as file:
            status = dict(line.split(':\t', 1) for line in file)
        self.assertEqual(int(status['SigBlk'], 16), 0)
        ignored = int(status['SigIgn'], 16)
        for number in (signal.SIGINT, signal.SIGUSR1):
            self.assertEqual(ignored >> (number - 1) & 1, 0, number)
        self.assertNotEqual(int(status['PPid']), os.getpid())
        for at, _, names in os.walk(self.place):
            for path in [at] + [os.path.join(at, name) for name in names]:
                self.assertEqual(stat.S_IMODE(os.lstat(path).st_mode) & 0o077, 0, path)


class Hanging(Local):
    def setUp(self):
        super().setUp()
        self.server('start')
        self.hung = self.pid()
        os.kill(self.hung, signal.SIGSTOP)

    def test_no_second_one_is_started_and_status_says_so(self):
        self.server('start')
        self.assertEqual(self.servers(), [self.hung])
        said = self.refuses('server', 'status', '--timeout', '0.2', code=69)
        self.assertIn('does not answer', said)
        self.assertIn(str(self.hung), said)

    def test_nor_if_it_accepts_nobody_any_more(self):
        links = []
        try:
            while True:
                link = socket.socket(socket.AF_UNIX)
                links.append(link)
                link.setblocking(False)
                link.connect(self.socket)
        except BlockingIOError:
            pass
        self.server('start')
        self.assertEqual(self.servers(), [self.hung])
        self.assertIn('try again', self.refuses('server', 'stop', code=69))
        for link in links:
            link.close()

    def test_it_can_be_stopped(self):
        self.server('stop')
        self.assertFalse(lib.is_alive(self.hung))


class Turns(Local):
    def setUp(self):
        super().setUp()
        os.mkdir(self.place, 0o700)
        self.lock = open(os.path.join(self.place, 'lock'), 'wb')
        self.addCleanup(self.lock.close)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def test_who_starts_waits_for_the_turn(self):
        process = self.start('server', 'start')
        lib.wait_until(lambda: self.has_open(process.pid), 'the lock file to be open')
        self.assertEqual(self.servers(), [])
        self.assertIsNone(process.poll())
        fcntl.flock(self.lock, fcntl.LOCK_UN)
        self.assertEqual(process.communicate(timeout=lib.BOUND), ('', ''))
        self.pid()

    def test_but_not_if_it_runs(self):
        fcntl.flock(self.lock, fcntl.LOCK_UN)
        self.server('start')
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.server('start')

    def has_open(self, pid):
        try:
            folder = f'/proc/{pid}/fd'
            return self.lock.name in [os.readlink(f'{folder}/{n}') for n in os.listdir(folder)]
        except OSError:
            return False


class Places(Local):
    def test_a_stale_socket_is_replaced(self):
        os.mkdir(self.place, 0o700)
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(self.socket)
        self.status(code=1)
        self.server('start')
        self.pid()

    def test_something_else_at_the_sockets_path_is_left_alone(self):
        os.mkdir(self.place, 0o700)
        path = self.write('holdfast/redis.sock', 'mine')
        self.assertIn('remove it', self.refuses('server', 'start', code=69))
        with open(path, encoding='utf-8') as file:
            self.assertEqual(file.read(), 'mine')

    def test_a_folder_that_others_can_enter_is_refused(self):
        os.mkdir(self.place)
        for mode in (0o755, 0o701, 0o770):
            os.chmod(self.place, mode)
            for action in ('start', 'status', 'stop'):
                self.assertIn('chmod 700', self.refuses('server', action, code=69))
        os.chmod(self.place, 0o700)
        self.server('start')

    def test_a_link_is_refused_even_to_a_good_folder(self):
        os.mkdir(os.path.join(self.folder, 'good'), 0o700)
        os.symlink('good', self.place)
        self.assertIn('something else', self.refuses('server', 'start', code=69))
        os.remove(self.place)
        self.write('holdfast', 'a file')
        self.assertIn('something else', self.refuses('server', 'start', code=69))

    @unittest.skipUnless(os.geteuid() == 0, 'only root can give a folder away')
    def test_a_folder_of_somebody_else_is_refused(self):
        os.mkdir(self.place, 0o700)
        os.chown(self.place, 12345, 12345)
        for action in ('start', 'status', 'stop'):
            said = self.refuses('server', action, code=69)
            self.assertIn(f'{self.place} belongs to uid 12345', said)
            self.assertIn('XDG_RUNTIME_DIR', said)
        self.refuses('--local', program=lib.PROBE, code=69)
        self.assertEqual(self.servers(), [])

    @unittest.skipUnless(os.geteuid() == 0, 'only root can give a folder away')
    def test_a_folder_below_one_of_somebody_else_is_refused(self):
        self.server('start')
        os.chown(self.folder, 12345, 12345)
        said = self.refuses('server', 'status', code=69)
        self.assertIn(f'{self.folder} belongs to uid 12345', said)
        os.chown(self.folder, 0, 0)
        self.server('stop')

    def test_a_folder_that_everybody_could_exchange_is_refused(self):
        os.chmod(self.folder, 0o777)
        self.assertIn('chmod o-w', self.refuses('server', 'start', code=69))
        self.assertFalse(os.path.exists(self.place))
        os.chmod(self.folder, 0o1777)
        self.server('start')
        os.chmod(self.folder, 0o777)
        self.assertIn('chmod o-w', self.refuses('server', 'status', code=69))
        os.chmod(self.folder, 0o700)
        self.server('stop')

    def test_the_usual_folder_does_not_depend_on_the_login(self):
        user = os.geteuid()
        usual = '/run/holdfast' if user == 0 else f'/tmp/holdfast-{user}'
        for folder in (None, '', 'not/absolute', f'/run/user/{user}'):
            self.environment.pop('XDG_RUNTIME_DIR', None)
            if folder is not None:
                self.environment['XDG_RUNTIME_DIR'] = folder
            process = self.start('server', 'status')  # whether one runs is not our business
            self.assertIn(f' {usual}\n', process.communicate(timeout=lib.BOUND)[0], folder)

    def test_a_folder_that_cannot_be_made_is_told(self):
        for folder in ('/proc', os.path.join(self.folder, 'is/not/there'), '/dev/null'):
            said = self.refuses('server', 'start', code=69, env={'XDG_RUNTIME_DIR': folder})
            self.assertIn(folder, said)

    def test_a_socket_has_room_for_107_bytes(self):
        rest = 107 - len(self.folder + '/' + '/holdfast/redis.sock')
        for length, code in ((rest, 0), (rest + 1, 69), (rest + 150, 69)):
            folder = os.path.join(self.folder, 'x' * length)
            os.mkdir(folder)
            done = self.server('start', code=code, env={'XDG_RUNTIME_DIR': folder})
            self.assertEqual('more than 107 bytes; set XDG_RUNTIME_DIR' in done.stderr, code != 0)
        self.assertEqual(len(self.servers()), 1)

    def test_odd_names(self):
        for name in ('two  words', 'q"u\'o\\te', 'Schlösser', 'tab\tnl\n', '--port', '#x', '$HOME'):
            folder = os.path.join(self.folder, name)
            os.mkdir(folder)
            found = self.json_of('server', 'start', '--json', env={'XDG_RUNTIME_DIR': folder})
            self.assertEqual(found['folder'], folder + '/holdfast')
            self.server('stop', env={'XDG_RUNTIME_DIR': folder})
        for name in ('/tmp/?', '/tmp/%41', '/tmp/a,b'):
            said = self.refuses('server', 'start', code=69, env={'XDG_RUNTIME_DIR': name})
            self.assertIn("'?', '%' and ','", said)

    def test_bytes_that_are_no_utf8(self):
        folder = os.path.join(self.folder.encode(), b'x\xff')
        os.mkdir(folder)
        found = self.json_of('server', 'start', '--json', env={'XDG_RUNTIME_DIR': folder})
        self.assertTrue(found['folder'].endswith('/x\ufffd/holdfast'))


@unittest.skipUnless(os.geteuid() == 0, 'only root can act for two other users')
class Squatted(Local):
    """Somebody has made /tmp/holdfast-UID before its user did."""
    USER = 20000 + os.getpid() % 40000  # nobody's; not that of another run of these tests
    SQUATTER = USER + 1

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.holdfast = shutil.copy(lib.HOLDFAST, os.path.join(self.folder, 'holdfast'))
        os.chmod(self.holdfast, 0o755)
        del self.environment['XDG_RUNTIME_DIR']
        self.place = f'/tmp/holdfast-{self.USER}'
        self.assertFalse(os.path.lexists(self.place))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def as_user(self):
        return {'program': self.holdfast, 'user': self.USER, 'group': self.USER,
                'extra_groups': []}

    def refuses_it(self):
        for words in (['server', 'start'], ['server', 'status'], ['run', '--local', 'x', 'true']):
            said = self.refuses(*words, code=69, **self.as_user())
            self.assertIn(f'{self.place} belongs to uid {self.SQUATTER}', said)

    def test_by_a_folder(self):
        os.mkdir(self.place, 0o700)
        os.chown(self.place, self.SQUATTER, self.SQUATTER)
        self.refuses_it()
        os.chmod(self.place, 0o777)
        self.refuses_it()
        os.rmdir(self.place)
        self.run_it('server', 'start', **self.as_user())
        self.addCleanup(self.run_it, 'server', 'stop', **self.as_user())
        self.assertEqual(os.stat(self.place).st_uid, self.USER)

    def test_by_a_link(self):
        os.mkdir(os.path.join(self.folder, 'good'), 0o700)
        os.chown(os.path.join(self.folder, 'good'), self.USER, self.USER)
        os.symlink(os.path.join(self.folder, 'good'), self.place)
        self.addCleanup(os.unlink, self.place)
        os.lchown(self.place, self.SQUATTER, self.SQUATTER)
        self.refuses_it()


class Programs(Local):
    """What is found in PATH instead of a good redis-server."""

    def refuses_with(self, text):
        path = os.path.join(self.folder, 'bin')
        os.makedirs(path, exist_ok=True)
        said = self.refuses('server', 'start', code=69, env={'PATH': path})
        self.assertRegex(said, text)
        self.status(code=1)

    def test_none(self):
        self.refuses_with('apt-get install redis-server')

    def test_one_that_cannot_be_run(self):
        self.write('bin/redis-server', 'nothing', mode=0o600)
        self.refuses_with('cannot start redis-server: ')

    def test_one_that_ends_at_once(self):
        self.write('bin/redis-server', '#!/bin/sh\necho "$0 says why"\nexit 1\n', mode=0o700)
        begin = time.monotonic()
        self.refuses_with('ended at once; see ' + re.escape(f'{self.place}/server.log'))
        self.assertLess(time.monotonic() - begin, 4, 'it need not be waited for')
        with open(f'{self.place}/server.log', encoding='utf-8') as log:
            self.assertIn('says why', log.read())



class Usage(Local):
    def test_wrong_words(self):
        for words in ([], ['nothing'], ['status', 'more'], ['start', '--nothing'], ['--url', 'x'],
                      ['status', '--timeout', 'soon']):
            self.refuses('server', *words)

    def test_help_before_and_behind_the_action(self):
        for words in (['--help'], ['status', '--help'], ['stop', '-h']):
            done = self.server(*words)
            self.assertIn('status|start|stop', done.stdout)
            self.assertIn('this machine only', done.stdout)

    def test_a_full_disk_is_told(self):
        with open('/dev/full', 'wb') as full:
            for words in (['status'], ['status', '--json']):
                process = self.start('server', *words, stdout=full)
                process.communicate(timeout=lib.BOUND)
                self.assertEqual(process.returncode, 125)


if __name__ == '__main__':
    unittest.main()
