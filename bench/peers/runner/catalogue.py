# SPDX-License-Identifier: MIT
"""Who is compared. What a peer cannot do is mostly said by its driver; here stands what no driver
can know."""
from collections import namedtuple

# `driver` is the module that installs it, `ordered`: it serves in the order of arrival, `lasting`:
# a lease decides when the lock of a dead process is free, and not its connection, `only`: the one
# workload that it is for.
Peer = namedtuple('Peer', 'name title driver server ordered lasting interop only')


def peer(name, title, driver, server='redis', ordered=False, lasting=True, interop=None,
         only=None):
    return Peer(name, title, driver, server, ordered, lasting, interop, only)


# `interop` is the key at the server for a lock of the name {}, for those that use a plain string
# with a value and an expiry as Holdfast does.
PEERS = [
    peer('holdfast', 'Holdfast', 'c', ordered=True),
    peer('holdfast-fair', 'Holdfast, fair', 'c', ordered=True),
    peer('hiredis', 'hiredis by hand', 'c'),
    peer('redisson', 'Redisson', 'java'),
    peer('redisson-fair', 'Redisson, fair lock', 'java', ordered=True),
    peer('redisson-idgenerator', 'Redisson, RIdGenerator', 'java', only='w9'),
    peer('redsync', 'redsync', 'go', interop='{}'),
    peer('redislock', 'bsm/redislock', 'go', interop='{}'),
    peer('rueidislock', 'rueidislock', 'go'),
    peer('redis-py', 'redis-py', 'python', interop='{}'),
    peer('redlock', 'node-redlock', 'node', interop='{}'),
    peer('redis-semaphore', 'redis-semaphore', 'node', interop='mutex:{}'),
    peer('etcd', 'etcd concurrency', 'go', 'etcd', ordered=True),
    peer('postgres', 'PostgreSQL advisory locks', 'c', 'postgres', ordered=True, lasting=False),
    peer('mariadb', 'MariaDB GET_LOCK', 'c', 'mariadb', ordered=True, lasting=False),
    peer('zookeeper', 'ZooKeeper', 'c', 'zookeeper', ordered=True),
]

BY_NAME = {p.name: p for p in PEERS}


def choose(names, table=BY_NAME, what='peer'):
    """Those that are named, in the order of the table; all of them if none is."""
    wanted = names.replace(',', ' ').split() or list(table)
    unknown = sorted(set(wanted) - set(table))
    if unknown:
        raise SystemExit(f'no such {what}: {", ".join(unknown)}; there are {", ".join(table)}')
    return [entry for name, entry in table.items() if name in wanted]
