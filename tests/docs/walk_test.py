#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/design/walk.md: each function is in the file that its row names, and the road is short."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design" / "walk.md"
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|")
MAX_FILES, MAX_CHANGES = 12, 5


def walks(text):
    """{heading: [(function, file)]} of every heading that has stations."""
    found, heading = {}, None
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        row = ROW.match(line)
        if row:
            found.setdefault(heading, []).append((row[1], row[2]))
    return found


def defines(source, name):
    """Whether a file defines a function, or uses the macro that defines it at the line's beginning."""
    if "(" in name:
        return re.search(rf"^{re.escape(name)}\b", source, re.M) is not None
    # A definition has its brace on the line after the arguments; a declaration ends in a semicolon.
    return re.search(rf"^[A-Za-z][^;{{}}()#]*\b{re.escape(name)}\([^;{{}}]*\)\n{{", source,
                     re.M) is not None


def changes(stations):
    folders = [file.split("/")[0] for _, file in stations]
    return sum(a != b for a, b in zip(folders, folders[1:]))


class Walk(unittest.TestCase):
    def setUp(self):
        self.walks = walks(PAGE.read_text())

    def test_there_are_three_walks(self):
        self.assertIn("The read that waits", self.walks)
        self.assertIn("A channel send that wakes a receiver on another worker", self.walks)
        self.assertIn("A `blz_par_for`", self.walks)

    def test_each_function_is_where_its_row_says(self):
        for heading, stations in self.walks.items():
            for name, file in stations:
                path = ROOT / "src" / file
                with self.subTest(f"{heading}: {name}"):
                    self.assertTrue(path.is_file(), f"there is no src/{file}")
                    self.assertTrue(defines(path.read_text(), name), f"it is not in src/{file}")

    def test_a_function_elsewhere_is_noticed(self):
        source = (ROOT / "src" / "io" / "io.c").read_text()
        self.assertTrue(defines(source, "blz__io_poll"))
        self.assertFalse(defines(source, "blz__fd_enter"))  # called there, defined in fd.c
        self.assertFalse(defines("int f(void);\nint g(void)\n{\n}\n", "f"))  # declared only

    def test_the_read_that_waits_goes_straight(self):
        stations = self.walks["The read that waits"]
        files = {file for _, file in stations}
        self.assertLessEqual(len(files), MAX_FILES, sorted(files))
        self.assertLessEqual(changes(stations), MAX_CHANGES)
        names = [name for name, _ in stations]
        for name in ("blz__fd_enter", "blz__ready_submit", "blz__ready_edge", "blz__op_event_done",
                     "blz__sched_queue", "blz__worker_poll", "blz__fd_leave"):
            self.assertIn(name, names)  # the count must not get lower by leaving stations out


if __name__ == "__main__":
    unittest.main()
