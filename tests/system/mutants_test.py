#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite notices an implementation that breaks a sentence of the system contract.

    mutants_test.py BUILD [NAME...]

tests/system/mutants/NAME.patch is a unified diff against src/system, which begins with

    # program: futex
    # case: the_name_of_a_case
    # The sentence that it breaks.

The file is patched in a copy and compiled as the build compiles it; the program is linked with that object in
front of the library. The case must pass without the mutant and fail with it.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = ROOT / "tests/system/mutants"
SECONDS = 15  # that a case may take with a mutant, which takes milliseconds; one that hangs has noticed
PATIENCE = 120  # without one, on a machine that has other things to do


class Problem(Exception):
    """A mutant that could not be tried."""


def run(command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", **options)


def must(what, result):
    if result.returncode != 0:
        raise Problem(f"{what}: {(result.stdout + result.stderr).strip()[-1500:]}")
    return result


def field(text, name):
    match = re.search(rf"^# {name}: (\S+)$", text, re.MULTILINE)
    if not match:
        raise Problem(f"does not say `# {name}: `")
    return match[1]


def patched_copy(text, folder):
    """The name of the source that the patch changes, and a copy with the change."""
    name = re.search(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)[1]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / name).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / name, folder / name)
    patch = text[text.index("--- "):]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    must("the patch does not apply", run(["git", "apply", "-C1", "-"], cwd=folder, input=patch, env=environment))
    return name, folder / name


def compile_copy(build, name, copy):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] == str(ROOT / name) and "blitz_objects" in entry["command"]:
            break
    else:
        raise Problem(f"the build does not compile {name}")
    arguments = shlex.split(entry["command"])
    arguments[arguments.index("-o") + 1] = str(copy.with_suffix(".o"))
    arguments[arguments.index("-c") + 1] = str(copy)
    arguments = [a for a in arguments if a != "-Werror"] + ["-w"]
    must("does not compile", run(arguments, cwd=build))
    return copy.with_suffix(".o")


def link(build, program, mutated, target):
    """As the build links the program, but with one more object: the library's own is not needed then."""
    commands = must("ninja", run(["ninja", "-C", build, "-t", "commands", f"tests/system/{program}"])).stdout
    command = commands.strip().splitlines()[-1]
    own = re.search(r"\S*system_\w+\.dir/\S+\.o", command)[0]
    command = command.replace(own, f"{own} {shlex.quote(str(mutated))}", 1)
    command = command.replace(f"-o tests/system/{program} ", f"-o {shlex.quote(str(target))} ", 1)
    must("does not link", run(["sh", "-c", command], cwd=build))


def passes(program, case, seconds):
    with tempfile.TemporaryDirectory() as place:  # a case that is killed leaves its files there
        environment = {**os.environ, "TEST": case, "TMPDIR": place}
        try:
            return run([program], env=environment, timeout=seconds).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def check(build, path):
    text = path.read_text()
    program, case = field(text, "program"), field(text, "case")
    if f"TEST({case})" not in (ROOT / f"tests/system/{program}_test.c").read_text():
        raise Problem(f"{program}_test.c has no case {case}")
    folder = build / "tests/system/mutants" / path.stem
    name, copy = patched_copy(text, folder)
    link(build, program, compile_copy(build, name, copy), folder / program)
    if not passes(build / "tests/system" / program, case, PATIENCE):
        raise Problem(f"{case} fails without the mutant")
    return not passes(folder / program, case, SECONDS)


def verdict_of(build, path):
    try:
        return "caught" if check(build, path) else "SURVIVED"
    except Problem as problem:
        return f"ERROR: {problem}"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    names = sys.argv[2:]
    paths = [p for p in sorted(PATCHES.glob("*.patch")) if not names or p.stem in names]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, verdict in zip(paths, pool.map(lambda path: verdict_of(build, path), paths)):
            failed += verdict != "caught"
            print(f"{path.stem}: {verdict}", flush=True)
    print(f"{len(paths) - failed} passed, {failed} failed")
    return failed > 0 or not paths


if __name__ == "__main__":
    sys.exit(main())
