#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starts of the private server that cannot succeed: each ends, and says why. They do so at the same
time, since that takes its time."""
import fcntl
import os
import signal
import unittest

import lib


class Bounds(lib.World):
    def test_starts_that_cannot_succeed_end(self):
        waiting = [self.start_where_nothing_answers(), self.start_where_the_socket_was_removed(),
                   self.start_where_it_is_never_our_turn()]
        said = [process.communicate(timeout=lib.BOUND)[1] for process in waiting]
        self.assertEqual([process.returncode for process in waiting], [69] * 3, said)
        self.assertRegex(said[0], r'does not answer; see .*/1/holdfast/server.log\n\Z')
        self.assertRegex(said[1], r'a private server runs, but nobody can reach it')
        self.assertRegex(said[2], r'another holdfast is busy')
        self.assertEqual(len(self.servers()), 1)
        with open(f'{self.folder}/1/holdfast/pid', encoding='utf-8') as file:
            os.kill(int(file.read()), signal.SIGKILL)

    def start_in(self, name, **env):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return self.start('server', 'start', env={'XDG_RUNTIME_DIR': folder, **env})

    def start_where_nothing_answers(self):
        self.write('bin/redis-server', '#!/bin/sh\necho $$ >pid\nexec /bin/sleep 100\n', mode=0o700)
        return self.start_in('1', PATH=os.path.join(self.folder, 'bin'))

    def start_where_the_socket_was_removed(self):
        self.assertEqual(self.start_in('2').communicate(timeout=lib.BOUND), ('', ''))
        os.remove(f'{self.folder}/2/holdfast/redis.sock')
        return self.start_in('2')

    def start_where_it_is_never_our_turn(self):
        os.makedirs(f'{self.folder}/3/holdfast', 0o700)
        lock = open(f'{self.folder}/3/holdfast/lock', 'wb')
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return self.start_in('3')


if __name__ == '__main__':
    unittest.main()
