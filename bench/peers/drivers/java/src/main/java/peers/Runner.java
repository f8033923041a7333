// SPDX-License-Identifier: MIT
package peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.List;

/** The other end of stdin and stdout, and the file of records. */
final class Runner {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

    private Runner() {
    }

    static void say(String line) {
        System.out.println(line);
    }

    /** Waits for the next word; the end of stdin counts as the one that is waited for. */
    static void waitForWord() throws IOException {
        IN.readLine();
    }

    static void report(Options options, List<Task> tasks, Errors errors) throws IOException {
        long acquisitions = 0;
        long refused = 0;
        for (Task task : tasks) {
            acquisitions += task.turns().size();
            refused += task.refused();
        }
        if (options.records() != null) {
            write(options.records(), tasks);
        }
        say("{\"acquisitions\": " + acquisitions + ", \"refused\": " + refused
            + ", \"errors\": " + errors.json() + "}");
    }

    private static void write(String path, List<Task> tasks) throws IOException {
        try (PrintWriter file = new PrintWriter(path)) {
            for (Task task : tasks) {
                for (Task.Turn turn : task.turns()) {
                    file.println(task.number() + " " + turn.asked() + " " + turn.entered() + " "
                        + turn.leaving() + " " + turn.released());
                }
            }
        }
    }
}
