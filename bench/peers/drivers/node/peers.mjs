// SPDX-License-Identifier: MIT
//
// The two lock libraries behind one small face: lock(name) gives an object with acquire (true, or
// false when it is refused) and release; hold(name, work) does work under a lock that the library
// renews, and says whether it was lost meanwhile.
//
// What they do by themselves:
//
// redlock 5 (its newest version 5 is 5.0.0-beta.2; npm's "latest" is still 4.2.0): acquire and
// release are scripts on all servers at once, done when a majority agrees. Between tries 200 ms
// plus or minus 100 ms, 10 retries; waiting for ever is `retryCount: -1`. That is given to acquire
// alone: as a setting of the whole object it would also retry for ever the release of a lock that
// is gone. Only using() renews, 500 ms before the lease ends; acquire() does not. With several
// servers a try that failed keeps the minority of votes that it won, and the next try of the same
// caller finds them taken: two contenders can block themselves until those leases end.
//
// redis-semaphore: `SET NX PX` every 10 ms for up to 10 s (here: for ever), release by script, and
// a timer of each lock renews it after 0.8 of its lease. With several servers its RedlockMutex
// waits for the answer of every one, so that a stalled server would stop it for good. The Redlock
// algorithm asks for a time limit of 5 to 50 ms for each server; it gets 50 through its client.
// A single try that is refused (--wait 0) sleeps the 10 ms as well before it says so.
//
// Both poll, neither keeps an order. Neither names other retry settings for low latency.

import Redis from 'ioredis';
import Redlock, { ExecutionError } from 'redlock';
import semaphore from 'redis-semaphore';

const SERVER_TIMEOUT_MS = 50;

// Is done when a majority of the servers has answered: a stalled one is not waited for.
async function connect(urls, settings) {
    const clients = urls.map((url) => new Redis(url, { ...settings, lazyConnect: true }));
    const majority = Math.floor(clients.length / 2) + 1;
    const count = { ready: 0, failed: 0 };
    await new Promise((resolve, reject) => {
        for (const client of clients) {
            client.on('error', () => {}); // it also reaches the call that waits
            client.connect().then(
                () => ++count.ready === majority && resolve(),
                (error) => ++count.failed > clients.length - majority && reject(error));
        }
    });
    return clients;
}

class RedlockPeer {
    static async open(options) {
        const peer = new RedlockPeer();
        peer.redlock = new Redlock(await connect(options.urls, {}));
        peer.leaseMs = options.leaseMs;
        peer.settings = { retryCount: options.wait ? -1 : 0 };
        return peer;
    }

    lock(name) {
        let held;
        return {
            acquire: async () => {
                try {
                    held = await this.redlock.acquire([name], this.leaseMs, this.settings);
                } catch (error) {
                    if (error instanceof ExecutionError) {
                        return false;
                    }
                    throw error;
                }
                return true;
            },
            release: () => held.release(),
        };
    }

    hold(name, work) {
        return this.redlock.using([name], this.leaseMs, this.settings, async (signal) => {
            await work();
            if (signal.aborted) {
                throw signal.error;
            }
        }).then(() => false, () => true);
    }
}

class SemaphorePeer {
    static async open(options) {
        const several = options.urls.length > 1;
        const clients = await connect(
            options.urls, several ? { commandTimeout: SERVER_TIMEOUT_MS } : {});
        const peer = new SemaphorePeer();
        peer.settings = {
            lockTimeout: options.leaseMs,
            acquireTimeout: Infinity,
            acquireAttemptsLimit: options.wait ? Infinity : 1,
        };
        peer.mutex = (name, more) => several
            ? new semaphore.RedlockMutex(clients, name, { ...peer.settings, ...more })
            : new semaphore.Mutex(clients[0], name, { ...peer.settings, ...more });
        return peer;
    }

    lock(name) {
        const mutex = this.mutex(name);
        return { acquire: () => mutex.tryAcquire(), release: () => mutex.release() };
    }

    async hold(name, work) {
        let lost = false;
        const mutex = this.mutex(name, { onLockLost: () => { lost = true; } });
        await mutex.acquire();
        await work();
        await mutex.release();
        return lost;
    }
}

export const peers = { redlock: RedlockPeer, 'redis-semaphore': SemaphorePeer };
