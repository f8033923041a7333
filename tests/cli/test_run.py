#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""holdfast run: what it takes, what the command sees, how it exits."""
import hashlib
import json
import os
import resource
import subprocess
import time
import unittest

from running import HOLDFAST, Running, wait_until


class Exits(Running):
    def test_with_the_code_of_the_command(self):
        for code in (0, 1, 3, 75, 122, 255):
            self.run_it(self.lock, '--', 'sh', '-c', f'exit {code}', code=code)
        self.assertFalse(self.is_held())

    def test_as_a_shell_if_a_signal_ended_it(self):
        for number in (9, 15, 11):
            self.run_it(self.lock, '-c', f'kill -{number} $$', code=128 + number)
        self.assertFalse(self.is_held())

    def test_126_and_127_and_releases(self):
        error = self.refuses(self.lock, '--', 'no-such-command', code=127)
        self.assertIn('no-such-command', error)
        self.refuses('--min-hold', '60', self.lock, '--', '/etc/passwd', code=126)
        self.refuses(self.lock, '/', code=126)
        self.assertFalse(self.is_held())

    def test_75_if_it_is_held(self):
        holder = self.hold('--label', 'the nightly job')
        error = self.refuses('-n', self.lock, 'true', code=75)
        self.assertIn(f'pid {holder.pid} (the nightly job)', error)
        self.assertEqual(self.run_it('-nq', self.lock, 'true', code=75), ('', ''))
        self.refuses('-w', '0', self.lock, 'true', code=75)
        self.refuses('-n', '-E', '7', self.lock, 'true', code=7)
        self.refuses('-n', '-E', '0', self.lock, 'true', code=0)
        self.refuses('-n', '--skip-ok', self.lock, 'true', code=0)
        self.end_hold(holder)
        self.run_it('-n', self.lock, 'true')

    def test_75_after_waiting_for_a_fraction(self):
        holder = self.hold()
        began = time.monotonic()
        self.refuses('-w', '0.4', self.lock, 'true', code=75)
        self.assertGreaterEqual(time.monotonic() - began, 0.4)
        self.refuses('-w', '150ms', self.lock, 'true', code=75)
        self.end_hold(holder)

    def test_a_foreign_holder_is_named_as_such(self):
        self.server.ask('SET', self.lock, 'by hand', 'PX', '20000')
        self.assertIn('without holdfast', self.refuses('-n', self.lock, 'true', code=75))
        self.server.ask('DEL', self.lock)

    def test_69_without_a_server(self):
        for words in ([], ['-n'], ['-w', '0.3']):
            self.refuses('--timeout', '0.3', *words, '-u', f'unix://{self.folder}/nobody',
                         self.lock, 'true', code=69)

    def test_69_if_the_server_is_silent(self):
        self.server.pause()
        began = time.monotonic()
        self.refuses('--timeout', '0.3', self.lock, 'true', code=69)
        self.assertLess(time.monotonic() - began, 5)

    def test_77_with_a_wrong_password(self):
        self.server.ask('ACL', 'SETUSER', 'known', 'on', '>right', '~*', '&*', '+@all')
        url = f'unix://known:wrong@{self.server.path}'
        error = self.refuses('-u', url, self.lock, 'true', code=77)
        self.assertNotIn('wrong', error.replace('wrong password', ''))
        self.run_it('-u', url.replace('wrong', 'right'), self.lock, 'true')

    def test_78_if_it_must_be_safe_and_is_not(self):
        self.refuses('--strict', self.lock, 'true', code=78)

    def test_125_without_descriptors(self):
        codes = []
        for limit in range(4, 24):
            with self.subTest(limit=limit):
                process = self.start('--timeout', '0.2', self.lock, '-c', 'exit 0',
                                     env={'ASAN_OPTIONS': 'detect_leaks=0'},  # it needs some too
                                     preexec_fn=lambda: resource.setrlimit(
                                         resource.RLIMIT_NOFILE, (limit, limit)))
                error = process.communicate(timeout=30)[1]
                codes.append(process.returncode)
                self.assertIn(process.returncode, (0, 69, 125), error)
                self.assertEqual(error.count('\n'), 0 if process.returncode == 0 else 1, error)
                self.assertFalse(self.is_held())
        self.assertIn(125, codes)
        self.assertEqual(codes[-1], 0)


