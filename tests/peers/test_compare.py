#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`make bench-compare`: the noise of a row comes from its rounds, a row is slower only beyond that
noise, and rows of one side are named. The whole way runs with a small repository whose benchmark
says what the test wants; `Smoke` runs the real benchmark of HOLDFAST_BENCH against itself."""
import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'bench' / 'compare'))

import run  # noqa: E402
import verdict  # noqa: E402


def word(old, new, better='less'):
    return verdict.judge(old, new, better)['word']


def rows(values, ratios=None, **more):
    ratios = ratios or [None] * len(values)
    return [{'value': value, 'ratio': ratio, **more} for value, ratio in zip(values, ratios)]


class Noise(unittest.TestCase):
    def test_steady_rounds_show_a_small_slow_down(self):
        old, new = [100, 101, 100, 99, 100], [105, 104, 105, 106, 105]
        self.assertEqual(word(old, new), 'slower')
        self.assertEqual(word(new, old), 'faster')
        self.assertEqual(word(old, [101, 100, 100, 101, 99]), 'the same')

    def test_rounds_that_scatter_hide_what_is_smaller_than_their_scatter(self):
        old = [85, 115, 100, 90, 110]  # by 30 %
        self.assertEqual(word(old, [value * 1.2 for value in old]), 'the same')
        self.assertEqual(word(old, [value * 1.5 for value in old]), 'slower')
        self.assertEqual(word([100] * 5, [120, 135, 105, 120, 120]), 'the same')

    def test_noise_is_the_largest_spread(self):
        figure = verdict.judge([100, 100, 100, 100, 110], [90, 100, 100, 100, 100], 'less')
        self.assertEqual(figure['noises'], {'old': 0.1, 'new': 0.1, 'change': 0.1})
        figure = verdict.judge([100, 100, 100, 100, 110], [110, 100, 100, 100, 100], 'less')
        self.assertEqual(figure['noise'], 0.2)

    def test_more_rounds_leave_out_outliers(self):
        self.assertEqual(word([100] * 5, [120] * 4 + [300]), 'the same')
        self.assertEqual(word([100] * 9, [120] * 8 + [300]), 'slower')

    def test_equal_sides_are_rarely_slower(self):
        chance = random.Random(1)
        sides = [[[chance.gauss(100, 10) for _ in range(rounds)] for _ in range(2)]
                 for rounds in (5, 9) for _ in range(2000)]
        self.assertLess(sum(word(old, new) == 'slower' for old, new in sides), 8)

    def test_lower_rates_are_slower(self):
        self.assertEqual(word([100] * 5, [80] * 5, 'more'), 'slower')
        self.assertEqual(word([100] * 5, [120] * 5, 'more'), 'faster')

    def test_nothing_can_become_something(self):
        self.assertEqual(word([0] * 5, [0] * 5), 'the same')
        self.assertEqual(word([0] * 5, [700] * 5), 'slower')


class Verdict(unittest.TestCase):
    def verdict(self, old, new, better='less'):
        return verdict.verdict(old, new, better)

    def test_a_ratio_is_seen_through_the_noise_of_the_value(self):
        noisy, slower = [50, 100, 60, 90, 80], [55, 110, 66, 99, 88]
        found = self.verdict(rows(noisy, [1.0] * 5), rows(slower, [1.1] * 5))
        self.assertEqual((found['verdict'], found['judged_by']), ('slower', 'ratio'))

    def test_a_faster_baseline_makes_nothing_slower(self):
        found = self.verdict(rows([100] * 5, [1.0] * 5), rows([98] * 5, [1.3] * 5))
        self.assertEqual((found['verdict'], found['judged_by']), ('faster', 'value'))
        noisy, faster = [50, 100, 60, 90, 80], [49, 98, 59, 88, 78]
        found = self.verdict(rows(noisy, [1.0] * 5), rows(faster, [1.3] * 5))
        self.assertEqual(found['verdict'], 'the same')

    def test_processor_time_is_judged_where_both_tell_it(self):
        old, new = rows([100] * 5, cpu_us=50), rows([100] * 5, cpu_us=70)
        found = self.verdict(old, new, 'more')
        self.assertEqual((found['verdict'], found['cpu_us']['word']), ('the same', 'slower'))
        self.assertNotIn('cpu_us', self.verdict(rows([100] * 5), new))

    def test_a_number_that_is_gone_is_a_failure(self):
        failed = [{'value': None, 'problem': '7 holds were lost'}] * 5
        self.assertEqual(self.verdict(rows([1] * 5), failed)['verdict'],
                         'FAILED: 7 holds were lost')
        self.assertEqual(self.verdict(failed, rows([1] * 5))['verdict'], 'failed in old')


class Rows(unittest.TestCase):
    def test_rows_of_one_run_stay_together(self):
        names = ['w1-tcp', 'w3', 'w3-fair', 'w5-memory', 'w5-threads', 'stock-1-pinned', 'stock-1']
        self.assertEqual(list(run.groups(names).values()),
                         [['w1-tcp'], ['w3', 'w3-fair'], ['w5-memory', 'w5-threads'],
                          ['stock-1-pinned', 'stock-1']])

    def test_names_select_as_in_the_benchmark(self):
        names = ['w1-tcp', 'w1n-tcp', 'scale-names']
        self.assertEqual(run.choose(names, ''), ['w1-tcp', 'w1n-tcp'])
        self.assertEqual(run.choose(names, 'w1,scale'), ['w1-tcp', 'scale-names'])
        with self.assertRaises(SystemExit):
            run.choose(names, 'w9')

    def test_fewer_than_five_rounds_are_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            run.parse(['--old', 'HEAD', '--rounds', '4'])


FAKE = """#!/usr/bin/env python3
import json, sys
ROWS = {rows}
if '--list' in sys.argv:
    print(*ROWS, sep='\\n')
