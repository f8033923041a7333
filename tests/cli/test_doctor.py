# SPDX-License-Identifier: MIT
"""doctor: servers that are fit to keep locks, and others."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from lib_verbs import Server, VerbTest, wait_until

CHECKS = ['way', 'reachable', 'version', 'role', 'eviction', 'persistence', 'uptime', 'replicas',
          'cluster', 'rights', 'messages', 'load', 'clock', 'drift']


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def make_certificates(folder):
    """An authority, and a server's certificate for localhost."""
    def make(*words):
        subprocess.run(['openssl', *words], cwd=folder, check=True, capture_output=True)
    curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    make('req', '-x509', *curve, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=authority',
         '-days', '1')
    make('req', *curve, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost')
    with open(os.path.join(folder, 'names'), 'w') as names:
        names.write('subjectAltName=DNS:localhost\n')
    make('x509', '-req', '-in', 'server.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial',
         '-out', 'server.crt', '-days', '1', '-extfile', 'names')


class Doctor(VerbTest):
    server_words = ('--appendonly', 'yes')

    def begin(self, *words, **more):
        """Each takes a second, so several are begun before the first is asked for."""
        return self.start('doctor', '--json', *words, **more)

    def examine(self, code, *words, **more):
        return self.checks(code, self.begin(*words, **more))

    def checks(self, code, process):
        """The checks of the one server, by name."""
        result = self.finish(process)
        self.assertEqual(result.code, code, result)
        self.assertEqual(len(result.json), 1)
        seen = result.json[0]
        self.assertEqual(sorted(seen), ['checks', 'safe', 'url'])
        self.assertEqual(seen['safe'], code == 0)
        for check in seen['checks']:
            self.assertEqual(sorted(check), ['name', 'result', 'text'])
            self.assertIn(check['result'], ('ok', 'warning', 'bad'))
            self.assertTrue(check['text'])
        return {check['name']: check for check in seen['checks']}

    def expect_result(self, checks, name, result, words=''):
        self.assertEqual(checks[name]['result'], result, checks[name])
        self.assertIn(words, checks[name]['text'])

    def test_a_good_server(self):
        checks = self.examine(0)
        self.assertEqual(list(checks), CHECKS)
        for check in checks.values():
            self.assertEqual(check['result'], 'ok', check)
        self.assertEqual(self.server.cli('KEYS', 'holdfast-doctor*'), '')

    def test_as_text(self):
        result = self.expect(0, 'doctor', self.server.url)
        lines = result.out.splitlines()
        self.assertEqual(lines[0], self.server.url)
        self.assertEqual(len(lines), 1 + len(CHECKS))
        for line, name in zip(lines[1:], CHECKS):
            self.assertRegex(line, r'^  OK       %s: ' % name)

    def test_colours_are_for_terminals(self):
        url = 'redis://127.0.0.1:%d' % free_port()
        code, shown = self.on_terminal('doctor', url)
        self.assertEqual(code, 69)
        self.assertIn('\x1b[32mOK', shown)
        self.assertIn('\x1b[31mBAD', shown)
        code, shown = self.on_terminal('doctor', url, env={'NO_COLOR': '1'})
        self.assertNotIn('\x1b', shown)

    def test_eviction(self):
        self.addCleanup(self.server.cli, 'CONFIG', 'SET', 'maxmemory', '0')
        self.addCleanup(self.server.cli, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
        self.server.cli('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
        self.expect_result(self.examine(0), 'eviction', 'ok', 'volatile-lru')
        self.server.cli('CONFIG', 'SET', 'maxmemory', '100mb')
        checks = self.examine(78)
        self.expect_result(checks, 'eviction', 'bad', 'maxmemory-policy noeviction')
        self.expect_result(checks, 'rights', 'ok')

    def test_a_busy_server(self):
        server = Server('--appendonly', 'yes')
        self.addCleanup(server.end)
        busy = subprocess.Popen(['redis-cli', '-s', server.socket, '-r', '-1', 'CLIENT', 'PAUSE',
                                 '60'], stdout=subprocess.DEVNULL)
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)
        self.expect_result(self.examine(0, server.url), 'load', 'warning', 'busy or far away')

    def test_a_replica_and_its_primary(self):
        port = free_port()
        primary = Server('--port', str(port), '--repl-diskless-sync-delay', '0')
        self.addCleanup(primary.end)
        replica = Server('--replicaof', '127.0.0.1', str(port))
        self.addCleanup(replica.end)
        wait_until(lambda: 'master_link_status:up' in replica.cli('INFO', 'replication'))
        result = self.run_it('doctor', '--json', primary.url, replica.url)
        self.assertEqual(result.code, 78, result)
        first, second = result.json
        self.assertEqual((first['safe'], second['safe']), (True, False))
        first = {check['name']: check for check in first['checks']}
        second = {check['name']: check for check in second['checks']}
        self.expect_result(first, 'replicas', 'warning', 'failover')
        self.expect_result(first, 'persistence', 'warning', 'appendonly yes')
        self.expect_result(first, 'uptime', 'warning', 'started')
        self.expect_result(second, 'role', 'bad', 'primary')

    def test_several_servers(self):
        others = [Server('--appendonly', 'yes') for _ in range(2)]
        for other in others:
            self.addCleanup(other.end)
        urls = [self.server.url] + [other.url for other in others]
        given = self.start('doctor', '--json', ','.join(urls))
        named = self.start('doctor', '--json', env={'HOLDFAST_URL': ' '.join(urls[:2])})
        for process, count, result, words in ((given, 3, 'ok', '2 are needed'),
                                              (named, 2, 'warning', 'both are needed')):
            seen = self.finish(process)
            self.assertEqual(seen.code, 0, seen)
            self.assertEqual([server['url'] for server in seen.json], urls[:count])
            for server in seen.json:
                checks = {check['name']: check for check in server['checks']}
                self.assertEqual(list(checks), CHECKS + ['quorum'])
                self.expect_result(checks, 'quorum', result, words)

    def test_several_hosts_of_a_url(self):
        ports = [free_port(), free_port(), free_port()]
        server = Server('--port', str(ports[1]), password='secret')
        self.addCleanup(server.end)
        url = 'redis://:secret@' + ','.join('127.0.0.1:%d' % port for port in ports) + '/1'
        result = self.run_it('doctor', '--json', url)
        self.assertEqual(result.code, 69, result)
        self.assertEqual([seen['url'] for seen in result.json],
                         ['redis://127.0.0.1:%d/1' % port for port in ports])
        self.assertEqual([seen['safe'] for seen in result.json], [False, True, False])
        for seen in result.json:
            checks = {check['name']: check for check in seen['checks']}
            self.expect_result(checks, 'password', 'warning')
            self.expect_result(checks, 'quorum', 'ok', '1 may fail')
        self.assertNotIn('secret', result.out + result.err)

    def test_a_password(self):
        server = Server(password='secret@:/')
        self.addCleanup(server.end)
        self.expect_result(self.examine(77, server.url), 'rights', 'bad', 'password')
        named = server.url.replace('unix://', 'unix://:secret%40%3A%2F@')
        typed = self.begin(named)
        shown = self.start('doctor', named)
        elsewhere = [self.begin(env={'HOLDFAST_URL': named}),
                     self.begin('--password-env', 'SECRET', server.url, env={'SECRET': 'secret@:/'})]
        self.expect_result(self.checks(0, typed), 'password', 'warning', '--password-file')
        result = self.finish(shown)
        self.assertIn(server.url, result.out)
        self.assertNotIn('secret', result.out + result.err)
        for process in elsewhere:
            self.assertNotIn('password', self.checks(0, process))

    def test_rights(self):
        self.addCleanup(self.server.cli, 'ACL', 'DELUSER', 'limited', 'quiet')
        self.server.cli('ACL', 'SETUSER', 'limited', 'on', '>x', '~jobs:*', '&*', '+@all')
        self.server.cli('ACL', 'SETUSER', 'quiet', 'on', '>x', '~*', 'resetchannels', '+@all')
        url = self.server.url.replace('unix://', 'unix://%s:x@')
        limited = self.begin(env={'HOLDFAST_URL': url % 'limited'})
        quiet = self.begin(env={'HOLDFAST_URL': url % 'quiet'})
        self.expect_result(self.checks(77, limited), 'rights', 'bad', 'holdfast-doctor:')
        checks = self.checks(0, quiet)
        self.expect_result(checks, 'rights', 'ok')
        self.expect_result(checks, 'messages', 'warning', 'poll')

    def test_tls(self):
        folder = tempfile.mkdtemp(prefix='hf-verbs-')
        self.addCleanup(shutil.rmtree, folder)
        make_certificates(folder)
        port = free_port()
        server = Server('--tls-port', str(port), '--tls-cert-file', folder + '/server.crt',
                        '--tls-key-file', folder + '/server.key', '--tls-ca-cert-file',
                        folder + '/ca.crt', '--tls-auth-clients', 'no')
        self.addCleanup(server.end)
        url = 'rediss://localhost:%d' % port
        trusting = self.begin('--tls-ca', folder + '/ca.crt', url)
        careless = self.begin('--tls-insecure', url)
        self.expect_result(self.checks(0, trusting), 'way', 'ok', 'TLS')
        self.expect_result(self.checks(0, careless), 'way', 'warning', '--tls-ca')
        self.expect_result(self.examine(78, url), 'reachable', 'bad', 'certificate')

    def test_plain_text_over_a_network(self):
        # TEST-NET-1 leads nowhere: only the address is of interest.
        checks = self.examine(69, '--timeout', '0.2', 'redis://192.0.2.1')
        self.expect_result(checks, 'way', 'warning', 'rediss://')
        for url in ('redis://localhost.example.invalid', 'redis://127.example.invalid:1'):
            self.expect_result(self.examine(69, '--timeout', '0.2', url), 'way', 'warning')

    def test_unreachable(self):
        url = 'redis://127.0.0.1:%d' % free_port()
        checks = self.examine(69, url)
        self.assertEqual(list(checks), ['way', 'reachable'])
        self.expect_result(checks, 'way', 'ok')
        self.expect_result(checks, 'reachable', 'bad', 'refused')

    def test_a_server_that_does_not_answer(self):
        server = Server()
        self.addCleanup(server.end)
        server.process.send_signal(signal.SIGSTOP)
        self.expect_result(self.examine(69, '--timeout', '0.3', server.url), 'reachable', 'bad')

    def test_wrong_usage(self):
        self.expect(64, 'doctor', env={'HOLDFAST_URL': None})
        result = self.run_it('doctor', 'http://x')
        self.assertEqual(result.code, 64, result)
        self.expect(64, 'doctor', '--nonsense')
        self.expect(64, 'doctor', '--local', self.server.url)
        self.expect(64, 'doctor', *[self.server.url] * 17)
        self.expect(64, 'doctor', '--tls-ca', '/dev/null', self.server.url)


if __name__ == '__main__':
    unittest.main()
