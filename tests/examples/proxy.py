#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The proxy between clients and servers of all kinds: those that end one direction first, break off,
are silent, send a lot, come in crowds.

    proxy.py PROGRAM [TEST...]
"""

import contextlib
import hashlib
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PROGRAM = sys.argv[1]
PATIENCE = 30  # seconds; for what must happen

closing = contextlib.closing


class Backend:
    """What the proxy connects to: a socket that listens."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.sock.settimeout(PATIENCE)
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]

    def accept(self):
        conn = self.sock.accept()[0]
        conn.settimeout(PATIENCE)
        return conn

    def close(self):
        self.sock.close()


class Proxy:
    def __init__(self, target, *options):
        self.process = subprocess.Popen([PROGRAM, "127.0.0.1:0", target, "--workers", "2", *options],
                                        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        line = self.process.stdout.readline()
        found = re.search(r"From 127.0.0.1:(\d+)", line)
        assert found, f"it has ended: {line}"
        self.port = int(found[1])

    def connect(self):
        conn = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return conn

    def listens(self):
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        return any(row[1].endswith(":%04X" % self.port) and row[3] == "0A" for row in rows)

    def wait(self):
        """After a signal: the exit code, and what it counted."""
        said = self.process.communicate(timeout=PATIENCE)[0]
        numbers = [int(n) for n in re.findall(r"(\d+) [a-z]", said)]
        names = ["served", "up", "down", "refused", "unreachable", "silent", "broken"]
        assert len(names) == len(numbers), said
        return self.process.returncode, dict(zip(names, numbers))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def read_all(conn):
    """Up to the end."""
    pieces = []
    while piece := conn.recv(1 << 18):
        pieces.append(piece)
    return b"".join(pieces)


def read_exactly(conn, length):
    data = b""
    while len(data) < length:
        piece = conn.recv(length - len(data))
        assert piece, "the end"
        data += piece
    return data


def reset(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def expect_reset(conn):
    try:
        rest = read_all(conn)
        raise AssertionError(f"a proper end, after {len(rest)} bytes")
    except ConnectionResetError:
        pass


@contextlib.contextmanager
def connected(*options):
    """A proxy, its backend, and one connection through it: (proxy, backend, client, server)."""
    with closing(Backend()) as backend, closing(Proxy(backend.address, *options)) as proxy, \
            closing(proxy.connect()) as client, closing(backend.accept()) as server:
        yield proxy, backend, client, server


# ---- ends ----


def test_a_client_that_has_sent_all_still_gets_the_reply():
    with connected() as (proxy, _, client, server):
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert read_all(server) == b"question"
        server.sendall(b"answer")  # long after the other direction has ended
        assert read_exactly(client, 6) == b"answer"
        server.sendall(b" and more")
        server.close()
        assert read_all(client) == b" and more"
        assert proxy.stop() == (0, {"served": 1, "up": 8, "down": 15, "refused": 0, "unreachable": 0,
                                    "silent": 0, "broken": 0})


def test_a_server_that_has_sent_all_still_gets_the_rest():
    with connected() as (proxy, _, client, server):
        server.sendall(b"hello")
        server.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"hello"
        client.sendall(b"thanks")
        assert read_exactly(server, 6) == b"thanks"
        client.close()
        assert read_all(server) == b""
        code, counts = proxy.stop()
        assert code == 0 and counts["broken"] == 0 and (counts["up"], counts["down"]) == (6, 5)


def test_a_reset_is_passed_on():
    for of_client in (True, False):
        with connected() as (proxy, _, client, server):
            client.sendall(b"x")
            server.sendall(b"y")
            assert read_exactly(server, 1) + read_exactly(client, 1) == b"xy"
            reset(client if of_client else server)
            expect_reset(server if of_client else client)
            code, counts = proxy.stop()
            assert code == 0 and counts["broken"] == 1 and counts["served"] == 1


def test_silence_ends_a_connection_but_not_while_bytes_come():
    idle = 0.1
    with connected("--idle", str(idle)) as (proxy, _, client, server):
        sent_at = []
        start = time.monotonic()
        while time.monotonic() - start < 1.5 * idle:
            try:
                now = time.monotonic()
                client.sendall(b".")
                sent_at.append(now)
            except (BrokenPipeError, ConnectionResetError):
                break  # we were stopped ourselves for so long: that was silence
            time.sleep(idle / 10)
        with contextlib.suppress(ConnectionResetError):
            read_all(client)  # comes to an end by itself
        end = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            read_all(server)
        code, counts = proxy.stop()
        assert code == 0 and counts["silent"] == 1, counts
        # The last byte that got through has put it off.
        assert counts["up"] == 0 or end - sent_at[counts["up"] - 1] >= idle


# ---- bytes ----


def test_a_lot_goes_both_ways_unchanged():
    size = 24 << 20
    data = [os.urandom(1 << 20) * (size >> 20), os.urandom(1 << 20) * (size >> 20)]
    with connected() as (proxy, _, client, server):
        received = {}

        def send(conn, what):
            conn.sendall(what)
            conn.shutdown(socket.SHUT_WR)

        def receive(conn, name):
            digest = hashlib.blake2b()
            while piece := conn.recv(1 << 18):
                digest.update(piece)
            received[name] = digest.digest()
        threads = [threading.Thread(target=function, args=arguments) for function, arguments in (
            (send, (client, data[0])), (send, (server, data[1])), (receive, (server, 0)),
            (receive, (client, 1)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(received[i] == hashlib.blake2b(data[i]).digest() for i in (0, 1))
        code, counts = proxy.stop()
        assert code == 0 and counts["up"] == counts["down"] == size and counts["broken"] == 0


def test_who_does_not_read_stops_only_its_own_direction():
    with connected() as (_, _, client, server):
        client.setblocking(False)
        sent, since = 0, time.monotonic()
        while time.monotonic() - since < 0.05:  # until it is stopped: nobody reads
            try:
                sent += client.send(b"z" * 65536)
                since = time.monotonic()
                assert sent < 200 << 20, "nothing stops it"
            except BlockingIOError:
                time.sleep(0.002)
        client.settimeout(PATIENCE)
        server.sendall(b"the other way")
        assert read_exactly(client, 13) == b"the other way"
        client.shutdown(socket.SHUT_WR)
        assert len(read_all(server)) == sent


def test_many_at_once():
    nr = 150
    with closing(Backend()) as backend, closing(Proxy(backend.address)) as proxy:
        def echo(conn):
            with closing(conn):
                while piece := conn.recv(4096):
                    conn.sendall(piece)

        def serve():
            for _ in range(nr):
                threading.Thread(target=echo, args=(backend.accept(),), daemon=True).start()
        server = threading.Thread(target=serve)
        server.start()
        clients = [proxy.connect() for _ in range(nr)]
        for turn in range(3):
            for i, client in enumerate(clients):
                client.sendall(b"%d %d\n" % (turn, i))
            for i, client in enumerate(clients):
                text = b"%d %d\n" % (turn, i)
                assert read_exactly(client, len(text)) == text
        for client in clients:
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == b""
            client.close()
        server.join()
        code, counts = proxy.stop()
        assert code == 0 and counts["served"] == nr and counts["broken"] == 0
        assert counts["up"] == counts["down"]


# ---- limits, and stopping ----


def has_a_place(proxy, backend):
    """Whether a client is let through; if it is not, it gets a reset."""
    with contextlib.suppress(ConnectionResetError), closing(proxy.connect()) as client:
        if backend.sock in select.select([client, backend.sock], [], [], PATIENCE)[0]:
            with closing(backend.accept()):
                return True
        client.recv(1)
    return False


def test_connections_are_limited():
    with connected("--connections", "1") as (proxy, backend, client, server):
        assert not has_a_place(proxy, backend)
        client.close()
        assert read_all(server) == b""
        server.close()
        give_up = time.monotonic() + PATIENCE
        while not has_a_place(proxy, backend):  # until the proxy has closed both
            assert time.monotonic() < give_up
        assert proxy.stop()[1]["refused"] >= 1


def test_a_server_that_is_not_there_is_told_by_a_reset():
    with closing(Backend()) as gone:
        address = gone.address
    with closing(Proxy(address)) as proxy:
        with contextlib.suppress(ConnectionResetError), closing(proxy.connect()) as client:
            expect_reset(client)
        code, counts = proxy.stop()
        assert code == 0 and counts["unreachable"] == 1 and counts["served"] == 0


def test_connections_end_in_peace_when_it_stops():
    with connected() as (proxy, _, client, server):
        client.sendall(b"before")
        assert read_exactly(server, 6) == b"before"
        proxy.process.send_signal(signal.SIGTERM)
        give_up = time.monotonic() + PATIENCE
        while proxy.listens():
            assert time.monotonic() < give_up
            time.sleep(0.002)
        client.sendall(b" after")
        server.sendall(b"reply")
        assert read_exactly(server, 6) == b" after" and read_exactly(client, 5) == b"reply"
        client.shutdown(socket.SHUT_WR)
        assert read_all(server) == b""
        server.close()
        assert read_all(client) == b""
        code, counts = proxy.wait()
        assert code == 0 and counts["up"] == 12 and counts["down"] == 5


def test_its_patience_has_an_end():
    with connected("--grace", "0.05") as (proxy, _, client, server):
        client.sendall(b"x")
        read_exactly(server, 1)
        code, counts = proxy.stop()
        assert code == 0 and counts["broken"] == 1
        expect_reset(client)
        expect_reset(server)


def test_options_that_make_no_sense_are_refused():
    for options in ([], [":1"], [":1", ":2", ":3"], [":1", ":2", "--idle", "0"], [":1", ":2", "--no", "1"]):
        ran = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=PATIENCE,
                             check=False)
        assert ran.returncode == 2 and "LISTEN TARGET" in ran.stderr
    ran = subprocess.run([PROGRAM, "nowhere", "127.0.0.1:1"], capture_output=True, text=True,
                         timeout=PATIENCE, check=False)
    assert ran.returncode == 1 and "nowhere" in ran.stderr


def main(wanted):
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        start = time.monotonic()
        try:
            test()
            print(f"ok    {time.monotonic() - start:5.2f} s  {name}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
