#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""blitz-top, in a pipe and in a terminal.

    top.py CROWD BLITZ_TOP
"""

import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import fcntl
import termios
import time

from crowd import Crowd, PATIENCE

PROGRAM, TOP = sys.argv[1:3]


def run(*arguments):
    return subprocess.run([sys.executable, "-B", TOP, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)


class Screen:
    """blitz-top in a terminal of its own; `seen` is the text of the last whole screen."""

    def __init__(self, *arguments):
        self.fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        self.process = subprocess.Popen([sys.executable, "-B", TOP, *arguments], stdin=inner,
                                        stdout=inner, stderr=inner, close_fds=True,
                                        env={**os.environ, "TERM": "xterm", "LINES": "30",
                                             "COLUMNS": "120"})
        os.close(inner)
        self.raw = ""

    def wait_for(self, pattern):
        """Until a screen has it: that screen, without colours."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            if select.select([self.fd], [], [], 1)[0]:
                self.raw += os.read(self.fd, 65536).decode(errors="replace")
            whole = self.raw.split("\33[J")
            seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", whole[-2]) if len(whole) > 1 else ""
            if re.search(pattern, seen):
                return seen
        raise AssertionError(f"no {pattern} in {seen}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def quit(self):
        self.press("q")
        give_up = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < give_up:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    break
        assert self.process.wait(PATIENCE) == 0
        os.close(self.fd)


def test_once(crowd):
    crowd.do("crowd 30")
    crowd.do("deadlock")
    crowd.wait_for("a deadlock", "/api/tasks?fresh=1&q=mutex_lock&state=waiting",
                   lambda a: a["matched"] == 2)
    crowd.wait_for_waiting(32)
    result = run(crowd.address, "--once", "--sort", "name", "--rows", "3")
    lines = result.stdout.splitlines()
    assert result.returncode == 0 and not result.stderr, result
    assert lines[0].startswith(f"crowd  pid {crowd.process.pid}"), lines
    assert any(line.startswith("! A deadlock: 2 tasks") for line in lines), lines
    assert "left philosopher" in lines[-4] and "mutex_lock" in lines[-4], lines
    assert lines[-1] == "1-3 of 32", lines
    assert "\33" not in result.stdout
    found = run(crowd.address, "--find", "member 10", "--state", "waiting")  # no terminal: once
    assert found.stdout.splitlines()[-1] == "1-1 of 1 (of 32)  find: member 10", found
    resources = run(crowd.address, "--once", "--resources").stdout
    assert re.search(r"^mutex .* right philosopher \d+ +left philosopher \d+$", resources, re.M), resources
    assert re.search(r"^token .* 30 .* and 22 more$", resources, re.M), resources
    crowd.do("unlock")


def test_branches(crowd):
    crowd.do("patient")
    crowd.wait_for("waiting tasks", "/api/tasks?fresh=1&q=mutex_lock&state=waiting",
                   lambda a: a["matched"] == 2)
    found = run(crowd.address, "--once", "--find", "left philosopher").stdout
    assert re.search(r" \{ 0: mutex_lock < timeout \| 1: token_cancelled \} < select < patient "
                     r"crowd\.c:\d+$", found, re.M), found
    crowd.do("dismiss")


def test_help_into_a_pipe_that_is_closed(crowd):
    there, here = os.pipe()
    os.close(there)
    done = subprocess.run([sys.executable, "-B", TOP, "--help"], stdout=here, text=True,
                          stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    os.close(here)
    assert done.stderr == "", done


def test_nobody_is_there(crowd):
    result = run("127.0.0.1:1", "--once")
    assert result.returncode == 1 and result.stderr.startswith("blitz-top: 127.0.0.1:1: "), result


def test_live(crowd):
    crowd.do("crowd 100")
    crowd.wait_for_waiting(100)
    screen = Screen(crowd.address)
    screen.wait_for(r"1-\d+ of 100 ")
    screen.press("i")
    first = screen.wait_for(r" task \^ name ")
    screen.press("i")
    assert screen.wait_for(r" task v name ") != first
    screen.press("b")
    screen.wait_for(r" busy v where")
    screen.press("\33[F")
    screen.wait_for(r"-100 of 100 ")
    screen.press("r")
    screen.wait_for(r"(?s)\ntoken .* 100 .*1-1 of 1 ")
    screen.press(" r")  # paused: it stays until something is asked for
    screen.wait_for(r"1-1 of 1  paused")
    screen.press(" ")
    screen.wait_for(r"1-\d+ of 100 ")
    screen.press("r")
    screen.wait_for(r"1-1 of 1 ")
    screen.press("/member 10\r")
    screen.wait_for(r"1-1 of 1 \(of 100\)  find: member 10")
    crowd.do("dismiss")  # it is live
    screen.wait_for(r"0-0 of 0")
    screen.quit()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
            crowd = Crowd(PROGRAM, "unix:" + os.path.join(folder, "console"))
            try:
                test(crowd)
                crowd.stop()
            finally:
                crowd.kill()
            print("ok", name)


main()
