# SPDX-License-Identifier: MIT
"""The drivers in C: one program for each kind of lock, built against Debian's client libraries."""
import pathlib

from .install_common import PEERS, need, run

ROOT = PEERS.parent.parent

PACKAGES = {  # what the drivers and their servers need, beyond what Holdfast itself does
    'postgres': ['libpq-dev', 'postgresql'],
    'mariadb': ['libmariadb-dev', 'mariadb-server'],
    'zookeeper': ['libzookeeper-mt-dev', 'zookeeper'],
}


def debian(packages):
    """Installs them without starting the services in them."""
    if packages:
        run(['tools/install-packages', *packages], cwd=ROOT)


def install(build_dir, name):
    """Builds below build_dir (build/peers) and returns how the driver of that peer is started."""
    program = name.removesuffix('-fair')
    debian(PACKAGES.get(program, []))
    if program == 'zookeeper':
        need('java', 'default-jre-headless')
    home = pathlib.Path(build_dir).resolve() / 'c'
    run(['cmake', '-S', PEERS / 'drivers' / 'c', '-B', home, '-G', 'Ninja',
         f'-DHOLDFAST_BUILD={pathlib.Path(build_dir).resolve().parent}'])
    run(['cmake', '--build', home, '--target', program])
    return [str(home / program)]
