# SPDX-License-Identifier: MIT
"""stock: selling from scripts. What the library promises is tested elsewhere; here it is what people
type, read and get as an exit code."""
import unittest

from lib_verbs import VerbTest, wait_until


class StockTest(VerbTest):
    def stock(self, *words, code=0, **more):
        return self.expect(code, 'stock', *words, **more)

    def counts(self, *words):
        seen = self.stock('audit', '--json', 'phone', *words).json
        self.assertTrue(seen['adds_up'])
        return seen['available'], seen['reserved'], seen['sold']


class Items(StockTest):
    def test_set_and_get(self):
        self.assertEqual(self.stock('set', 'phone', '100', '--per-user', '2', '--keep', '2h').out, '')
        lines = dict(line.split() for line in self.stock('get', 'phone').out.splitlines())
        self.assertEqual(lines, {'total': '100', 'available': '100', 'reserved': '0', 'sold': '0',
                                 'reservations': '0', 'per_user': '2', 'keep_ms': '7200000'})
        self.assertEqual(self.stock('get', '--json', 'phone').json,
                         {'item': 'phone', 'total': 100, 'available': 100, 'reserved': 0, 'sold': 0,
                          'reservations': 0, 'per_user': 2, 'keep_ms': 7200000})
        self.stock('set', 'phone', '50', '--no-limit')
        self.assertEqual(self.stock('get', '--json', 'phone').json['per_user'], 0)
        self.stock('take', 'phone', '-n', '20')
        self.assertIn('fewer', self.stock('set', 'phone', '19', code=1).err)
        self.assertEqual(self.counts(), (30, 0, 20))
        self.assertEqual(self.stock('set', '--json', 'phone', '5', '--afresh').json,
                         {'item': 'phone', 'outcome': 'done'})
        self.assertEqual(self.counts(), (5, 0, 0))

    def test_audit(self):
        self.stock('set', 'phone', '10')
        self.stock('take', 'phone', '--user', 'ann', '-n', '2')
        self.stock('take', 'phone')
        self.stock('reserve', 'phone', '--for', '60', '--user', 'ben')
        lines = dict(line.split() for line in self.stock('audit', 'phone').out.splitlines())
        self.assertEqual((lines['total'], lines['available'], lines['reserved'], lines['sold']),
                         ('10', '6', '1', '3'))
        self.assertEqual((lines['in_reservations'], lines['by_users'], lines['by_nobody'],
                          lines['most_by_one'], lines['adds_up']), ('1', '3', '1', '2', 'yes'))
        key = self.server.cli('KEYS', 'hf:s:*')
        self.server.cli('HSET', key, 'available', '-5')
        result = self.stock('audit', 'phone', code=1)
        self.assertIn('adds_up          no\n', result.out)
        self.assertIn('does not add up', result.err)
        self.assertFalse(self.stock('audit', 'phone', '--json', code=1).json['adds_up'])
        self.stock('take', 'phone', code=1)

    def test_delete(self):
        self.stock('set', 'phone', '10')
        self.stock('take', 'phone', '--request', 'cart')
        self.stock('reserve', 'phone', '--for', '1m')
        result = self.stock('delete', 'phone', code=75)
        self.assertRegex(result.err, r'\Aholdfast: not deleted: reservations [^\n]+ open\n\Z')
        self.assertEqual(self.stock('delete', 'phone', '--json', code=75).json,
                         {'item': 'phone', 'outcome': 'reserved'})
        self.assertEqual(self.counts(), (8, 1, 1))
        self.assertEqual(self.stock('delete', 'phone', '--force').out, '')
        self.stock('get', 'phone', code=66)
        self.stock('set', 'phone', '5')
        self.stock('take', 'phone', '--request', 'cart')
        self.assertEqual(self.counts(), (5, 0, 0))
        self.assertEqual(self.stock('delete', 'phone', '--json').json,
                         {'item': 'phone', 'outcome': 'done'})

    def test_missing(self):
        for words in (('get', 'phone'), ('audit', 'phone'), ('take', 'phone'), ('put', 'phone'),
                      ('reserve', 'phone', '--for', '1'), ('confirm', 'phone', 'x'),
                      ('cancel', 'phone', 'x'), ('delete', 'phone'), ('delete', 'phone', '--force')):
            result = self.stock(*words, code=66)
            self.assertEqual(result.out, '')
            self.assertRegex(result.err, r'\Aholdfast: [^\n]+ set it first\n\Z')

    def test_names_of_any_kind(self):
        for name in ('a b', 'tab\tnew\nline', '{x}', 'ü', '-5'):
            self.stock('set', '--', name, '1')
            self.assertEqual(self.stock('take', '--', name).line, '0')
        self.stock('set', '--prefix', 'shop:', 'phone', '7')
        self.stock('get', 'phone', code=66)
        self.assertEqual(self.stock('take', 'shop:phone').line, '6')


