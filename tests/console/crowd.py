# SPDX-License-Identifier: Apache-2.0
"""The program crowd (crowd.c), and how to ask its console."""

import http.client
import json
import os
import socket
import subprocess
import time

PATIENCE = 100  # seconds, for what must come


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Crowd:
    def __init__(self, program, address="127.0.0.1:0"):
        emulator = os.environ.get("EMULATOR", "").split()  # of a foreign processor
        self.process = subprocess.Popen([*emulator, program, address], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().strip()
        assert self.address, "crowd has ended"

    def do(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n", order

    def connect(self):
        if self.address.startswith("unix:"):
            return UnixConnection(self.address[5:])
        host, port = self.address.rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port))

    def get(self, path):
        """The type and the body of an answer."""
        connection = self.connect()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        assert answer.status == 200, (path, answer.status, body)
        return answer.headers["Content-Type"], body

    def json(self, path):
        kind, body = self.get(path)
        assert kind == "application/json", kind
        return json.loads(body)

    def tasks(self, query=""):
        return self.json("/api/tasks?fresh=1&" + query)

    def wait_for(self, what, path, good):
        """Asks until the answer is good; each question waits for a new look at all tasks."""
        give_up = time.monotonic() + PATIENCE
        while True:
            answer = self.json(path)
            if good(answer):
                return answer
            assert time.monotonic() < give_up, (what, answer)

    def wait_for_waiting(self, count):
        return self.wait_for(f"{count} tasks that wait", "/api/tasks?fresh=1&limit=1",
                             lambda a: a["waiting"] == count and a["total"] == count)

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
