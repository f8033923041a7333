#!/bin/sh
# SPDX-License-Identifier: MIT
# Replays the seeds that once failed: kept.sh SIMULATOR LIST. A line of the list is the arguments
# of one run, then '#' and what the seed found.
set -eu
sim=$1
failed=0
while read -r line; do
    run=${line%%#*}
    [ -n "$run" ] || continue
    # shellcheck disable=SC2086  # the words of a line are arguments
    "$sim" --seed $run >/dev/null || { echo "failed again: $line"; failed=1; }
done <"$2"
exit "$failed"
