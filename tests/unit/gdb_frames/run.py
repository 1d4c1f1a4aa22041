#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Async functions in gdb: breakpoints by line are hit, `next` goes from line to line.

Skipped (exit code 77) where gdb is missing or may not trace.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
UNIT = HERE.parent
ROOT = HERE.parents[2]
SOURCE = HERE / "stepping.c"
SKIPPED = 77


def marks():
    """{mark: line}"""
    found = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        match = re.search(r"/\* ([a-z ]+) \*/$", line)
        if match:
            found[match[1]] = number
    return found


def build(compiler, program):
    sources = [SOURCE, UNIT / "debug_frames/hand.c"] + [
        ROOT / "src" / path for path in ("task/future.c", "task/small_futures.c", "base/panic.c",
                                      "system/posix/panic.c")
    ]
    subprocess.run(
        [compiler, "-g", "-O0", "-std=gnu11", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}",
         f"-I{ROOT / 'src'}", f"-I{ROOT / 'src/tuning/library'}", f"-I{UNIT / 'debug_frames'}", *map(str, sources), "-o", program],
        check=True)


def gdb(program, *commands):
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run(words + [program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=300, check=False)
    return done.stdout


def stops(output):
    """The lines of stepping.c at which the program stopped, in order."""
    found = []
    for line in output.splitlines():
        match = re.match(r"(\d+)\t", line)
        if match:
            found.append(int(match[1]))
    return found


def breakpoints_are_hit_each_time_around(program, line):
    output = gdb(program, f"break {line['resumed']}", "run", "print self->i", "bt 1", "continue",
                 "print self->i", "continue")
    assert stops(output) == [line["resumed"]] * 2, output
    assert re.search(r"\$1 = 0\n", output) and re.search(r"\$2 = 1\n", output), output
    assert re.search(r"#0 +walker_poll \(self=0x[0-9a-f]+, cx=", output), output
    assert "exited normally" in output, output


def next_walks_over_an_await_that_is_ready(program, line):
    output = gdb(program, f"break {line['top']}", "run", "next", "next")
    assert stops(output) == [line["top"], line["ready"], line["after ready"]], output


def next_walks_from_the_first_line_into_the_loop(program, line):
    output = gdb(program, f"break {line['start']}", "run", "next", "next")
    assert stops(output) == [line["start"], line["start"] + 1, line["top"]], output


def next_leaves_at_an_await_that_suspends_and_the_next_line_is_reached_by_a_breakpoint(
        program, line):
    output = gdb(program, f"break {line['after ready']}", f"tbreak {line['resumed']}", "run",
                 "next", "next", "info line", "continue")
    reached = stops(output)
    await_line = line["suspends"] - 1
    assert reached[0] == line["after ready"], output
    assert reached[1] in (await_line, line["suspends"]), output
    assert reached[-1] == line["resumed"], output


def next_walks_over_locals_to_the_end(program, line):
    output = gdb(program, f"break {line['local']}", "run", "next", "print local", "next")
    assert stops(output) == [line["local"], line["after local"], line["end"]], output
    assert re.search(r"\$1 = 422\n", output), output


def main():
    if not shutil.which("gdb"):
        print("skipped: no gdb")
        return SKIPPED
    line, failed = marks(), 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler in filter(shutil.which, ("gcc", "clang")):
            program = f"{folder}/stepping-{compiler}"
            build(compiler, program)
            said = gdb(program, "run")
            if "exited" not in said:
                print("skipped: gdb cannot run a program here:", said)
                return SKIPPED
            for name, test in list(globals().items()):
                if not name.startswith(("breakpoints_", "next_")):
                    continue
                try:
                    test(program, line)
                    print("ok  ", compiler, name, flush=True)
                except AssertionError as error:
                    failed += 1
                    print("FAIL", compiler, name, "\n", error)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