class Orders(StockTest):
    def test_take_and_put(self):
        self.stock('set', 'phone', '5')
        self.assertEqual(self.stock('take', 'phone').line, '4')
        self.assertEqual(self.stock('take', 'phone', '-n', '3', '--user', 'ann').line, '1')
        result = self.stock('take', 'phone', '-n', '2', code=1)
        self.assertEqual(result.out, '')
        self.assertIn('fewer are left', result.err)
        self.assertEqual(self.stock('take', 'phone', '-n', '2', '-q', code=1).err, '')
        self.assertEqual(self.stock('take', 'phone', '-n', '2', '--json', code=1).json,
                         {'item': 'phone', 'outcome': 'sold_out', 'left': 1})
        self.assertEqual(self.stock('put', 'phone', '--user', 'ann', '-n', '2').line, '3')
        self.stock('put', 'phone', '--user', 'ann', '-n', '2', code=64)
        self.stock('put', 'phone', '-n', '2', code=64)
        self.assertEqual(self.stock('put', 'phone', '--restock', '-n', '7', '--json').json,
                         {'item': 'phone', 'outcome': 'done', 'left': 10})
        self.assertEqual(self.counts(), (10, 0, 2))

    def test_limit(self):
        self.stock('set', 'phone', '5', '--per-user', '1')
        self.stock('take', 'phone', code=64)
        self.stock('take', 'phone', '--user', 'ann')
        self.assertIn('one user', self.stock('take', 'phone', '--user', 'ann', code=1).err)
        seen = self.stock('take', 'phone', '--user', 'ann', '--json', code=1).json
        self.assertEqual(seen['outcome'], 'limit')
        self.stock('take', 'phone', '--user', 'ben')
        self.assertEqual(self.counts(), (3, 0, 2))

    def test_the_same_request(self):
        self.stock('set', 'phone', '5')
        for _ in range(3):
            self.assertEqual(self.stock('take', 'phone', '--request', 'cart 7').line, '4')
        self.assertIn('request', self.stock('take', 'phone', '-n', '2', '--request', 'cart 7', code=64).err)
        self.assertEqual(self.counts(), (4, 0, 1))

    def test_reserve(self):
        self.stock('set', 'phone', '5')
        request = self.stock('reserve', 'phone', '--for', '1m', '-n', '2').line
        self.assertEqual(self.counts(), (3, 2, 0))
        for _ in range(2):
            self.assertEqual(self.stock('confirm', 'phone', request).out, '')
        self.stock('cancel', 'phone', request, code=1)
        self.assertEqual(self.counts(), (3, 0, 2))
        seen = self.stock('reserve', 'phone', '--for', '1m', '--request', 'cart', '--json').json
        self.assertEqual(seen, {'item': 'phone', 'outcome': 'done', 'request': 'cart', 'left': 2})
        for _ in range(2):
            self.assertEqual(self.stock('cancel', 'phone', 'cart', '--json').json,
                             {'item': 'phone', 'outcome': 'done'})
        self.assertEqual(self.stock('confirm', 'phone', 'cart', '--json', code=1).json,
                         {'item': 'phone', 'outcome': 'expired'})
        self.assertIn('nothing is known', self.stock('confirm', 'phone', 'other', code=66).err)
        self.assertEqual(self.counts(), (3, 0, 2))

    def test_time_is_over(self):
        self.stock('set', 'phone', '1')
        request = self.stock('reserve', 'phone', '--for', '10ms').line
        wait_until(lambda: self.counts() == (1, 0, 0))
        self.assertIn('has ended', self.stock('confirm', 'phone', request, code=1).err)


