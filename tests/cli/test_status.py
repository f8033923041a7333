# SPDX-License-Identifier: MIT
"""status, ls and revoke: who holds what, and taking it away."""
import os
import shutil
import socket
import tempfile
import time
import unittest

from lib_verbs import VerbTest, wait_until

# Programs that script the command read these keys.
LOCK_KEYS = ['fence', 'held', 'held_ms', 'hold_count', 'holders', 'name', 'owner', 'queue_length',
             'remaining_ms', 'shared', 'waiters']


def facts(text):
    """The lines "what: value" as a dictionary of lists."""
    found = {}
    for line in text.splitlines():
        what, value = line.split(': ', 1)
        found.setdefault(what, []).append(value)
    return found


class StatusOfOne(VerbTest):
    def test_free(self):
        self.assertEqual(self.expect(1, 'status', 'job').out, 'free\n')
        seen = self.expect(1, 'status', '--json', 'job').json
        self.assertEqual((seen['name'], seen['held'], seen['hold_count']), ('job', False, 0))
        self.assertEqual(seen['waiters'], [])

    def test_held(self):
        before = time.time()
        other = self.start('acquire', '--json', '--label', 'nightly', '--ttl', '20', 'job')
        token = self.finish(other).json
        seen = facts(self.expect(0, 'status', 'job').out)
        self.assertEqual(seen['name'], ['job'])
        self.assertEqual(seen['fence'], [str(token['fence'])])
        self.assertEqual((seen['holds'], seen['waiters']), (['1'], ['0']))
        self.assertIn('%s pid %d thread ' % (socket.gethostname()[:64], other.pid), seen['holder'][0])
        self.assertIn('label nightly', seen['holder'][0])
        self.assertRegex(seen['time left'][0], r'^1\ds$')
        self.assertRegex(seen['held for'][0], r'^about (\d+ms|\d\.\ds|\d+s)$')
        told = self.expect(0, 'status', 'job', '--json').json
        self.assertEqual(sorted(told), LOCK_KEYS)
        self.assertIn(told['held_ms'], range(0, int((time.time() - before) * 1000) + 50))
        self.assertIn(told['remaining_ms'], range(1, 20001))
        holder = told['holders'][0]
        self.assertEqual((holder['pid'], holder['label']), (other.pid, 'nightly'))

    def test_shared(self):
        for ttl in ('20', '10', '15'):
            self.acquire('job', '--owner', 'request "7"', '--ttl', ttl)
        seen = facts(self.expect(0, 'status', 'job').out)
        self.assertEqual(seen['owner'], ['request "7"'])
        self.assertEqual((seen['holds'], len(seen['holder'])), (['3'], 3))
        told = self.expect(0, 'status', '--json', 'job').json
        self.assertEqual((told['owner'], told['shared']), ('request "7"', True))
        self.assertEqual(told['hold_count'], 3)
        left = [holder['remaining_ms'] for holder in told['holders']]
        self.assertEqual(left, sorted(left, reverse=True))

    def test_waiters_in_order(self):
        token = self.acquire('job')
        others = []
        for count in range(1, 4):
            others.append(self.start('acquire', '-w', '15', '--label', 'number %d' % count, 'job'))
            wait_until(lambda: self.waiters('job') == count)
        seen = facts(self.expect(0, 'status', 'job').out)
        self.assertEqual(seen['waiters'], ['3'])
        told = self.status('job')['waiters']
        for number, (line, waiter, other) in enumerate(zip(seen['waiter'], told, others), 1):
            self.assertIn('pid %d ' % other.pid, line)
            self.assertRegex(line, r'label number %d, waits for \S+$' % number)
            self.assertEqual(waiter['pid'], other.pid)
            self.assertGreaterEqual(waiter['waited_ms'], 0)
        for other in others:
            other.terminate()
        for other in others:
            self.assertEqual(self.finish(other).code, 143)
        self.expect(0, 'release', 'job', token)

    def test_of_another_program(self):
        self.server.cli('SET', 'job', 'a \x1b[31m program')
        seen = facts(self.expect(0, 'status', 'job').out)
        self.assertIn('does not use holdfast', seen['holder'][0])
        self.assertEqual(seen['time left'], ['no limit'])
        self.assertNotIn('\x1b', seen['owner'][0])
        told = self.expect(0, 'status', '--json', 'job').json
        self.assertIsNone(told['remaining_ms'])
        self.assertIsNone(told['held_ms'])
        self.assertIn('program', told['owner'])

    def test_what_is_no_lock(self):
        self.server.cli('LPUSH', 'job', 'x')
        self.expect(69, 'status', 'job')

    def test_wrong_usage(self):
        self.expect(64, 'status', 'a', 'b')
        self.expect(64, 'ls', 'a', 'b')
        self.expect(64, 'status', 'a', env={'HOLDFAST_URL': None})

    def test_no_server(self):
        for verb in ('status', 'ls'):
            result = self.run_it(verb, '-q', env={'HOLDFAST_URL': 'unix:///nonexistent/socket'})
            self.assertEqual(result.code, 69, result)


