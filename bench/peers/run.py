#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs Holdfast and its peers side by side and writes down what came of it.

  run.py [--peers a,b] [--workloads w1,w4] [--repetitions n] [--seconds s]
                          installs, measures, saves build/peers/results.json and writes the documents
  run.py --report FILE    writes the documents from saved results
  run.py --interop        Holdfast and its peers contend for one key
"""
import argparse
import pathlib
import signal
import sys

from runner import interop, readme, report, results, session

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parse():
    parser = argparse.ArgumentParser(description='Holdfast and its peers, side by side')
    parser.add_argument('--build', default=ROOT / 'build',
                        type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('--peers', default='', help='names, with commas; default: all')
    parser.add_argument('--workloads', default='', help='the same')
    parser.add_argument('--repetitions', type=int, help='default: as the workload says, mostly 3')
    parser.add_argument('--seconds', type=float, default=1.5, help='of one measurement')
    parser.add_argument('--warm-up', type=float, default=0.7, help='before it')
    parser.add_argument('--minutes', type=float, default=23.5,
                        help='after which nothing more is begun')
    parser.add_argument('--no-documents', action='store_true', help='only measure and save')
    parser.add_argument('--report', metavar='FILE', help='write the documents from saved results')
    parser.add_argument('--interop', action='store_true', help='contend for one key with Holdfast')
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    options = parse()
    if options.interop:
        return interop.run(options, ROOT)
    saved = options.report or session.measure_all(options, ROOT)
    if not options.report and (options.peers or options.workloads or options.no_documents):
        print(f'A part of it, so the documents stay as they are; --report {saved} writes them.')
        return 0
    about, rows = results.load(saved)
    bench = options.build / 'bench.jsonl'
    report.write(ROOT, about, rows, results.load(bench)[1] if bench.exists() else [])
    readme.write(ROOT, about, rows)
    return 0


if __name__ == '__main__':
    sys.exit(main())
