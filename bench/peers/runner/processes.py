# SPDX-License-Identifier: MIT
"""Processes that end with us: what they have used, and how they are ended."""
import contextlib
import ctypes
import os
import signal
import subprocess

PR_SET_PDEATHSIG = 1
TICKS = os.sysconf('SC_CLK_TCK')
PATIENCE = 10  # seconds from the polite signal to the other one

libc = ctypes.CDLL(None)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command, **more):
    return subprocess.Popen([str(word) for word in command], preexec_fn=die_with_parent, **more)


def end(process):
    """Ends it politely, or else by force; also one that was stopped."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def fields_of(pid):
    """Those of /proc/PID/stat from the state on; None when it is gone."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
            return file.read().rpartition(')')[2].split()
    except OSError:
        return None


def family(pid):
    """The process and all that descend from it: PostgreSQL has one for each connection."""
    children = {}
    for name in os.listdir('/proc'):
        fields = fields_of(name) if name.isdigit() else None
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    members = [pid]
    for member in members:
        members += children.get(member, [])
    return members


def signal_all(pids, number):
    """Those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def cpu_seconds(pids):
    """Processor time in user and system mode of those that are alive."""
    stats = [fields for fields in map(fields_of, pids) if fields]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / TICKS


def memory_mb(pid):
    """Resident memory."""
    with open(f'/proc/{pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6
