# SPDX-License-Identifier: MIT
"""The driver of the lock libraries for Go. Versions are pinned by go.mod and go.sum."""
import os
import pathlib

from .install_c import debian
from .install_common import PEERS, need, run


def install(build_dir, name):
    """Builds below build_dir (build/peers) and returns how the driver is started."""
    need('go', 'golang-go')
    if name == 'etcd':
        debian(['etcd-server'])
    home = pathlib.Path(build_dir).resolve() / 'go'
    program = home / 'driver'
    run(['go', 'build', '-modcacherw', '-o', program, '.'], cwd=PEERS / 'drivers' / 'go',
        env={**os.environ, 'GOPATH': str(home), 'GOCACHE': str(home / 'cache'),
             'GOFLAGS': '-mod=readonly', 'GOTOOLCHAIN': 'local'})
    return [str(program)]
