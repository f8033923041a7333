# SPDX-License-Identifier: MIT
"""id: numbers that nobody else gets, and what they say."""
import os
import re
import subprocess
import time
import unittest

from lib_verbs import HOLDFAST, VerbTest

EPOCH = 1767225600


class Taking(VerbTest):
    def take(self, *words):
        return self.expect(0, 'id', *words).out.splitlines()

    def test_one_and_then_a_larger_one(self):
        first, second = (int(self.take('order')[0]) for _ in range(2))
        self.assertLess(0, first)
        self.assertLess(first, second)
        self.assertLess(second, 2 ** 63)

    def test_many_are_unique_and_grow(self):
        ids = [int(line) for words in (['-n', '10000'], ['--ordered', '-n', '5000'], [])
               for line in self.take('order', *words)]
        self.assertEqual(len(ids), 15001)
        self.assertEqual(ids, sorted(set(ids)))

    def test_hexadecimal_digits(self):
        lines = self.take('--hex', '-n', '3', 'order')
        for line in lines:
            self.assertRegex(line, r'^[0-9a-f]{16}$')
        self.assertEqual(lines, sorted(set(lines)))

    def test_json(self):
        ids = self.expect(0, 'id', '--json', '-n', '3', 'order').json
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual([type(one) for one in ids], [int] * 3)
        self.assertRegex(self.expect(0, 'id', '--json', '--hex', 'order').json[0], '^[0-9a-f]{16}$')

    def test_names_have_ids_of_their_own(self):
        self.take('-n', '5', 'order')
        self.take('-n', '5', 'bill')
        self.assertEqual(len(self.server.cli('KEYS', 'hf:n:*').splitlines()), 2)

    def test_another_epoch_is_refused(self):
        self.take('order')
        self.assertIn(str(EPOCH), self.expect(64, 'id', '--epoch', '1', 'order').err)

    def test_no_server(self):
        self.expect(69, 'id', '-u', 'unix:///none', '--timeout', '0.2', 'order')

    def test_full_output(self):
        with open('/dev/full', 'w', encoding='ascii') as full:
            done = subprocess.run([HOLDFAST, 'id', '-n', '100000', 'order'], stdout=full,
                                  stderr=subprocess.PIPE, env=self.environment({}), check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b'standard output', done.stderr)


class Parsing(VerbTest):
    def secret(self, text):
        path = os.path.join(self.server.folder, 'key')
        with open(path, 'w', encoding='ascii') as file:
            file.write(text)
        return path

    def test_what_an_id_says(self):
        said = self.expect(0, 'id', '--parse', str((86400 << 32) + 7)).out
        self.assertEqual(said, 'time: 2026-01-02T00:00:00Z\nseconds: %d\nsequence: 7\n'
                         % (EPOCH + 86400))

    def test_needs_no_server(self):
        told = self.expect(0, 'id', '-u', 'unix:///none', '--json', '--epoch', '100', '--parse',
                           '0x100000002').json
        self.assertEqual(told, {'id': 2 ** 32 + 2, 'time': '1970-01-01T00:01:41Z', 'seconds': 101,
                                'sequence': 2, 'plain': 2 ** 32 + 2})

    def test_one_that_was_printed(self):
        for words in ([], ['--hex']):
            line = self.expect(0, 'id', *words, 'order').out.strip()
            told = self.expect(0, 'id', '--json', *words, '--parse', line, 'order').json
            self.assertIn(told['seconds'] - int(time.time()), range(-5, 12))

    def test_with_a_key(self):
        key = self.secret('0123456789abcdef\n')
        lines = self.expect(0, 'id', '--key-file', key, '-n', '12', 'order').out.splitlines()
        plain = [self.expect(0, 'id', '--json', '--key-file', key, '--parse', line).json['plain']
                 for line in lines]
        self.assertEqual(plain, list(range(plain[0], plain[0] + 12)))
        self.assertNotEqual([int(line) for line in lines], sorted(int(line) for line in lines))

    def test_what_is_no_id(self):
        for text in ('0', '-1', 'x', '', '1x', '0x', '9223372036854775808', ' 1', '1 ', '+1'):
            self.expect(64, 'id', '--parse', text)
        self.expect(64, 'id', '--parse', '0xffffffffffffffff')
        self.expect(64, 'id', '--hex', '--parse', 'xyz')

    def test_what_is_no_key(self):
        for text in ('', '\n', 'x' * 15, 'x' * 15 + '\n', 'x' * 65, 'x' * 1000):
            said = self.expect(64, 'id', '--key-file', self.secret(text), 'order').err
            self.assertTrue(re.search('key-file', said))
        for path in ('/none', '/'):
            self.expect(64, 'id', '--key-file', path, 'order')

    def test_wrong_usage(self):
        for words in ([], ['a', 'b'], ['-n', '0', 'a'], ['-n', 'x', 'a'], ['--skew', '3601', 'a'],
                      ['--epoch', '0', 'a'], ['hf:a'], ['x' * 513]):
            self.expect(64, 'id', *words)


if __name__ == '__main__':
    unittest.main()
