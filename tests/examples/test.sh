#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one example and compares what it prints with what it should: test.sh NAME PROGRAM
set -euo pipefail
program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $*" >&2; exit 1; }

# The output of a command, given on stdin, must be the file "expected".
expect() {
    "$@" >"$work/output" || fail "$* exited with $?"
    diff -u "$work/expected" "$work/output" || fail "$* printed something else"
}

test_hello() {
    printf 'hello world, %d of 3\n' 1 2 3 >"$work/expected"
    expect "$program"
    # Two tasks: each greets in order, whatever the order between them.
    "$program" ann bob >"$work/both"
    printf 'hello ann, %d of 3\n' 1 2 3 >"$work/expected"
    expect grep ann "$work/both"
    [ "$(wc -l <"$work/both")" = 6 ] || fail "ann and bob were not greeted three times each"
}

test_wordcount() {
    seq 1 20000 >"$work/numbers"
    printf 'one two\n three' >"$work/words"
    : >"$work/empty"
    set -- "$work/numbers" "$work/words" "$work/empty"
    LC_ALL=C wc -lwc "$@" | awk '{ print $1, $2, $3, $4 }' | sort >"$work/expected"
    "$program" "$@" | awk '{ print $1, $2, $3, $4 }' | sort >"$work/sorted"
    expect cat "$work/sorted"
    ! "$program" "$work/missing" 2>"$work/error" || fail "a missing file is no error"
    grep -q 'No such file' "$work/error" || fail "a missing file is not named"
}

test_cancel() {
    cat >"$work/expected" <<END
logger: 3 records, waiting for more
parent: cancels the logger
logger: no more records: Operation canceled
logger: flushed: success
parent: the logger ended with: Operation canceled; it wrote 3 records
END
    LC_ALL=C expect "$program" "$work/log"
    printf 'record %d\n' 1 2 3 >"$work/expected"
    expect cat "$work/log"
    ! "$program" "$work/no/folder" 2>"$work/error" || fail "a file that cannot be made is no error"
}

test_embed() {
    printf '%s\n' '12: 2 2 3' '97: 97' '1: ' '999999999989: 999999999989' |
        sed 's/ $//' | sort >"$work/expected"
    printf '999999999989\n12\nx\n97\n1' | "$program" 2>"$work/error" | sort >"$work/sorted"
    expect cat "$work/sorted"
    grep -q 'x: Invalid argument' "$work/error" || fail "x is taken for a number"
}

test_demo() {
    "$program" >"$work/output" || fail "the demo exited with $?"
    # The order: statistics, dump, cancellation, watchdog, the end.
    grep -qE '^  1\.[0-9] s .*(K|M|[0-9]) ' "$work/output" || fail "no line of statistics"
    grep -qE '^      session at demo.c:[0-9]+ > request at demo.c:[0-9]+ > query at demo.c:[0-9]+ > ring$' \
        "$work/output" || fail "no backtrace of a session"
    grep -q '200 sessions cancelled, 200 said goodbye' "$work/output" || fail "no cancellation"
    grep -q 'watchdog: task [0-9]*, "hog", has been blocking worker' "$work/output" ||
        fail "the watchdog is blind"
    grep -q 'shut down in' "$work/output" || fail "no end"
}

# Ctrl-C ends it in time, in good order.
test_demo_interrupted() {
    "$program" >"$work/output" &
    local pid=$! tries=0
    until grep -q '1\.[0-9] s' "$work/output" || [ $((tries++)) -gt 300 ]; do
        sleep 0.05
    done
    kill -INT $pid
    wait $pid || fail "the demo exited with $? after Ctrl-C"
    grep -q 'shut down in' "$work/output" || fail "no end after Ctrl-C"
}

"test_$1"
