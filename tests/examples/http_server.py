# SPDX-License-Identifier: Apache-2.0
"""A web server for tests: http_server.py PORT

/bytes/N      N bytes; if N is even the connection is closed afterwards
/barrier/N    answers once N such requests are waiting: at the same time, or never
/slow         answers in pieces, half a second long
"""
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

barriers = {}
barriers_lock = threading.Lock()


def barrier(count):
    with barriers_lock:
        return barriers.setdefault(count, threading.Barrier(count))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if len(body) % 2 == 0:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def slow(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        for _ in range(5):
            time.sleep(0.1)
            self.wfile.write(b"x")

    def do_GET(self):
        what, _, count = self.path.split("?")[0].lstrip("/").partition("/")
        if what == "bytes":
            self.reply(200, b"x" * int(count))
        elif what == "barrier":
            barrier(int(count)).wait(timeout=100)
            self.reply(200, b"met\n")
        elif what == "slow":
            self.slow()
        else:
            self.reply(404, b"nothing here\n")

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1000
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
