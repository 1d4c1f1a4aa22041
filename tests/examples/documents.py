#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code in the documents compiles without a warning; programs run, and print what stands below.

    documents.py INCLUDE_DIR LIBRARIES COMPILER DOCUMENT...

A ```c block with a main is a whole program.c; a ```text block that follows it is what it prints. It is
compiled as it is and with BLZ_DEBUG_FRAMES, and run both ways. One that listens on a port is an echo
server: it says what a client says, until it is killed.

Any other ```c block is a fragment. A comment in front of it (<!-- around: ... -->) is the program around
it, with an @ where it goes; without one it is a part of the program before it and must be found there,
line by line. Fragments are compiled and not run.

All of it is read by blitz-check-frames.
"""

import concurrent.futures
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

STRICT = "-std=gnu11 -O2 -Wall -Wextra -Wshadow -Wpedantic -Werror".split()
MODES = ([], ["-DBLZ_DEBUG_FRAMES", "-O0"])
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
BLOCK = re.compile(r"^```(c|text)\n(?P<body>.*?)^```$|^<!-- around:\n(?P<around>.*?)^-->$",
                   re.DOTALL | re.MULTILINE)
LISTENS = re.compile(r"127\.0\.0\.1:(\d+)")


@dataclass
class Block:
    line: int
    source: str
    around: str = None      # a program with an @ in it
    prints: str = None

    @property
    def is_program(self):
        return re.search(r"^int main\(", self.source, re.MULTILINE) is not None


def blocks(text):
    found, around = [], None
    for match in BLOCK.finditer(text):
        if match["around"] is not None:
            around = match["around"]
        elif match[1] == "c":
            found.append(Block(text[:match.start()].count("\n") + 1, match["body"], around))
            around = None
        elif found:
            found[-1].prints = match["body"]
    return found


def is_part(fragment, program):
    """Whether each line of it is a line of the program, in that order, whatever the indentation."""
    lines = iter(line.strip() for line in program.split("\n"))
    return all(wanted in lines for wanted in map(str.strip, fragment.split("\n")) if wanted)


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)


def free_port():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        return other.getsockname()[1]


def talk(port):
    """What an echo server says to two clients, of which one has gone; None: nobody listens."""
    for _ in range(500):
        try:
            with socket.create_connection(("127.0.0.1", port), 10):
                pass
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: client.recv(4096), b""))
        except ConnectionRefusedError:
            time.sleep(0.02)
    return None


def check_server(program, port):
    """What is wrong with a server, or None."""
    with subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        said = talk(port)
        server.kill()
        return None if said == b"hello" else f"said {said}\n{server.stdout.read().decode()}"


def check_run(program, mode, prints):
    with tempfile.TemporaryDirectory() as empty:
        ran = run([program], cwd=empty, timeout=200)
    if ran.returncode != 0:
        return f"exit code {ran.returncode} {' '.join(mode)}\n{ran.stdout}"
    if prints is not None and ran.stdout != prints and not (mode and "poll" in prints):
        return f"prints {' '.join(mode)}\n{ran.stdout}instead of\n{prints}"
    return None


class Documents:
    def __init__(self, include, libraries, compiler):
        self.include, self.libraries, self.compiler = include, libraries.split(), compiler

    def compile(self, folder, *arguments):
        built = run([self.compiler, *STRICT, f"-I{self.include}", "program.c", *arguments], cwd=folder)
        return built.stdout or (None if built.returncode == 0 else "does not compile")

    def check_frames(self, folder, source):
        (folder / "program.c").write_text(source)
        frames = run([TOOLS / "blitz-check-frames", "program.c"], cwd=folder)
        return frames.stdout if frames.returncode != 0 else None

    def check_program(self, block, folder):
        listens, port, source = LISTENS.search(block.source), free_port(), block.source
        if listens:
            source = source.replace(listens[0], f"127.0.0.1:{port}")
        wrong = self.check_frames(folder, source)
        for mode in MODES:
            wrong = wrong or self.compile(folder, *mode, "-o", "program", *self.libraries)
            if not wrong:
                wrong = (check_server(folder / "program", port) if listens
                         else check_run(folder / "program", mode, block.prints))
        return wrong

    def check_fragment(self, block, before, folder):
        if block.around is None:
            if before is not None and is_part(block.source, before):
                return None
            return "a fragment that is no part of the program before it, and has no `around`"
        source = block.around.replace("@", block.source.rstrip("\n"), 1)
        return self.check_frames(folder, source) or self.compile(folder, "-O0", "-fsyntax-only")

    def check(self, document, block, before):
        """What is wrong with a block, with its place, or None."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            wrong = (self.check_program(block, folder) if block.is_program
                     else self.check_fragment(block, before, folder))
        return f"{document}:{block.line}: {wrong}" if wrong else None


def jobs(documents):
    """(document, block, the program before it)"""
    for document in documents:
        before = None
        for block in blocks(pathlib.Path(document).read_text()):
            yield document, block, before
            before = block.source if block.is_program else before


def main(include, libraries, compiler, *documents):
    checker = Documents(include, libraries, compiler)
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as threads:
        results = list(threads.map(lambda job: checker.check(*job), jobs(documents)))
    for wrong in filter(None, results):
        print(wrong)
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
