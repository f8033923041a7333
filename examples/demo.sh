#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the library's demo, holdfast-demo, or the flash sale, against a redis-server of its own: a
# unix socket in a temporary folder, no port. However this script ends, server and folder go with it;
# should it be killed outright, the kernel takes the server down. The programs wait for the server
# themselves, because a client can. (The demo of the command is tools/demo.)
#
#     examples/demo.sh [BUILD_DIR]
#     examples/demo.sh BUILD_DIR flashsale [OPTIONS]       a SQLite file in the folder, unless --db
set -u

build=${1:-build}
which=${2:-demo}
[ $# -lt 2 ] || shift 2
demo=$build/examples/holdfast-$which
folder= server= story=

clean_up() {
    trap - EXIT INT TERM HUP
    for pid in $story $server; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    [ -z "$folder" ] || rm -rf "$folder"
}

[ -x "$demo" ] || { echo "demo: no $demo; run make first" >&2; exit 2; }
command -v redis-server >/dev/null || { echo "demo: redis-server is not installed" >&2; exit 2; }

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A unix socket's path has little room, so a deep TMPDIR is not used.
parent=${TMPDIR:-/tmp}
[ ${#parent} -le 60 ] || parent=/tmp
folder=$(mktemp -d "$parent/holdfast-demo-XXXXXX") || exit 2

die_with_us=
command -v setpriv >/dev/null && die_with_us="setpriv --pdeathsig KILL"
$die_with_us redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" \
    --save '' --appendonly no --daemonize no >"$folder/redis.log" 2>&1 &
server=$!

url=unix://$folder/redis.sock
case $which in
demo) set -- "$url" "$folder" ;;
*) set -- --redis "$url" --db "$folder/sale.db" "$@" ;;
esac
# In the background, because only `wait` lets a trap run at once.
"$demo" "$@" &
story=$!
wait "$story"
code=$?
story=
if [ "$code" -ne 0 ] && ! kill -0 "$server" 2>/dev/null; then
    echo "demo: redis-server has ended; its last words:" >&2
    tail -n 5 "$folder/redis.log" >&2
fi
exit "$code"
