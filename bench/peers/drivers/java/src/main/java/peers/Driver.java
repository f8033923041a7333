// SPDX-License-Identifier: MIT
package peers;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * The driver of Redisson: one process, a thread per task, one client with its default pools (64
 * connections, 16 threads and 32 of Netty) for all of them.
 *
 * What the library does by itself: lock() sends a script; who is refused subscribes to a channel
 * of the lock, and a release wakes one waiter in every process, so there is no retry delay (a
 * waiter that hears nothing asks again when the lease it was told ends). lock() without a lease,
 * which is what its documentation shows first, takes lockWatchdogTimeout (30 s; here the lease
 * that all peers get) and one timer per client renews all locks after a third of it, a hundred per
 * script. RFairLock keeps a queue on the server; a waiter that died holds its place there for five
 * minutes unless its lock is configured otherwise.
 *
 * Several servers: RedissonRedLock is deprecated by its authors, and RedissonMultiLock needs every
 * server rather than a majority, one after the other. Neither is a quorum to compare with.
 *
 * Ids: RAtomicLong (an INCR for each) as `redisson`, RIdGenerator (blocks of 5000, its default) as
 * `redisson-idgenerator`. Each task has its own generator object, hence its own blocks: one object
 * that four threads shared stopped for good in a third of the runs of 4.7.0 (never with a stack of
 * 64 MB; its callbacks nest as deep as requests wait).
 */
final class Driver {
    private static final int USAGE = 2;
    private static final int CANNOT = 3;
    private static final List<String> PEERS =
        List.of("redisson", "redisson-fair", "redisson-idgenerator");
    private static final List<String> MODES = List.of("pairs", "hold", "die", "queue", "ids");

    private final Options options;
    private final RedissonClient client;
    private volatile boolean stopped;

    private Driver(Options options) {
        this.options = options;
        Config config = new Config();
        config.setLockWatchdogTimeout(options.leaseMs());
        config.useSingleServer().setAddress(options.urls().get(0));
        client = Redisson.create(config);
    }

    public static void main(String[] arguments) throws Exception {
        Options options = Options.parse(arguments);
        if (!PEERS.contains(options.peer()) || !MODES.contains(options.mode())) {
            leave(USAGE, "wanted: --peer " + String.join("|", PEERS) + " --url --lock ...");
        }
        String against = reasonAgainst(options);
        if (against != null) {
            leave(CANNOT, options.peer() + ": " + against);
        }
        Driver driver = new Driver(options);
        try {
            driver.run();
        } finally {
            driver.client.shutdown();
        }
    }

    private static void leave(int status, String reason) {
        System.err.println(reason);
        System.exit(status);
    }

    private static String reasonAgainst(Options options) {
        boolean ids = options.mode().equals("ids");
        if (options.urls().size() > 1) {
            return "RedLock is deprecated by its authors and MultiLock needs every server";
        }
        if (options.peer().equals("redisson-idgenerator") && !ids) {
            return "ids only";
        }
        return options.peer().equals("redisson-fair") && ids ? "a lock, no id generator" : null;
    }

    private void run() throws IOException, InterruptedException {
        switch (options.mode()) {
            case "hold" -> hold();
            case "die" -> die();
            case "ids" -> ids();
            default -> turns();
        }
    }

    private RLock lock(int task) {
        String name = options.nameOf(task);
        return options.peer().equals("redisson-fair") ? client.getFairLock(name)
                                                      : client.getLock(name);
    }

    private static void waitForGo() throws IOException {
        Runner.say("ready");
        Runner.waitForWord();
    }

    /** Modes pairs and queue. */
    private void turns() throws IOException, InterruptedException {
        CountDownLatch started = new CountDownLatch(1);
        Errors errors = new Errors();
        List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < options.tasks(); i++) {
            tasks.add(new Task(options, i, lock(i), started, errors));
            tasks.get(i).start();
        }
        waitForGo();
        started.countDown();
        if (options.mode().equals("pairs")) {
            Runner.waitForWord();
            tasks.forEach(Task::stopAfterTurn);
        }
        for (Task task : tasks) {
            task.join();
        }
        Runner.report(options, tasks, errors);
    }

    /**
     * A lock belongs to its thread, so this one takes them all. It asks for each at the end, as the
     * fair lock says nothing when a lock that is gone is released; what is left ends by itself.
     */
    private void hold() throws IOException {
        List<RLock> locks = new ArrayList<>();
        waitForGo();
        for (int i = 0; i < options.tasks(); i++) {
            locks.add(lock(i));
            locks.get(i).lock();
        }
        Runner.say("held");
        Runner.waitForWord();
        long lost = locks.stream().filter(lock -> !lock.isHeldByCurrentThread()).count();
        Runner.say("{\"held\": " + locks.size() + ", \"lost\": " + lost + "}");
    }

    private void die() throws IOException {
        waitForGo();
        lock(0).lock();
        Runner.say("held");
        Runner.waitForWord();
    }

    private void ids() throws IOException, InterruptedException {
        LongAdder ids = new LongAdder();
        List<Thread> threads = new ArrayList<>();
        waitForGo();
        long begun = System.nanoTime();
        for (int i = 0; i < options.tasks(); i++) {
            LongSupplier next = generator();
            threads.add(new Thread(() -> takeIds(next, ids)));
            threads.get(i).start();
        }
        Runner.waitForWord();
        stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        Runner.say("{\"ids\": " + ids.sum() + ", \"seconds\": " + seconds + "}");
    }

    private LongSupplier generator() {
        return options.peer().equals("redisson")
            ? client.getAtomicLong(options.lock())::incrementAndGet
            : client.getIdGenerator(options.lock())::nextId;
    }

    private void takeIds(LongSupplier next, LongAdder ids) {
        while (!stopped) {
            next.getAsLong();
            ids.increment();
        }
    }
}
