# SPDX-License-Identifier: MIT
"""What the installers of the drivers share: pinned versions, programs from Debian, commands.

An installer that cannot do its work raises CannotInstall with one clear line, which ends up in
the table: a peer is never left out silently."""
import json
import os
import pathlib
import shutil
import subprocess

PEERS = pathlib.Path(__file__).resolve().parent.parent
BOUND = 600  # seconds; a package source that takes longer is as good as none
WORDS = 300  # characters of a failed command's output that are worth a cell of a table


class CannotInstall(Exception):
    pass


def pinned(name):
    """The entry of one peer in versions.json."""
    for entry in json.loads((PEERS / 'versions.json').read_text()):
        if entry['name'] == name:
            return entry
    raise CannotInstall(f'versions.json does not name {name}')


def run(command, **more):
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=BOUND, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(f'{command[0]}: {error}') from error
    if done.returncode != 0:
        raise CannotInstall(f'{command[0]} {command[1]} failed: {last_words(done.stdout)}')
    return done.stdout


def last_words(text):
    """The first lines that speak of an error, else the end; in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if 'error' in line.lower()]
    return ' '.join(errors[:3] or lines[-3:])[:WORDS] or 'it said nothing'


def need(program, *packages):
    """Finds a program; installs its Debian packages if it is missing and we may."""
    if shutil.which(program):
        return
    if os.geteuid() != 0 or not shutil.which('apt-get'):
        raise CannotInstall(f'{program} is missing (Debian: apt-get install {" ".join(packages)})')
    run(['apt-get', 'install', '-y', '--no-install-recommends', *packages],
        env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'})
