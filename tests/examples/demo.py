#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo as clients see it: good ones, bad ones, slow ones, and those that go in the middle of it.

    demo.py PROGRAM [TEST...]

Most tests share a server with the usual time limits. Those about the limits have one that is in a
hurry: its clients have a hundredth of the usual time. A client that loses its CPU may be too late
for that by itself, so these are tried again.
"""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from http_client import Client, HEAD, PATIENCE, get, nr_sockets, post

PROGRAM = sys.argv[1]
TRIES = 10  # of tests with a server in a hurry
CONSOLE = "127.0.0.1:0"


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, "--port", "0", "--console", CONSOLE, *options], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = ""
        while not self.said.endswith("Ctrl-C stops it.\n"):
            line = self.process.stdout.readline()
            assert line, f"the demo has ended: {self.said}"
            self.said += line
        self.port = int(re.search(r"Listening on http://127.0.0.1:(\d+)/", self.said)[1])
        self.sockets = self.nr_sockets()

    def nr_sockets(self):
        return nr_sockets(self.process.pid)

    def connect(self, receive_buffer=None):
        return Client(self.port, receive_buffer)

    def expect_all_closed(self):
        """No socket is left of the connections that have gone."""
        give_up = time.monotonic() + PATIENCE
        while self.nr_sockets() > self.sockets:
            assert time.monotonic() < give_up, f"{self.nr_sockets()} sockets are open"
            time.sleep(0.01)

    def stop(self, number=signal.SIGTERM):
        """The exit code, and the last line."""
        self.process.send_signal(number)
        rest = self.process.communicate(timeout=PATIENCE)[0]
        return self.process.returncode, rest.splitlines()[-1]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


# ---- good clients ----


def test_every_page_is_there(server):
    client = server.connect()
    status, headers, body = client.ask(get("/"))
    assert status == 200 and headers["content-type"] == "text/html" and b"/stats" in body
    assert client.ask(get("/hello"))[2] == b"Hello, World!"
    stats = json.loads(client.ask(get("/stats"))[2])
    assert stats["backend"] == os.environ.get("BLZ_BACKEND", stats["backend"]), stats
    assert stats["requests"] >= 2 and stats["workers"] >= 1 and stats["live_tasks"] >= 3, stats
    assert b"> tcp_accept" in client.ask(get("/tasks"))[2]
    console = Client(int(re.search(r"Console at http://127.0.0.1:(\d+)/", server.said)[1]))
    page = console.ask("GET /api/tasks?q=accept&fresh=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")[2]
    assert json.loads(page)["matched"] >= 1, page
    console.close()
    assert client.ask(get("/sleep?ms=1"))[2] == b"slept for 1 ms\n"
    assert b"blocked" in client.ask(get("/block?ms=1"))[2]
    assert client.ask(post("/echo", b"\0a\xff").decode("latin-1"))[2] == b"\0a\xff"
    client.close()


def test_other_requests_have_their_status(server):
    client = server.connect()
    assert client.ask(get("/nothing"))[0] == 404
    status, headers, _ = client.ask(get("/echo"))
    assert status == 405 and headers["allow"] == "POST"
    assert client.ask(get("/hello", method="DELETE"))[0] == 405
    assert client.ask(get("*", method="OPTIONS"))[0] == 404
    for query in ("", "?ms=", "?ms=x", "?ms=10001", "?ms=-1"):
        assert client.ask(get("/sleep" + query))[0] == 400
    status, headers, body = client.ask(get("/hello", method="HEAD"))
    assert status == 200 and headers["content-length"] == "13" and body == b""
    assert client.ask(get("/hello"))[2] == b"Hello, World!"  # nothing came behind the head
    client.close()


def test_sleepers_do_not_keep_others_waiting(server):
    """More of them sleep at once than there are workers, sooner or later."""
    workers = json.loads(server.connect().ask(get("/stats"))[2])["workers"]
    clients = [server.connect() for _ in range(10 * workers + 10)]
    at_once, give_up = 0, time.monotonic() + PATIENCE
    while at_once <= workers:
        assert time.monotonic() < give_up, f"{at_once} at once"
        for client in clients:
            client.send(get("/sleep?ms=200"))
        at_once = server.connect().ask(get("/tasks"))[2].count(b" > sleep")
        assert all(client.reply()[0] == 200 for client in clients)
    for client in clients:
        client.close()


def test_pipelined_requests_are_answered_in_order(server):
    client = server.connect()
    wanted, requests = [], b""
    for i in range(200):
        body = b"%d " % i * (i % 40)
        wanted += [body, b"slept for 1 ms\n"] if i % 50 == 0 else [body]
        requests += post("/echo", body) + (get("/sleep?ms=1").encode() if i % 50 == 0 else b"")
    client.send(requests)
    for body in wanted:
        assert client.reply()[2] == body
    client.close()


def test_replies_to_requests_that_came_together_come_together(server):
    client = server.connect()
    client.ask(get("/hello"))  # it waits for us now
    client.send(get("/hello") * 20)
    assert client.more()
    assert client.buffer.count(b"Hello, World!") == 20
    client.close()


def test_a_request_may_come_byte_by_byte(server):
    client = server.connect()
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in post("/echo", b"abc"):
        client.send(bytes([byte]))
    assert client.reply()[2] == b"abc"
    client.close()


def test_a_connection_ends_when_the_client_likes(server):
    for request in (get("/hello", "Connection: close"), get("/hello", version="1.0")):
        client = server.connect()
        _, headers, body = client.ask(request)
        assert headers["connection"] == "close" and body == b"Hello, World!"
        client.expect_end()
        client.close()
    client = server.connect()
    _, headers, _ = client.ask(get("/hello", "Connection: keep-alive", version="1.0"))
    assert headers["connection"] == "keep-alive"
    assert client.ask(get("/hello", "Connection: close"))[0] == 200
    client.expect_end()
    client.close()


def test_half_a_connection_is_enough_for_a_reply(server):
    client = server.connect()
    client.send(get("/hello"))
    client.sock.shutdown(socket.SHUT_WR)
    assert client.reply()[2] == b"Hello, World!"
    client.expect_end()
    client.close()


def test_bodies_come_in_chunks(server):
    client = server.connect()
    head = get("/echo", "Transfer-Encoding: chunked", method="POST").encode()
    big = bytes(range(256)) * 1000
    client.send(head + b"3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: t\r\n\r\n" + get("/hello").encode())
    assert client.reply()[2] == b"abcde"
    assert client.reply()[2] == b"Hello, World!"
    sender = threading.Thread(target=client.send, args=(
        head + b"".join(b"%x\r\n%s\r\n" % (len(big[i:i + 999]), big[i:i + 999])
                        for i in range(0, len(big), 999)) + b"0\r\n\r\n",))
    sender.start()
    assert client.reply()[2] == big
    sender.join()
    client.close()


def test_expectations_are_met(server):
    client = server.connect()
    head = get("/echo", "Expect: 100-continue", "Content-Length: 5", method="POST")
    assert client.ask(head)[0] == 100
    client.send(b"hello")
    assert client.reply()[2] == b"hello"
    client.send(head.encode() + b"world")  # it did not wait
    assert client.reply()[2] == b"world"
    assert client.ask(head.replace("/echo", "/nothing"))[0] == 404
    client.expect_end()
    client.close()


# ---- bad clients ----


def test_what_is_wrong_is_refused(server):
    wrong = {
        "G@T / HTTP/1.1\r\n": 400,
        "GET /\r\n": 400,
        "GET / HTTP/1.1\r\n\r\n": 400,
        "GET / HTTP/1.1\n\n": 400,
        "GET / HTTP/2.0\r\n": 505,
        f"GET / HTTP/1.1\r\n{HEAD}{HEAD}\r\n": 400,
        f"GET / HTTP/1.1\r\n{HEAD} folded: x\r\n\r\n": 400,
        f"GET / HTTP/1.1\r\n{HEAD}X: a\rb\r\n\r\n": 400,
        f"GET / HTTP/1.1\r\n{HEAD}X: a\0b\r\n\r\n": 400,
        f"GET / HTTP/1.1\r\n{HEAD}X : a\r\n\r\n": 400,
        get("/", "Content-Length: x"): 400,
        get("/", "Content-Length: 1", "Content-Length: 1"): 400,
        get("/", "Content-Length: 1", "Transfer-Encoding: chunked"): 400,
        get("/", "Transfer-Encoding: gzip"): 501,
        get("/", "Expect: the unexpected"): 417,
        get("/echo", "Transfer-Encoding: chunked", method="POST") + "zz\r\n": 400,
        get("/echo", "Transfer-Encoding: chunked", method="POST") + "200000\r\n": 413,
        get("/echo", "Content-Length: 1048577", method="POST"): 413,
        "GET /" + "x" * 10000: 414,
        get("/", "X: " + "x" * 10000): 431,
        get("/", *["X: x"] * 101): 431,
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": 400,
    }
    for request, status in wrong.items():
        client = server.connect()
        assert client.ask(get("/hello"))[0] == 200
        got, headers, _ = client.ask(request)
        assert got == status, f"{got} instead of {status}: {request[:60]!r}"
        assert headers["connection"] == "close"
        client.expect_end()
        client.close()


def test_a_body_that_is_too_long_is_refused_while_it_is_sent(server):
    client = server.connect()
    client.send(get("/echo", "Transfer-Encoding: chunked", method="POST"))
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    with contextlib.suppress(ConnectionError):
        for _ in range(20):
            client.send(chunk)
    assert client.reply()[0] == 413
    client.close()


def test_clients_may_go_at_any_moment(server):
    requests = post("/echo", b"abc") + get("/sleep?ms=2").encode() + get("/tasks").encode() * 3
    for cut in range(0, len(requests), 3):
        client = server.connect()
        client.send(requests[:cut])
        if cut % 2:
            client.reset()
        else:
            client.close()
    server.expect_all_closed()


def test_a_client_may_go_without_taking_its_reply(server):
    for _ in range(5):
        client = server.connect(receive_buffer=4096)
        client.send(post("/echo", bytes(1 << 20)))
        client.reset()
    server.expect_all_closed()


# ---- slow clients ----


def hurried_test_a_head_must_come_in_time(server):
    client = server.connect()
    client.send("GET / HTTP/1.1\r\n")
    with contextlib.suppress(ConnectionError):
        for _ in range(1000):
            time.sleep(0.01)
            client.send("X: y\r\n")
            if select.select([client.sock], [], [], 0)[0]:
                break
        else:
            raise AssertionError("ten seconds, and still no end")
    assert client.reply()[0] == 408
    client.close()


def hurried_test_a_body_must_make_progress(server):
    client = server.connect()
    assert client.ask(get("/echo", "Content-Length: 100", method="POST"), b"x")[0] == 408
    client.expect_end()
    client.close()


def hurried_test_an_idle_connection_is_closed_without_a_word(server):
    client, other = server.connect(), server.connect()
    client.ask(get("/hello"))
    client.expect_end()
    other.expect_end()
    client.close()
    other.close()


def hurried_test_a_client_that_does_not_read_is_given_up(server):
    client = server.connect(receive_buffer=4096)
    client.sock.settimeout(0)
    request = post("/echo", bytes(200000))
    watch = select.poll()
    watch.register(client.sock, 0)
    give_up = time.monotonic() + PATIENCE
    while not watch.poll(10):  # sends, and never reads, until the server hangs up
        assert time.monotonic() < give_up
        with contextlib.suppress(BlockingIOError, ConnectionError):
            client.sock.send(request)
    client.close()


# ---- stopping ----


def has_reply(client):
    return bool(select.select([client.sock], [], [], 0)[0])


def alone_test_running_requests_are_finished():
    with contextlib.closing(Closing(Server())) as server:
        idle = server.connect()
        idle.ask(get("/hello"))
        sleeps = blocks = False
        while not sleeps or not blocks:  # both at the same time, and until they are
            busy, blocked = server.connect(), server.connect()
            busy.send(get("/sleep?ms=700") + "GET / HT")  # and half a request
            blocked.send(get("/block?ms=700"))
            while not has_reply(busy) and not has_reply(blocked) and not (sleeps and blocks):
                sleeps = b" > sleep" in server.connect().ask(get("/tasks"))[2]
                blocks = json.loads(server.connect().ask(get("/stats"))[2])["blocking_threads"] > 0
        server.process.send_signal(signal.SIGTERM)
        idle.expect_end()  # at once
        with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
            while True:
                server.connect().expect_end()
        assert busy.reply()[2] == b"slept for 700 ms\n"
        busy.expect_end()
        assert b"blocked" in blocked.reply()[2]
        blocked.expect_end()
        rest = server.process.communicate(timeout=PATIENCE)[0]
        assert server.process.returncode == 0
        assert re.search(r"\n\d+ requests on \d+ connections\n$", rest), rest


def alone_hurried_test_what_takes_too_long_is_ended():
    with contextlib.closing(Closing(Server("--hurry", "100"))) as server:
        client = server.connect()
        client.send(get("/sleep?ms=10000"))
        while b" > sleep" not in server.connect().ask(get("/tasks"))[2]:
            assert not has_reply(client)
        code, last = server.stop()
        assert code == 0 and "requests on" in last
        client.expect_end()  # and no reply


def alone_test_a_second_signal_ends_requests_too():
    with contextlib.closing(Closing(Server())) as server:
        client = server.connect()
        client.send(get("/sleep?ms=10000"))
        while b" > sleep" not in server.connect().ask(get("/tasks"))[2]:
            assert not has_reply(client)
        server.process.send_signal(signal.SIGTERM)
        assert "finishing" in server.process.stdout.readline()
        server.process.send_signal(signal.SIGTERM)
        client.expect_end()  # and no reply
        rest = server.process.communicate(timeout=PATIENCE)[0]
        assert server.process.returncode == 0
        assert "cancelling was not done" in rest and "serve_connection" in rest, rest
        assert re.search(r"\n\d+ requests on \d+ connections\n$", rest), rest


def alone_test_ctrl_c_ends_it():
    with contextlib.closing(Closing(Server("--workers", "1"))) as server:
        code, last = server.stop(signal.SIGINT)
        assert code == 0 and last == "0 requests on 0 connections"


def alone_test_a_port_that_is_taken_is_named():
    with contextlib.closing(Closing(Server())) as server:  # another demo, for example
        ran = subprocess.run([PROGRAM, "--port", str(server.port)], capture_output=True, text=True,
                             timeout=PATIENCE, check=False)
        assert ran.returncode == 1
        assert f"port {server.port}" in ran.stderr and f"--port {server.port + 1}" in ran.stderr


def alone_test_options_that_make_no_sense_are_refused():
    for options in (["--port", "x"], ["--port", "65536"], ["--nonsense"], ["8080"]):
        ran = subprocess.run([PROGRAM, *options], capture_output=True, text=True,
                             timeout=PATIENCE, check=False)
        assert ran.returncode == 2 and "--port N" in ran.stderr


# ---- running them ----


class Closing:
    """A server that is gone at the end of the block."""

    def __init__(self, server):
        self.server = server

    def __getattr__(self, name):
        return getattr(self.server, name)

    def close(self):
        self.server.kill()


def passes(name, test, arguments):
    start = time.monotonic()
    try:
        test(*arguments)
        for server in arguments:
            server.expect_all_closed()
            assert server.process.poll() is None, "the demo has ended"
        print(f"ok    {time.monotonic() - start:5.2f} s  {name}", flush=True)
        return True
    except Exception as error:  # pylint: disable=broad-except
        print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
        return False


def run(prefix, wanted, *arguments, tries=1):
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith(prefix) and (not wanted or name in wanted):
            failed += not any(passes(name, test, arguments) for _ in range(tries))
    return failed


def main(wanted):
    failed = 0
    for prefix, options, tries in (("test_", [], 1), ("hurried_test_", ["--hurry", "100"], TRIES)):
        server = Server(*options)
        try:
            failed += run(prefix, wanted, server, tries=tries)
            code, last = server.stop()
            print(last)
            failed += code != 0
        finally:
            server.kill()
    failed += run("alone_test_", wanted)
    failed += run("alone_hurried_test_", wanted, tries=TRIES)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
