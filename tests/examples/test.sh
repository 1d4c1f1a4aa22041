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

# Whether a process listens on a port: somebody else may, too.
listens() { # pid port
    local inode
    for inode in $(awk -v port="$(printf ':%04X$' "$2")" \
        '$2 ~ port && $4 == "0A" { print $10 }' /proc/net/tcp); do
        [[ "$(readlink "/proc/$1/fd/"* 2>/dev/null)" != *"socket:[$inode]"* ]] || return 0
    done
    return 1
}

# Two clients at once, and one that goes without a word.
test_echo() {
    "$program" 2>"$work/error" &
    pid=$!
    trap 'kill $pid 2>/dev/null || true; rm -rf "$work"' EXIT
    until listens $pid 7000; do
        if ! kill -0 $pid 2>/dev/null; then
            grep -q 'Address already in use' "$work/error" ||
                fail "it has ended: $(cat "$work/error")"
            return
        fi
        sleep 0.02
    done
    exec 3<>/dev/tcp/127.0.0.1/7000 4<>/dev/tcp/127.0.0.1/7000 5<>/dev/tcp/127.0.0.1/7000
    echo first >&3
    echo second >&4
    exec 5>&-
    read -r -t 60 -u 4 line && [ "$line" = second ] || fail "no echo for the second client"
    read -r -t 60 -u 3 line && [ "$line" = first ] || fail "no echo for the first client"
    kill $pid
}

"test_$1"
