#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a library that was built with a sanitizer, and builds programs with what pkg-config and the
# CMake package say, and no word of sanitizers of their own: they run, with the shared and with the
# static library, and AddressSanitizer finds what it finds only with the library's help.
#
# Environment: as for package.sh, and SANITIZE, the argument of -fsanitize.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() { echo "FAIL: $*" >&2; exit 1; }
step() { echo "-- $*"; }
expect_version() {
    local said
    said=$("$@") || fail "$1 exited with $?"
    [ "$said" = "blitz $VERSION" ] || fail "$1 said '$said', not 'blitz $VERSION'"
}

step "install"
"$CMAKE" --install "$BUILD" --prefix "$root/opt" >"$root/log" || { cat "$root/log"; exit 1; }
lib=$root/opt/$LIBDIR
[ -e "$lib/libblitz.so" ] || fail "there is no shared library"
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib

step "pkg-config"
# shellcheck disable=SC2046
build() { # source program: with the shared and with the static library
    "$CC" -std=gnu11 -g $(pkg-config --cflags blitz) "$here/$1" -o "$root/$2.shared" $(pkg-config --libs blitz)
    "$CC" -std=gnu11 -g $(pkg-config --cflags blitz) "$here/$1" -o "$root/$2.static" \
        $(pkg-config --static --libs blitz | sed 's/-lblitz/-l:libblitz.a/')
}
build consumer.c consumer
expect_version "$root/consumer.shared"
expect_version "$root/consumer.static"

if [[ $SANITIZE == *address* ]]; then
    step "mistakes that AddressSanitizer finds"
    build mistakes.c mistakes
    for mistake in dead_frame unjoined_scope; do
        for kind in shared static; do
            if "$root/mistakes.$kind" $mistake >"$root/said" 2>&1; then
                fail "$mistake, $kind: nothing was found"
            fi
            grep -q 'AddressSanitizer: use-after-poison' "$root/said" ||
                { cat "$root/said"; fail "$mistake, $kind: something else was found"; }
        done
    done
fi

step "CMake package"
"$CMAKE" -S "$here/cmake-consumer" -B "$root/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$root/opt" \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
"$CMAKE" --build "$root/cmake" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
for program in c_shared c_static cxx_shared cxx_static; do
    expect_version "$root/cmake/$program"
done
echo "installed with $SANITIZE: ok"
