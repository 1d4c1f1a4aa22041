#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/blitz-check-frames: what it must find, what it must leave alone, how it exits.

good.c and bad.c here say line by line what is expected. The cases of ../compile_fail and
../debug_frames are run through it too, where their first comment has a line `checker: REGEX`.
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
CHECKER = ROOT / "tools" / "blitz-check-frames"
FINDING = re.compile(r"^(.*):(\d+): (.*)$")


def check(*arguments):
    """(exit code, {line: [message]} of the findings, stderr)"""
    done = subprocess.run(
        [sys.executable, str(CHECKER), *map(str, arguments)], capture_output=True, text=True,
        check=False,
    )
    found = {}
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        assert match, f"not `file:line: message`: {line}"
        found.setdefault(int(match[2]), []).append(match[3])
    return done.returncode, found, done.stderr


def correct_code_is_left_alone():
    code, found, errors = check(HERE / "good.c")
    assert (code, found, errors) == (0, {}, ""), (code, found, errors)


def the_compilers_accept_the_correct_code_too():
    for compiler in filter(shutil.which, ("gcc", "clang")):
        subprocess.run(
            [compiler, "-c", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-o",
             os.devnull, str(HERE / "good.c")], check=True,
        )


def every_mistake_is_found_and_nothing_else():
    expected = {}
    for number, line in enumerate((HERE / "bad.c").read_text().splitlines(), 1):
        match = re.search(r"// expect: (.*)$", line)
        if match:
            expected[number] = match[1]
    code, found, errors = check("-D", "BAD", HERE / "bad.c")
    assert code == 1 and errors == "", (code, errors)
    for line, regex in expected.items():
        said = found.pop(line, [])
        assert any(re.search(regex, text) for text in said), f"{line}: /{regex}/ not in {said}"
    assert not found, f"unexpected: {found}"


def code_behind_an_undefined_macro_is_not_read():
    assert check(HERE / "bad.c") == (0, {}, "")


def the_cases_of_other_tools_are_found_where_they_say_so():
    cases = 0
    for case in sorted(HERE.parent.glob("compile_fail/*.c")) + sorted(
            HERE.parent.glob("debug_frames/*.c")):
        match = re.search(r"^ \* checker:\s+(.*\S)", case.read_text(), re.MULTILINE)
        if not match:
            continue
        cases += 1
        code, found, errors = check("-DBAD", case)
        said = [text for texts in found.values() for text in texts]
        assert code == 1 and errors == "", (case.name, code, errors)
        assert any(re.search(match[1], text) for text in said), (case.name, match[1], said)
        assert check(case) == (0, {}, ""), f"{case.name}: its good part"
    assert cases > 5


def whatever_it_cannot_follow_is_said_on_stderr_and_is_no_finding():
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write("BLZ_ASYNC(odd)\n{\n    BLZ_BEGIN;\n    int +;\n    BLZ_END(0);\n}\n")
        file.flush()
        code, found, errors = check(file.name)
    assert (code, found) == (0, {}), (code, found)
    assert re.search(r":4: note: cannot follow `odd`", errors), errors


def text_that_only_looks_like_code_is_skipped():
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write('/* BLZ_ASYNC(x) { return 1; } */\n'
                   'const char *s = "BLZ_ASYNC(x) { return \\"1\\"; }";\n'
                   "#define X BLZ_ASYNC(x) { \\\n    return 1; }\n"
                   "#if 0\nBLZ_ASYNC(x) { return 1; }\n#endif\n"
                   "// BLZ_ASYNC(x) { return 1; }\n")
        file.flush()
        assert check(file.name) == (0, {}, "")


def a_file_that_is_not_there_is_an_error_of_its_own():
    code, found, errors = check(HERE / "nowhere.c")
    assert code == 2 and not found and "nowhere.c" in errors


def no_file_at_all_is_answered_with_the_usage():
    code, found, errors = check()
    assert code == 2 and not found and "blitz-check-frames" in errors


def a_reader_that_goes_away_is_no_reason_for_a_traceback():
    for arguments in (["--help"], ["-DBAD", HERE / "bad.c"]):
        there, here = os.pipe()
        os.close(there)
        done = subprocess.run([sys.executable, CHECKER, *arguments], stdout=here, text=True,
                              stderr=subprocess.PIPE, check=False)
        os.close(here)
        assert done.returncode == -signal.SIGPIPE and done.stderr == "", done


def main():
    failed = 0
    for name, test in list(globals().items()):
        if not callable(test) or name in ("check", "main") or test.__module__ != __name__:
            continue
        try:
            test()
            print("ok  ", name)
        except (AssertionError, subprocess.CalledProcessError) as error:
            failed += 1
            print("FAIL", name, error)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
