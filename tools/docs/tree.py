# SPDX-License-Identifier: Apache-2.0
"""The files of the repository, and what a text means that looks like the name of one."""

import fnmatch
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = "src tests docs include examples tools bench cmake debian packaging".split()
MADE = {"docs/benchmarks"}       # by `make bench`, which need not have been run
# A path from the top of the tree. It may have {a,b} and * in it.
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w.{{}},*/-]*[\w*}}/]")


class Tree:
    def __init__(self, root=ROOT):
        self.root = root
        self.files = set(listed(root))
        self.folders = {str(parent) for file in self.files for parent in pathlib.PurePath(file).parents}

    def has(self, path):
        path = path.rstrip("/")
        return path in MADE or path in self.files or path in self.folders

    def matches(self, pattern):
        """Whether every path that the pattern stands for is there (at least one for a star, or NAME)."""
        pattern = re.sub(r"\bNAME(?=\b|_)", "*", pattern)
        return all(self.has(path) or self.has_some(path) for path in braces(pattern.rstrip("/")))

    def has_some(self, pattern):
        return "*" in pattern and any(fnmatch.fnmatch(path, pattern)
                                      for path in self.files | self.folders)

    def find(self, text):
        """The file that a code span names: from the top, or within src/ or include/; or None."""
        for prefix in ("", "src/", "include/"):
            if prefix + text in self.files:
                return prefix + text
        return None


def listed(root):
    """What git knows, and what it does not know yet; without git, what is there."""
    try:
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, text=True,
                               check=True, capture_output=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not re.match(r"\.git/|build", str(path.relative_to(root)))]
    return [name for name in names if name and (root / name).is_file()]


def braces(pattern):
    """a/{b,c}.h: a/b.h and a/c.h"""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [path for choice in found[1].split(",")
            for path in braces(pattern[:found.start()] + choice.strip() + pattern[found.end():])]
