# SPDX-License-Identifier: MIT
"""Installs what the chosen peers need, below build/peers and from Debian."""
import importlib

from .install_common import PEERS, CannotInstall


def install_all(peers, build_dir, say):
    """The command of each driver by the name of its peer, and why others have none."""
    commands, refusals, done = {}, {}, {}
    for peer in peers:
        program = peer.name if peer.driver in ('c', 'go') else peer.driver  # others serve several
        if program not in done:
            say(f'installing what {peer.name} needs')
            done[program] = install_one(peer, build_dir)
        if isinstance(done[program], CannotInstall):
            reason = str(done[program]).replace(str(PEERS.parent.parent), '.')
            refusals[peer.name] = f'cannot be installed: {reason}'
            say(f'{peer.name} {refusals[peer.name]}')
        else:
            commands[peer.name] = done[program]
    return commands, refusals


def install_one(peer, build_dir):
    """The command, or why there is none."""
    module = importlib.import_module(f'.install_{peer.driver}', __package__)
    try:
        return module.install(build_dir, peer.name)
    except CannotInstall as error:
        return error