class Usage(Running):
    def test_what_is_wrong_is_said(self):
        bad = [[], ['-n'], ['x'], ['x', '--'], ['x', '--', ''], ['x', '-c'], ['x', '-c', 'a', 'b'],
               ['-c', 'true', 'x', 'y'], ['x', '-n', 'true'], ['--nonsense', 'x', 'true'],
               ['-Z', 'x', 'true'], ['-n', '-w', '1', 'x', 'true'], ['-w', 'soon', 'x', 'true'],
               ['-w', '-1', 'x', 'true'], ['-w', '1y', 'x', 'true'], ['-w', '', 'x', 'true'],
               ['-w'], ['-E', '256', 'x', 'true'], ['-E', '-1', 'x', 'true'],
               ['-E', '1x', 'x', 'true'], ['-E', '', 'x', 'true'],
               ['--ttl', '0.05', 'x', 'true'], ['--ttl', '8d', 'x', 'true'],
               ['--on-lost', 'cry', 'x', 'true'], ['--kill-after', 'x', 'x', 'true'],
               ['--ttl', '3', '--kill-after', '1.1', 'x', 'true'], ['--max-hold', '0', 'x', 'true'],
               ['', 'true'], ['x' * 1025, 'true'], ['hf:mine', 'true'],
               ['--owner', 'o' * 257, 'x', 'true'], ['--label', 'l' * 65, 'x', 'true'],
               ['-n=1', 'x', 'true'], ['--json=1', 'x', 'true']]
        for words in bad:
            with self.subTest(words=words):
                self.refuses(*words, code=64)

    def test_help_names_every_option(self):
        output, _ = self.run_it('--help')
        for name in ('-n', '-w', '-E', '-c', '--verbose', '--ttl', '--fair', '--replicas', '--owner', '--label',
                     '--max-hold', '--min-hold', '--skip-ok', '--on-lost', '--kill-after',
                     '--foreground', '--json', 'HOLDFAST_FENCE', '122', '123'):
            self.assertIn(name, output)

    def test_replicas_that_are_not_there(self):
        _, error = self.run_it('-n', '--replicas', '1', self.lock, 'echo', 'never', code=69)
        self.assertIn('0 of 1 replicas acknowledged', error)

    def test_verbose_says_how_long_it_waited(self):
        self.assertRegex(self.run_it('--verbose', self.lock, 'true')[1],
                         r'got \S+ after \d+\.\d{3} s, with fence \d+')
        self.assertEqual(self.run_it(self.lock, 'true'), ('', ''))


