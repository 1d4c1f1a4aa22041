#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The small Redis as clients see it: good ones, bad ones, many at once, and Redis's own tools.

    redis.py PROGRAM [--brief] [TEST...]

Where Redis's server is installed (Debian's redis-tools has it, as the checker of its files) the
same commands are given to both, and must have the same replies. --brief leaves out what takes long
and hardly depends on how I/O is done.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PROGRAM = sys.argv[1]
PATIENCE = 60  # seconds; for what must happen
LONG = ["test_binary_and_large_values_come_back_as_they_were", "test_tools_of_redis_work_with_it",
        "test_random_commands_have_the_replies_of_redis"]


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, "--port", "0", *options], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = ""
        while "Ctrl-C stops it.\n" not in self.said:
            line = self.process.stdout.readline()
            assert line, f"it has ended: {self.said}"
            self.said += line
        self.port = int(re.search(r"127.0.0.1:(\d+)", self.said)[1])

    def connect(self, proto=2):
        return Client(self.port, proto)

    def stop(self, number=signal.SIGTERM):
        """The exit code, and the last line."""
        self.process.send_signal(number)
        rest = self.process.communicate(timeout=PATIENCE)[0]
        return self.process.returncode, rest.splitlines()[-1]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Error(str):
    """An error as a reply."""


class Push(list):
    """Something that was not asked for."""


