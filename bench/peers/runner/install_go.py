# SPDX-License-Identifier: MIT
"""The driver of the lock libraries for Go. Versions are pinned by go.mod and go.sum; the compiler
too, where Debian's is older than the libraries ask for: it is a module like any other."""
import json
import os
import pathlib
import platform
import re

from .install_c import debian
from .install_common import PEERS, CannotInstall, need, run

SOURCE = PEERS / 'drivers' / 'go'
MACHINES = {'x86_64': 'amd64', 'aarch64': 'arm64'}


def install(build_dir, name):
    """Builds below build_dir (build/peers) and returns how the driver is started."""
    need('go', 'golang-go')
    if name == 'etcd':
        debian(['etcd-server'])
    home = pathlib.Path(build_dir).resolve() / 'go'
    home.mkdir(parents=True, exist_ok=True)
    program = home / 'driver'
    environment = {**os.environ, 'GOPATH': str(home), 'GOCACHE': str(home / 'cache'),
                   'GOFLAGS': '-modcacherw', 'GOTOOLCHAIN': 'local'}
    run([compiler(home, environment), 'build', '-mod=readonly', '-o', program, '.'], cwd=SOURCE,
        env=environment)
    return [str(program)]


def compiler(home, environment):
    """The one that is there, or the one that go.mod names."""
    wanted = re.search(r'^go ([\d.]+)$', (SOURCE / 'go.mod').read_text(), re.MULTILINE).group(1)
    there = re.search(r'go version go([\d.]+)', run(['go', 'version'], env=environment)).group(1)
    if numbers(there) >= numbers(wanted):
        return 'go'
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise CannotInstall(f'Go {there} is older than {wanted}, and there is none for '
                            f'{platform.machine()}')
    module = f'golang.org/toolchain@v0.0.1-go{wanted}.linux-{machine}'
    answer = run(['go', 'mod', 'download', '-json', module], cwd=home, env=environment)
    folder = pathlib.Path(json.loads(answer)['Dir'])
    for tool in (*folder.glob('bin/*'), *folder.glob(f'pkg/tool/linux_{machine}/*')):
        tool.chmod(0o755)  # a module has no modes
    return folder / 'bin' / 'go'


def numbers(version):
    return [int(number) for number in version.split('.')]
