# SPDX-License-Identifier: MIT
"""acquire, renew, release, check and wait: locks for scripts, by their token."""
import os
import signal
import subprocess
import tempfile
import unittest

from lib_verbs import HOLDFAST, Server, VerbTest, wait_until


class Acquire(VerbTest):
    def test_prints_a_token_that_releases(self):
        token = self.acquire('job')
        self.assertRegex(token, r'^[A-Za-z0-9.:@/_,%-]+$')
        self.assertEqual(self.server.cli('EXISTS', 'job'), '1')
        self.assertEqual(self.expect(0, 'release', 'job', token).out, '')
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')
        self.expect(122, 'release', 'job', token)

    def test_json(self):
        seen = self.expect(0, 'acquire', '--json', '--ttl', '5', 'job').json
        self.assertEqual(sorted(seen), ['fence', 'name', 'token', 'ttl_ms', 'waited_ms'])
        self.assertEqual((seen['name'], seen['ttl_ms']), ('job', 5000))
        self.assertGreater(seen['fence'], 0)
        self.assertGreaterEqual(seen['waited_ms'], 0)
        self.expect(0, 'release', 'job', seen['token'])

    def test_lasts_for_its_ttl_and_is_not_renewed(self):
        self.acquire('job', '--ttl', '0.4')
        self.assertIn(self.expect(75, 'acquire', '-n', 'job').err.count('held'), (1, 2))
        wait_until(lambda: self.server.cli('EXISTS', 'job') == '0')

    def test_default_ttl_is_half_a_minute(self):
        self.acquire('job')
        self.assertIn(int(self.server.cli('PTTL', 'job')), range(20000, 30001))

    def test_busy(self):
        self.acquire('job', '--label', 'nightly')
        result = self.expect(75, 'acquire', '-n', 'job')
        self.assertEqual(result.out, '')
        self.assertIn('nightly', result.err)
        self.expect(75, 'acquire', '-w', '0.1', 'job')
        self.expect(75, 'acquire', '-w', '0', 'job')
        self.expect(9, 'acquire', '-n', '-E', '9', 'job')
        self.expect(0, 'acquire', '-n', '-E', '0', 'job')
        self.expect(255, 'acquire', '-n', '--skip-ok', '-E', '255', 'job')
        result = self.expect(0, 'acquire', '-n', '--skip-ok', 'job')
        self.assertEqual(result.out, '')
        self.assertEqual(self.run_it('acquire', '-q', '-n', 'job').err, '')

    def test_owners_of_the_library_are_refused(self):
        result = self.expect(64, 'acquire', '--owner', 'hf:mine', 'job')
        self.assertIn('owner begins with "hf:"', result.err)
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_replicas_that_are_not_there(self):
        result = self.expect(69, 'acquire', '-n', '--replicas', '2', 'job')
        self.assertIn('0 of 2 replicas acknowledged', result.err)
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')
        self.expect(64, 'acquire', '--replicas', 'x', 'job')
        self.expect(64, 'acquire', '--replicas', '1001', 'job')
        self.expect(0, 'acquire', '-n', '--replicas', '0', 'job')

    def test_waits_for_it(self):
        token = self.acquire('job')
        other = self.start('acquire', '-w', '15', '--json', 'job')
        wait_until(lambda: self.waiters('job') == 1)
        self.expect(0, 'release', 'job', token)
        seen = self.finish(other)
        self.assertEqual(seen.code, 0, seen)
        self.expect(0, 'release', 'job', seen.json['token'])

    def test_says_on_a_terminal_whom_it_waits_for(self):
        self.acquire('job', '--label', 'nightly')
        code, shown = self.on_terminal('acquire', '-w', '1', 'job', columns=200)
        self.assertEqual(code, 75, shown)
        self.assertIn('waiting for job', shown)
        self.assertIn('nightly', shown)
        self.assertIn('0 waiting before us', shown)

    def test_serves_in_order(self):
        token = self.acquire('job')
        others = []
        for count in range(1, 4):
            others.append(self.start('acquire', '--fair', 'job'))
            wait_until(lambda: self.waiters('job') == count)
        for other in others:
            self.expect(0, 'release', 'job', token)
            token = self.finish(other).line
        self.expect(0, 'release', 'job', token)

    def test_a_signal_ends_the_wait_and_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            token = self.acquire('job')
            other = self.start('acquire', 'job')
            wait_until(lambda: self.waiters('job') == 1)
            other.send_signal(number)
            seen = self.finish(other)
            self.assertEqual((seen.code, seen.out), (128 + number, ''), seen)
            self.assertEqual(self.waiters('job'), 0)
            self.expect(0, 'release', 'job', token)
            self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_a_signal_beside_the_grant_leaves_a_token_or_nothing(self):
        for _ in range(8):
            token = self.acquire('job')
            other = self.start('acquire', 'job')
            wait_until(lambda: self.waiters('job') == 1)
            releases = subprocess.Popen([HOLDFAST, 'release', 'job', token],
                                        env=self.environment(None))
            self.started.append(releases)
            other.send_signal(signal.SIGTERM)
            seen = self.finish(other)
            self.assertEqual(releases.wait(), 0)
            if seen.code == 0:
                self.expect(0, 'release', 'job', seen.out.strip())
            self.assertIn(seen.code, (0, 143), seen)
            self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_a_token_that_nobody_reads_is_given_back(self):
        with open('/dev/full', 'w') as full:
            code = subprocess.run([HOLDFAST, 'acquire', 'job'], stdout=full,
                                  stderr=subprocess.DEVNULL, env=self.environment(None)).returncode
        self.assertEqual(code, 125)
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')
        reading, writing = os.pipe()
        os.close(reading)
        code = subprocess.run([HOLDFAST, 'acquire', 'job'], stdout=writing,
                              stderr=subprocess.DEVNULL, env=self.environment(None)).returncode
        os.close(writing)
        self.assertEqual(code, 125)
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_a_closed_output_is_none(self):
        for closed in ('>&-', '<&- >&-', '<&- >&- 2>&-'):
            code = subprocess.run(['sh', '-c', f'exec "$0" acquire job {closed}', HOLDFAST],
                                  stderr=subprocess.DEVNULL,
                                  env=self.environment(None)).returncode
            self.assertEqual(code, 125, closed)
            self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_an_owner_shares_it(self):
        first = self.acquire('job', '--owner', 'request 7')
        second = self.acquire('job', '--owner', 'request 7')
        self.expect(75, 'acquire', '-n', 'job')
        self.expect(0, 'release', 'job', first)
        self.expect(122, 'check', 'job', first)
        self.expect(0, 'check', 'job', second)
        self.expect(0, 'release', 'job', second)

    def test_any_name(self):
        for name in ('two words', 'größe/任务', 'new\nline', '"quoted" \\ \'', '--dashes', '\x1b[31m'):
            token = self.expect(0, 'acquire', '-n', '--', name).line
            seen = self.expect(0, 'check', '--json', '--', name, token).json
            self.assertEqual(seen['name'], name)
            self.expect(0, 'release', '--', name, token)

    def test_wrong_usage(self):
        for words in ((), ('a', 'b'), ('-w', 'soon', 'a'), ('-n', '-w', '1', 'a'), ('--ttl', '0', 'a'),
                      ('--ttl', '0.05', 'a'), ('-E', '256', 'a'), ('--nonsense', 'a'), ('',),
                      ('--owner', 'x' * 300, 'a'), ('hf:reserved',)):
            self.expect(64, 'acquire', *words)
        self.expect(64, 'acquire', 'a', env={'HOLDFAST_URL': None})

    def test_no_server(self):
        for words in (('-n',), ('-w', '0.2'), ()):
            result = self.run_it('acquire', *words, '-q', 'a',
                                 env={'HOLDFAST_URL': 'unix:///nonexistent/socket'})
            self.assertEqual(result.code, 69, result)


