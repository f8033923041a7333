# SPDX-License-Identifier: MIT
"""What has to be known about a run: the machine, the versions of everything, the command."""
import json
import os
import platform
import re
import subprocess
import time

from .install_common import PEERS

PROGRAMS = {  # how a server or a runtime tells its version
    'Redis': ['redis-server', '--version'], 'etcd server': ['etcd', '--version'],
    'PostgreSQL': ['/usr/bin/pg_config', '--version'], 'MariaDB': ['mariadbd', '--version'],
    'Java': ['java', '-version'], 'Go': ['go', 'version'], 'Node.js': ['node', '--version'],
    'Python': ['python3', '--version'],
}
PACKAGES = {'hiredis (C)': 'libhiredis-dev', 'libpq': 'libpq-dev',
            'MariaDB client': 'libmariadb-dev',
            'ZooKeeper': 'zookeeper', 'ZooKeeper client': 'libzookeeper-mt-dev'}


def first_line(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
    except OSError:
        return ''
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ''


def version_in(text):
    found = re.search(r'\d+(\.\d+)+[\w.+~-]*', text)
    return found.group(0) if found else 'not there'


def versions(root):
    header = (root / 'include' / 'holdfast.h').read_text(encoding='utf-8')
    own = '.'.join(re.findall(r'#define HF_VERSION_\w+ (\d+)', header))
    commit = first_line(['git', '-C', str(root), 'rev-parse', '--short', 'HEAD'])
    found = {'Holdfast': f'{own} ({commit})' if commit else own}
    for entry in json.loads((PEERS / 'versions.json').read_text()):
        found[entry['name']] = entry['version']
        found.update(entry.get('with', {}))
    for name, command in PROGRAMS.items():
        found[name] = version_in(first_line(command))
    for name, package in PACKAGES.items():
        found[name] = version_in(first_line(['dpkg-query', '-W', '-f', '${Version}', package]))
    return found


def machine():
    model = 'unknown processor'
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        for line in file:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
                break
    memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9
    system = platform.freedesktop_os_release().get('PRETTY_NAME', 'Linux')
    return (f'{os.cpu_count()} x {model}, {memory:.0f} GB, {system}, '
            f'Linux {platform.release().split("-")[0]}')


def command(options):
    """The exact one, as it is typed at the root of the project."""
    words = [f'PEERS={options.peers}'] * bool(options.peers)
    words += [f'WORKLOADS={options.workloads}'] * bool(options.workloads)
    return ' '.join(['make bench-peers', *words])


def collect(options, peers, chosen, root):
    return {'machine': machine(), 'versions': versions(root), 'command': command(options),
            'date': time.strftime('%Y-%m-%d', time.gmtime()), 'measured_s': options.seconds,
            'warm_up_s': options.warm_up, 'peers': [peer.name for peer in peers],
            'workloads': [workload.name for workload in chosen]}
