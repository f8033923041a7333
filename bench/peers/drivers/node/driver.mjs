// SPDX-License-Identifier: MIT
//
// The driver of the lock libraries for Node: one process, a task is an asynchronous function, and
// all of them share one connection to each server, as is usual there. peers.mjs has the libraries.

import { writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { peers } from './peers.mjs';

const ERRORS_KEPT = 5;
const USAGE = 2;
const CANNOT = 3; // the exit status of what a peer cannot do
const MODES = ['pairs', 'hold', 'die', 'queue', 'ids'];
const now = process.hrtime.bigint;
const say = (line) => writeSync(1, line + '\n');

function leave(status, reason) {
    writeSync(2, reason + '\n');
    process.exit(status);
}

function parse() {
    const string = (value) => ({ type: 'string', default: value });
    const { values } = parseArgs({
        options: {
            peer: string(), url: string(), lock: string(), tasks: string('1'),
            'own-locks': string('0'), 'section-us': string('0'), 'pause-us': string('0'),
            'lease-ms': string('10000'),
            wait: string('1'), records: string(), mode: string('pairs'),
        },
    });
    if (!(values.peer in peers) || !values.url || !values.lock || !MODES.includes(values.mode)) {
        leave(USAGE, `wanted: --peer ${Object.keys(peers).join('|')} --url --lock ...`);
    }
    return {
        ...values, urls: values.url.split(','), tasks: Number(values.tasks),
        ownLocks: values['own-locks'] === '1', sectionMs: Number(values['section-us']) / 1000,
        pauseMs: Number(values['pause-us']) / 1000,
        leaseMs: Number(values['lease-ms']), wait: values.wait === '1',
    };
}

class Driver {
    constructor(options, peer) {
        this.options = options;
        this.peer = peer;
        this.words = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
        this.stopped = false;
        this.records = [];
        this.refused = 0;
        this.errors = [];
    }

    // The next word of the runner; the end of stdin counts as the one that is waited for.
    word() {
        return this.words.next();
    }

    nameOf(task) {
        const own = this.options.ownLocks || this.options.mode === 'hold';
        return own ? `${this.options.lock}-${task}` : this.options.lock;
    }

    async pairs() {
        const tasks = this.begin((task) => this.turns(task));
        await this.word();
        this.stopped = true;
        await Promise.all(tasks);
        this.report();
    }

    async queue() {
        await Promise.all(this.begin((task) => this.turn(task, this.lock(task))));
        this.report();
    }

    async hold() {
        let held = 0;
        const stop = this.word();
        const work = () => {
            if (++held === this.options.tasks) {
                say('held');
            }
            return stop;
        };
        const tasks = this.begin((task) => this.peer.hold(this.nameOf(task), work));
        const lost = await Promise.all(tasks);
        say(JSON.stringify({ held, lost: lost.filter(Boolean).length }));
    }

    async die() {
        await this.lock(0).acquire();
        say('held');
        await this.word();
    }

    begin(run) {
        return Array.from({ length: this.options.tasks }, (_, task) => run(task));
    }

    lock(task) {
        return this.peer.lock(this.nameOf(task));
    }

    async turns(task) {
        const lock = this.lock(task);
        while (!this.stopped) {
            await this.turn(task, lock);
            if (this.options.pauseMs > 0) {
                await setTimeout(this.options.pauseMs);
            }
        }
    }

    async turn(task, lock) {
        const asked = now();
        try {
            if (!await lock.acquire()) {
                this.refused++;
                return;
            }
        } catch (error) {
            await this.note(error);
            return;
        }
        const entered = now();
        if (this.options.mode === 'queue') {
            say(`granted ${entered}`);
        }
        if (this.options.sectionMs > 0) {
            await setTimeout(this.options.sectionMs);
        }
        const leaving = now();
        await lock.release().catch((error) => this.note(error));
        this.records.push([task, asked, entered, leaving, now()]);
    }

    // Gives the loop a turn: a server that is gone fails at once, and nobody would hear `stop`.
    async note(error) {
        if (this.errors.length < ERRORS_KEPT) {
            this.errors.push(`${error.name}: ${error.message}`);
        }
        await setImmediate();
    }

    report() {
        if (this.options.records) {
            writeFileSync(this.options.records,
                this.records.map((record) => record.join(' ') + '\n').join(''));
        }
        say(JSON.stringify({
            acquisitions: this.records.length, refused: this.refused, errors: this.errors,
        }));
    }
}

const options = parse();
if (options.mode === 'ids') {
    leave(CANNOT, `${options.peer}: no id generator`);
}
const driver = new Driver(options, await peers[options.peer].open(options));
say('ready');
await driver.word();
await driver[options.mode]();
process.exit(0);