class Several(VerbTest):
    names = ['a b', 'größe/任务', 'line\nbreak', 'quote"\\', 'x' * 200]

    def setUp(self):
        super().setUp()
        for name in self.names:
            self.acquire(name, '--label', 'label')

    def test_ls(self):
        shown = self.expect(0, 'ls').out.splitlines()
        self.assertEqual(shown, sorted(n.replace('\n', '\\x0a') for n in self.names))
        self.assertEqual(sorted(self.expect(0, 'ls', '--json').json), sorted(self.names))
        self.assertEqual(self.expect(0, 'ls', '*"*').out, 'quote"\\\n')
        self.assertEqual(self.expect(1, 'ls', 'nothing*').out, '')
        self.assertEqual(self.expect(1, 'ls', 'nothing*', '--json').json, [])

    def test_ls_under_a_prefix(self):
        self.assertEqual(self.expect(1, 'ls', '--prefix', 'p:').out, '')
        self.acquire('job', '--prefix', 'p:')
        self.assertEqual(self.expect(0, 'ls', '--prefix', 'p:').out, 'job\n')

    def test_a_name_that_looks_like_a_pattern(self):
        self.acquire('job[1]')
        self.acquire('job1')
        seen = self.expect(0, 'status', '--json', 'job[1]').json
        self.assertEqual(sorted(lock['name'] for lock in seen), ['job1', 'job[1]'])
        self.assertEqual(len(self.expect(0, 'status', '--json', 'job*').json), 2)
        self.expect(1, 'status', 'job[2]')

    def test_table(self):
        lines = self.expect(0, 'status').out.splitlines()
        self.assertEqual(len(lines), 1 + len(self.names))
        self.assertEqual(lines[0].split(),
                         ['NAME', 'HELD', 'LEFT', 'HOLDS', 'WAITERS', 'FENCE', 'HOLDER'])
        held = lines[0].index('HELD')
        for line in lines[1:]:
            if line.isascii():
                self.assertEqual(line[held - 2:held], '  ')
                self.assertNotEqual(line[held], ' ')
            self.assertIn('label label', line)
        self.assertEqual(lines[1:], sorted(lines[1:]))

    def test_json(self):
        told = self.expect(0, 'status', '--json').json
        self.assertEqual(sorted(lock['name'] for lock in told), sorted(self.names))
        for lock in told:
            self.assertEqual(sorted(lock), LOCK_KEYS)
        self.assertEqual([lock['name'] for lock in self.expect(0, 'status', '?[ x]b', '--json').json],
                         ['a b'])
        self.assertEqual(self.expect(1, 'status', 'n*', '--json').json, [])
        self.assertEqual(self.expect(1, 'status', 'n*').out, '')

    def test_table_is_cut_on_a_terminal(self):
        code, shown = self.on_terminal('status', columns=60)
        self.assertEqual(code, 0)
        lines = [line for line in shown.splitlines() if 'holdfast:' not in line]
        self.assertEqual(len(lines), 1 + len(self.names))
        self.assertTrue(all(len(line) <= 60 for line in lines), lines)

    def test_many(self):
        self.server.cli('EVAL', """
            for i = 1, 1500 do
                redis.call('SET', 'n' .. i, 'x', 'PX', 60000)
                redis.call('SET', 'hf:f:{' .. i .. '}n' .. i, 1)
            end""", '0')
        self.assertEqual(sorted(self.expect(0, 'ls', '--json', 'n*').json),
                         sorted('n%d' % number for number in range(1, 1501)))


