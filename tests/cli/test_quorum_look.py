# SPDX-License-Identifier: MIT
"""status, ls, wait and revoke on three servers: what a majority says counts, one may be missing. The
locks are written into the servers as another client's votes would stand there; the tag {0} in their
names makes the number in their side keys' names 0 too."""
import time
import unittest

from lib_verbs import Server, VerbTest

ANN, BOB = '0' * 29 + 'aaa', '0' * 29 + 'bbb'
FENCE = int(time.time() * 1000000)


class OnThree(VerbTest):
    def setUp(self):
        super().setUp()
        others = [Server(), Server()]
        for other in others:
            self.addCleanup(other.end)
        self.servers = [self.server] + others
        self.number = 0

    def environment(self, more):
        urls = ' '.join(server.url for server in self.servers)
        return super().environment({'HOLDFAST_URL': urls, **(more or {})})

    def put_votes(self, name, who, *numbers):
        """Each vote of a hold has a number of its own."""
        for at in numbers:
            self.number += 1
            value = '%s:%d@there:5/1/nightly' % (who, self.number)
            self.servers[at].cli('SET', name, value, 'PX', '60000')
            self.servers[at].cli('SET', 'hf:f:{0}' + name, str(FENCE), 'PX', '60000')

    def test_status(self):
        self.assertEqual(self.expect(1, 'status', 'job{0}').out, 'free\n')
        self.put_votes('job{0}', ANN, 0, 2)
        self.put_votes('job{0}', BOB, 1)
        seen = self.expect(0, 'status', '--json', 'job{0}').json
        self.assertEqual((seen['held'], seen['hold_count'], seen['fence']), (True, 1, FENCE))
        self.assertEqual(seen['holders'][0]['label'], 'nightly')
        self.assertIn('label nightly', self.expect(0, 'status').out)

    def test_names_are_listed_once(self):
        for name, servers in (('a{0}', (0, 1)), ('b{0}', (1, 2)), ('c{0}', (0, 1, 2)), ('d{0}', (2,))):
            self.put_votes(name, ANN, *servers)
        self.assertEqual(self.expect(0, 'ls').out, 'a{0}\nb{0}\nc{0}\n')

    def test_a_server_may_be_missing(self):
        self.put_votes('job{0}', ANN, 0, 1, 2)
        self.servers[1].stop()
        self.assertTrue(self.status('job{0}')['held'])
        self.assertEqual(self.expect(0, 'ls').out, 'job{0}\n')
        self.servers[2].stop()
        said = self.expect(69, 'status', 'job{0}').err
        self.assertIn('2 of 3 did not answer', said)
        for gone in self.servers[1:]:
            self.assertIn(gone.socket, said)

    def test_how_long_it_is_held_is_known_without_the_first(self):
        self.put_votes('job{0}', ANN, 1, 2)
        self.servers[0].cli('SHUTDOWN', 'NOSAVE')
        self.addCleanup(self.restart_first)
        self.assertGreaterEqual(self.status('job{0}')['held_ms'], 0)

    def restart_first(self):
        type(self).server.end()
        type(self).server = Server()

    def test_revoke(self):
        self.expect(1, 'revoke', 'job{0}')
        self.put_votes('job{0}', ANN, 1, 2)
        self.expect(0, 'revoke', '--why', 'please', 'job{0}')
        for at in (1, 2):
            self.assertEqual(self.servers[at].cli('HGET', 'hf:w:{0}job{0}', '#revoked'),
                             '%d:please' % FENCE)
        fence = int(self.expect(0, 'revoke', '--force', '--yes', 'job{0}').line)
        self.assertGreater(fence, FENCE)
        self.expect(1, 'status', 'job{0}')

    def test_wait(self):
        self.put_votes('job{0}', ANN, 0, 1)
        waiting = self.start('wait', 'job{0}')
        self.servers[0].cli('DEL', 'job{0}')
        self.assertEqual(self.finish(waiting).code, 0)


if __name__ == '__main__':
    unittest.main()
