# SPDX-License-Identifier: MIT
"""The driver of redis-py's Lock: one process, a thread per task, one client for all of them.

What the library does by itself: a blocking acquire tries `SET NX PX` and sleeps 100 ms (`sleep`)
between the tries, for ever, without jitter; release is a script that compares and deletes. There
is no renewal (hence no mode hold), no order among those who wait and no quorum. Its documentation
names no other `sleep` for low latency, so the default stays; it does recommend the parser of
hiredis, which is installed. The tasks are threads and share one interpreter lock: what 32 of them
reach is bounded by that, not by the server.

A socket that is silent for 5 s is an error (its default), and a command is tried again 3 times."""
import argparse
import json
import sys
import threading
import time

import redis

ERRORS_KEPT = 5
CANNOT = 3  # the exit status of what a peer cannot do


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument('--peer', required=True, choices=['redis-py'])
    parser.add_argument('--url', required=True, type=lambda urls: urls.split(','))
    parser.add_argument('--lock', required=True)
    parser.add_argument('--tasks', type=int, default=1)
    parser.add_argument('--own-locks', type=int, default=0)
    parser.add_argument('--section-us', type=int, default=0)
    parser.add_argument('--pause-us', type=int, default=0)
    parser.add_argument('--lease-ms', type=int, default=10000)
    parser.add_argument('--wait', type=int, default=1)
    parser.add_argument('--records')
    parser.add_argument('--mode', default='pairs',
                        choices=['pairs', 'hold', 'die', 'queue', 'ids'])
    return parser.parse_args()


def reason_against(options):
    if options.mode == 'hold':
        return 'redis-py: a Lock is not renewed by the library'
    if options.mode == 'ids':
        return 'redis-py: no id generator'
    if len(options.url) > 1:
        return 'redis-py: a Lock lives on one server, there is no quorum'
    return None


class Driver:
    def __init__(self, options):
        self.options = options
        self.client = redis.Redis.from_url(options.url[0])
        self.client.ping()
        self.started = threading.Event()
        self.stopped = threading.Event()
        self.results = threading.Lock()
        self.records = []
        self.refused = 0
        self.errors = []

    def lock(self, task):
        name = f'{self.options.lock}-{task}' if self.options.own_locks else self.options.lock
        return self.client.lock(name, timeout=self.options.lease_ms / 1000)

    def run(self):
        tasks = [threading.Thread(target=self.task, args=(number,), daemon=True)
                 for number in range(self.options.tasks)]
        for task in tasks:
            task.start()
        print('ready', flush=True)
        sys.stdin.readline()
        self.started.set()
        if self.options.mode == 'pairs':
            sys.stdin.readline()
            self.stopped.set()
        for task in tasks:
            task.join()
        self.report()

    def task(self, number):
        lock, mine, refused = self.lock(number), [], 0
        self.started.wait()
        while not self.stopped.is_set():
            try:
                times = self.turn(lock)
            except redis.RedisError as error:
                self.note(error)
                continue
            if times:
                mine.append((number, *times))
            else:
                refused += 1
            if self.options.mode == 'queue':
                break
            if self.options.pause_us:
                time.sleep(self.options.pause_us / 1e6)
        with self.results:
            self.records += mine
            self.refused += refused

    def turn(self, lock):
        asked = time.monotonic_ns()
        if not lock.acquire(blocking=bool(self.options.wait)):
            return None
        entered = time.monotonic_ns()
        if self.options.mode == 'queue':
            sys.stdout.write(f'granted {entered}\n')  # one write: tasks print side by side
            sys.stdout.flush()
        if self.options.section_us:
            time.sleep(self.options.section_us / 1e6)
        leaving = time.monotonic_ns()
        try:
            lock.release()
        except redis.RedisError as error:
            self.note(error)
        return asked, entered, leaving, time.monotonic_ns()

    def note(self, error):
        with self.results:
            if len(self.errors) < ERRORS_KEPT:
                self.errors.append(f'{type(error).__name__}: {error}')

    def die(self):
        print('ready', flush=True)
        sys.stdin.readline()
        self.lock(0).acquire()
        print('held', flush=True)
        sys.stdin.read()

    def report(self):
        if self.options.records:
            with open(self.options.records, 'w', encoding='ascii') as file:
                file.writelines(' '.join(map(str, record)) + '\n' for record in self.records)
        print(json.dumps({'acquisitions': len(self.records), 'refused': self.refused,
                          'errors': self.errors}), flush=True)


def main():
    options = parse()
    against = reason_against(options)
    if against:
        print(against, file=sys.stderr)
        return CANNOT
    driver = Driver(options)
    if options.mode == 'die':
        driver.die()
    else:
        driver.run()
    return 0


if __name__ == '__main__':
    sys.exit(main())
