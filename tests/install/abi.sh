#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library has the symbols, sizes, offsets and values that are recorded; and what breaks programs is noticed.
#
# Environment: BUILD (a build directory with the shared library), CC.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
record=$top/abi/$($CC -dumpmachine).txt
work=$(mktemp -d)
broken=$work/record
trap 'rm -rf "$work"' EXIT

"$top/tools/abi" check "$BUILD"
[ -e "$record" ] || exit 0

must_say() { # text: tools/abi says so of the record in $broken and the headers in $include, and fails
    local said
    if said=$(ABI_RECORD=$broken ABI_INCLUDE=$include "$top/tools/abi" check "$BUILD"); then
        echo "FAIL: passed, but: $1" >&2
        exit 1
    fi
    grep -qF "$1" <<<"$said" || { echo "FAIL: did not say '$1' but: $said" >&2; exit 1; }
}
include=$top/include
sed 's/^blz_version symbol/blz_gone symbol/' "$record" >"$broken"
must_say 'breaks compiled programs: blz_gone is gone'
must_say 'blz_version is new'
sed -E 's/^(blz_future type) [0-9]+/\1 1000/' "$record" >"$broken"
must_say 'breaks compiled programs: blz_future was type 1000'

# Headers with a change that keeps all symbols and sizes.
changed() { # header, sed expression
    include=$work/include
    rm -rf "$include"
    cp -r "$top/include" "$include"
    cp "$record" "$broken"
    sed -i -E "$2" "$include/blitz/$1.h"
    ! cmp -s "$include/blitz/$1.h" "$top/include/blitz/$1.h" || { echo "FAIL: $2 changes nothing in $1.h" >&2; exit 1; }
}
changed waker '/^    void \(\*fn\)\(void \*arg\);$/{N;s/(.*)\n(.*)/\2\n\1/}'
must_say 'breaks compiled programs: blz_wake_callback.arg was field 8 8 void *, is field 0 8 void *'
changed shutdown 's/\bBLZ_SHUTDOWN_DRAINING\b,/BLZ_SHUTDOWN_DRAINING = 7,/'
must_say 'breaks compiled programs: BLZ_SHUTDOWN_DRAINING was constant 2, is constant 7'
changed runtime 's/int64_t grace_ns/int grace_ns/'
must_say 'breaks compiled programs: blz_rt_shutdown was symbol int (blz_rt *rt, int64_t grace_ns)'
changed runtime 's/blz_rt_shutdown\(blz_rt \*rt, int64_t grace_ns/blz_rt_shutdown(blz_rt *rt, int64_t ns/'
must_say 'blz_rt_shutdown: arguments are named otherwise'
changed watch 's/(typedef bool \(\*blz_watch_modifier\)\()void \*value/\1const void *value/'
must_say 'breaks compiled programs: blz_watch_modifier was callback'