class Command(Running):
    def test_is_run_by_the_shell_with_c(self):
        for words in (['-c', 'echo a b', self.lock], [self.lock, '-c', 'echo a b'],
                      [self.lock, '--command', 'echo a b']):
            self.assertEqual(self.run_it(*words)[0], 'a b\n')
        self.assertEqual(self.run_it(self.lock, '-c', 'echo $0', env={'SHELL': '/bin/bash'})[0],
                         '/bin/bash\n')

    def test_words_reach_it_as_they_are(self):
        words = ['a b', '', '-n', '--', '*']
        output, _ = self.run_it(self.lock, '--', 'printf', '<%s>', *words)
        self.assertEqual(output, ''.join(f'<{word}>' for word in words))
        self.assertEqual(self.run_it(self.lock, 'echo', '--', '-n')[0], '-- -n\n')
        self.assertEqual(self.run_it('--', self.lock, 'echo', 'x')[0], 'x\n')

    def test_sees_its_lock(self):
        output, _ = self.run_it('--ttl', '20', self.lock, '-c',
                                'echo $HOLDFAST_NAME $HOLDFAST_FENCE $HOLDFAST_TTL_MS '
                                '$HOLDFAST_WAITED_MS; echo $HOLDFAST_OWNER; echo $HOLDFAST_URL')
        lines = output.splitlines()
        name, fence, ttl, waited = lines[0].split()
        self.assertEqual((name, ttl), (self.lock, '20000'))
        self.assertGreater(int(fence), 0)
        self.assertLess(int(waited), 20000)
        self.assertRegex(lines[1], r'^[0-9a-f]{32}:')
        self.assertEqual(lines[2], self.server.url)

    def test_owner_is_what_stands_in_the_key(self):
        holder = self.start(self.lock, '-c', 'echo $HOLDFAST_OWNER >$DIR/owner; cat',
                            stdin=subprocess.PIPE)
        self.assertEqual(self.wait_for('owner'), self.server.ask('GET', self.lock))
        self.end_hold(holder)

    def test_waited_time_is_told(self):
        holder = self.hold()
        waiting = self.start(self.lock, '-c', 'echo $HOLDFAST_WAITED_MS')
        wait_until(lambda: self.queue_length() == 1, 'somebody in the queue')
        time.sleep(0.2)
        self.end_hold(holder)
        self.assertGreaterEqual(int(self.end_of(waiting, 0)[0]), 200)

    def test_gets_a_mebibyte_of_input(self):
        data = os.urandom(1 << 20)
        done = subprocess.run([HOLDFAST, 'run', self.lock, 'sha256sum'], input=data, check=True,
                              capture_output=True, timeout=30, env=self.environment)
        self.assertEqual(done.stdout.split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_has_no_descriptor_of_ours(self):
        output, _ = self.run_it(self.lock, 'ls', '/proc/self/fd')
        self.assertEqual(output.split(), ['0', '1', '2', '3'], 'and one for the folder')

    def test_openssl_is_not_loaded_without_tls(self):
        output, _ = self.run_it(self.lock, '-c', 'cat /proc/$PPID/maps')
        self.assertIn(os.path.realpath(HOLDFAST), output)
        self.assertNotRegex(output, 'libssl|libcrypto')

    def test_signals_are_as_we_were_given_them(self):
        plain = subprocess.run(['nohup', 'cat', '/proc/self/status'], capture_output=True,
                               text=True, env=self.environment, check=True).stdout
        inside = subprocess.run(['nohup', HOLDFAST, 'run', self.lock, 'cat', '/proc/self/status'],
                                capture_output=True, text=True, env=self.environment,
                                check=True).stdout
        libc = 3 << 31  # 32 and 33 belong to the C library, whatever we were given

        def pick(text):
            lines = (line.split() for line in text.splitlines() if line[:6] in ('SigBlk', 'SigIgn'))
            return [(name, int(mask, 16) & ~libc) for name, mask in lines]
        self.assertEqual(len(pick(plain)), 2)
        self.assertEqual(pick(inside), pick(plain))

    def test_works_without_standard_files(self):
        done = subprocess.run(['sh', '-c', f'{HOLDFAST} run {self.lock} sh -c "echo x >$DIR/out" '
                               '<&- >&- 2>&-'], env=self.environment, timeout=30, check=False)
        self.assertEqual((done.returncode, self.text('out')), (0, 'x'))

    def test_those_it_leaves_behind_are_ended_before_the_release(self):
        stubborn = 'trap "" TERM; echo $$ >$DIR/pid; while :; do sleep 0.01; done'
        self.run_it('--kill-after', '0.3', self.lock, '-c',
                    f"sh -c '{stubborn}' >/dev/null 2>&1 & while ! [ -s $DIR/pid ]; do "
                    'sleep 0.01; done; exit 4', code=4)
        self.assertFalse(os.path.exists(f'/proc/{self.text("pid")}'))
        self.assertFalse(self.is_held())


class Names(Running):
    def test_with_blanks_and_in_utf8(self):
        for name in ('two words', 'größe 锁 🔒', ' ', '"quoted" \'x\' $HOME *', '-'):
            with self.subTest(name=name):
                output, error = self.run_it('--json', name, '--', 'sh', '-c',
                                            'echo "[$HOLDFAST_NAME]"')
                self.assertEqual(output, f'[{name}]\n')
                self.assertEqual(json.loads(error)['name'], name)

    def test_that_would_paint_on_a_terminal_are_escaped(self):
        name = self.lock + '\x1b[2J\n'
        self.server.ask('SET', name, 'x', 'PX', '20000')
        self.assertIn('\\x1b[2J\\x0a is held', self.refuses('-n', name, 'true', code=75))
        self.server.ask('DEL', name)

    def test_prefix(self):
        holder = self.start('--prefix', 'shop:', self.lock, '-c', 'echo x >$DIR/held; cat',
                            stdin=subprocess.PIPE)
        self.wait_for('held')
        self.assertTrue(self.is_held('shop:' + self.lock))
        self.end_hold(holder)


class Json(Running):
    def summary(self, *words, code=0):
        output, error = self.run_it('--json', '-q', *words, code=code)
        self.assertEqual(error.count('\n'), 1)
        return output, json.loads(error)

    def test_sums_up_on_standard_error(self):
        output, seen = self.summary(self.lock, '-c', 'echo $HOLDFAST_FENCE; exit 3', code=3)
        self.assertEqual((seen['name'], seen['outcome'], seen['exit_code'], seen['fence']),
                         (self.lock, 'done', 3, int(output)))
        self.assertGreaterEqual(seen['held_ms'], 0)
        self.assertGreaterEqual(seen['waited_ms'], 0)

    def test_busy(self):
        holder = self.hold()
        _, seen = self.summary('-n', '-E', '9', self.lock, 'true', code=9)
        self.assertEqual((seen['outcome'], seen['exit_code']), ('busy', 9))
        self.assertNotIn('fence', seen)
        self.end_hold(holder)


class Times(Running):
    def test_min_hold_keeps_the_lock_after_a_short_command(self):
        began = time.monotonic()
        self.run_it('--ttl', '0.3', '--min-hold', '1.5', self.lock, 'true')
        self.assertLess(time.monotonic() - began, 1, 'it does not stay itself')
        left = self.server.ask('PTTL', self.lock)
        self.assertTrue(500 < left <= 1500, left)
        self.refuses('-n', self.lock, 'true', code=75)
        self.run_it('-w', '5', self.lock, 'true')
        self.assertGreaterEqual(time.monotonic() - began, 1.4)

    def test_min_hold_counts_from_the_grant(self):
        self.run_it('--ttl', '2', '--min-hold', '0.3', self.lock, 'sleep', '0.4')
        self.assertFalse(self.is_held())

    def test_max_hold_ends_the_command(self):
        began = time.monotonic()
        _, error = self.run_it('--max-hold', '0.4', '--json', self.lock, 'sleep', '60', code=122)
        self.assertLess(time.monotonic() - began, 5)
        self.assertIn('--max-hold', error.splitlines()[0])
        self.assertEqual(json.loads(error.splitlines()[-1])['outcome'], 'max_hold')
        self.assertFalse(self.is_held())

    def test_a_short_lease_is_renewed(self):
        self.run_it('--ttl', '0.6', self.lock, 'sleep', '1.5')


class Sharing(Running):
    def test_by_those_who_name_the_same_owner(self):
        print_fence = 'echo $HOLDFAST_OWNER $HOLDFAST_FENCE'
        holder = self.start('--owner', 'request 7', self.lock, '-c',
                            f'{print_fence} >$DIR/held; cat', stdin=subprocess.PIPE)
        first = self.wait_for('held')
        output, _ = self.run_it('-n', '--owner', 'request 7', self.lock, '-c', print_fence)
        self.assertEqual(output.strip(), first)
        self.refuses('-n', '--owner', 'request 8', self.lock, 'true', code=75)
        self.assertTrue(self.is_held(), 'the first still has it')
        self.end_hold(holder)
        self.assertFalse(self.is_held())

    def test_label_is_seen(self):
        holder = self.hold('--label', 'nightly')
        self.assertEqual(self.poke('look', self.lock), '1 0 nightly')
        self.end_hold(holder)

    def test_nested_runs_show_the_inner_lock(self):
        output, _ = self.run_it(self.lock, HOLDFAST, 'run', self.lock + ' inner', '-c',
                                'echo $HOLDFAST_NAME')
        self.assertEqual(output, self.lock + ' inner\n')
        self.assertFalse(self.is_held())
        self.assertFalse(self.is_held(self.lock + ' inner'))

    def test_nested_in_itself_is_refused_instead_of_waiting_for_ever(self):
        error = self.refuses(self.lock, HOLDFAST, 'run', self.lock, 'true', code=64)
        self.assertIn('--owner', error)
        self.run_it(self.lock, HOLDFAST, 'run', '-nq', self.lock, 'true', code=75)
        self.run_it('--owner', 'o', self.lock, HOLDFAST, 'run', '--owner', 'o', self.lock, 'true')

    def test_ten_at_once_run_one_after_another(self):
        script = 'mkdir $DIR/inside && sleep 0.02 && rmdir $DIR/inside'
        runs = [self.start(*(['--fair'] if i % 2 else []), self.lock, '-c', script)
                for i in range(10)]
        for process in runs:
            self.end_of(process, 0)


if __name__ == '__main__':
    unittest.main()
