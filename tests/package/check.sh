#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs everything into a temporary folder and uses it as strangers do: a program of ten lines,
# built with pkg-config and with CMake, against the shared and the static library, and run against a
# server of its own; then the command. The tree is moved after it was installed: nothing in it may
# know where it was built or where it was put first. However this script ends, server and folder go
# with it.
#
#     tests/package/check.sh SOURCE_DIR RELEASE_DIR
set -eu
# We are run by `make test`: its variables are not meant for the make in here.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX LIBDIR BUILD PKG_CONFIG_PATH CMAKE_PREFIX_PATH \
    LD_LIBRARY_PATH 2>/dev/null || true

source=$1
release=$2
here=$source/tests/package
folder=$(mktemp -d /tmp/holdfast-package-XXXXXX)
server=

clean_up() {
    [ -z "$server" ] || { kill "$server" && wait "$server" || true; } 2>/dev/null
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 143' INT TERM HUP

fail() {
    echo "package: $*" >&2
    exit 1
}

# ---- Install, without building again, and move ----

stamp() { stat -c '%n %y' "$release"/libholdfast.*; }
before=$(stamp)
make -s -C "$source" BUILD="$release" DESTDIR="$folder/stage" install >"$folder/log" 2>&1 ||
    { cat "$folder/log"; fail "make install failed"; }
[ "$before" = "$(stamp)" ] || fail "make install has built the library again"
tree=$folder/moved
mv "$folder/stage/usr/local" "$tree"
[ -z "$(find "$folder/stage" ! -type d)" ] || fail "something was installed outside of the prefix"

pc=$(find "$tree" -name holdfast.pc)
lib=$(dirname "$(dirname "$pc")")
for file in include/holdfast.h bin/holdfast share/man/man1/holdfast.1 share/man/man3/holdfast.3 \
    share/bash-completion/completions/holdfast share/doc/holdfast/README.md \
    share/doc/holdfast/README.zh-CN.md share/doc/holdfast/demo.svg \
    share/doc/holdfast/CHANGELOG.md share/doc/holdfast/LICENSE share/doc/holdfast/safety.md; do
    [ -s "$tree/$file" ] || fail "$file is not installed"
done
for header in "$source"/include/*; do
    cmp "$header" "$tree/include/$(basename "$header")"
done
[ "$(readlink "$lib/libholdfast.so")" = libholdfast.so.0 ] || fail "libholdfast.so leads elsewhere"
for place in "$source" "$release" "$folder"; do
    found=$(grep -rlF -- "$place" "$tree" || true)
    [ -z "$found" ] || fail "$place is written in $found"
done

# ---- The headers alone ----

strict="-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I$tree/include"
for standard in c11 c17; do
    echo '#include <holdfast.h>' | cc -x c -std=$standard $strict -
done
for header in "$tree"/include/*; do
    echo "#include <$(basename "$header")>" | c++ -x c++ -std=c++17 $strict -
done

# ---- Four programs ----

export PKG_CONFIG_PATH="$lib/pkgconfig"
version=$(pkg-config --modversion holdfast)
[ "$version" = "$("$source/tools/version")" ] || fail "holdfast.pc has version $version"
cflags=$(pkg-config --cflags holdfast)
cc "$here/program.c" -o "$folder/pc_shared" $cflags $(pkg-config --libs holdfast)
# Everything else may be shared; the linker takes the shared one of two libraries if it has a choice.
cc "$here/program.c" -o "$folder/pc_static" $cflags \
    $(pkg-config --static --libs holdfast | sed 's/-lholdfast/-l:libholdfast.a/')

major=${version%%.*}
rest=${version#*.}
minor=${rest%%.*}
bad="$major.$((minor + 1));$((major + 1)).0"
[ "$major" -gt 0 ] || bad="$bad;0.$((minor - 1))" # before 1.0, older is other
cmake -S "$here/project" -B "$folder/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$tree" \
    -DGOOD="$major.$minor" -DBAD="$bad" >"$folder/log" 2>&1 &&
    cmake --build "$folder/cmake" >>"$folder/log" 2>&1 || { cat "$folder/log"; fail "CMake failed"; }

needs() { readelf -d "$1" | grep -q "NEEDED.*\[$2"; }
for program in pc_shared cmake/with_holdfast; do
    needs "$folder/$program" libholdfast.so.0 || fail "$program does not need libholdfast.so.0"
done
for program in pc_static cmake/with_holdfast_static; do
    ! needs "$folder/$program" libholdfast.so.0 || fail "$program needs libholdfast.so.0"
done
# OpenSSL is loaded by who wants TLS; whoever does not must not pay for it.
for file in "$lib/libholdfast.so" "$tree/bin/holdfast" "$folder/pc_static" \
    "$folder/cmake/with_holdfast_static"; do
    for library in libssl libcrypto; do
        ! needs "$file" $library || fail "$file is linked with $library"
    done
done

# ---- Run them ----

die_with_us=
command -v setpriv >/dev/null && die_with_us="setpriv --pdeathsig KILL"
$die_with_us redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" --save '' \
    --appendonly no --daemonize no >"$folder/redis.log" 2>&1 &
server=$!
last=0
for program in pc_shared pc_static cmake/with_holdfast cmake/with_holdfast_static; do
    said=$(LD_LIBRARY_PATH=$lib "$folder/$program" "unix://$folder/redis.sock") ||
        fail "$program says: $said"
    fence=$(echo "$said" | sed -n 's/^fence \([0-9][0-9]*\)$/\1/p')
    [ "${fence:-0}" -gt "$last" ] || fail "$program says: $said, after the fence $last"
    last=$fence
    echo "$program: $said" | tr '\n' ' '
    echo
done

# ---- The command ----

command=$tree/bin/holdfast
! needs "$command" libholdfast.so.0 || fail "the command needs libholdfast.so.0, which it should contain"
[ "$("$command" --version)" = "holdfast $version" ] || fail "the command is $("$command" --version)"
"$command" --completion | cmp - "$tree/share/bash-completion/completions/holdfast" ||
    fail "the completion is not that of the command"
# shellcheck disable=SC2016
bash -c '. "$1"; COMP_WORDS=(holdfast run --fo); COMP_CWORD=2; _holdfast
    [ "${COMPREPLY[*]}" = --foreground ]' - "$tree/share/bash-completion/completions/holdfast" ||
    fail "the completion does not know --foreground"

export HOME="$folder" HOLDFAST_URL="unix://$folder/redis.sock"
unset XDG_CONFIG_HOME HOLDFAST_CONFIG HOLDFAST_PREFIX
said=$("$command" run -n package -- sh -c 'echo "$HOLDFAST_FENCE"; exit 3') && code=0 || code=$?
[ "$code" -eq 3 ] || fail "the command ends with $code instead of 3"
[ "$said" -gt "$last" ] || fail "the command's fence is $said, after $last"
"$command" run package -- "$command" run -n package -- true 2>"$folder/log" && code=0 || code=$?
[ "$code" -eq 75 ] || { cat "$folder/log"; fail "a second one ends with $code instead of 75"; }
echo "command: fence $said"
