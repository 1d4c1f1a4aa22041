#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that mistakes in async functions are compile errors, with the words that we promise.

Each case (*.c and *.cpp here) compiles cleanly without BAD, under every warning that we ask users to bear,
and is rejected with BAD. Its first comment says where and how, a line for each compiler and level:

    gcc -O0:   switch jumps over variable initialization

The text is a regular expression. One that begins with "warning:" asks for a warning by default and an error
under -Werror. A line that is not there promises nothing. Every combination is
tried with our header as the user's own (-I) and as a system header (-isystem, as when installed in
/usr/include), and with no warning option at all: the errors must not depend on the user's flags.

    run.py [--table] [CASE...]      --table prints which compiler finds what
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[2] / "include"
STRICT = (
    "-Wall -Wextra -Wshadow -Wpedantic -Wimplicit-fallthrough -Wundef -Wcast-qual -Werror".split()
)
LEVELS = ["-O0", "-O2"]
EXPECTATION = re.compile(r"^ \* (gcc|clang|g\+\+|clang\+\+) (-O\d):\s+(.*\S)\s*$")
CXX = {"gcc": "g++", "clang": "clang++"}


def compile_case(case, compiler, *flags):
    """(accepted, what the compiler said)"""
    command = [compiler, "-c", "-o", os.devnull, f"-I{HERE}", *flags, str(case)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LC_ALL": "C"}, check=False,
    )
    return done.returncode == 0, done.stdout


def expectations(case):
    """{(compiler, level): regular expression}"""
    found = {}
    for line in case.read_text().splitlines():
        match = EXPECTATION.match(line)
        if match:
            found[match[1], match[2]] = match[3]
    return found


def compilers_for(case, compilers):
    if case.suffix == ".cpp":
        return list(filter(shutil.which, (CXX.get(name, name) for name in compilers)))
    return compilers


def good_part(case, compiler):
    for standard in ("c++17",) if case.suffix == ".cpp" else ("c11", "gnu11"):
        for level in LEVELS:
            for include in ("-I", "-isystem"):
                flags = [f"-std={standard}", level, include, str(INCLUDE), *STRICT]
                accepted, said = compile_case(case, compiler, *flags)
                if not accepted:
                    yield f"{compiler} {' '.join(flags)} rejects the good part:\n{said}"


def bad_part(case, compiler, level, expected):
    for include in ("-I", "-isystem"):
        for warnings in ([], STRICT):
            flags = [level, include, str(INCLUDE), *warnings]
            accepted, said = compile_case(case, compiler, "-DBAD", *flags)
            pattern = expected.removeprefix("warning: ")
            may_pass = pattern != expected and "-Werror" not in flags
            if accepted and not may_pass:
                yield f"{compiler} {' '.join(flags)} accepts the bad part"
            elif not re.search(pattern, said):
                yield f"{compiler} {' '.join(flags)} does not say /{pattern}/:\n{said}"


def table(cases, compilers):
    print("case".ljust(26), *(f"{c} {level}".ljust(10) for c in compilers for level in LEVELS))
    for case in cases:
        cells = []
        for compiler in compilers_for(case, compilers):
            for level in LEVELS:
                accepted, _ = compile_case(case, compiler, "-DBAD", level, "-I", str(INCLUDE))
                cells.append(("missed" if accepted else "error").ljust(10))
        print(case.stem.ljust(26), *cells)


def main():
    names = [argument for argument in sys.argv[1:] if argument != "--table"]
    cases = sorted(HERE.glob("*.c")) + sorted(HERE.glob("*.cpp"))
    cases = [case for case in cases if not names or case.stem in names]
    compilers = list(filter(shutil.which, os.environ.get("COMPILERS", "gcc clang").split()))
    if not compilers:
        print("neither gcc nor clang is here")
        return 1
    if "--table" in sys.argv:
        table(cases, compilers)
        return 0
    failures = []
    for case in cases:
        expected = expectations(case)
        wrong = [] if expected else ["it expects nothing"]
        for compiler in compilers_for(case, compilers):
            wrong += good_part(case, compiler)
            for level in LEVELS:
                if (compiler, level) in expected:
                    wrong += bad_part(case, compiler, level, expected[compiler, level])
        print("ok  " if not wrong else "FAIL", case.stem, flush=True)
        failures += [f"{case.stem}: {text}" for text in wrong]
    print("\n".join(failures), end="\n" if failures else "")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
