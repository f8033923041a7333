#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs every fuzz target of a build for some time, two at once at most:
#
#     run.sh BUILD_DIR SECONDS
#
# The committed corpus is only the start: new inputs go to a copy in a temporary folder. A crashing
# input is kept under BUILD_DIR/crashes; put it into tests/fuzz/corpus together with the fix.
set -u
if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD_DIR SECONDS" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
seconds=$2
crashes=$build/crashes
mkdir -p "$crashes"
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP

run_target() {
    mkdir "$scratch/$1" && cp "$here/corpus/$1/"* "$scratch/$1/"
    "$build/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -max_len=1024 -timeout=10 \
        -print_final_stats=1 -artifact_prefix="$crashes/$1-" "$scratch/$1" >"$scratch/$1.log" 2>&1
    echo $? >"$scratch/$1.status"
}

# The edges known before the first new input, and at last.
coverage() {
    sed -n "s/^#[0-9]*[[:space:]]*$2 .*cov: \([0-9]*\).*/\1/p" "$scratch/$1.log" | tail -n 1
}

report() {
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/$1.log")
    before=$(coverage "$1" INITED)
    after=$(coverage "$1" DONE)
    if [ "$(cat "$scratch/$1.status")" = 0 ]; then
        echo "fuzz_$1: $executions executions, coverage $before -> $after edges"
        return 0
    fi
    tail -n 60 "$scratch/$1.log"
    echo "fuzz_$1: FAILED; input saved: $(sed -n 's/.*Test unit written to //p' "$scratch/$1.log")"
    return 1
}

run_target reader &
first=$!
run_target url
wait "$first"
run_target core &
first=$!
run_target push
wait "$first"
failed=0
for target in reader url core push; do
    report "$target" || failed=1
done
exit $failed
