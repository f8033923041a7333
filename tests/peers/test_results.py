#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Saved results of the comparison with peers: rows are combined and loaded, tables and
pictures have everybody in them, and the READMEs stay in step."""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'bench' / 'peers'))

from runner import catalogue, plot, readme, report, results, tables, workloads  # noqa: E402

W8, W4 = workloads.BY_NAME['w8'], workloads.BY_NAME['w4']
HOLDFAST, REDSYNC = catalogue.BY_NAME['holdfast'], catalogue.BY_NAME['redsync']
ABOUT = {'machine': 'a machine', 'versions': {'redsync': 'v9'}, 'command': 'make bench-peers',
         'date': '2026-01-01', 'measured_s': 2.0, 'warm_up_s': 1.0}


def row(workload, peer, *values):
    return results.combine(workload, peer, [{'value': value} for value in values])


class Rows(unittest.TestCase):
    def test_each_field_is_a_median(self):
        combined = results.combine(W8, HOLDFAST, [{'value': 3, 'p99': 9}, {'value': 1, 'p99': 7},
                                                  {'value': 2, 'p99': 8, 'error': 'late'}])
        self.assertEqual((combined['value'], combined['p99']), (2, 8))
        self.assertEqual(combined['runs'], [3, 1, 2])
        self.assertEqual(combined['error'], 'late')

    def test_what_is_saved_is_loaded(self):
        rows = [row(W8, HOLDFAST, 1.23456), results.failed(W4, REDSYNC, 'not there', cannot=True)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'results.json')
            results.save(path, [{'about': ABOUT}, *rows])
            about, loaded = results.load(path)
        self.assertEqual(about, ABOUT)
        self.assertEqual(loaded[0]['value'], 1.235)
        self.assertEqual(loaded[1]['problem'], 'not there')

    def test_lines_of_the_benchmark_are_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'bench.jsonl')
            with open(path, 'w', encoding='utf-8') as file:
                file.write('{"workload":"w1-tcp","value":2.0}\n{"workload":"w2-8","value":null}\n')
            about, loaded = results.load(path)
        self.assertEqual((about, [r['workload'] for r in loaded]), ({}, ['w1-tcp', 'w2-8']))


class Documents(unittest.TestCase):
    ROWS = [row(W8, REDSYNC, 140.0, 150.0, 145.0), row(W8, HOLDFAST, 30.0, 31.0, 29.0),
            results.failed(W8, catalogue.BY_NAME['etcd'], 'cannot be installed: a|b')]
    GATES = [{'workload': 'w1-tcp', 'value': 33.0, 'unit': 'us', 'better': 'less', 'baseline': 30.0,
              'ratio': 1.1, 'spread': 0.04, 'ratio_spread': 0.01, 'cpu_us': 41.0, 'gate': 1.2,
              'pass': True},
             {'workload': 'w5-memory', 'value': 11.5, 'unit': 'MiB', 'better': 'less', 'gate': 10.0,
              'pass': False},
             {'workload': 'w4h-rate', 'value': None, 'problem': 'no server'}]

    def test_the_best_is_first_and_nobody_is_left_out(self):
        text = report.document(ABOUT, self.ROWS, self.GATES)
        lines = [line for line in text.splitlines() if line.startswith('| ')]
        names = [line.split(' | ')[0].strip('| ') for line in lines]
        self.assertLess(names.index('Holdfast'), names.index('redsync'))
        self.assertIn('cannot be installed: a/b', text)
        self.assertIn('make bench-peers', text)

    def test_gates_are_shown_whether_they_were_met_or_not(self):
        text = report.document(ABOUT, self.ROWS, self.GATES)
        self.assertIn('| w1-tcp | 33.0 us | 4 % | 30.0 | 1.10 | 1 % | 41.0 | ≤ 1.2 | met |', text)
        self.assertIn('| w5-memory | 11.5 MiB | – | – | – | – | – | ≤ 10 | missed |', text)
        self.assertIn('| w4h-rate | no server |', text)
        self.assertIn('Not measured yet', report.document(ABOUT, self.ROWS, []))

    def test_rows_of_a_table_are_as_wide_as_its_head(self):
        for block in re.findall(r'(?:^\|.*\n)+', report.document(ABOUT, self.ROWS, self.GATES), re.M):
            self.assertEqual(len({line.count('|') for line in block.splitlines()}), 1, block)

    def test_every_workload_is_explained(self):
        for workload in workloads.WORKLOADS:
            self.assertIn(workload.name, report.COLUMNS)
            self.assertIn(workload.name, report.MEANINGS)
            self.assertIn(workload.name, report.OPTIONS)

    def test_nothing_measured_says_so(self):
        self.assertIn('Nothing has been measured yet', report.document({}, [], []))

    def test_notes_name_the_peer(self):
        text = report.document(ABOUT, [{**row(W4, REDSYNC, 5), 'error': 'one still waits'}], [])
        self.assertIn('| redsync ¹ |', text)
        self.assertIn('¹ redsync: one still waits', text)

    def test_a_picture_has_all_bars(self):
        picture = plot.bars('a < b', 'us', [('x & y', 1.0, 'holdfast'), ('z', 1000.0, 'redsync')])
        tree = xml.etree.ElementTree.fromstring(picture)
        bars = [e for e in tree.iter() if e.tag.endswith('rect')]
        self.assertEqual([bar.get('class') for bar in bars], ['bar ours', 'bar'])
        self.assertGreater(float(bars[1].get('width')), float(bars[0].get('width')))
        self.assertIn('logarithmic', picture)
        self.assertNotIn('logarithmic', plot.bars('t', 'us', [('a', 1.0, 'a'), ('b', 9.0, 'b')]))

    def test_lengths_of_nothing(self):
        self.assertEqual(plot.lengths([0.0, 0.0]), ([0, 0], False))

    def test_numbers_are_short(self):
        self.assertEqual([tables.number(v) for v in (None, 0.1234, 12.34, 1234.5)],
                         ['–', '0.12', '12.3', '1,234'])


class Readmes(unittest.TestCase):
    def write(self, english, chinese):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / 'README.md').write_text(english, 'utf-8')
            (root / 'README.zh-CN.md').write_text(chinese, 'utf-8')
            readme.write(root, ABOUT, [row(W4, HOLDFAST, 30.0)])
            return ((root / 'README.md').read_text('utf-8'),
                    (root / 'README.zh-CN.md').read_text('utf-8'))

    def pair(self, mark=None):
        english = f'before\n{readme.BEGIN}\nwas here\n{readme.END}\nafter\n'
        mark = mark or readme.fingerprint(english)
        return english, f'<!-- sha256 of README.md: {mark} -->\n{readme.BEGIN}\n{readme.END}\n尾\n'

    def test_only_the_part_between_the_markers_changes(self):
        english, chinese = self.write(*self.pair())
        self.assertTrue(english.startswith('before\n') and english.endswith('\nafter\n'))
        self.assertNotIn('was here', english)
        self.assertRegex(english, r'\| Holdfast \|.*\| 30\.0 \|')
        self.assertTrue(chinese.endswith('\n尾\n'))

    def test_the_hash_follows_if_it_was_right(self):
        english, chinese = self.write(*self.pair())
        self.assertIn(readme.fingerprint(english), chinese)
        _, chinese = self.write(*self.pair(mark='0123456789abcdef'))
        self.assertIn('0123456789abcdef', chinese)

    def test_both_languages_have_the_same_table(self):
        english, chinese = self.write(*self.pair())
        shape = [[line.count('|') for line in text.splitlines() if line.startswith('|')]
                 for text in (english, chinese)]
        self.assertEqual(*shape)

    def test_markers_that_are_missing_are_a_fault(self):
        with self.assertRaises(ValueError):
            readme.replace('no markers', 'x')


class Catalogue(unittest.TestCase):
    def test_features_are_complete(self):
        known = readme.features()
        for peer in known['peers']:
            self.assertIn(peer['name'], catalogue.BY_NAME)
            for column in known['columns']:
                self.assertIn(peer[column['key']], known['signs'])

    def test_versions_agree_with_the_manifest_of_go(self):
        manifest = (ROOT / 'bench/peers/drivers/go/go.mod').read_text()
        pinned = json.loads((ROOT / 'bench/peers/versions.json').read_text())
        entries = [entry for entry in pinned if entry['kind'] == 'go']
        self.assertTrue(entries)
        for entry in entries:
            for package, version in {entry['package']: entry['version'],
                                     **entry.get('with', {})}.items():
                self.assertIn(f'{package} {version}\n', manifest)

    def test_names_that_do_not_exist_are_refused(self):
        with self.assertRaises(SystemExit):
            catalogue.choose('redsync,nobody')
        self.assertEqual([p.name for p in catalogue.choose('redsync,holdfast')],
                         ['holdfast', 'redsync'])


if __name__ == '__main__':
    unittest.main()
