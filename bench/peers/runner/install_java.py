# SPDX-License-Identifier: MIT
"""The driver of Redisson, compiled by Maven beside the libraries that it needs."""
import pathlib

from .install_common import PEERS, need, pinned, run


def install(build_dir, _name):
    """Installs below build_dir (build/peers) and returns how the driver is started."""
    need('javac', 'openjdk-17-jdk-headless')
    need('mvn', 'maven')
    home = pathlib.Path(build_dir).resolve() / 'java'
    entry = pinned('redisson')
    run(['mvn', '--batch-mode', '--quiet', '--file', PEERS / 'drivers' / 'java' / 'pom.xml',
         f'-Dmaven.repo.local={home / "repository"}', f'-Doutput={home}',
         f'-Dredisson.version={entry["version"]}',
         f'-Dslf4j.version={entry["with"]["org.slf4j:slf4j-simple"]}',
         'compile', 'dependency:copy-dependencies', f'-DoutputDirectory={home / "libraries"}'])
    return ['java', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error',
            '-cp', f'{home / "classes"}:{home / "libraries"}/*', 'peers.Driver']
