# SPDX-License-Identifier: MIT
"""acquire, check, renew and release on three servers: the token is good for all of them, and one may
be missing."""
import unittest

from lib_verbs import Server, VerbTest, wait_until


class OnThree(VerbTest):
    def setUp(self):
        super().setUp()
        self.servers = [Server() for _ in range(3)]
        for server in self.servers:
            self.addCleanup(server.end)

    def environment(self, more):
        urls = ' '.join(server.url for server in self.servers)
        return super().environment({'HOLDFAST_URL': urls, **(more or {})})

    def expect(self, code, verb, *words, **more):
        """The servers are new, but have nothing that they could have forgotten."""
        durable = ('--durable',) if verb in ('acquire', 'renew', 'release', 'check') else ()
        return super().expect(code, verb, *durable, *words, **more)

    def holders(self):
        return [server.cli('EXISTS', 'job') for server in self.servers].count('1')

    def remaining(self):
        return [int(server.cli('PTTL', 'job')) for server in self.servers]

    def acquire_everywhere(self, *options):
        """The one that answered last may not have it: it is decided by a majority."""
        token = self.acquire('job', *options)
        while self.holders() < 3:
            self.expect(0, 'release', 'job', token)
            wait_until(lambda: self.holders() == 0)
            token = self.acquire('job', *options)
        return token

    def test_a_token_releases_everywhere(self):
        token = self.acquire('job')
        self.assertGreaterEqual(self.holders(), 2)
        self.expect(75, 'acquire', '-n', 'job')
        self.expect(0, 'release', 'job', token)
        self.assertEqual(self.holders(), 0)
        self.assertIn('0 of 3 servers have it', self.expect(122, 'release', 'job', token).err)
        self.expect(122, 'check', 'job', token)

    def test_check_and_renew(self):
        token = self.acquire_everywhere('--ttl', '20')
        for server in self.servers:
            server.cli('PEXPIRE', 'job', '9000')
        left, fence = self.expect(0, 'check', 'job', token).line.split(' ')
        self.assertIn(int(left), range(1000, 9001))
        self.assertGreater(int(fence), 0)
        self.assertLessEqual(max(self.remaining()), 9000)
        self.expect(0, 'renew', 'job', token)
        self.assertGreater(min(self.remaining()), 9000)
        told = self.expect(0, 'renew', '--ttl', '50', '--json', 'job', token).json
        self.assertEqual(told['fence'], int(fence))
        self.assertGreater(min(self.remaining()), 20000)
        self.expect(0, 'release', 'job', told['token'])
        self.assertEqual(self.holders(), 0)

    def test_one_server_is_down(self):
        token = self.acquire_everywhere()
        self.servers[1].stop()
        self.expect(0, 'check', 'job', token)
        self.expect(0, 'renew', 'job', token)
        self.expect(75, 'acquire', '-n', 'job')
        self.expect(0, 'release', 'job', token)
        self.assertEqual(self.holders(), 0)
        token = self.acquire('job')
        self.assertEqual(self.holders(), 2)
        self.expect(0, 'renew', 'job', token)
        self.expect(0, 'release', 'job', token)
        self.assertEqual(self.holders(), 0)

    def test_two_servers_are_down(self):
        token = self.acquire_everywhere()
        for gone in self.servers[1:]:
            gone.stop()
        said = self.expect(69, 'release', 'job', token).err
        for gone in self.servers[1:]:
            self.assertIn(gone.socket, said)
        self.assertEqual(self.holders(), 1)  # not given back: it may be somebody else's by now

    def test_two_servers_have_lost_it(self):
        token = self.acquire_everywhere()
        for server in self.servers[1:]:
            server.cli('DEL', 'job')
        self.assertIn('does not have it', self.expect(122, 'check', 'job', token).err)
        self.assertEqual(self.holders(), 1)

    def test_an_owner_shares_it(self):
        first = self.acquire('job', '--owner', 'request 7')
        second = self.acquire('job', '--owner', 'request 7')
        self.expect(0, 'release', 'job', first)
        self.expect(122, 'check', 'job', first)
        self.expect(0, 'check', 'job', second)
        self.expect(0, 'release', 'job', second)
        self.assertEqual(self.holders(), 0)

    def test_those_who_wait_get_it(self):
        token = self.acquire('job')
        other = self.start('acquire', '--durable', '-w', '15', 'job')
        wait_until(lambda: self.waiters('job') == 1)
        self.expect(0, 'release', 'job', token)
        seen = self.finish(other)
        self.assertEqual(seen.code, 0, seen)
        self.expect(0, 'renew', 'job', seen.line)
        self.expect(0, 'release', 'job', seen.line)
        self.assertEqual(self.holders(), 0)


if __name__ == '__main__':
    unittest.main()
