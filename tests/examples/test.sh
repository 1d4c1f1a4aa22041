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
    # A timer ends it although nothing more comes, and the input does not end.
    mkfifo "$work/silent"
    exec 3<>"$work/silent"
    echo 35 >&3
    echo '35: 5 7' >"$work/expected"
    expect "$program" 0.3 <&3
    exec 3<&-
}

test_dups() {
    mkdir -p "$work/files/below"
    cd "$work/files"
    seq 1 50000 | tee large "large copy" >below/large
    echo same | tee a b >below/c
    echo some >other # as long as they are
    : >empty
    : >below/empty
    ln -s a link
    { printf '%s\n' ./below/large ./large './large copy' '' ./a ./b ./below/c; } >"$work/expected"
    LC_ALL=C expect "$program" .
    printf '%s\n' a b >"$work/expected"
    expect "$program" a b other
    : >"$work/expected"
    expect "$program" a other
    ! "$program" . missing >"$work/output" 2>"$work/error" || fail "a missing folder is no error"
    grep -q 'dups: missing: No such file' "$work/error" || fail "a missing folder is not named"
    if [ "$(id -u)" != 0 ]; then
        chmod 0 b
        ! "$program" a b >"$work/output" 2>"$work/error" || fail "a file that cannot be read is no error"
        grep -q 'dups: b: Permission denied' "$work/error" || fail "a file that cannot be read is not named"
    fi
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

# Compared with the system's grep: the same output, the same exit code, the same errors.
same_as_grep() {
    local wanted=0 got=0
    LC_ALL=C grep -I "$@" <"$work/input" >"$work/expected" 2>"$work/expected_error" || wanted=$?
    LC_ALL=C "$program" "$@" <"$work/input" >"$work/output" 2>"$work/error" || got=$?
    diff -u "$work/expected" "$work/output" || fail "grep $* printed something else"
    [ "$wanted" = "$got" ] || fail "grep $* ended with $got, and not with $wanted"
    sort "$work/error" | diff - <(sort "$work/expected_error") || fail "grep $*: other errors"
}

test_grep() {
    local options many
    mkdir -p "$work/tree/a/deep" "$work/tree/b"
    cd "$work/tree"
    printf 'one\nTwo two\n\nthree (3)\nlast, without an end' >plain
    printf 'a.b\naxb\n^two$\nONE\n' >a/special
    printf 'one\0two\n' >a/binary
    : >a/empty
    printf '\n\n' >a/deep/lines
    awk 'BEGIN { for (i = 1; i <= 20000; i++) printf "%d %s%s\n", i, (i % 7 ? "" : "seven "), "x" }' >b/long
    { head -c 300000 /dev/zero | tr '\0' y; echo; echo one; } >b/wide
    for i in $(seq 100); do echo "file $i has one" >"b/f$i"; done
    ln -s ../plain b/link
    ln -s a dirlink
    mkfifo b/queue
    cp plain "$work/input"
    many=(plain a/special a/empty a/binary a/deep/lines b/long b/wide)
    for options in -E -Fn -Fi -Evn; do
        for pattern in one '^[Tt]wo' a.b 'o(n|w)|\(' '^$' seven; do
            same_as_grep $options -- "$pattern" "${many[@]}"
        done
    done
    for options in -Eic -Flv -Elc -Fivc; do
        same_as_grep $options two "${many[@]}"
        same_as_grep $options one
    done
    same_as_grep -E '' "${many[@]}"
    same_as_grep -Fn '(3)'
    same_as_grep -E one b/f*                     # in order, and all of them
    same_as_grep -hE one plain b/wide
    same_as_grep -HnE one plain
    same_as_grep -E one plain - b/f1             # standard input in between
    same_as_grep -E one plain missing b          # what is wrong is told, and the rest is searched
    same_as_grep -E nothing plain
    for options in -rnE -rcE -rlvE; do # the system's order is not sorted, ours is
        "$program" $options one >"$work/output" || fail "-r: $?"
        find . -type f | sed 's,^\./,,' | LC_ALL=C sort |
            LC_ALL=C xargs grep -I "${options/r/H}" one >"$work/expected"
        diff -u "$work/expected" "$work/output" || fail "grep $options"
        "$program" $options one b/ a >"$work/output" || fail "-r: $?"
        { find b/ -type f | LC_ALL=C sort; find a -type f | LC_ALL=C sort; } |
            LC_ALL=C xargs grep -I "${options/r/H}" one >"$work/expected"
        diff -u "$work/expected" "$work/output" || fail "grep $options b/ a"
    done
    ! "$program" -rE nowhere_to_be_found . || fail "found what is not there"
    # Few descriptors are enough for many files, and a reader that has seen enough ends it.
    (ulimit -n 64; "$program" -rc one . >/dev/null) || fail "it needs too many descriptors"
    [ "$(LC_ALL=C; "$program" -rn x . 2>&1 | head -n 1)" != "" ] || fail "nothing to see"
    ! "$program" '(' plain 2>"$work/error" || fail "( is no expression"
    grep -q '^grep: ' "$work/error" || fail "( is not complained about"
    ! "$program" 2>"$work/error" || fail "no pattern is no error"
}

"test_$1"