elif '--help' in sys.argv:
    print('--repeat N')
else:
    with open(sys.argv[sys.argv.index('--json') + 1], 'w') as file:
        for name in ROWS:
            if name in sys.argv:
                row = dict(workload=name, value=ROWS[name], unit='us', better='less')
                file.write(json.dumps(row) + '\\n')
"""
MAKEFILE = 'all:\n\t@mkdir -p build/bench && cp fake build/bench/holdfast-bench\n'


class WholeWay(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        (self.root / 'Makefile').write_text(MAKEFILE)
        (self.root / 'tools').mkdir()
        shutil.copy(ROOT / 'tools' / 'build-old', self.root / 'tools')
        self.git('init', '-q')
        self.commit({'same': 10, 'slower': 10, 'gone': 1})
        self.addCleanup(setattr, run, 'ROOT', run.ROOT)
        run.ROOT = self.root

    def git(self, *words):
        subprocess.run(['git', '-C', self.root, '-c', 'user.name=t', '-c', 'user.email=t@t',
                        *words], check=True)

    def commit(self, rows_of_fake):
        (self.root / 'fake').write_text(FAKE.format(rows=rows_of_fake))
        (self.root / 'fake').chmod(0o755)
        self.git('add', '.')
        self.git('commit', '-qm', 'x')

    def compare(self, rows_of_fake):
        (self.root / 'fake').write_text(FAKE.format(rows=rows_of_fake))
        subprocess.run(['make', '-s', '-C', self.root, 'all'], check=True)
        said = io.StringIO()
        self.addCleanup(setattr, sys, 'argv', sys.argv)
        sys.argv = ['run.py', '--old', 'HEAD', '--build', str(self.root / 'build')]
        with contextlib.redirect_stdout(said):
            code = run.main()
        saved = json.loads((self.root / 'build' / 'compare' / 'results.json').read_text())
        return code, said.getvalue(), {row['workload']: row for row in saved[1:]}

    def test_a_slower_row_is_found_and_saved_with_its_rounds(self):
        code, said, saved = self.compare({'same': 10, 'slower': 12, 'new': 1})
        self.assertEqual(code, 1)
        self.assertRegex(said, r'slower +10\.00 +12\.00 us +20\.0 % +0\.0 %.* slower\n')
        self.assertRegex(said, r'\ngone +only in old\nnew +only in new\n')
        self.assertEqual(saved['slower']['verdict'], 'slower')
        self.assertEqual([r['value'] for r in saved['slower']['old_rounds']], [10] * 5)
        self.assertGreater(saved['slower']['new_rounds'][0]['run_cpu_s'], 0)

    def test_nothing_slower_is_success_and_the_old_side_is_built_once(self):
        self.assertEqual(self.compare({'same': 10})[0], 0)
        built = list((self.root / 'build' / 'old').glob('*/built'))[0].stat().st_mtime_ns
        self.assertEqual(self.compare({'same': 10})[0], 0)
        self.assertEqual(list((self.root / 'build' / 'old').glob('*/built'))[0].stat()
                         .st_mtime_ns, built)


@unittest.skipUnless(os.environ.get('HOLDFAST_BENCH'), 'no HOLDFAST_BENCH')
class Smoke(unittest.TestCase):
    def test_the_real_benchmark_takes_turns_with_itself(self):
        programs = dict.fromkeys(run.SIDES, pathlib.Path(os.environ['HOLDFAST_BENCH']))
        options = run.parse(['--old', 'HEAD', '--quick', '--workloads', 'w1-unix-pinned'])
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            run.compare(programs, options, pathlib.Path(folder), {})
            saved = json.loads((pathlib.Path(folder) / 'results.json').read_text())
        self.assertIn(saved[1]['verdict'], ('the same', 'faster', 'slower'))
        for key in ('value', 'ratio', 'cpu_us'):
            self.assertGreater(saved[1][key]['noise'], 0)
            self.assertGreater(saved[1][key]['new'], 0)


if __name__ == '__main__':
    unittest.main()
