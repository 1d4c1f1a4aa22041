#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the example of another library against a server of its own on loopback, once with each I/O
# backend: libraries.sh NAME PROGRAM. 77: there is no such server here.
set -euo pipefail
program=$2
here=$(dirname "$0")
work=$(mktemp -d)
server=

finish() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
    rm -rf "$work"
}
trap finish EXIT

fail() {
    echo "FAIL: $*" >&2
    [ ! -s "$work/server.log" ] || sed 's/^/server: /' "$work/server.log" | tail -20 >&2
    exit 1
}
skip() { echo "skipped: $*"; exit 77; }

# What is to be printed, in any order, is in "expected".
expect() {
    "$@" >"$work/output" 2>"$work/error" ||
        { cat "$work/error" >&2; fail "${BLZ_BACKEND}: $* exited with $?"; }
    sort "$work/output" >"$work/sorted"
    sort "$work/expected" | diff -u - "$work/sorted" ||
        fail "${BLZ_BACKEND}: $* printed something else"
}

# Waits until the log of the server has a line, for 100 seconds at most.
wait_for() {
    local tries=0
    until grep -q "$1" "$work/server.log"; do
        kill -0 "$server" 2>/dev/null || return 1
        [ $((tries++)) -lt 2000 ] || return 1
        sleep 0.05
    done
}

# A port that was free a moment ago: the server is started with another one if it is not any more.
free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# Calls start_NAME PORT, which starts the server in the background, until one stays.
start() {
    local try
    : >"$work/server.log"
    for try in 1 2 3 4 5; do
        port=$(free_port)
        "start_$1" "$port"
        ! wait_for "$2" || return 0
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
        echo "port $port: try $try failed"
    done
    fail "the server does not start"
}

each_backend() {
    for BLZ_BACKEND in io_uring epoll poll; do
        export BLZ_BACKEND
        if [ $BLZ_BACKEND = io_uring ] && ! python3 -B "$here/../support/with_io_uring.py" /bin/true; then
            continue
        fi >/dev/null
        "$@"
    done
}

# ---- libcurl ----

start_http() {
    python3 -u "$here/http_server.py" "$1" >"$work/server.log" 2>&1 &
    server=$!
}

fetch() {
    local url=http://127.0.0.1:$port
    # Sequential transfers would never get past the barrier, which three must reach at once.
    printf '%s: status 200, %d bytes\n' "$url/bytes/10" 10 "$url/bytes/3000000" 3000000 \
        "$url/barrier/3?a" 4 "$url/barrier/3?b" 4 "$url/barrier/3?c" 4 "$url/slow" 5 \
        >"$work/expected"
    expect "$program" "$url/bytes/10" "$url/barrier/3?a" "$url/bytes/3000000" "$url/barrier/3?b" \
        "$url/slow" "$url/barrier/3?c"
    # Failures are each one's own.
    ! "$program" "$url/missing" "http://127.0.0.1:1/" "$url/bytes/1" >"$work/output" ||
        fail "$BLZ_BACKEND: failures are not told"
    grep -qx "$url/missing: status 404, [0-9]* bytes" "$work/output" || fail "$BLZ_BACKEND: no 404"
    grep -q '^http://127.0.0.1:1/: ' "$work/output" || fail "$BLZ_BACKEND: nobody listens, untold"
    grep -qx "$url/bytes/1: status 200, 1 bytes" "$work/output" || fail "$BLZ_BACKEND: no success"
    # Many: connections come and go, and so do the numbers of their descriptors.
    for i in $(seq 200); do echo "$url/bytes/$i: status 200, $i bytes"; done >"$work/expected"
    mapfile -t many < <(seq -f "$url/bytes/%g" 200)
    expect "$program" "${many[@]}"
}

test_curl_fetch() {
    command -v python3 >/dev/null || skip "no python3"
    start http '^ready'
    each_backend fetch
}

# ---- hiredis ----

start_redis() {
    (exec -a redis-server "$redis" --port "$1" --bind 127.0.0.1 --save '' --appendonly no \
        --dir "$work" --daemonize no) >"$work/server.log" 2>&1 &
    server=$!
}

