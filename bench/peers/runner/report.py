# SPDX-License-Identifier: MIT
"""docs/benchmarks.md and its plots, from saved results of both, `make bench-peers` and `make bench`.
What was not measured says so."""
from . import catalogue, plot, tables, workloads

# The columns of each workload's table: head, key, and how it is shown.
COSTS = [('client CPU, us', 'client_cpu_us', tables.number),
         ('server CPU, us', 'server_cpu_us', tables.number),
         ('commands', 'commands', tables.number), ('reads', 'reads', tables.number)]
TIMES = [('p50, us', 'p50', tables.number), ('p99, us', 'p99', tables.number),
         ('max, us', 'max', tables.number)]
SHARED = [('changes/s', 'value', tables.number), ('acquisitions/s', 'rate', tables.number),
          ('hand-over p50, us', 'p50', tables.number), ('p99, us', 'p99', tables.number),
          ('max, us', 'max', tables.number), ('wait p99, us', 'wait_p99', tables.number), ('fewest', 'fewest', tables.number),
          ('most', 'most', tables.number), *COSTS]
COLUMNS = {
    'w1': [('pairs/s', 'value', tables.number), *TIMES, *COSTS],
    'w2': [('pairs/s', 'value', tables.number), *TIMES, *COSTS],
    'w3': SHARED,
    'w4': SHARED,
    'w4h': [SHARED[0], ('of ideal', 'of_ideal', tables.percent), *SHARED[1:]],
    'w5': [('CPU, ms/s', 'value', tables.number), ('of the client', 'client_cpu', tables.number),
           ('of the server', 'server_cpu', tables.number),
           ('commands/s', 'commands', tables.number), ('reads/s', 'reads', tables.number),
           ('memory, MB', 'memory_mb', tables.number), ('lost', 'lost', tables.number),
           ('to take all, s', 'acquire_s', tables.number)],
    'w6': [('after the kill, ms', 'value', tables.number),
           ('beyond the lease, ms', 'excess', tables.number)],
    'w7': [('until all are served, ms', 'value', tables.number),
           ('longest pause, ms', 'pause', tables.number)],
    'w8': [*TIMES, ('pairs/s', 'rate', tables.number)],
    'w9': [('ids/s', 'value', tables.number)],
}

MEANINGS = {
    'w1': 'A pair is an acquire and its release. *commands* are those that the server has run for '
          'an acquisition, also inside scripts; *reads* are the times that it had to read from a '
          'socket.',
    'w2': 'Each task has a lock of its own; all share a process and what the library shares in it.',
    'w3': 'A *change* is an acquisition by another task than the one before; who takes its own '
          'lock again is not counted. *hand-over* is from the release of one to the grant of the '
          'next one that was waiting. *fewest* and *most* are the acquisitions of the unluckiest '
          'and of the luckiest task.',
    'w4': 'As W3, between processes: nothing can be handed over in memory.',
    'w4h': 'Each works for 2 ms with the lock and 10 ms without it: together they want a third more '
           'than there is. *of ideal* is the share of the time in which the lock was held by '
           'another one than before; the work of each peer is as long as its sleep really was.',
    'w5': 'One process holds 10 000 locks with leases of 10 s for 30 s. CPU of client and server '
          'together; two peers were measured at the same time, each with a server of its '
          'own.',
    'w6': 'The lease is 3 s, and the holder is killed when 2.4 s of it are left. Locks that belong to '
          'a connection are free when the system closes it; had the machine died, nobody would '
          'have closed it, and they would have waited for a keepalive.',
    'w7': 'The lease is 10 s. Nine are in front of the victim and ten behind it.',
    'w8': 'One of five servers is stopped (SIGSTOP) before the first pair: its connections stay '
          'open and silent.',
    'w9': 'One task, one id at a time, as the library hands them out.',
}

