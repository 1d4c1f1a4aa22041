# SPDX-License-Identifier: Apache-2.0
"""What the tests of web servers have in common: a client that sees every byte."""

import contextlib
import os
import socket
import struct

PATIENCE = 60  # seconds; for what must happen
HEAD = "Host: x\r\n"


class Client:
    def __init__(self, port, receive_buffer=None):
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(("127.0.0.1", port))
        self.buffer = b""

    def send(self, data):
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def more(self):
        piece = self.sock.recv(65536)
        self.buffer += piece
        return len(piece) > 0

    def take(self, length):
        while len(self.buffer) < length:
            assert self.more(), f"the end, after {self.buffer}"
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def reply(self, head_only=False):
        """(status, headers, body)"""
        while b"\r\n\r\n" not in self.buffer:
            assert self.more(), f"the end, after {self.buffer}"
        head = self.take(self.buffer.index(b"\r\n\r\n") + 4).decode()
        status, *lines = head[:-4].split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        length = 0 if head_only else int(headers.get("content-length", 0))
        return int(status.split()[1]), headers, self.take(length)

    def ask(self, request, body=b""):
        self.send(request.encode("latin-1") + body)
        return self.reply(request.startswith("HEAD"))

    def expect_end(self):
        assert not self.buffer, self.buffer
        try:
            assert not self.more(), f"more: {self.buffer}"
        except ConnectionResetError:
            pass

    def close(self):
        self.sock.close()

    def reset(self):
        """Goes without a word: the other side gets a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def get(path, *headers, method="GET", version="1.1"):
    return f"{method} {path} HTTP/{version}\r\n{HEAD}" + "".join(f"{h}\r\n" for h in headers) + "\r\n"


def post(path, body, *headers):
    return get(path, f"Content-Length: {len(body)}", *headers, method="POST").encode() + body


def nr_sockets(pid):
    """Open in a process now, without those that listen: each worker opens one when it begins to."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    listen = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    folder = f"/proc/{pid}/fd"
    count = 0
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            name = os.readlink(f"{folder}/{fd}")
            count += name.startswith("socket:") and name not in listen
    return count
