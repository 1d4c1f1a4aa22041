#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gdb commands of tools/gdb: on a live process and on its core file, with the static and with the
shared library.

Environment: COMPILERS (names), LIBRARIES (files of the library), LINK (further libraries).
Skipped (exit code 77) where gdb is missing, has no Python, or may not trace.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SOURCE = HERE / "parked.c"
COMMANDS = ROOT / "tools/gdb/blitz-gdb.py"
SKIPPED = 77


def marks():
    """{mark: line}"""
    found = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        match = re.search(r"/\* ([a-z ]+) \*/$", line)
        if match:
            found[match[1]] = number
    return found


LINE = marks()


def build(compiler, library, program, *flags):
    words = [compiler, "-g", "-O2", *flags, "-std=gnu11", f"-I{ROOT / 'include'}", str(SOURCE), library, "-o",
             program, f"-Wl,-rpath,{os.path.dirname(library)}", "-pthread"]
    subprocess.run(words + os.environ.get("LINK", "").split(), check=True)


def gdb(program, *commands):
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", f"source {COMMANDS}"]
    for command in commands:
        words += ["-ex", "echo >>>\\n", "-ex", command]
    done = subprocess.run(words + [program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=300, check=False)
    return done.stdout.split(">>>\n")[1:]


ASKED = ("blz tasks", "blz tasks night", "blz bt", "blz bt outer", "blz bt chooser",
         "blz bt night shift", "blz bt 99", "blz workers")


def same_line(text, pattern):
    assert re.search(pattern, text, re.M), f"{pattern}\nis not in\n{text}"


def tasks_lists_all_with_what_they_wait_for(said):
    text = said["blz tasks"]
    same_line(text, r"^\d+ +running +\d+ +aborter$")
    same_line(text, rf"^\d+ +waiting +1 +outer +pending, in inner at parked.c:{LINE['inner waits']}$")
    same_line(text, rf"^\d+ +waiting +1 +night shift +sleep, in sleeper at parked.c:"
                    rf"{LINE['sleeper waits']}$")
    same_line(text, rf"^\d+ +waiting +1 +large +pending, in large at parked.c:{LINE['large waits']}$")
    same_line(text, r"^\d+ +queued +0 +never_polled +its first poll$")
    same_line(text, rf"^\d+ +waiting +1 +chooser +select, in chooser at parked.c:"
                    rf"{LINE['chooser waits']}$")
    same_line(text, r"^6 tasks$")
    assert text.count("\n") == 8, text


def tasks_with_a_text_lists_those_lines(said):
    text = said["blz tasks night"]
    same_line(text, r"night shift")
    assert "outer" not in text and text.count("\n") == 3, text


def bt_shows_the_chain_with_function_and_line(said):
    text = said["blz bt outer"]
    same_line(text, rf'^task \d+ "outer" waiting, 1 polls, spawned at parked.c:{LINE["outer spawned"]}$')
    frames = re.findall(r"^#(\d+) +(\w+)(?: at (\S+))?   \((?:struct )?(\w+) \*\) 0x[0-9a-f]+$", text,
                        re.M)
    assert frames == [("0", "pending", "", "blz_future"),
                      ("1", "inner", f"parked.c:{LINE['inner waits']}", "inner"),
                      ("2", "outer", f"parked.c:{LINE['outer waits']}", "outer")], text


def bt_shows_the_branches_of_combinators(said):
    text = said["blz bt chooser"]
    frames = re.findall(r"^#\d+ +(?:\[([0-9.]+)\] )?(\w+)(?: at \S+)?   \(", text, re.M)
    assert frames == [("0", "pending"), ("0", "inner"), ("1.1", "pending"), ("1.2", "sleep"),
                      ("1", "join"), ("", "select"), ("", "chooser")], text


def bt_finds_a_task_by_its_given_name(said):
    same_line(said["blz bt night shift"], r"^#1 +sleeper at parked.c:")


def bt_without_an_argument_is_the_task_of_the_thread(said):
    text = said["blz bt"]
    same_line(text, r'^task \d+ "aborter" running, \d+ polls')
    same_line(text, r"on worker 0: .* the stack of thread 1 ")


def bt_of_nobody_says_so(said):
    same_line(said["blz bt 99"], r"No task has the number or name 99")


def workers_shows_what_each_does(said):
    same_line(said["blz workers"], r'^blitz-0 +1 +polling +1 +\d+ +0 +\d+ +\d+ "aborter"$')


def addresses_can_be_printed(program, core, said):
    address = re.search(r"\(struct outer \*\) (0x[0-9a-f]+)", said["blz bt outer"])[1]
    text = gdb(program, f"core {core}", f"print ((struct outer *){address})->inner.blz_frame.ops->name")
    same_line(text[1], r'"inner"')


def main():
    if not shutil.which("gdb"):
        print("skipped: no gdb")
        return SKIPPED
    tests = [test for name, test in globals().items() if name.startswith(("tasks_", "bt_", "workers_"))]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler in os.environ.get("COMPILERS", "gcc").split():
            for number, library in enumerate(os.environ["LIBRARIES"].split()):
                program, core = f"{folder}/parked-{compiler}-{number}", f"{folder}/core-{number}"
                build(compiler, library, program)
                live = gdb(program, "run", *ASKED, f"generate-core-file {core}")
                if not live or "SIGABRT" not in live[0] or not os.path.exists(core):
                    print("skipped: gdb cannot run a program here:", live)
                    return SKIPPED
                dead = gdb(program, f"core {core}", *ASKED)
                for kind, texts in (("live", live), ("core", dead)):
                    said = dict(zip(ASKED, texts[1:]))
                    for test in tests:
                        try:
                            test(said)
                            print("ok  ", compiler, os.path.basename(library), kind, test.__name__)
                        except AssertionError as error:
                            failed += 1
                            print("FAIL", compiler, library, kind, test.__name__, "\n", error)
                addresses_can_be_printed(program, core, dict(zip(ASKED, dead[1:])))
                build(compiler, library, program, "-DWITHOUT_COMBINATORS")
                same_line(gdb(program, "run", "blz tasks")[1], r"^5 tasks$")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
