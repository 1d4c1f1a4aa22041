#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The file server as clients see it: what they get, what they do not get, and what limits they have.

    files.py PROGRAM [TEST...]

Most tests share a server and a tree of files. Nothing here waits for a time to pass, except for the
server to end a client that is too slow, with one that is in a hurry.
"""

import contextlib
import email.utils
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from http_client import Client, PATIENCE, get, nr_sockets

PROGRAM = sys.argv[1]
BIG = bytes(range(256)) * 8192  # 2 MiB: goes by sendfile, and into no buffer at once
OLD = 784111777  # 1994


class Server:
    def __init__(self, root, *options):
        self.process = subprocess.Popen([PROGRAM, "--listen", "127.0.0.1:0", *options, str(root)],
                                        text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = self.process.stdout.readline()
        assert "Ctrl-C stops it" in said, said + self.process.stdout.read()
        self.port = int(re.search(r"http://127.0.0.1:(\d+)/", said)[1])

    def connect(self, **options):
        return Client(self.port, **options)

    def expect_nothing_open(self):
        """No socket and no file is left of what clients have asked for."""
        give_up = time.monotonic() + PATIENCE
        while nr_sockets(self.process.pid) > 0 or self.nr_files() > 1:  # the root
            assert time.monotonic() < give_up, "something is still open"
            time.sleep(0.01)

    def nr_files(self):
        folder, count = f"/proc/{self.process.pid}/fd", 0
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                name = os.readlink(f"{folder}/{fd}")
                count += name.startswith("/") and not name.startswith(("/dev/", "/proc/"))
        return count

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.finish()

    def finish(self):
        """The exit code, and the last line."""
        rest = self.process.communicate(timeout=PATIENCE)[0]
        if self.process.returncode != 0:
            print(rest)  # a sanitizer's report, perhaps
        return self.process.returncode, rest.splitlines()[-1] if rest else ""

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def make_tree(top):
    root = top / "root"
    (root / "site").mkdir(parents=True)
    (root / "plain" / "inner").mkdir(parents=True)
    (root / "odd").mkdir()
    (root / ".git").mkdir()
    (top / "secret").write_text("not for you\n")
    (root / ".git" / "config").write_text("nor this\n")
    (root / "hello.txt").write_text("hello\n")
    os.utime(root / "hello.txt", (OLD, OLD))
    (root / "empty.css").touch()
    (root / "big.bin").write_bytes(BIG)
    (root / "site" / "index.html").write_text("<h1>Site</h1>\n")
    (root / "plain" / "b.PNG").write_bytes(b"\x89PNG")
    (root / "plain" / "a & <b>.txt").write_text("x")
    (root / "plain" / ".hidden").write_text("x")
    (root / "odd" / "a:b%.c").write_text("colon\n")
    (root / "inside").symlink_to("plain/b.PNG")
    (root / "out").symlink_to("../secret")
    (root / "etc").symlink_to("/etc")
    (root / "up").symlink_to("..")
    os.mkfifo(root / "fifo")
    (root / "closed").write_text("x")
    (root / "closed").chmod(0)
    return root


# ---- what there is ----


def test_files_come_with_what_is_known_of_them(server):
    client = server.connect()
    status, headers, body = client.ask(get("/hello.txt"))
    assert status == 200 and body == b"hello\n"
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["last-modified"] == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert headers["accept-ranges"] == "bytes" and headers["etag"].startswith('"')
    assert headers["x-content-type-options"] == "nosniff"
    assert abs(email.utils.parsedate_to_datetime(headers["date"]).timestamp() - time.time()) < 3600
    status, headers, body = client.ask(get("/empty.css?x=y"))
    assert (status, headers["content-length"], body) == (200, "0", b"")
    assert headers["content-type"] == "text/css; charset=utf-8"
    assert client.ask(get("/big.bin"))[2] == BIG
    assert client.ask(get("/plain/b.PNG"))[1]["content-type"] == "image/png"
    assert client.ask(get("/inside"))[2] == b"\x89PNG"  # a link that stays inside
    assert client.ask(get("/odd/a%3ab%25.c"))[2] == b"colon\n"
    assert client.ask(get("/plain/../%68ello.txt"))[2] == b"hello\n"
    client.close()


def test_head_is_get_without_a_body(server):
    client = server.connect()
    for path in ("/hello.txt", "/big.bin", "/site/", "/plain/", "/nothing"):
        wanted = client.ask(get(path))
        got = client.ask(get(path, method="HEAD"))
        assert got[0] == wanted[0] and got[2] == b""
        assert {k: v for k, v in got[1].items() if k != "date"} == \
            {k: v for k, v in wanted[1].items() if k != "date"}
    client.close()


def test_directories_are_indexed_or_listed(server):
    client = server.connect()
    status, headers, body = client.ask(get("/site/"))
    assert (status, body) == (200, b"<h1>Site</h1>\n")
    assert headers["content-type"] == "text/html; charset=utf-8"
    status, headers, body = client.ask(get("/plain/"))
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r'href="([^"]*)"', body.decode()) == \
        ["../", "./a%20%26%20%3Cb%3E.txt", "./b.PNG", "./inner/"]
    assert b">a &amp; &lt;b&gt;.txt<" in body and b"<b>" not in body
    assert b".git" not in client.ask(get("/"))[2]
    for path, place in (("/site", "/site/"), ("/plain/inner?a=b", "/plain/inner/?a=b"),
                        ("//plain", "/plain/")):  # and not another host
        status, headers, _ = client.ask(get(path))
        assert (status, headers["location"]) == (301, place)
    client.close()


# ---- what a client has already ----


def test_what_has_not_changed_is_not_sent_again(server):
    client = server.connect()
    headers = client.ask(get("/hello.txt"))[1]
    tag, date = headers["etag"], headers["last-modified"]
    for condition in (f"If-None-Match: {tag}", f'If-None-Match: "x", W/{tag}', "If-None-Match: *",
                      f"If-Modified-Since: {date}",
                      "If-Modified-Since: Mon, 07 Nov 1994 00:00:00 GMT"):
        client.send(get("/hello.txt", condition))
        status, headers, body = client.reply(head_only=True)
        assert (status, body) == (304, b"") and headers["etag"] == tag, condition
    for conditions in (['If-None-Match: "x"'], ["If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"],
                       ["If-Modified-Since: yesterday"],
                       ['If-None-Match: "x"', f"If-Modified-Since: {date}"]):
        assert client.ask(get("/hello.txt", *conditions))[2] == b"hello\n", conditions
    client.close()


def test_a_tag_changes_with_the_file(server):
    client, path = server.connect(), server.root / "changing"
    path.write_text("one")
    tag = client.ask(get("/changing"))[1]["etag"]
    path.write_text("two")
    os.utime(path, ns=(1, 1))
    status, headers, body = client.ask(get("/changing", f"If-None-Match: {tag}"))
    assert status == 200 and headers["etag"] != tag and body == b"two"
    client.close()


def test_ranges_are_sent(server):
    client = server.connect()
    headers = client.ask(get("/big.bin"))[1]
    tag, date = headers["etag"], headers["last-modified"]
    for text, first, last in (("0-0", 0, 0), ("5-9", 5, 9), ("2097151-", 2097151, 2097151),
                              ("-10", 2097142, 2097151), ("100000-1999999", 100000, 1999999),
                              ("7-99999999", 7, 2097151)):
        status, headers, body = client.ask(get("/big.bin", f"Range: bytes={text}"))
        assert status == 206 and body == BIG[first:last + 1], text
        assert headers["content-range"] == f"bytes {first}-{last}/{len(BIG)}"
    status, headers, _ = client.ask(get("/big.bin", "Range: bytes=2097152-"))
    assert status == 416 and headers["content-range"] == f"bytes */{len(BIG)}"
    for header in ("Range: bytes=5-4", "Range: bytes=0-1,4-5", "Range: lines=1-2"):
        assert client.ask(get("/hello.txt", header))[0] == 200  # all of it is never wrong
    for condition, status in ((tag, 206), (date, 206), ('"x"', 200), (f"W/{tag}", 200),
                              ("Sun, 06 Nov 1994 08:49:37 GMT", 200)):
        got = client.ask(get("/big.bin", "Range: bytes=1-2", f"If-Range: {condition}"))
        assert got[0] == status, condition
    client.close()


# ---- what there is not ----


def test_nothing_outside_the_root_is_served(server):
    client = server.connect()
    for path in ("/../secret", "/%2e%2e/secret", "/..%2fsecret", "/plain/../../secret",
                 "/plain/%2e%2e/%2e%2e/secret", "/a%00b", "/%zz"):
        assert client.ask(get(path))[0] == 400, path
    for path in ("/out", "/etc/passwd", "/etc/", "/up/secret", "/up/root/hello.txt", "/fifo"):
        assert client.ask(get(path))[0] == 403, path
    for path in ("/nothing", "/hello.txt/", "/hello.txt/x", "/.git/config", "/plain/.hidden",
                 "/.git/", "/" + "x" * 300, "/up%2f..%2fnothing"):
        assert client.ask(get(path))[0] == 404, path
    if os.getuid() != 0:
        assert client.ask(get("/closed"))[0] == 403
    client.close()


def test_other_methods_and_bodies_are_refused(server):
    for request, status in ((get("/hello.txt", method="DELETE"), 405),
                            (get("*", method="OPTIONS"), 405), (get("*"), 400)):
        client = server.connect()
        got, headers, _ = client.ask(request)
        assert got == status and (status != 405 or headers["allow"] == "GET, HEAD")
        assert client.ask(get("/hello.txt"))[2] == b"hello\n"  # it goes on
        client.close()
    for request, status in ((get("/hello.txt", "Content-Length: 3") + "abc", 200),
                            (get("/", "Content-Length: 3", method="POST") + "abc", 405),
                            (get("/hello.txt", "Transfer-Encoding: chunked") + "0\r\n\r\n", 200),
                            ("GET /\r\n", 400), (get("/", "X: " + "x" * 9000), 431),
                            ("GET /" + "x" * 9000, 414)):
        client = server.connect()
        got, headers, _ = client.ask(request)
        assert got == status and headers["connection"] == "close"
        client.expect_end()
        client.close()


def test_hidden_files_are_served_if_that_is_wanted(server):
    with contextlib.closing(Server(server.root, "--hidden")) as other:
        client = other.connect()
        assert client.ask(get("/.git/config"))[2] == b"nor this\n"
        assert b".git/" in client.ask(get("/"))[2]
        assert client.ask(get("/../secret"))[0] == 400
        client.close()


def test_a_file_that_is_shorter_than_it_says_is_an_error(_server):
    """Files of sysfs say 4096 bytes and have a few."""
    path = pathlib.Path("/sys/kernel/mm/transparent_hugepage")
    if not (path / "enabled").exists():
        return
    with contextlib.closing(Server(path)) as other:
        client = other.connect()
        client.send(get("/enabled") + get("/"))
        assert client.reply()[0] == 500
        assert client.reply()[0] == 200
        client.close()


# ---- many at a time ----


def test_pipelined_requests_are_answered_in_order(server):
    client = server.connect()
    paths = ["/hello.txt", "/big.bin", "/plain/", "/nothing", "/empty.css", "/site/"] * 5
    threading.Thread(target=client.send, args=("".join(get(p) for p in paths),)).start()
    single = server.connect()
    wanted = {path: single.ask(get(path))[2] for path in set(paths)}
    for path in paths:
        assert client.reply()[2] == wanted[path], path
    client.close()
    single.close()


def test_replies_to_requests_that_came_together_come_together(server):
    client = server.connect()
    client.ask(get("/hello.txt"))  # it waits for us now
    client.send(get("/hello.txt") * 20)
    assert client.more()
    assert client.buffer.count(b"hello\n") == 20
    client.close()


def test_many_clients_are_served_at_once(server):
    clients = [server.connect() for _ in range(40)]
    for client in clients:
        client.send(get("/big.bin", "Range: bytes=0-299999") + get("/hello.txt", "Connection: close"))
    for client in clients:
        assert client.reply()[2] == BIG[:300000]
        assert client.reply()[2] == b"hello\n"
        client.expect_end()
        client.close()


def test_clients_may_go_at_any_moment(server):
    requests = (get("/big.bin") + get("/plain/") + get("/hello.txt")).encode()
    for cut in range(0, len(requests), 7):
        client = server.connect(receive_buffer=4096)
        client.send(requests[:cut])
        if cut % 2:
            client.reset()
        else:
            client.close()


def test_connections_beyond_the_limit_wait_for_a_place(server):
    with contextlib.closing(Server(server.root, "--connections", "2")) as other:
        first, second, third = other.connect(), other.connect(), other.connect()
        for client in (first, second):
            assert client.ask(get("/hello.txt"))[0] == 200
        third.send(get("/hello.txt"))
        assert nr_sockets(other.process.pid) == 2
        first.close()
        assert third.reply()[2] == b"hello\n"
        assert other.stop() == (0, "3 requests on 3 connections")


# ---- ending ----


def slow_status(server):
    """What half a request gets, if it came in time to be one."""
    give_up = time.monotonic() + PATIENCE
    while True:
        client = server.connect()
        with contextlib.closing(client), contextlib.suppress(ConnectionError):
            client.send("GET / HTTP/1.1\r\n")
            if client.more():
                status = client.reply()[0]
                client.expect_end()
                return status
        assert time.monotonic() < give_up


def test_slow_clients_are_given_up(server):
    with contextlib.closing(Server(server.root, "--hurry", "1000")) as other:
        idle, deaf = other.connect(), other.connect(receive_buffer=4096)
        with contextlib.suppress(ConnectionError):
            deaf.send(get("/big.bin") * 4)  # more than the buffers of the sockets hold
        assert slow_status(other) == 408
        idle.expect_end()
        other.expect_nothing_open()
        idle.close()
        deaf.close()


def test_a_stop_lets_downloads_finish(server):
    with contextlib.closing(Server(server.root)) as other:
        idle, busy = other.connect(), other.connect(receive_buffer=4096)
        idle.ask(get("/hello.txt"))
        busy.send(get("/big.bin"))
        while len(busy.buffer) < 1000:  # it has begun
            assert busy.more()
        other.process.send_signal(signal.SIGINT)
        idle.expect_end()
        assert busy.reply()[2] == BIG
        busy.expect_end()
        assert other.finish() == (0, "2 requests on 2 connections")


def test_what_cannot_work_is_named(server):
    for arguments, code, said in ((["--listen", "127.0.0.1:0", str(server.root / "hello.txt")], 1,
                                   "hello.txt: Not a directory"),
                                  ([str(server.root / "nowhere")], 1, "No such file"),
                                  (["--listen", f"127.0.0.1:{server.port}", str(server.root)], 1,
                                   "Address already in use"),
                                  (["--connections", "0"], 2, "--connections N"),
                                  (["a", "b"], 2, "--connections N")):
        ran = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                             timeout=PATIENCE, check=False)
        assert ran.returncode == code and said in ran.stderr, ran


# ---- running them ----


def main(wanted):
    failed = 0
    with tempfile.TemporaryDirectory() as top:
        root = make_tree(pathlib.Path(top))
        with contextlib.closing(Server(root)) as server:
            server.root = root
            for name, test in list(globals().items()):
                if not name.startswith("test_") or (wanted and name not in wanted):
                    continue
                start = time.monotonic()
                try:
                    test(server)
                    server.expect_nothing_open()
                    assert server.process.poll() is None, "the server has ended"
                    print(f"ok    {time.monotonic() - start:5.2f} s  {name}", flush=True)
                except Exception as error:  # pylint: disable=broad-except
                    print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
                    failed += 1
            code, last = server.stop()
            if code != 0:
                print(f"FAIL  exit code {code}: {last}")
                failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