class Token(VerbTest):
    def test_check_says_what_is_left_and_does_not_renew(self):
        seen = self.expect(0, 'acquire', '--json', '--ttl', '20', 'job').json
        self.server.cli('PEXPIRE', 'job', '9000')
        left, fence = self.expect(0, 'check', 'job', seen['token']).line.split(' ')
        self.assertIn(int(left), range(1000, 9001))
        self.assertEqual(int(fence), seen['fence'])
        self.assertLessEqual(int(self.server.cli('PTTL', 'job')), 9000)
        told = self.expect(0, 'check', '--json', 'job', seen['token']).json
        self.assertEqual(told['fence'], seen['fence'])
        self.assertIs(told['revoked'], False)

    def test_renew(self):
        token = self.acquire('job', '--ttl', '20')
        self.server.cli('PEXPIRE', 'job', '5000')
        self.assertEqual(self.expect(0, 'renew', 'job', token).out, '')
        self.assertGreater(int(self.server.cli('PTTL', 'job')), 10000)
        told = self.expect(0, 'renew', 'job', token, '--ttl', '2m', '--json').json
        self.assertEqual(sorted(told), ['fence', 'name', 'remaining_ms', 'revoked', 'token'])
        self.assertIn(told['remaining_ms'], range(100000, 120000))
        self.assertIn(int(self.expect(0, 'check', 'job', told['token']).line.split()[0]),
                      range(90000, 120000))
        self.assertRegex(self.expect(0, 'renew', '-v', 'job', token).out, r'^\d+\n$')
        self.expect(0, 'release', 'job', token)

    def test_comes_from_standard_input_or_the_environment(self):
        token = self.acquire('job')
        self.expect(0, 'check', 'job', '-', input=token + '\n')
        self.expect(0, 'check', 'job', '-', input=token)
        self.expect(0, 'renew', 'job', env={'HOLDFAST_TOKEN': token})
        self.expect(64, 'check', 'job')
        self.expect(64, 'check', 'job', '-', input='\n')
        self.expect(64, 'check', 'job', '-')
        self.expect(0, 'release', 'job', env={'HOLDFAST_TOKEN': token})

    def test_what_is_none_is_wrong_usage(self):
        for verb in ('check', 'renew', 'release'):
            for token in ('nonsense', '', '1,0,5,5,30000,x,', 'x' * 5000):
                self.expect(64, verb, 'job', token)
            self.expect(64, verb)
            self.expect(64, verb, 'job', 'a', 'b')

    def test_of_another_lock_does_nothing(self):
        token = self.acquire('job')
        for verb in ('check', 'renew', 'release'):
            self.expect(122, verb, 'other', token)
        self.expect(0, 'check', 'job', token)

    def test_of_a_lost_lock(self):
        token = self.acquire('job')
        self.server.cli('DEL', 'job')
        for verb in ('check', 'renew', 'release'):
            self.assertIn('lost', self.expect(122, verb, 'job', token).err)
        self.acquire('job')
        for verb in ('check', 'renew', 'release'):
            self.expect(122, verb, 'job', token)
        self.assertEqual(self.server.cli('EXISTS', 'job'), '1')

    def test_of_a_lock_that_is_asked_for(self):
        token = self.acquire('job')
        self.expect(0, 'revoke', 'job')
        self.expect(123, 'check', 'job', token)
        self.assertIs(self.expect(123, 'renew', '--json', 'job', token).json['revoked'], True)
        self.expect(0, 'release', 'job', token)

    def test_no_server(self):
        token = self.acquire('job')
        for verb in ('check', 'renew', 'release'):
            result = self.run_it(verb, '-q', 'job', token,
                                 env={'HOLDFAST_URL': 'unix:///nonexistent/socket'})
            self.assertEqual(result.code, 69, result)


