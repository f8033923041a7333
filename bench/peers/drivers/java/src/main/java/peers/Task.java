// SPDX-License-Identifier: MIT
package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RLock;

/** One thread that takes and gives back a lock, turn by turn, and remembers when. */
final class Task extends Thread {
    record Turn(long asked, long entered, long leaving, long released) {
    }

    private final Options options;
    private final int number;
    private final RLock lock;
    private final CountDownLatch started;
    private final Errors errors;
    private final List<Turn> turns = new ArrayList<>();
    private long refused;
    private volatile boolean stopped;

    Task(Options options, int number, RLock lock, CountDownLatch started, Errors errors) {
        this.options = options;
        this.number = number;
        this.lock = lock;
        this.started = started;
        this.errors = errors;
        setDaemon(true);
    }

    int number() {
        return number;
    }

    List<Turn> turns() {
        return turns;
    }

    long refused() {
        return refused;
    }

    void stopAfterTurn() {
        stopped = true;
    }

    @Override
    public void run() {
        try {
            started.await();
        } catch (InterruptedException nobodyDoes) {
            return;
        }
        do {
            try {
                turn();
            } catch (RuntimeException error) {
                errors.note(error);
            }
            sleepUntil(System.nanoTime() + options.pauseNs());
        } while (!stopped && options.mode().equals("pairs"));
    }

    private void turn() {
        long asked = System.nanoTime();
        if (!acquire()) {
            refused++;
            return;
        }
        long entered = System.nanoTime();
        if (options.mode().equals("queue")) {
            Runner.say("granted " + entered);
        }
        sleepUntil(entered + options.sectionNs());
        long leaving = System.nanoTime();
        try {
            lock.unlock();
        } finally {
            turns.add(new Turn(asked, entered, leaving, System.nanoTime()));
        }
    }

    /** A thread may be woken for no reason, hence the loop. */
    private static void sleepUntil(long end) {
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private boolean acquire() {
        if (!options.waits()) {
            return lock.tryLock();
        }
        lock.lock();
        return true;
    }
}
