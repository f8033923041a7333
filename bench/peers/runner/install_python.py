# SPDX-License-Identifier: MIT
"""The driver of redis-py, in a virtual environment of its own."""
import pathlib
import sys

from .install_common import PEERS, CannotInstall, need, pinned, run


def install(build_dir, _name):
    """Installs below build_dir (build/peers) and returns how the driver is started."""
    home = pathlib.Path(build_dir).resolve() / 'python'
    python = home / 'bin' / 'python'
    make_environment(home)
    entry = pinned('redis-py')
    packages = {entry['package']: entry['version'], **entry['with']}
    run([python, '-m', 'pip', 'install', '--quiet', *(f'{p}=={v}' for p, v in packages.items())])
    return [str(python), str(PEERS / 'drivers' / 'python' / 'driver.py')]


def make_environment(home):
    """Debian keeps the module that makes environments with pip in a package of its own."""
    try:
        run([sys.executable, '-m', 'venv', home])
    except CannotInstall:
        need('python3-venv', 'python3-venv')
        run([sys.executable, '-m', 'venv', home])