OPTIONS = {  # of the drivers, beside peer, URL and lock
    'w1': '--tasks 1', 'w2': '--tasks 32 --own-locks 1', 'w3': '--tasks 16',
    'w4': '--tasks 1, in eight processes',
    'w4h': '--tasks 1 --section-us 2000 --pause-us 10000, in eight processes',
    'w5': '--mode hold --tasks 10000',
    'w6': '--mode die --lease-ms 3000, and --mode queue --lease-ms 3000',
    'w7': '--section-us 2500000, then --mode queue --tasks 9, --tasks 1 and --tasks 10',
    'w8': '--tasks 1, with five URLs', 'w9': '--mode ids',
}

SERVERS = """\
Redis: `redis-server --save '' --appendonly no`. etcd and ZooKeeper: one server each, default settings, `tickTime=500`. PostgreSQL and MariaDB:
default settings but for more connections and room for locks. All listen on 127.0.0.1, with their data below `/tmp`.
"""

LIMITS = """\
## What these numbers do not say

They are of one machine, on which clients and servers share the processors and there is no network: a round trip costs some 20 us here
and ten times that between machines, where the number of round trips decides and the language of a client does not. They are medians of
short runs on a machine that is not silent: differences of less than a fifth mean nothing, and a minute in which the host was busy is bad for whoever was
measured in it, so look at how far the runs are apart. Nothing fails here but what W6, W7 and W8 let fail:
speed says nothing about what a lock is worth when an answer is lost, a clock jumps or a process stops.

The peers are not the same thing. Redis ran without persistence, as most do who use it for locks; etcd and ZooKeeper write every lock to the disk of
this machine before they answer, and are here with one server where they should have three: they buy with that time that a lock survives a
server. Locks of PostgreSQL and MariaDB belong to a connection: nothing has to be renewed, and they are free at once when a process
dies, but a cut network leaves them held until a keepalive gives up, and there is no fence and no second server. Libraries that poll
look fast in W3 and W4 by acquisitions and slow by changes, because the one who has just released is the first to ask again;
shorter pauses would make them quicker and the server busier, and each has the ones that its documentation gives. One setting is not the
recommended one: rueidislock gets 500 ms instead of 20 for an answer (`TryNextAfter`), because it waits for ever after one that was later.

W1 depends on where the scheduler puts client and server: on one processor a pair takes a fifth of the time that it takes on two of which each has to
be woken for every message, and runs of one program differ by that factor. So it is ranked by pairs per second: a low p50 beside a low rate was a run on one processor that had to
share it. Holdfast looks out for an answer that is near instead of falling asleep (docs/design.md), which is why its rate is higher, and why its client is awake while the
server works. W2 is bound by both processors: Holdfast
asks the server for more there than others do, two scripts with five commands, because every grant has a fence that outlives it.
The drivers are ours, in `bench/peers/drivers`, short enough to be read: who finds a setting that is unfair to a library is asked to say so.
"""


GATES = """\
## Against bare loops

`make bench` compares Holdfast with the least that one could write by hand for the same purpose, both in the same run; the head of each file `bench/<workload>.c` says
what that is. The gate is for the ratio where there is one, else for the value.
*spread* is how far the repetitions of the value, and of the ratio, lie apart. *CPU* is the
processor time of one operation, of client and server together.
"""


def by_rank(rows):
    """The best first, then those without a number."""
    measured = [row for row in rows if row.get('value') is not None]
    measured.sort(key=lambda row: row['value'], reverse=measured[0]['better'] == 'more'
                  if measured else False)
    return measured + [row for row in rows if row.get('value') is None]


def runs_of(row):
    runs = [run for run in row.get('runs', []) if run is not None]
    return f'{tables.number(min(runs))} … {tables.number(max(runs))}' if len(runs) > 1 else '–'


def line_of(row, columns):
    title = catalogue.BY_NAME[row['peer']].title
    if row.get('value') is None:
        return [title, tables.cell(row.get('problem', 'not measured'))] + [''] * len(columns)
    mark = ' ¹' if row.get('error') else ''
    return [title + mark, *(show(row.get(key)) for _, key, show in columns), runs_of(row)]


