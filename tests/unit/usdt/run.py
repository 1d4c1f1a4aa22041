#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""USDT probes: the notes of the library name them all, with their arguments and semaphores, and are those
that the guide tells of; and, where there is gdb, which knows how to listen to them, they fire, with the
right values.

Environment: USDT (ON if the library has probes), COMPILERS, LIBRARIES, LINK. Skipped (77) without.
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
SKIPPED = 77

ARGUMENTS = {"task_spawn": 2, "task_poll_begin": 3, "task_poll_end": 3, "task_end": 2, "wake": 2,
             "steal": 3, "park": 1, "unpark": 1, "io_complete": 2, "timer_fire": 1}


def notes(file):
    """{probe: (number of arguments, semaphore)}"""
    text = subprocess.run(["readelf", "-nW", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True).stdout
    pattern = re.compile(r"Provider: blitz\s+Name: (\w+)\s+Location: \S+, Base: \S+, Semaphore: (\S+)"
                         r"\s+Arguments: ([^\n]*)")
    return {match[1]: (len(match[3].split()), int(match[2], 16)) for match in pattern.finditer(text)}


def all_probes_are_there(file):
    found = notes(file)
    assert {name: count for name, (count, _) in found.items()} == ARGUMENTS, found
    semaphores = [semaphore for _, semaphore in found.values()]
    assert len(set(semaphores)) == len(semaphores), found
    assert all(semaphores), found


def the_guide_tells_of_them():
    """Its table has each probe with its arguments, and its examples use no others."""
    text = (ROOT / "docs/guide/debugging.md").read_text(encoding="utf-8")
    told, examples = {}, 0
    for row in re.findall(r"^\| (`blitz:.*) \| (.*) \|$", text, re.M):
        arguments = re.sub(r"\([^)]*\)", "", row[1]).split(",")  # what is in brackets explains one
        told.update({name: len(arguments) for name in re.findall(r"`blitz:(\w+)`", row[0])})
    assert told == ARGUMENTS, told
    for probe, body in re.findall(r"usdt:LIB:blitz:(\w+)([^}]*)}", text):
        assert probe in ARGUMENTS, probe
        used = [int(number) for number in re.findall(r"\barg(\d)\b", body)]
        assert all(number < ARGUMENTS[probe] for number in used), (probe, body)
        examples += 1
    assert examples >= 7, examples


def probes_fire_where_somebody_listens(folder, library):
    program = f"{folder}/traced"
    subprocess.run([os.environ.get("COMPILERS", "gcc").split()[0], "-g", "-O2", "-std=gnu11",
                    f"-I{ROOT / 'include'}", ROOT / "tests/unit/trace_file/traced.c", library, "-o",
                    program, "-pthread", f"-Wl,-rpath,{os.path.dirname(library)}",
                    *os.environ.get("LINK", "").split()], check=True)
    all_probes_are_there(library if library.endswith(".so") or ".so." in library else program)
    if not shutil.which("gdb"):
        print("no gdb: whether they fire was not tried")
        return
    commands = ["set breakpoint pending on", "handle SIGCONT nostop noprint"]
    for probe in ("task_spawn", "task_end", "timer_fire"):
        commands += [f"tbreak -probe-stap blitz:{probe}"]
    for onwards in ("run", "continue", "continue"):
        commands += [onwards, "echo >>>\\n", "info symbol $pc", "print $_probe_argc",
                     "print $_probe_arg0", "print (char *) $_probe_arg1"]
    # Not to the end: gdb may stumble over threads that end while it lets them go on.
    commands += ["kill"]
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    said = subprocess.run(words + [program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=300, check=False).stdout
    if "ptrace" in said:
        print("gdb may not trace here: whether they fire was not tried")
        return
    stops = said.split(">>>\n")
    assert len(stops) == 4, said
    assert "trace_spawn" in stops[1] and "$1 = 2" in stops[1], said
    assert re.search(r'"root at .*traced.c:\d+"', stops[1]), said
    rest = stops[2] + stops[3]
    for function in ("trace_timer", "trace_poll_end"): # where in it is the compiler's business
        assert re.search(rf"{function}( \+ \d+)? in section", rest), said


def main():
    the_guide_tells_of_them()
    if os.environ.get("USDT") != "ON":
        print("skipped: the library was built without probes")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        probes_fire_where_somebody_listens(folder, os.environ["LIBRARIES"].split()[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