class Wait(VerbTest):
    def test_for_a_free_lock_is_over_at_once(self):
        self.assertEqual(self.expect(0, 'wait', 'job').out, '')

    def test_until_it_is_released(self):
        token = self.acquire('job')
        other = self.start('wait', '--json', 'job')
        wait_until(lambda: 'hf:e' in self.server.cli('PUBSUB', 'CHANNELS', 'hf:*'))
        self.assertIsNone(other.poll())
        self.expect(0, 'release', 'job', token)
        seen = self.finish(other)
        self.assertEqual((seen.code, seen.json['free']), (0, True), seen)
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_until_it_expires(self):
        self.acquire('job', '--ttl', '0.5')
        self.expect(0, 'wait', 'job')
        self.assertEqual(self.server.cli('EXISTS', 'job'), '0')

    def test_not_if_it_is_handed_on(self):
        first = self.acquire('job')
        other = self.start('acquire', 'job')
        wait_until(lambda: self.waiters('job') == 1)
        waits = self.start('wait', '-w', '0.5', 'job')
        wait_until(lambda: 'hf:e' in self.server.cli('PUBSUB', 'CHANNELS', 'hf:*'))
        self.expect(0, 'release', 'job', first)
        second = self.finish(other).line
        self.assertEqual(self.finish(waits).code, 75)
        self.expect(0, 'release', 'job', second)

    def test_no_longer_than_it_may(self):
        self.acquire('job')
        self.expect(75, 'wait', '-w', '0.1', 'job')
        self.expect(75, 'wait', '-w', '0', 'job')
        self.expect(64, 'wait', '-w', 'x', 'job')
        self.expect(64, 'wait')

    def test_until_a_signal(self):
        self.acquire('job')
        other = self.start('wait', 'job')
        wait_until(lambda: 'hf:e' in self.server.cli('PUBSUB', 'CHANNELS', 'hf:*'))
        other.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(other).code, 143)

    def test_no_server(self):
        result = self.run_it('wait', '-q', 'job', env={'HOLDFAST_URL': 'unix:///nonexistent/socket'})
        self.assertEqual(result.code, 69, result)

    def test_while_the_server_is_started_again(self):
        folder = tempfile.mkdtemp(prefix='hf-verbs-')
        server = Server('--appendonly', 'yes', folder=folder)
        self.addCleanup(lambda: server.end())
        url = {'HOLDFAST_URL': server.url}
        token = self.expect(0, 'acquire', 'job', env=url).line
        other = self.start('wait', '-q', 'job', env=url)
        wait_until(lambda: 'hf:e' in server.cli('PUBSUB', 'CHANNELS', 'hf:*'))
        server.stop()
        server = Server('--appendonly', 'yes', folder=folder)
        self.expect(0, 'release', 'job', token, env=url)
        self.assertEqual(self.finish(other).code, 0)