get() {
    printf '%s\n' "fruit-$BLZ_BACKEND: OK" "fruit-$BLZ_BACKEND: apple pie" 'empty: ' 'empty: OK' \
        'colour is not set' >"$work/expected"
    expect "$program" 127.0.0.1 "$port" "fruit-$BLZ_BACKEND=apple pie" colour \
        "fruit-$BLZ_BACKEND" empty= empty
    for i in $(seq 500); do echo "key$i: OK"; echo "key$i: $i"; done >"$work/expected"
    mapfile -t many < <(for i in $(seq 500); do printf '%s\n' "key$i=$i" "key$i"; done)
    expect "$program" 127.0.0.1 "$port" "${many[@]}"
    ! "$program" 127.0.0.1 1 key 2>"$work/error" || fail "$BLZ_BACKEND: nobody listens, no error"
    grep -q 'refused' "$work/error" || fail "$BLZ_BACKEND: the error is not named"
}

test_redis_get() {
    # Debian's redis-tools has the same program, as the checker of its files, and no service.
    redis=$(command -v redis-server || command -v redis-check-rdb) || skip "no redis-server"
    start redis 'Ready to accept connections'
    each_backend get
}

# ---- libpq ----

# The server refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
    else
        "$@"
    fi
}

start_postgres() {
    as_postgres "$bin/postgres" -D "$work/data" -p "$1" -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories='' -c fsync=off -c logging_collector=off \
        >"$work/server.log" 2>&1 &
    server=$!
}

query() {
    local conninfo="hostaddr=127.0.0.1 port=$port user=tester dbname=postgres"
    printf '%s\n' 1 "2	two" "a" "b" >"$work/expected"
    expect "$program" "$conninfo" 'select 1' "select 2, 'two'" "select 'a'; select 'b'"
    # Each waits for all three to hold a shared lock: one after the other they never would.
    local count="select count(*) from pg_locks where locktype = 'advisory' and granted"
    local meet="do \$\$ begin perform pg_advisory_lock_shared(1);
        for i in 1..2000 loop
            exit when ($count) >= 3;
            perform pg_sleep(0.01);
        end loop;
        if ($count) < 3 then raise 'alone'; end if;
        perform pg_sleep(0.1);
    end \$\$"
    : >"$work/expected"
    expect "$program" "$conninfo" "$meet" "$meet" "$meet"
    # More than the buffers of the sockets hold, in both directions.
    echo 8000000 >"$work/expected"
    "$program" "$conninfo" "select repeat('x', 8000000)" | tr -d '\n' | wc -c >"$work/output"
    diff "$work/expected" "$work/output" || fail "$BLZ_BACKEND: a large row"
    ! "$program" "$conninfo" 'select nothing' 2>"$work/error" || fail "$BLZ_BACKEND: no error"
    grep -q 'column "nothing" does not exist' "$work/error" || fail "$BLZ_BACKEND: no message"
    ! "$program" 'hostaddr=127.0.0.1 port=1' 'select 1' 2>"$work/error" ||
        fail "$BLZ_BACKEND: nobody listens, no error"
    grep -q 'refused' "$work/error" || fail "$BLZ_BACKEND: the error is not named"
}

test_pq_query() {
    bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
    [ -x "$bin/initdb" ] || bin=$(dirname "$(command -v postgres || echo /none/postgres)")
    [ -x "$bin/initdb" ] || skip "no PostgreSQL server (Debian: postgresql)"
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || skip "no user for the server"
        command -v setpriv >/dev/null || skip "no setpriv"
        chown postgres "$work"
    fi
    cd "$work" # the server's user must be allowed to be where it is started
    as_postgres "$bin/initdb" -D "$work/data" -U tester -A trust --no-sync --no-locale -E UTF8 \
        >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log" >&2; fail "initdb"; }
    start postgres 'ready to accept connections'
    each_backend query
}

case $program in /*) ;; *) program=$PWD/$program ;; esac
here=$(cd "$here" && pwd)
"test_$1"
