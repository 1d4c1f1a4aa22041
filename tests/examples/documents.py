#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs in the documents compile without a warning, run, and print what stands below them.

    documents.py INCLUDE_DIR LIBRARIES COMPILER DOCUMENT...

Every ```c block is a program.c; a ```text block that follows it is what it prints. Each is compiled
as it is and with BLZ_DEBUG_FRAMES, and read by blitz-check-frames. Those that listen on a port are
echo servers: they say what a client says, until they are killed.
"""

import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

STRICT = "-std=gnu11 -O2 -Wall -Wextra -Wshadow -Wpedantic -Werror".split()
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
BLOCK = re.compile(r"^```(c|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def programs(document):
    """(line, source, what it prints or None)"""
    text = document.read_text()
    found = []
    for match in BLOCK.finditer(text):
        if match[1] == "c":
            found.append([text[: match.start()].count("\n") + 1, match[2], None])
        elif found:
            found[-1][2] = match[2]
    return found


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


def check(source, prints, include, libraries, compiler, folder):
    """What is wrong with a program, or None."""
    listens = re.search(r"127\.0\.0\.1:(\d+)", source)
    port = free_port()
    if listens:
        source = source.replace(listens[0], f"127.0.0.1:{port}")
    (folder / "program.c").write_text(source)
    frames = run([TOOLS / "blitz-check-frames", "program.c"], cwd=folder)
    if frames.returncode != 0:
        return frames.stdout
    for mode in ([], ["-DBLZ_DEBUG_FRAMES"]):
        built = run([compiler, *STRICT, *mode, f"-I{include}", "program.c", "-o", "program",
                     *libraries.split()], cwd=folder)
        if built.returncode != 0 or built.stdout:
            return f"{' '.join(mode)}\n{built.stdout}"
        if listens:
            wrong = check_server(folder / "program", port)
            if wrong is not None:
                return wrong
            continue
        ran = run([folder / "program"], cwd=folder, timeout=200)
        if ran.returncode != 0:
            return f"exit code {ran.returncode} {' '.join(mode)}\n{ran.stdout}"
        if prints is not None and ran.stdout != prints and not (mode and "poll" in prints):
            return f"prints {' '.join(mode)}\n{ran.stdout}instead of\n{prints}"
    return None


def main(include, libraries, compiler, *documents):
    failed = 0
    for document in map(pathlib.Path, documents):
        for line, source, prints in programs(document):
            with tempfile.TemporaryDirectory() as folder:
                wrong = check(source, prints, include, libraries, compiler, pathlib.Path(folder))
            if wrong is not None:
                print(f"{document}:{line}: {wrong}")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
