#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The JSON that the command writes: whatever is in a name, a parser must get it back."""
import json
import unittest

import lib


class Json(lib.World):
    def text_of(self, data):
        done = self.run_it('bytes', program=lib.PROBE, stdin=data)
        self.assertTrue(done.stdout.endswith(b']\n'))
        self.assertEqual(done.stdout.count(b'\n'), 1)
        return json.loads(done.stdout.decode('utf-8', errors='strict'))[0]

    def test_all_kinds_of_values(self):
        done = self.run_it('bytes', program=lib.PROBE, stdin=b'x')
        self.assertEqual(json.loads(done.stdout),
                         ['x', -2**63, 2**64 - 1, True, None,
                          {'none': [], 'a "key"': {}, 'last': ''}])

    def test_every_ascii_character(self):
        data = bytes(range(128))
        self.assertEqual(self.text_of(data), data.decode('ascii'))

    def test_utf8_at_its_borders(self):
        text = ''.join(map(chr, (0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff)))
        self.assertEqual(self.text_of(text.encode()), text)

    def test_bytes_that_are_no_utf8(self):
        bad = '\ufffd'
        self.assertEqual(self.text_of(b'a\xffb'), f'a{bad}b')
        self.assertEqual(self.text_of(b'\xc0\x80'), bad * 2, 'longer than needed')
        self.assertEqual(self.text_of(b'\xe0\x9f\xbf'), bad * 3, 'the same')
        self.assertEqual(self.text_of(b'\xed\xa0\x80'), bad * 3, 'half of a pair')
        self.assertEqual(self.text_of(b'\xf4\x90\x80\x80'), bad * 4, 'above the last one')
        self.assertEqual(self.text_of(b'\x80a'), f'{bad}a', 'a second byte without a first')
        for cut in (b'\xc3', b'\xe2\x82', b'\xf0\x9f\x98'):
            self.assertEqual(self.text_of(cut), bad * len(cut), 'cut at the end')
        self.assertEqual(self.text_of(b'\xe2\x82a'), f'{bad * 2}a', 'cut in the middle')

    def test_a_full_disk_is_told(self):
        for what in ('many', 'bytes'):
            self.run_it(what, program=lib.PROBE)
            with open('/dev/full', 'wb') as full:
                process = self.start(what, program=lib.PROBE, stdout=full)
                process.communicate(timeout=lib.BOUND)
                self.assertEqual(process.returncode, 125, what)


if __name__ == '__main__':
    unittest.main()
