#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of the system contract that can fail has a hook in fault tests.

    hooks_test.py NM HEADER-FOLDER HOOKS-OBJECT SYSTEM-OBJECT...

Counts by other means than calls.py: names in front of a parenthesis in the headers, and symbols in
the objects. A function is hooked if the hooks define it and src/system defines it as real_...; all
others must be void, return what cannot be an error, or be excused in calls.py.
"""

import pathlib
import re
import subprocess
import sys

import calls


def declared(folder):
    """Function names, with the type in front of each."""
    found = {}
    for header in sorted(pathlib.Path(folder).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        for match in re.finditer(r"^(\w[\w *]*?[ *])(blz__\w+)\(", text, flags=re.MULTILINE):
            if not match[1].startswith(("static inline", "typedef")):
                found[match[2]] = match[1].strip()
    return found


def defined(nm, objects):
    out = subprocess.run([nm, "--defined-only", *objects], check=True, capture_output=True, text=True)
    return set(re.findall(r" T (\w+)$", out.stdout, flags=re.MULTILINE))


def main():
    nm, folder, hooks, *objects = sys.argv[1:]
    functions = declared(folder)
    hooked, real = defined(nm, [hooks]), defined(nm, objects)
    can_fail = {name for name, kind in functions.items()
                if (kind in ("int", "int64_t", "bool") or kind.endswith("*"))
                and name not in calls.NEVER_FAIL}
    problems = [f"{name} can fail and has no hook" for name in can_fail - hooked]
    problems += [f"real_{name} is not what src/system defines" for name in can_fail
                 if "real_" + name not in real]
    problems += [f"{name} cannot fail and has a hook"
                 for name in hooked & functions.keys() - can_fail]
    problems += [f"{name} is declared and not defined"
                 for name in functions.keys() - can_fail - real]
    if len(can_fail) < 90:
        problems.append(f"only {len(can_fail)} functions were found")
    print("\n".join(sorted(problems)) or f"{len(can_fail)} functions are hooked, of {len(functions)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