def encode(*words):
    words = [w if isinstance(w, bytes) else str(w).encode("latin-1") for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Client:
    def __init__(self, port, proto=2):
        self.sock = socket.socket()
        self.sock.settimeout(PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.connect(("127.0.0.1", port))
        self.buffer = bytearray()
        self.at = 0  # what has been read of it
        if proto == 3:
            assert self.ask("HELLO", 3)["proto"] == 3

    def send(self, data):
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def more(self):
        piece = self.sock.recv(1 << 20)
        del self.buffer[:self.at]
        self.at = 0
        self.buffer += piece
        return len(piece) > 0

    def line(self):
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            assert self.more(), f"the end, after {self.buffer[self.at:]}"
        line, self.at = self.buffer[self.at:end], end + 2
        return line.decode("latin-1")

    def take(self, length):
        while len(self.buffer) - self.at < length:
            assert self.more(), f"the end, after {self.buffer[self.at:][:100]}"
        taken = self.buffer[self.at:self.at + length]
        self.at += length
        return taken

    def reply(self):
        line = self.line()
        kind, rest = line[0], line[1:]
        if kind == "+":
            return rest
        if kind == "-":
            return Error(rest)
        if kind == ":":
            return int(rest)
        if kind == "_" or (kind in "$*" and rest == "-1"):
            return None
        if kind == "$":
            return self.take(int(rest) + 2)[:-2].decode("latin-1")
        if kind == "%":
            return {self.reply(): self.reply() for _ in range(int(rest))}
        assert kind in "*>", f"not a reply: {line}"
        return (Push if kind == ">" else list)(self.reply() for _ in range(int(rest)))

    def ask(self, *words):
        self.send(encode(*words))
        return self.reply()

    def expect_end(self):
        try:
            assert self.at == len(self.buffer) and not self.more(), self.buffer[self.at:][:100]
        except ConnectionResetError:
            pass

    def close(self):
        self.sock.close()

    def reset(self):
        """Goes without a word: the other side gets a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def until(condition):
    """Waits for what must come to be; a condition that is not met in time fails."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "it does not come to be"
        time.sleep(0.002)


closing = contextlib.closing


# ---- commands ----


def test_commands_have_the_replies_of_redis(server):
    with closing(server.connect()) as c:
        assert c.ask("FLUSHALL") == "OK"
        assert c.ask("PING") == "PONG" and c.ask("ping", "x y") == "x y" and c.ask("ECHO", "") == ""
        assert c.ask("SET", "k", "v") == "OK" and c.ask("GeT", "k") == "v"
        assert c.ask("GET", "none") is None and c.ask("STRLEN", "k") == 1
        assert c.ask("APPEND", "k", "alue") == 5 and c.ask("GET", "k") == "value"
        assert c.ask("INCR", "n") == 1 and c.ask("INCRBY", "n", -5) == -4 and c.ask("DECR", "n") == -5
        assert c.ask("MSET", "a", 1, "b", 2) == "OK" and c.ask("MGET", "a", "x", "b") == ["1", None, "2"]
        assert c.ask("EXISTS", "a", "a", "x") == 2 and c.ask("DEL", "a", "b", "x") == 2
        assert c.ask("DBSIZE") == 2 and c.ask("SELECT", 0) == "OK"
        assert c.ask("SELECT", 1) == "ERR DB index is out of range"
        assert c.ask("CLIENT", "SETNAME", "me") == "OK" and c.ask("CLIENT", "GETNAME") == "me"
        assert c.ask("COMMAND", "COUNT") == len(c.ask("COMMAND"))
        assert "tcp_port:%d\r\n" % server.port in c.ask("INFO")
        assert c.ask("CONFIG", "GET", "s?v*") == ["save", ""]
        assert c.ask("QUIT") == "OK"
        c.expect_end()


def test_binary_and_large_values_come_back_as_they_were(server):
    with closing(server.connect()) as c:
        for value in (bytes(range(256)) * 16, b"\r\n$-1\r\n*", b"x" * 2_000_000, b""):
            key = b"\0\r\n" + value[:100]
            assert c.ask("SET", key, value) == "OK"
            assert c.ask("GET", key) == value.decode("latin-1")
        assert c.ask("SET", "long", b"y" * (16 << 20)) == "OK"
        assert c.ask("APPEND", "long", "y").startswith("ERR string exceeds")
        assert c.ask("STRLEN", "long") == 16 << 20
        assert c.ask("SET", "long", "short") == "OK" and c.ask("GET", "long") == "short"


def test_hello_changes_the_protocol(server):
    with closing(server.connect()) as c:
        c.ask("DEL", "none")
        c.send(encode("GET", "none"))
        assert c.take(5) == b"$-1\r\n"
        assert c.ask("HELLO", 4) == "NOPROTO unsupported protocol version"
        assert c.ask("HELLO", "x").startswith("ERR Protocol version")
        hello = c.ask("HELLO", 3, "SETNAME", "three")
        assert hello["proto"] == 3 and hello["version"] and c.ask("CLIENT", "GETNAME") == "three"
        c.send(encode("GET", "none"))
        assert c.take(3) == b"_\r\n"
        assert c.ask("CONFIG", "GET", "save") == {"save": ""}
        assert isinstance(c.ask("HELLO", 2), list)
        c.send(encode("GET", "none"))
        assert c.take(5) == b"$-1\r\n"


# ---- the protocol ----


def test_inline_commands_are_split_like_by_a_shell(server):
    with closing(server.connect()) as c:
        c.send('SET line "a \\x41\\n\\"" EX 100\r\nGET line\n\r\n   \r\nECHO \'it\\\'s\'\r\n')
        assert [c.reply() for _ in range(3)] == ["OK", 'a A\n"', "it's"]
        c.send("*0\r\n*-1\r\nPING\r\n")
        assert c.reply() == "PONG"


def test_requests_in_any_pieces(server):
    """One pipeline, cut in two at each byte, and byte by byte."""
    text = b"".join((encode("SET", "cut", "a\r\nb"), b'APPEND cut "\\x41"\r\n', encode("GET", "cut"),
                     b"*0\r\n", encode("MGET", *("cut",) * 20)))
    expected = ["OK", 5, "a\r\nbA", ["a\r\nbA"] * 20]
    with closing(server.connect()) as c:
        for i in range(1, len(text)):
            c.send(text[:i])
            c.send(text[i:])
            assert [c.reply() for _ in range(4)] == expected, i
        for byte in text:
            c.send(bytes([byte]))
        assert [c.reply() for _ in range(4)] == expected


def test_a_long_pipeline_is_answered_in_order(server):
    """Replies are far more than any buffer holds, and the client reads while it still sends."""
    nr = 3000
    with closing(server.connect()) as c:
        c.ask("SET", "much", "m" * 2000)
        c.ask("SET", "count", 0)
        requests = (encode("INCR", "count") + encode("GET", "much")) * nr
        sender = threading.Thread(target=c.send, args=(requests,))
        sender.start()
        for i in range(nr):
            assert c.reply() == i + 1
            assert c.reply() == "m" * 2000
        sender.join()


def test_what_is_no_request_is_told_and_ends_the_connection(server):
    for text, told in (
            ("*65537\r\n", "invalid multibulk length"),
            ("*x\r\n", "invalid multibulk length"),
            ("*" + "1" * 40, "invalid multibulk length"),
            ("*1\r\n$16777217\r\n", "invalid bulk length"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
            ("*1\r\n:1\r\n", "expected '$'"),
            ("*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$'"),
            ("*1\r\n$4\r\nPINGxx", "expected CRLF"),
            ('GET "x\r\n', "unbalanced quotes"),
            ("x" * 70000, "too big inline request")):
        with closing(server.connect()) as c:
            c.send(encode("PING") + text.encode())
            assert c.reply() == "PONG"
            reply = c.reply()
            assert isinstance(reply, Error) and "Protocol error" in reply and told in reply, reply
            c.expect_end()


def test_lengths_alone_take_no_memory(server):
    """Many that promise a lot and send little."""
    def memory():
        with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    clients = [server.connect() for _ in range(50)]
    before = memory()
    for c in clients:
        c.send(encode("PING") + b"*65536\r\n$16777216\r\nabc")
        assert c.reply() == "PONG"
    assert memory() - before < 50 << 20, f"{memory() - before} bytes"
    for c in clients:
        c.close()


def test_clients_that_go_leave_nothing_behind(server):
    with closing(server.connect()) as c:
        for i in range(40):
            other = server.connect()
            other.send(encode("SUBSCRIBE", f"gone{i}") + b"*2\r\n$3\r\nGE")
            assert other.reply() == ["subscribe", f"gone{i}", 1]
            (other.reset if i % 2 else other.close)()
        until(lambda: "connected_clients:1\r\n" in c.ask("INFO"))
        assert [c.ask("PUBLISH", f"gone{i}", "x") for i in range(40)] == [0] * 40


# ---- expiry ----


def test_keys_expire_and_not_early(server):
    with closing(server.connect()) as c:
        c.ask("FLUSHALL")
        start = time.monotonic()
        assert c.ask("SET", "soon", 1, "PX", 30) == "OK"
        assert c.ask("SET", "later", 1, "EX", 1000) == "OK"
        until(lambda: c.ask("GET", "soon") is None)
        assert time.monotonic() - start >= 0.03
        assert c.ask("TTL", "soon") == -2 and 990 < c.ask("TTL", "later") <= 1000
        assert c.ask("PERSIST", "later") == 1 and c.ask("TTL", "later") == -1
        assert c.ask("PEXPIRE", "later", 500000) == 1 and 0 < c.ask("PTTL", "later") <= 500000
        assert c.ask("SET", "later", 2, "KEEPTTL") == "OK" and c.ask("PTTL", "later") > 0
        assert c.ask("SET", "later", 3) == "OK" and c.ask("PTTL", "later") == -1
        assert c.ask("EXPIRE", "later", 0) == 1 and c.ask("EXISTS", "later") == 0
        assert c.ask("EXPIRE", "none", 10) == 0


def test_keys_that_nobody_looks_for_are_removed(server):
    with closing(server.connect()) as c:
        c.ask("FLUSHALL")
        c.ask("SET", "far", 1, "EX", 100000)
        for i in range(500):  # in an order that is none, some changed, some taken back
            c.send(encode("SET", f"e{i}", i, "PX", 1 + i * 7919 % 60))
            c.send(encode("SET" if i % 5 == 0 else "STRLEN", f"e{i}", *([i] if i % 5 == 0 else [])))
            c.send(encode("PEXPIRE", f"e{i}", 5 if i % 3 == 0 else 70))
            c.send(encode("PERSIST", "e0"))
        for _ in range(2000):
            c.reply()
        c.ask("DEL", "e0")
        until(lambda: c.ask("DBSIZE") == 1)  # DBSIZE looks for none of them
        assert "db0:keys=1,expires=1" in c.ask("INFO")
        c.ask("SET", "now", 1, "PX", 1)  # earlier than what it sleeps for
        until(lambda: c.ask("DBSIZE") == 1)


# ---- many at once ----


def in_threads(*functions):
    errors = []

    def run_one(function):
        try:
            function()
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)
    threads = [threading.Thread(target=run_one, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_counters_lose_nothing(server):
    def count():
        with closing(server.connect()) as c:
            c.send(encode("INCR", "shared") * 300)
            last = 0
            for _ in range(300):
                n = c.reply()
                assert n > last
                last = n
    with closing(server.connect()) as c:
        c.ask("DEL", "shared")
        in_threads(*[count] * 8)
        assert c.ask("GET", "shared") == "2400"


def test_several_keys_change_at_once(server):
    keys = [f"m{i}" for i in range(20)]
    done = threading.Event()

    def write(value):
        with closing(server.connect()) as c:
            for i in range(100):
                pairs = [word for key in keys for word in (key, f"{value}{i}")]
                assert c.ask("MSET", *pairs) == "OK"
        done.set()

    def read():
        with closing(server.connect()) as c:
            while not done.is_set():
                assert len(set(c.ask("MGET", *keys))) == 1
    with closing(server.connect()) as c:
        c.ask("DEL", *keys)
    in_threads(lambda: write("a"), lambda: write("b"), read, read)


# ---- publishing ----


def test_messages_reach_subscribers(server):
    with closing(server.connect()) as one, closing(server.connect(3)) as two, \
            closing(server.connect()) as sender:
        assert one.ask("SUBSCRIBE", "news", "sport") == ["subscribe", "news", 1]
        assert one.reply() == ["subscribe", "sport", 2]
        assert two.ask("PSUBSCRIBE", "n?w*") == ["psubscribe", "n?w*", 1]
        assert sender.ask("PUBLISH", "news", "hello") == 2
        assert sender.ask("PUBLISH", "sport", b"\0\r\n") == 1
        assert sender.ask("PUBLISH", "other", "x") == 0
        assert one.reply() == ["message", "news", "hello"]
        assert one.reply() == ["message", "sport", "\0\r\n"]
        got = two.reply()
        assert isinstance(got, Push) and got == ["pmessage", "n?w*", "news", "hello"]
        # A subscriber of RESP2 may do little else; of RESP3, all.
        assert one.ask("GET", "x").startswith("ERR Can't execute 'get'")
        assert one.ask("PING") == ["pong", ""]
        two.ask("SET", "x", "y")
        assert two.ask("GET", "x") == "y"
        assert one.ask("UNSUBSCRIBE", "news") == ["unsubscribe", "news", 1]
        assert sender.ask("PUBLISH", "news", "again") == 1
        assert two.reply() == ["pmessage", "n?w*", "news", "again"]
        assert one.ask("UNSUBSCRIBE") == ["unsubscribe", "sport", 0]
        assert one.ask("UNSUBSCRIBE") == ["unsubscribe", None, 0]
        assert one.ask("GET", "x") == "y" and one.ask("QUIT") == "OK"
        one.expect_end()
        assert sender.ask("UNSUBSCRIBE", "never") == ["unsubscribe", "never", 0]


def test_messages_and_replies_are_in_order(server):
    """What is subscribed to, in the middle of a pipeline, and by several who send at once."""
    nr = 200
    with closing(server.connect(3)) as c:
        c.send(encode("ECHO", "before") + encode("SUBSCRIBE", "a") + encode("PUBLISH", "a", "mine") +
               encode("UNSUBSCRIBE", "a") + encode("PUBLISH", "a", "lost") + encode("ECHO", "after"))
        assert [c.reply() for _ in range(6)] == [
            "before", ["subscribe", "a", 1], ["message", "a", "mine"], 1, ["unsubscribe", "a", 0], 0
        ] and c.reply() == "after"
        c.ask("SUBSCRIBE", "a")

        def publish(name):
            with closing(server.connect()) as sender:
                for i in range(nr):
                    sender.send(encode("PUBLISH", "a", f"{name} {i}"))
                assert [sender.reply() for _ in range(nr)] == [1] * nr

        def receive():
            seen = {"x": 0, "y": 0}
            for _ in range(2 * nr):
                name, i = c.reply()[2].split()
                assert seen[name] == int(i)
                seen[name] += 1
        in_threads(lambda: publish("x"), lambda: publish("y"), receive)


def test_a_subscriber_that_does_not_read_is_closed(server):
    """The others get everything, and publishers never wait for it."""
    message = "z" * (1 << 20)
    with closing(server.connect()) as lazy, closing(server.connect()) as eager, \
            closing(server.connect()) as sender:
        lazy.ask("SUBSCRIBE", "flood")
        eager.ask("SUBSCRIBE", "flood")
        nr = 0
        while sender.ask("PUBLISH", "flood", message) == 2:
            assert eager.reply()[2] == message
            nr += 1
            assert nr < 100
        assert nr >= 32 and eager.reply()[2] == message
        with contextlib.suppress(ConnectionResetError):
            while lazy.more():
                lazy.at = len(lazy.buffer)


def test_subscriptions_are_limited(server):
    with closing(server.connect(3)) as c:
        names = [f"c{i}" for i in range(256)]
        c.send(encode("SUBSCRIBE", *names))
        assert [c.reply()[2] for _ in names] == list(range(1, 257))
        assert c.ask("SUBSCRIBE", "one more") == "ERR too many subscriptions"
        assert c.ask("SUBSCRIBE", "c0") == ["subscribe", "c0", 256]  # has it already
        assert c.ask("SUBSCRIBE", "x" * 257) == "ERR channel name is too long"
        assert c.ask("PUBLISH", "x" * 257, "") == "ERR channel name is too long"
        c.send(encode("UNSUBSCRIBE"))
        assert sorted(c.reply()[2] for _ in names) == list(range(256))


# ---- Redis itself ----


def test_tools_of_redis_work_with_it(server):
    if not shutil.which("redis-cli"):
        print("      no redis-cli here")
        return

    def cli(*words, stdin=None):
        ran = subprocess.run(["redis-cli", "-p", str(server.port), *words], input=stdin, text=True,
                             capture_output=True, timeout=PATIENCE, check=True)
        return ran.stdout.strip()
    assert cli("set", "fruit", "apple pie", "EX", "600") == "OK"
    assert cli("-3", "get", "fruit") == "apple pie" and cli("get", "no fruit") == ""
    assert cli(stdin="set n 5\nincr n\nget none\nmget n fruit\n").splitlines() == [
        "OK", "6", "", "6", "apple pie"]
    assert cli("--no-raw", "-3", "config", "get", "save") == '1# "save" => ""'
    told = cli("--pipe", stdin="".join(f"SET pipe{i} {i}\r\n" for i in range(1000)))
    assert "errors: 0, replies: 1000" in told, told
    assert cli("get", "pipe999") == "999"
    ran = subprocess.run(["redis-benchmark", "-p", str(server.port), "-n", "400", "-c", "10", "-P", "4",
                          "-q", "--csv", "-t", "ping,set,get,incr,mset"], text=True,
                         capture_output=True, timeout=PATIENCE, check=True)
    assert "error" not in (ran.stdout + ran.stderr).lower(), ran.stdout + ran.stderr
    assert [line.split(",")[0].strip('"') for line in ran.stdout.splitlines()[-6:]] == [
        "PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"]


def reference_server():
    """Redis itself: (process, port), or None."""
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    for _ in range(5 if program else 0):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save",
                                    "", "--appendonly", "no"], executable=program, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            if "Ready to accept" in line:
                return process, port
        process.communicate()
    return None


NUMBERS = ["0", "1", "-1", "7", "+1", "01", "", " 1", "1.5", "x", "9223372036854775807", "-9223372036854775808",
           "9223372036854775808", "-0", "00", "9" * 30]


def random_command(rng):
    """Any of those whose replies do not depend on time; often with something wrong."""
    key = lambda: f"k{rng.randrange(6)}"
    value = lambda: rng.choice(NUMBERS + ["text", "x" * rng.randrange(200)])
    option = lambda: rng.choice([["NX"], ["xx"], ["GET"], ["KEEPTTL"], ["EX", "100"], ["PX", "100000"],
                                 ["EX", rng.choice(["0", "-1", "x", "9223372036854775807"])], ["EX"], ["NO"]])
    kind = rng.randrange(16)
    if kind == 0:
        return ["SET", key(), value(), *[w for _ in range(rng.randrange(1, 4)) for w in option()]]
    if kind in (1, 2):
        return ["SET", key(), value()]
    if kind in (3, 4):
        return [rng.choice(["INCR", "decr"]), key()]
    if kind in (5, 6):
        return [rng.choice(["INCRBY", "DecrBy"]), key(), value()]
    if kind == 7:
        return ["APPEND", key(), value()]
    if kind == 8:
        return [rng.choice(["DEL", "EXISTS", "MGET"]), *[key() for _ in range(rng.randrange(1, 5))]]
    if kind == 9:
        return ["MSET", *[w for _ in range(rng.randrange(1, 4)) for w in (key(), value())],
                *["odd"] * (rng.randrange(5) == 0)]
    if kind == 10:
        return [rng.choice(["EXPIRE", "PEXPIRE"]), key(),
                rng.choice(["1000", "0", "-5", "x", "100000", "9223372036854775807"])]
    if kind == 11:
        return ["PERSIST", key()]
    if kind == 12:
        return ["DBSIZE"]
    if kind == 13:
        return rng.choice([["GET"], ["GET", "a", "b"], ["set", "x"], ["PING", "a", "b"], ["MSET", "x"], [""],
                           ["ECHO"], ["SELECT", "x"], ["SELECT", "0"], ["NOSUCH", "a", "b"], ["TTL", "none"],
                           ["PING"], ["ECHO", "x"], ["UNSUBSCRIBE"], ["PUNSUBSCRIBE", "a"], ["FLUSHALL"]])
    return [rng.choice(["GET", "STRLEN"]), key()]


def test_random_commands_have_the_replies_of_redis(server):
    reference = reference_server()
    if not reference:
        print("      no redis-server here")
        return
    process, port = reference
    try:
        for proto, seed in ((2, 1), (3, 2)):
            with closing(server.connect(proto)) as ours, closing(Client(port, proto)) as theirs:
                rng = random.Random(seed)
                commands = [["FLUSHALL"]] + [random_command(rng) for _ in range(3000)]
                for c in (ours, theirs):
                    c.send(b"".join(encode(*command) for command in commands))
                for i, command in enumerate(commands):
                    got, expected = ours.reply(), theirs.reply()
                    assert (got, type(got)) == (expected, type(expected)), \
                        f"seed {seed}, {i}: {command}: {got!r} instead of {expected!r}"
    finally:
        process.kill()
        process.communicate()


# ---- the program ----


def alone_test_clients_are_limited():
    with closing(Server("--maxclients", "2")) as server:
        one, two = server.connect(), server.connect()
        assert one.ask("PING") == two.ask("PING") == "PONG"
        three = server.connect()
        assert three.reply() == "ERR max number of clients reached"
        three.expect_end()
        two.close()
        until(lambda: "connected_clients:1\r\n" in one.ask("INFO"))
        with closing(server.connect()) as four:
            assert four.ask("PING") == "PONG"


def info_of(client, name):
    return int(re.search(rf"^{name}:(\d+)", client.ask("INFO"), re.MULTILINE)[1])


def alone_test_keys_and_values_are_limited():
    """What needs more is refused, what is there stays, and what is removed makes room."""
    full = "OOM command not allowed when used memory > 'maxmemory'."
    with closing(Server("--maxmemory", "8")) as server, closing(server.connect()) as c:
        nr = 0
        while c.ask("SET", f"large{nr}", "x" * (1 << 20)) == "OK":
            nr += 1
        assert 5 <= nr < 8, nr
        small = 0
        while c.ask("SET", f"small{small}", "x" * 100) == "OK":
            small += 1
        assert info_of(c, "used_memory_dataset") <= info_of(c, "maxmemory") == 8 << 20
        assert c.ask("SET", "more", "x" * 1000) == full and c.ask("GET", "more") is None
        assert c.ask("APPEND", "large0", "x" * 1000) == full
        assert c.ask("SET", "small0", "y" * 100) == "OK", "no more than before"
        assert c.ask("MSET", "a", "x" * 1000, "b", "x").startswith("OOM")
        assert c.ask("GET", "large0") == "x" * (1 << 20)
        assert c.ask("DEL", "large0") == 1
        assert c.ask("SET", "more", "x" * 1000, "EX", 100) == "OK"
        assert c.ask("FLUSHALL") == "OK" and info_of(c, "used_memory_dataset") == 0
        assert c.ask("SET", "large0", "x" * (4 << 20)) == "OK"
        assert c.ask("SET", "large0", "x") == "OK" and info_of(c, "used_memory_dataset") < 1 << 20


def alone_test_buffers_of_clients_are_limited():
    """Many that send half of a request, and one that asks for more than is left."""
    with closing(Server("--maxmemory-clients", "8")) as server, closing(server.connect()) as c:
        assert c.ask("SET", "large", "x" * (1 << 20)) == "OK"
        halves = []
        for _ in range(20):
            halves.append(server.connect())
            with contextlib.suppress(OSError):  # it may be closed while it sends
                halves[-1].send(b"*2\r\n$3\r\nGET\r\n$2000000\r\n" + b"x" * 1000000)
            assert info_of(c, "mem_clients") <= info_of(c, "maxmemory_clients") == 8 << 20
        until(lambda: info_of(c, "connected_clients") < 10)
        for half in halves:
            half.close()
        until(lambda: info_of(c, "connected_clients") == 1)
        assert info_of(c, "mem_clients") < 1 << 20
        with closing(server.connect()) as greedy:
            greedy.send(encode("MGET", *["large"] * 20))
            greedy.expect_end()
        assert c.ask("GET", "large") == "x" * (1 << 20)


def alone_test_it_stops_with_clients_of_all_kinds():
    with closing(Server()) as server:
        idle, half, subscribed = server.connect(), server.connect(), server.connect(3)
        assert idle.ask("SET", "k", "v", "EX", 100) == "OK"
        half.send(encode("PING") + b"*2\r\n$3\r\nGET\r\n$10\r\nabc")
        assert half.reply() == "PONG"
        subscribed.ask("SUBSCRIBE", "c")
        code, last = server.stop()
        assert code == 0 and re.fullmatch(r"\d+ commands on 3 connections", last), (code, last)
        for c in (idle, half, subscribed):
            c.expect_end()


def alone_test_options_that_make_no_sense_are_refused():
    for options in (["--port", "x"], ["--port", "65536"], ["--address", "nowhere"], ["--nonsense"], ["6379"],
                    ["--maxmemory", "x"], ["--maxmemory-clients", "-1"]):
        ran = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=PATIENCE,
                             check=False)
        assert ran.returncode == 2 and "--port N" in ran.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = subprocess.run([PROGRAM, "--port", str(taken.getsockname()[1])], capture_output=True,
                             env={**os.environ, "LC_ALL": "C"}, text=True, timeout=PATIENCE, check=False)
        assert ran.returncode == 1 and "Address already in use" in ran.stderr


# ---- running them ----


def run(prefix, wanted, *arguments):
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith(prefix) or (wanted and name not in wanted) or \
                ("--brief" in sys.argv and name in LONG):
            continue
        start = time.monotonic()
        try:
            test(*arguments)
            for server in arguments:
                assert server.process.poll() is None, "the server has ended"
            print(f"ok    {time.monotonic() - start:5.2f} s  {name}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
            failed += 1
    return failed


def main(wanted):
    with closing(Server("--workers", "2")) as server:
        failed = run("test_", wanted, server)
        code, last = server.stop()
        print(last)
        failed += code != 0
    failed += run("alone_test_", wanted)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main([word for word in sys.argv[2:] if word not in ("", "--brief")]))
