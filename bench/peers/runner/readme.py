# SPDX-License-Identifier: MIT
"""The comparison in README.md and README.zh-CN.md, between its markers: features from
features.json, which is written by hand, beside speeds from a run. The Chinese text names the hash
of the English one; it is renewed only if it was right before, because then nothing else has
changed."""
import hashlib
import json
import re

from . import tables
from .install_common import PEERS

BEGIN, END = '<!-- peers:begin -->', '<!-- peers:end -->'
MARK = re.compile(r'(?<=<!-- sha256 of README\.md: )\w+(?= -->)')

TEXTS = {
    'en': {'legend': '✓ yes, (✓) partly, – no, ✗ there, but unsound. Features as of the versions that '
                     'were measured, and locks of databases belong to a connection instead of being '
                     'renewed.',
           'measured': 'Measured with `make bench-peers` on {machine}: '
                       '[docs/benchmarks.md](docs/benchmarks.md) has all of it, and what it does not '
                       'say.',
           'empty': 'Speeds: not measured yet; `make bench-peers` writes them here and into '
                    '[docs/benchmarks.md](docs/benchmarks.md).'},
    'zh': {'legend': '✓ 有，(✓) 部分有，– 没有，✗ 有但不可靠。特性以被测版本为准；数据库的锁属于连接，不需要续期。',
           'measured': '用 `make bench-peers` 在 {machine} 上测得：[docs/benchmarks.md](docs/benchmarks.md) '
                       '有全部数据，以及这些数据不能说明的事。',
           'empty': '速度：尚未测量；`make bench-peers` 会写到这里和 '
                    '[docs/benchmarks.md](docs/benchmarks.md)。'},
}


def features():
    return json.loads((PEERS / 'features.json').read_text(encoding='utf-8'))


def speed(rows, column, name):
    for row in rows:
        if (row['workload'], row['peer']) == (column['workload'], name):
            if row.get('value') is None:
                return '–'
            show = tables.percent if column.get('percent') else tables.number
            return show(row.get(column['key']))
    return '–'


def comparison(about, rows, language):
    known, texts = features(), TEXTS[language]
    head = ['', *(c[language] for c in known['columns']), *(s[language] for s in known['speeds'])]
    lines = [[peer[language], *(known['signs'][peer[c['key']]] for c in known['columns']),
              *(speed(rows, s, peer['name']) for s in known['speeds'])]
             for peer in known['peers']]
    below = texts['measured'].format(machine=about['machine']) if about else texts['empty']
    return '\n'.join([BEGIN, '', tables.table(head, lines), '', texts['legend'], below, '', END])


def replace(text, part):
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f'no {BEGIN} before {END}')
    return text[:begin] + part + text[end + len(END):]


def fingerprint(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(root, about, rows):
    english, chinese = root / 'README.md', root / 'README.zh-CN.md'
    before, translated = english.read_text('utf-8'), chinese.read_text('utf-8')
    after = replace(before, comparison(about, rows, 'en'))
    translated = replace(translated, comparison(about, rows, 'zh'))
    mark = MARK.search(translated)
    if mark and mark.group(0) == fingerprint(before):
        translated = MARK.sub(fingerprint(after), translated)
    english.write_text(after, 'utf-8')
    chinese.write_text(translated, 'utf-8')
