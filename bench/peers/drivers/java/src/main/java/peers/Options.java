// SPDX-License-Identifier: MIT
package peers;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the runner asked for. */
record Options(String peer, List<String> urls, String lock, int tasks, boolean ownLocks,
               long sectionNs, long pauseNs, long leaseMs, boolean waits, String records, String mode) {

    static Options parse(String[] arguments) {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            given.put(arguments[i], arguments[i + 1]);
        }
        return new Options(
            given.getOrDefault("--peer", ""),
            List.of(given.getOrDefault("--url", "").split(",")),
            given.getOrDefault("--lock", ""),
            Integer.parseInt(given.getOrDefault("--tasks", "1")),
            given.getOrDefault("--own-locks", "0").equals("1"),
            Long.parseLong(given.getOrDefault("--section-us", "0")) * 1000,
            Long.parseLong(given.getOrDefault("--pause-us", "0")) * 1000,
            Long.parseLong(given.getOrDefault("--lease-ms", "10000")),
            given.getOrDefault("--wait", "1").equals("1"),
            given.get("--records"),
            given.getOrDefault("--mode", "pairs"));
    }

    String nameOf(int task) {
        return ownLocks || mode.equals("hold") ? lock + "-" + task : lock;
    }
}
