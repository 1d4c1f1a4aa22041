#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs in the documents compile without a warning, run, and print what stands below them.

    documents.py INCLUDE_DIR LIBRARY COMPILER DOCUMENT...

Every ```c block is a program.c; a ```text block that follows it is what it prints. Each is compiled
as it is and with BLZ_DEBUG_FRAMES, and read by blitz-check-frames.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

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


def check(source, prints, include, library, compiler, folder):
    """What is wrong with a program, or None."""
    (folder / "program.c").write_text(source)
    frames = run([TOOLS / "blitz-check-frames", "program.c"], cwd=folder)
    if frames.returncode != 0:
        return frames.stdout
    for mode in ([], ["-DBLZ_DEBUG_FRAMES"]):
        built = run([compiler, *STRICT, *mode, f"-I{include}", "program.c", "-o", "program",
                     library, "-lpthread"], cwd=folder)
        if built.returncode != 0 or built.stdout:
            return f"{' '.join(mode)}\n{built.stdout}"
        ran = run([folder / "program"], cwd=folder, timeout=30)
        if ran.returncode != 0:
            return f"exit code {ran.returncode} {' '.join(mode)}\n{ran.stdout}"
        if prints is not None and ran.stdout != prints and not (mode and "poll" in prints):
            return f"prints {' '.join(mode)}\n{ran.stdout}instead of\n{prints}"
    return None


def main(include, library, compiler, *documents):
    failed = 0
    for document in map(pathlib.Path, documents):
        for line, source, prints in programs(document):
            with tempfile.TemporaryDirectory() as folder:
                wrong = check(source, prints, include, library, compiler, pathlib.Path(folder))
            if wrong is not None:
                print(f"{document}:{line}: {wrong}")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
