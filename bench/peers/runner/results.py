# SPDX-License-Identifier: MIT
"""Results as rows: one for each workload and peer, with the keys that `make bench` writes too
(workload, value, unit, better, p50, p99, max, problem), so that the same program reads both. The first
row says what was run, and where."""
import json

from . import records


def combine(workload, peer, repetitions):
    """The row of a peer from what its repetitions returned, field by field the median."""
    row = {'workload': workload.name, 'peer': peer.name, 'value': None, 'unit': workload.unit,
           'better': workload.better}
    row['runs'] = [numbers['value'] for numbers in repetitions]
    for key in dict.fromkeys(key for numbers in repetitions for key in numbers):
        values = [numbers[key] for numbers in repetitions if key in numbers]
        row[key] = values[0] if key == 'error' else records.median(values)
    return row


def failed(workload, peer, problem, cannot=False):
    row = {'workload': workload.name, 'peer': peer.name, 'value': None, 'unit': workload.unit,
           'better': workload.better, 'problem': problem}
    return {**row, 'cannot': True} if cannot else row


def save(path, rows):
    """A JSON document with a line for each row."""
    with open(path, 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(json.dumps(tidy(row)) for row in rows) + '\n]\n')


def tidy(value):
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, list):
        return [tidy(item) for item in value]
    return {key: tidy(item) for key, item in value.items()} if isinstance(value, dict) else value


def load(path):
    """Of such a document, or of lines of JSON as `make bench` writes them: (about, rows)."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if text.lstrip().startswith('['):
        rows = json.loads(text)
    else:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    about = next((row['about'] for row in rows if 'about' in row), {})
    return about, [row for row in rows if 'about' not in row]
