# SPDX-License-Identifier: MIT
"""Installs what the chosen peers need, below build/peers and from Debian, each kind once."""
import importlib
import inspect

from .install_common import CannotInstall


def install_all(peers, build_dir, say):
    """The command of each driver by the name of its peer, and why others have none."""
    commands, refusals, done = {}, {}, {}
    for peer in peers:
        try:
            commands[peer.name] = install_one(peer, build_dir, done, say)
        except (CannotInstall, ImportError) as error:
            refusals[peer.name] = f'cannot be installed: {error}'
            say(f'{peer.name} {refusals[peer.name]}')
    return commands, refusals


def install_one(peer, build_dir, done, say):
    """A module whose install() takes a name builds for each peer, others once for all."""
    module = importlib.import_module(f'.install_{peer.driver}', __package__)
    by_name = len(inspect.signature(module.install).parameters) > 1
    key = (peer.driver, peer.name if by_name else None)
    if key not in done:
        say(f'installing what {peer.name} needs')
        try:
            done[key] = module.install(build_dir, *([peer.name] if by_name else []))
        except CannotInstall as error:
            done[key] = error
    if isinstance(done[key], CannotInstall):
        raise done[key]
    return done[key]