class Usage(VerbTest):
    def test_errors_name_the_argument(self):
        for words, error in (
                (('acquire',), 'NAME is missing'), (('wait',), 'NAME is missing'),
                (('revoke',), 'NAME is missing'), (('renew',), 'NAME is missing'),
                (('id',), 'NAME is missing'), (('server',), 'ACTION is missing'),
                (('run',), 'NAME is missing'), (('run', 'a'), 'COMMAND is missing'),
                (('acquire', 'a', 'b'), '"b" is too much: nothing is expected behind NAME'),
                (('revoke', 'a', 'b'), '"b" is too much: nothing is expected behind NAME'),
                (('release', 'a', 'b', 'c'), '"c" is too much: nothing is expected behind TOKEN'),
                (('id', 'a', 'b'), '"b" is too much: nothing is expected behind NAME'),
                (('id', '--parse', '5', 'a', 'b'), '"b" is too much'),
                (('ls', 'a', 'b'), '"b" is too much: nothing is expected behind PATTERN; quote'),
                (('status', 'a', 'b', 'c'), '"b" is too much: nothing is expected behind NAME or '),
                (('server', 'status', '-v', 'more'), '"more" is too much'),
                (('server', 'statsu'), 'there is no action "statsu"'),
                (('run', 'a', '-c'), '"-c" needs TEXT'),
                (('run', 'a', '-c', 'b', 'c'), '"c" is too much: -c takes one TEXT'),
                (('run', '-c', 'b', 'a', 'c'), '"c" is too much: -c takes one TEXT'),
                (('run', 'a', '-n', 'true'), '"-n" is in the wrong place')):
            self.assertIn(error, self.expect(64, *words).err, words)


if __name__ == '__main__':
    unittest.main()
