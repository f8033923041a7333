// SPDX-License-Identifier: MIT
package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** The first few things that went wrong. */
final class Errors {
    private static final int KEPT = 5;
    private final List<String> texts = new ArrayList<>();

    synchronized void note(RuntimeException error) {
        if (texts.size() < KEPT) {
            texts.add(error.toString());
        }
    }

    synchronized String json() {
        return texts.stream().map(Errors::quoted).collect(Collectors.joining(", ", "[", "]"));
    }

    private static String quoted(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ') {
                json.append(' ');
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }
}