def section(workload, rows):
    columns = COLUMNS[workload.name]
    head = ['', *(name for name, _, _ in columns), f'runs, {workload.unit}']
    lines = [f'## {workload.name.upper()}: {workload.title}', '', MEANINGS[workload.name],
             f'Drivers: `{OPTIONS[workload.name]}`.', '']
    if not rows:
        return '\n'.join([*lines, 'Not measured yet.', ''])
    ranked = by_rank(rows)
    if any(row.get('value') is not None for row in ranked):
        lines += [f'![{workload.title}](benchmarks/{workload.name}.svg)', '']
    lines += [tables.table(head, [line_of(row, columns) for row in ranked]), '']
    notes = [f'¹ {catalogue.BY_NAME[row["peer"]].title}: {tables.cell(row["error"])}'
             for row in ranked if row.get('error') and row.get('value') is not None]
    return '\n'.join([*lines, *('\n\n'.join(notes).split('\n') if notes else []), ''])


def heading(about):
    lines = ['# Benchmarks: Holdfast beside others', '',
             'Written by `make bench-peers`; do not edit. `bench/peers/README.md` says how a peer '
             'is added.', '`make bench-compare OLD=<commit>` says whether Holdfast has become '
             'slower: [testing.md](testing.md).', '']
    if not about:
        return '\n'.join([*lines, 'Nothing has been measured yet.', ''])
    versions = ', '.join(f'{name} {version}' for name, version in about['versions'].items())
    return '\n'.join([*lines, f'Machine: {about["machine"]}. {about["date"]}.', '',
                      f'Versions: {versions}.', '', 'Command:', '', f'    {about["command"]}', '',
                      f'Each figure is the median of up to three runs of {about["measured_s"]:g} s, after '
                      f'{about["warm_up_s"]:g} s that do not count (Java: 3 to 8 s more); peers took '
                      'turns. The lease is 10 s unless said otherwise. Servers and clients share '
                      'this machine and talk over TCP. An acquisition that overlaps with another '
                      'one of the same lock makes a result invalid, and stands in the table '
                      'instead of a number.', '', SERVERS])


def gate_line(row):
    if row.get('value') is None:
        return [row['workload'], tables.cell(row.get('problem', 'not measured')), *[''] * 7]
    sign = '≤' if row['better'] == 'less' else '≥'
    return [row['workload'], f'{tables.number(row["value"])} {row["unit"]}'.strip(),
            tables.percent(row.get('spread')), tables.number(row.get('baseline')),
            tables.number(row.get('ratio')), tables.percent(row.get('ratio_spread')),
            tables.number(row.get('cpu_us')),
            f'{sign} {row["gate"]:g}', 'met' if row['pass'] else 'missed']


def gates_section(rows):
    """Of rows as `make bench` writes them."""
    if not rows:
        return f'{GATES}\nNot measured yet.\n'
    head = ['', 'value', 'spread', 'baseline', 'ratio', 'spread', 'CPU, us', 'gate', '']
    return f'{GATES}\n{tables.table(head, [gate_line(row) for row in rows])}\n'


def document(about, rows, gates):
    parts = [heading(about)]
    for workload in workloads.WORKLOADS:
        parts.append(section(workload, [r for r in rows if r['workload'] == workload.name]))
    return '\n'.join([*parts, gates_section(gates), LIMITS])


def write(root, about, rows, gates):
    folder = root / 'docs' / 'benchmarks'
    folder.mkdir(exist_ok=True)
    (root / 'docs' / 'benchmarks.md').write_text(document(about, rows, gates), encoding='utf-8')
    for workload in workloads.WORKLOADS:
        bars = [(catalogue.BY_NAME[row['peer']].title, row['value'], row['peer'])
                for row in by_rank([r for r in rows if r['workload'] == workload.name])
                if row.get('value') is not None]
        place = folder / f'{workload.name}.svg'
        if bars:
            place.write_text(plot.bars(workload.title, workload.unit, bars), encoding='utf-8')
        else:
            place.unlink(missing_ok=True)