class Mistakes(StockTest):
    def test_usage(self):
        self.stock('set', 'phone', '5')
        for words in ((), ('sell', 'phone'), ('set', 'phone'), ('set', 'phone', 'x'),
                      ('set', 'phone', '-1'), ('set', 'phone', ''), ('set', 'phone', '1000000000001'),
                      ('set', 'phone', '9' * 30), ('set', 'phone', '5', '6'), ('get',),
                      ('get', 'phone', '5'), ('get', ''), ('take', 'phone', '-n', '0'),
                      ('take', 'phone', '-n', '1000000000001'), ('take', 'phone', '--for', '5'),
                      ('take', 'phone', '--restock'), ('take', 'phone', '--afresh'),
                      ('take', 'phone', '--request', 'x' * 129), ('take', 'phone', '--user', ''),
                      ('take', 'phone', '--user', 'x' * 257), ('take', 'x' * 513),
                      ('put', 'phone', '--restock', '--user', 'ann'), ('reserve', 'phone'),
                      ('reserve', 'phone', '--for', '0'), ('reserve', 'phone', '--for', '8d'),
                      ('confirm', 'phone'), ('cancel', 'phone'), ('confirm', 'phone', ''),
                      ('set', 'phone', '5', '--keep', '59'), ('set', 'phone', '5', '--per-user', '0'),
                      ('set', 'phone', '5', '--per-user', '1', '--no-limit'),
                      ('set', 'phone', '5', '-n', '3'), ('get', 'phone', '--user', 'ann'),
                      ('get', 'phone', '--force'), ('delete',), ('delete', 'phone', 'cart')):
            result = self.stock(*words, code=64)
            self.assertEqual(result.out, '', words)
            self.assertRegex(result.err, r'\Aholdfast: [^\n]+\n\Z', words)
        self.assertEqual(self.counts(), (5, 0, 0))

    def test_errors_name_the_argument(self):
        for words, error in (
                ((), 'ACTION is missing: one of set, '),
                (('sell', 'phone'), 'there is no action "sell": one of set, '),
                (('take',), 'ITEM is missing'),
                (('take', 'phone', '1'), '"1" is too much: nothing is expected behind ITEM; '
                                         'say how many with -n'),
                (('set', 'phone'), 'UNITS is missing'),
                (('set', 'phone', '5', '6'), '"6" is too much: nothing is expected behind UNITS'),
                (('set', 'phone', 'x'), 'UNITS: "x" is not good'),
                (('confirm', 'phone'), 'REQUEST is missing: what reserve has printed'),
                (('get', 'phone', 'redis://:s3cret@h'), '"a URL" is too much'),
                (('take', 'phone', '--for', '5'), 'stock take does not take --for'),
                (('get', 'phone', '--user', 'ann'), 'stock get does not take --user'),
                (('set', 'phone', '5', '-n', '3'), 'stock set does not take --units'),
                (('reserve', 'phone', '--for', '5', '--keep', '1h'), 'does not take --keep')):
            self.assertIn(error, self.stock(*words, code=64).err, words)

    def test_no_server(self):
        self.stock('take', 'phone', '--timeout', '0.2', code=69,
                   env={'HOLDFAST_URL': 'unix:///nonexistent'})

    def test_several_servers(self):
        result = self.stock('take', 'phone', '--timeout', '0.2', code=64,
                            env={'HOLDFAST_URL': 'redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3'})
        self.assertIn('one server', result.err)


if __name__ == '__main__':
    unittest.main()
