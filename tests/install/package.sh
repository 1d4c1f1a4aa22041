#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a temporary root and uses the result as a stranger would: a C and a C++ program,
# each through pkg-config and through CMake, each with the shared and with the static library.
# Then looks at what the shared library exports.
#
# Environment: BUILD (a build directory with the libraries built), CC, CXX, CMAKE, LIBDIR, VERSION.
# The consumers are consumer.c and consumer.cpp: extend them as the API grows.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() { echo "FAIL: $*" >&2; exit 1; }
step() { echo "-- $*"; }

# Runs a consumer and compares what it prints first with the version that was installed.
expect_version() {
    local said
    said=$("$@") || fail "$1 exited with $?"
    [ "$said" = "blitz $VERSION" ] || fail "$1 said '$said', not 'blitz $VERSION'"
}

step "install with DESTDIR"
DESTDIR=$root "$CMAKE" --install "$BUILD" --prefix /opt/blitz >"$root/log" || { cat "$root/log"; exit 1; }
prefix=$root/opt/blitz
lib=$prefix/$LIBDIR
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$lib

step "pkg-config"
[ "$(pkg-config --variable=prefix blitz | sed "s|^$root||")" = /opt/blitz ] || fail "prefix in blitz.pc"
[ "$(pkg-config --modversion blitz)" = "$VERSION" ] || fail "pkg-config --modversion"
pkg-config --libs --static blitz | grep -q -- -lpthread || fail "--static does not name -lpthread"
flags=(-Wall -Wextra -Wpedantic -Werror)
build_with_pkg_config() { # compiler standard source output-suffix
    # shellcheck disable=SC2046
    "$1" "-std=$2" "${flags[@]}" $(pkg-config --cflags blitz) "$here/$3" -o "$root/$3.shared" \
        $(pkg-config --libs blitz)
    # -lblitz picks the shared library where both exist; the archive is named to be certain.
    # shellcheck disable=SC2046
    "$1" "-std=$2" "${flags[@]}" $(pkg-config --cflags blitz) "$here/$3" -o "$root/$3.static" \
        $(pkg-config --static --libs blitz | sed 's/-lblitz/-l:libblitz.a/')
    expect_version "$root/$3.shared"
    LD_LIBRARY_PATH='' expect_version "$root/$3.static"
}
build_with_pkg_config "$CC" gnu11 consumer.c
build_with_pkg_config "$CXX" c++17 consumer.cpp
# One program with nothing shared at all, C library included.
# shellcheck disable=SC2046
"$CC" -std=gnu11 "${flags[@]}" -static $(pkg-config --cflags blitz) "$here/consumer.c" \
    -o "$root/all-static" $(pkg-config --static --libs blitz)
expect_version "$root/all-static"

step "what to export"
# Without DESTDIR, into a folder that nothing looks into: what is said is enough, and then nothing is said.
"$CMAKE" --install "$BUILD" --prefix "$root/elsewhere" >"$root/log" || { cat "$root/log"; exit 1; }
(
    unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH MANPATH
    hints() { "$here/../../tools/install-hints" "$BUILD" "$root/elsewhere"; }
    said=$(hints)
    for variable in PKG_CONFIG_PATH LD_LIBRARY_PATH; do
        grep -q "^    export $variable=" <<<"$said" || fail "$variable is not named: $said"
    done
    eval "$(grep '^    export ' <<<"$said")"
    # shellcheck disable=SC2046
    "$CC" -std=gnu11 $(pkg-config --cflags blitz) "$here/consumer.c" -o "$root/exported" \
        $(pkg-config --libs blitz)
    expect_version "$root/exported"
    command -v blitz-top >/dev/null || fail "blitz-top is not found"
    if command -v man manpath >/dev/null; then
        [ "$(man -w 3 blz_tcp)" = "$root/elsewhere/share/man/man3/blz_tcp.3" ] || fail "man does not find it"
    fi
    said=$(hints)
    [ -z "$said" ] || fail "more is asked for than is needed: $said"
)

step "manual pages"
man=$prefix/share/man
for page in man7/blitz.7 man1/blitz-check-frames.1 man1/blitz-top.1 man3/blz_tcp.3; do
    [ -s "$man/$page" ] || fail "no $page"
done
[ "$(cat "$man/man3/blz_tcp_read.3")" = ".so man3/blz_tcp.3" ] || fail "blz_tcp_read(3) leads elsewhere"

step "gdb commands"
[ -s "$prefix/share/blitz/blitz-gdb.py" ] || fail "no blitz-gdb.py"
[ -s "$prefix/share/gdb/auto-load/opt/blitz/$LIBDIR/libblitz.so.$VERSION-gdb.py" ] ||
    fail "gdb would not find the commands by itself"

step "CMake package"
"$CMAKE" -S "$here/cmake-consumer" -B "$root/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
"$CMAKE" --build "$root/cmake" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
for program in c_shared c_static cxx_shared cxx_static; do
    expect_version "$root/cmake/$program"
done
LD_LIBRARY_PATH='' expect_version "$root/cmake/c_static"

step "CMake subproject"
"$CMAKE" -S "$here/cmake-subproject" -B "$root/sub" -G Ninja -DCMAKE_C_COMPILER="$CC" \
    -DBLITZ_SOURCE_DIR="$here/../.." >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
"$CMAKE" --build "$root/sub" -j2 >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
expect_version "$root/sub/consumer"
[ ! -e "$root/sub/blitz/tests" ] || fail "a subproject builds our tests"

step "exported symbols and soname"
so=$lib/libblitz.so
soname=$(objdump -p "$so" | awk '$1 == "SONAME" { print $2 }')
case $VERSION in # as docs/versioning.md has it
0.*) soversion=${VERSION%.*} ;;
*) soversion=${VERSION%%.*} ;;
esac
[ "$soname" = "libblitz.so.$soversion" ] || fail "soname of $VERSION is '$soname', not libblitz.so.$soversion"
node=$(nm -D --defined-only --with-symbol-versions "$so" | sed -n 's/.* blz_version@@//p')
[ "$node" = "BLITZ_$soversion" ] || fail "symbols of $soname have the version $node: change src/blitz.map"
[ "$(readlink -f "$so")" = "$lib/libblitz.so.$VERSION" ] || fail "libblitz.so is not libblitz.so.$VERSION"
exported=$(nm -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
grep -q '^blz_version$' <<<"$exported" || fail "blz_version is not exported"
odd=$(grep -vE '^blz_[a-z0-9]' <<<"$exported" || true)
[ -z "$odd" ] || fail "exported, but not public: $odd"
# Nor may the archive define names outside our prefix.
odd=$(nm --defined-only --extern-only "$lib/libblitz.a" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^(blz_|_\.stapsdt\.base$)/ { print $3 }') # the latter is sys/sdt.h's
[ -z "$odd" ] || fail "the static library defines foreign names: $odd"
echo "installed tree: ok"
