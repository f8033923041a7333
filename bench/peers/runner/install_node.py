# SPDX-License-Identifier: MIT
"""The driver of the lock libraries for Node, beside their packages."""
import pathlib
import shutil

from .install_common import PEERS, need, pinned, run


def install(build_dir, _name):
    """Installs below build_dir (build/peers) and returns how the driver is started."""
    need('node', 'nodejs')
    need('npm', 'npm')
    home = pathlib.Path(build_dir).resolve() / 'node'
    home.mkdir(parents=True, exist_ok=True)
    packages = {}
    for entry in (pinned('redlock'), pinned('redis-semaphore')):
        packages.update({entry['package']: entry['version'], **entry['with']})
    run(['npm', 'install', '--prefix', home, '--cache', home / 'cache', '--no-audit', '--no-fund',
         '--save-exact', *(f'{package}@{version}' for package, version in packages.items())])
    # Node looks for packages beside the module that asks for them.
    for module in (PEERS / 'drivers' / 'node').glob('*.mjs'):
        shutil.copy(module, home)
    return ['node', str(home / 'driver.mjs')]
