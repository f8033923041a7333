# SPDX-License-Identifier: MIT
"""The command on several servers: a command runs while a majority keeps its lock."""
import unittest

from lib_verbs import HOLDFAST, Server, VerbTest

# They are new, so without --durable they would have no vote for a minute.
RUN = ('run', '--durable')


class Several(VerbTest):
    def setUp(self):
        super().setUp()
        self.servers = [Server() for _ in range(3)]
        for server in self.servers:
            self.addCleanup(server.end)
        self.env = {'HOLDFAST_URL': ' '.join(server.url for server in self.servers)}

    def keepers(self, name):
        """What asks each server whether it has that key, as a shell would."""
        return '; '.join(f'redis-cli -s {server.socket} EXISTS {name}' for server in self.servers)

    def test_a_majority_keeps_the_lock(self):
        seen = self.expect(0, *RUN, 'job', '--', 'sh', '-c', self.keepers('job'), env=self.env)
        self.assertGreaterEqual(seen.out.split().count('1'), 2)
        words = [word for server in self.servers for word in ('-u', server.url)]
        seen = self.expect(0, *RUN, *words, 'job', '--', 'sh', '-c', self.keepers('job'))
        self.assertGreaterEqual(seen.out.split().count('1'), 2)

    def test_the_command_runs_once_at_a_time(self):
        seen = self.expect(0, *RUN, 'job', '--', 'sh', '-c',
                           '"$0" run --durable -n job true; echo $?', HOLDFAST, env=self.env)
        self.assertEqual(seen.line, '75')

    def test_one_may_be_gone_but_not_two(self):
        self.servers[0].stop()
        self.expect(0, *RUN, 'job', 'true', env=self.env)
        self.servers[1].stop()
        said = self.expect(69, *RUN, 'job', 'true', env=self.env).err
        for server in self.servers[:2]:
            self.assertIn(server.socket, said)

    def test_leases_have_a_limit_that_is_the_same_for_all(self):
        for words in (['--ttl', '61'], ['--ttl', '10', '--max-lease', '5'], ['--min-hold', '2m']):
            said = self.expect(64, *RUN, *words, 'job', 'true', env=self.env).err
            self.assertIn('--max-lease', said)
        self.expect(64, 'acquire', '--ttl', '2m', 'job', env=self.env)
        self.expect(0, *RUN, '--ttl', '61', '--max-lease', '2m', 'job', 'true', env=self.env)
        self.expect(0, *RUN, '--ttl', '2m', 'job', 'true')  # one server has no such limit

    def test_two_are_warned_of(self):
        two = {'HOLDFAST_URL': ','.join(server.url for server in self.servers[:2])}
        self.assertIn('both are needed', self.run_it(*RUN, 'job', 'true', env=two).err)


if __name__ == '__main__':
    unittest.main()
