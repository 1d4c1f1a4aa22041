#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each operation struct of the public headers is tried by the tests of operation_kinds.h.

An operation is what a function that returns a future takes as its first argument. Objects that are
futures themselves, and are made by a function of their own, are none.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = HERE.parents[2] / "include" / "blitz"
OBJECTS = {"blz_future", "blz_lazy", "blz_map", "blz_then", "blz_box", "blz_interval", "blz_reader",
           "blz_writer", "blz_records", "blz_split"}


def operations():
    text = "".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    found = set(re.findall(r"blz_future \*blz_\w+[^_\W]\(\s*(?:const )?(blz_\w+) \*", text))
    found |= set(re.findall(r"typedef struct (blz_\w+_op) \{", text))
    for names in re.findall(r"^typedef blz_branches ([^;]+);", text, re.M):
        found |= set(re.split(r",\s*", names))
    return found - OBJECTS


def tried():
    text = "".join(path.read_text() for path in HERE.parent.glob("operation_*_test.c"))
    return set(re.findall(r"OPERATION\((blz_\w+)", text))


missing, unknown = operations() - tried(), tried() - operations()
for name in sorted(missing):
    print(f"{name} is an operation of include/blitz, and no test of its memory has a line for it")
for name in sorted(unknown):
    print(f"{name} is in a test of the memory of operations, and in no header")
sys.exit(1 if missing or unknown or len(tried()) < 40 else 0)
