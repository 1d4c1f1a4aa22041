#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs async functions with mistakes that compile, with and without BLZ_DEBUG_FRAMES.

Each case (*.c here, but hand.c) is a program. Its good part must end well in every way of building
it; with BAD, its first comment says what must happen, without and with BLZ_DEBUG_FRAMES:

    plain: kept               a value survives, by luck
    debug: lost               a value is lost, and the program notices
    debug: aborts: REGEX      it aborts with this on stderr; @here@ is the line marked /* here */
    only:  gcc -O0            the others (or with `gcc`, clang) reject the bad part

Built with gcc and clang, at -O0 and -O2, from the sources of the library that are tested.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIBRARY = [HERE / "hand.c"] + [
    ROOT / "src" / path for path in ("task/future.c", "task/small_futures.c", "base/panic.c",
                                      "system/posix/panic.c")
]
FLAGS = ["-g", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'src/tuning/library'}",
         f"-I{HERE}"]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]
LEVELS = ["-O0", "-O2"]
OUTCOMES = {0: "kept", 1: "lost"}


def build_library(compiler, folder):
    objects = []
    for source in LIBRARY:
        objects.append(str(folder / f"{source.parent.name}-{source.stem}.o"))
        subprocess.run(
            [compiler, "-std=gnu11", "-O1", *FLAGS, "-c", str(source), "-o", objects[-1]],
            check=True)
    return objects


def run(case, compiler, objects, folder, *flags):
    """(outcome, stderr) of the case built with these flags."""
    program = str(folder / case.stem)
    built = subprocess.run(
        [compiler, *FLAGS, *WARNINGS, *flags, str(case), *objects, "-o", program],
        capture_output=True, text=True, check=False)
    if built.returncode != 0:
        return "is rejected", built.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=200, check=False)
    if done.returncode == -signal.SIGABRT:
        return "aborts", done.stderr
    return OUTCOMES.get(done.returncode, f"ended with {done.returncode}"), done.stderr


class Case:
    def __init__(self, path):
        self.path, text = path, path.read_text()
        here = [n for n, line in enumerate(text.splitlines(), 1) if "/* here */" in line]
        fields = dict(re.findall(r"^ \* (only|plain|debug):\s+(.*\S)", text, re.MULTILINE))
        self.only = fields.get("only")
        self.expected = {
            mode: fields[mode].replace("@here@", str(here[0]) if here else "")
            for mode in ("plain", "debug")
        }

    def problems(self, compiler, level, objects, folder):
        for mode, flags in (("plain", []), ("debug", ["-DBLZ_DEBUG_FRAMES"])):
            way = (self.path, compiler, objects, folder, level, *flags)
            outcome, said = run(*way)
            if outcome != "kept":
                yield f"{compiler} {level} {mode}: the good part {outcome} {said}"
            expected, _, regex = self.expected[mode].partition(": ")
            if self.only and not f"{compiler} {level}".startswith(self.only):
                expected, regex = "is rejected", ""
            outcome, said = run(*way, "-DBAD")
            if outcome != expected or not re.search(f"^blitz: {regex}" if regex else "", said):
                yield f"{compiler} {level} {mode}: {outcome}, not {expected} {regex}\n{said}"


def main():
    names = sys.argv[1:]
    paths = [HERE / f"{name}.c" for name in names] or sorted(HERE.glob("*.c"))
    cases = [Case(path) for path in paths if path.name != "hand.c"]
    compilers = list(filter(shutil.which, os.environ.get("COMPILERS", "gcc clang").split()))
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for compiler in compilers:
            objects = build_library(compiler, folder)
            for case in cases:
                wrong = []
                for level in LEVELS:
                    wrong += case.problems(compiler, level, objects, folder)
                print("ok  " if not wrong else "FAIL", compiler, case.path.stem, flush=True)
                failures += [f"{case.path.stem}: {text}" for text in wrong]
    print("\n".join(failures), end="\n" if failures else "")
    return bool(failures) or not compilers


if __name__ == "__main__":
    sys.exit(main())
