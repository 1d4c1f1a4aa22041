#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library has the symbols and sizes that are recorded; and what breaks programs is noticed.
#
# Environment: BUILD (a build directory with the shared library), CC.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
record=$top/abi/$($CC -dumpmachine).txt
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT

"$top/tools/abi" check "$BUILD"
[ -e "$record" ] || exit 0

must_say() { # text: tools/abi says so of the record in $broken, and fails
    local said
    if said=$(ABI_RECORD=$broken "$top/tools/abi" check "$BUILD"); then
        echo "FAIL: passed, but: $1" >&2
        exit 1
    fi
    grep -q "$1" <<<"$said" || { echo "FAIL: did not say '$1' but: $said" >&2; exit 1; }
}
sed 's/^blz_version symbol/blz_gone symbol/' "$record" >"$broken"
must_say 'breaks compiled programs: blz_gone is gone'
must_say 'blz_version is new'
sed -E 's/^(blz_future type) [0-9]+/\1 1000/' "$record" >"$broken"
must_say 'breaks compiled programs: blz_future was type 1000'