class OnThisMachine(VerbTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix='hf-verbs-')
        self.local = {'HOME': self.folder, 'XDG_RUNTIME_DIR': self.folder, 'HOLDFAST_URL': 'local:'}
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.run_it, 'server', 'stop', env=self.local)

    def test_says_so(self):
        token = self.expect(0, 'acquire', 'job', env=self.local).line
        self.assertIn('scope: this machine only\n', self.expect(0, 'status', 'job', env=self.local).out)
        self.assertIn('this machine only', self.expect(0, 'status', env=self.local).err)
        self.assertEqual(self.expect(0, 'ls', env=self.local).out, 'job\n')
        self.assertEqual(self.run_it('ls').code, 1)
        told = self.expect(0, 'doctor', '--json', '--local', env=self.local).json[0]
        self.assertTrue(told['safe'])
        self.assertIn(self.folder, told['url'])
        self.expect(0, 'release', 'job', token, env=self.local)


class Revoke(VerbTest):
    def fence(self):
        return self.status('job')['fence']

    def test_asks(self):
        token = self.acquire('job')
        self.assertEqual(self.expect(0, 'revoke', '--why', 'deployment', 'job').out, '')
        self.expect(123, 'check', 'job', token)
        self.assertEqual(self.expect(0, 'revoke', '--json', 'job').json,
                         {'name': 'job', 'revoked': True})

    def test_nobody(self):
        self.assertIn('nobody', self.expect(1, 'revoke', 'job').err)
        self.assertEqual(self.expect(1, 'revoke', '--force', '--yes', 'job').out, '')
        self.assertEqual(self.expect(1, 'revoke', '--json', 'job').json,
                         {'name': 'job', 'revoked': False})

    def test_force_raises_the_fence(self):
        seen = self.expect(0, 'acquire', '--json', 'job').json
        raised = int(self.expect(0, 'revoke', '--force', '--yes', 'job').line)
        self.assertGreater(raised, seen['fence'])
        self.assertIn('broken', self.expect(122, 'check', 'job', seen['token']).err)
        again = self.expect(0, 'acquire', '--json', 'job').json
        self.assertGreater(again['fence'], raised)
        told = self.expect(0, 'revoke', '--force', '-y', '--json', 'job').json
        self.assertTrue(told['broken'])
        self.assertGreater(told['fence'], again['fence'])

    def test_force_hands_it_on(self):
        self.acquire('job')
        other = self.start('acquire', 'job')
        wait_until(lambda: self.waiters('job') == 1)
        self.expect(0, 'revoke', '--force', '--yes', 'job')
        self.expect(0, 'release', 'job', self.finish(other).line)

    def test_force_without_a_terminal_needs_yes(self):
        token = self.acquire('job')
        self.assertIn('--yes', self.expect(64, 'revoke', '--force', 'job', input='y\n').err)
        self.expect(0, 'check', 'job', token)

    def test_force_asks_on_a_terminal(self):
        token = self.acquire('job', '--label', 'nightly')
        for answer in ('n', '', 'what?'):
            code, shown = self.on_terminal('revoke', '--force', 'job', answer=answer,
                                           prompt='[y/N] ')
            self.assertEqual(code, 1, shown)
            self.assertIn('Break the lock "job" held by', shown)
            self.assertIn('nightly', shown)
            self.expect(0, 'check', 'job', token)
        code, shown = self.on_terminal('revoke', '--force', 'job', answer='y', prompt='[y/N] ')
        self.assertEqual(code, 0, shown)
        self.expect(122, 'check', 'job', token)

    def test_force_leaves_a_new_holder_alone(self):
        token = self.acquire('job')
        pid, end = os.forkpty()
        if pid == 0:
            words = ['holdfast', 'revoke', '--force', 'job']
            os.execve(os.environ.get('HOLDFAST', 'build/asan/holdfast'), words,
                      self.environment({'TERM': 'xterm'}))
        shown = b''
        while b'[y/N] ' not in shown:
            shown += os.read(end, 4096)
        self.expect(0, 'release', 'job', token)
        token = self.acquire('job')
        os.write(end, b'y\n')
        _, status = os.waitpid(pid, 0)
        os.close(end)
        self.assertEqual(os.waitstatus_to_exitcode(status), 75)
        self.expect(0, 'check', 'job', token)

    def test_wrong_usage(self):
        self.expect(64, 'revoke')
        self.expect(64, 'revoke', 'a', 'b')
        self.expect(64, 'revoke', '--force', '--why', 'x', '--yes', 'job')
        self.expect(64, 'revoke', '--why', 'x' * 121, 'job')


if __name__ == '__main__':
    unittest.main()
