#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two builds of the libraries, in two folders, are equal byte by byte. Not one of ctest's, since it
# compiles the library twice: .ci/run calls it.
#
#   tests/install/reproducible.sh      what is committed, with $CC
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $*" >&2; exit 1; }

build() { # folder
    mkdir -p "$1"
    git -C "$top" archive HEAD | tar x -C "$1"
    (cd "$1" && cmake --preset release && cmake --build build -j "$(nproc)" --target blitz blitz_static) \
        >"$work/log" 2>&1 || { tail -n 30 "$work/log"; fail "the build in $1"; }
}
first=$work/first second=$work/another/folder/of-another-length
build "$first"
build "$second"
for file in libblitz.a "libblitz.so.$(sed -n 's/^project(blitz VERSION \([0-9.]*\).*/\1/p' "$top/CMakeLists.txt")"; do
    cmp "$first/build/$file" "$second/build/$file" ||
        fail "$file depends on the folder that it was built in"
done
echo "reproducible: ok"
