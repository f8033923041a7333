#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The private server while commands run under its locks: it is looked after by those who use it."""
import json
import os
import signal
import time
import unittest

import lib


class Work(lib.World):
    def begin(self):
        job = self.start('run', '--local', '--ttl', '2', 'x', '--', 'sh', '-c',
                         'touch "$0/begun"; while [ ! -e "$0/end" ]; do sleep 0.05; done',
                         self.folder)
        self.addCleanup(self.end, job)
        lib.wait_until(lambda: os.path.exists(os.path.join(self.folder, 'begun')), 'the command')
        return job

    def end(self, job):
        self.write('end', '')
        job.kill()
        job.communicate()

    def test_a_server_that_was_killed_comes_back_and_the_lock_stays(self):
        job = self.begin()
        before = self.servers()
        os.kill(before[0], signal.SIGKILL)
        lib.wait_until(lambda: self.servers() and self.servers() != before, 'another server')
        time.sleep(2.5)  # longer than the lease: it must have been renewed
        self.run_it('run', '--local', '-n', 'x', '--', 'true', code=75)
        self.write('end', '')
        self.assertEqual(job.wait(lib.BOUND), 0)

    def test_one_that_was_stopped_does_not(self):
        job = self.begin()
        self.run_it('server', 'stop')
        self.assertEqual(job.wait(lib.BOUND), 122)
        self.assertEqual(self.servers(), [])

    def test_one_who_waits_starts_it_too(self):
        job = self.begin()
        waiting = self.start('run', '--local', 'x', '--', 'true')
        self.addCleanup(self.end, waiting)
        lib.wait_until(lambda: json.loads(self.run_it('status', '--local', '--json', 'x').stdout)
                       ['queue_length'] == 1, 'the queue')
        job.kill()
        os.kill(self.servers()[0], signal.SIGKILL)
        self.assertEqual(waiting.wait(lib.BOUND), 0)


if __name__ == '__main__':
    unittest.main()
