#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library is hardened as Debian's packages are, and does not say where it was built.
#
# Environment: BUILD (a build directory with the libraries built), SOURCE.
set -euo pipefail
so=$(readlink -f "$BUILD/libblitz.so")

fail() { echo "FAIL: $*" >&2; exit 1; }

segments=$(readelf -lW "$so")
dynamic=$(readelf -dW "$so")
imported=$(nm -D --undefined-only "$so")
grep -q GNU_RELRO <<<"$segments" || fail "no RELRO"
grep -qE 'GNU_STACK.* RW ' <<<"$segments" || fail "an executable stack"
grep -qE '\(FLAGS_1\).*NOW|BIND_NOW' <<<"$dynamic" || fail "relocations are not done at the start"
grep -q __stack_chk_fail <<<"$imported" || fail "no stack protector"
grep -qE '__[a-z]+_chk' <<<"$imported" || fail "no calls of _FORTIFY_SOURCE"
producer=$(readelf --debug-dump=info "$so" 2>/dev/null | grep -m1 DW_AT_producer || true)
case $producer in # clang does not say how it was called
*GNU*-fstack-protector-strong*) grep -q -e -fstack-clash-protection <<<"$producer" ||
    fail "no stack clash protection" ;;
*GNU*) fail "compiled otherwise: $producer" ;;
esac

for file in "$so" "$BUILD/libblitz.a"; do
    for folder in "$SOURCE" "$BUILD"; do
        if grep -qaF "$folder/" "$file"; then
            fail "$file names $folder"
        fi
    done
done
echo "hardened: ok"
