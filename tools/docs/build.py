#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the documentation. Only Python's standard library is needed.

    build.py site DIR       the static site, with all of its links checked
    build.py man DIR        the manual pages, to DIR/man1, man3 and man7
    build.py check          what the tree refers to, and the comments of the headers

Prints what is wrong, one line each, and fails if anything is.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# pylint: disable=wrong-import-position
import check
import headers
import manpages
import pages
import tree


def make_site(out):
    site = pages.Site(out)
    problems = site.build()
    if not problems:
        print(f"{out}/index.html: {len(site.documents)} documents, {len(site.reference.where)} names, "
              f"{len(site.sources)} sources")
    return problems + list(check.site(out))


def make_man(out):
    return manpages.write(headers.public_headers(tree.ROOT / "include"), pathlib.Path(out))


def make_check():
    files = tree.Tree()
    found = [f"include/blitz/{header.name}.h:{line}: {', '.join(names)} has no comment"
             for header in headers.public_headers(tree.ROOT / "include")
             for line, names in header.missing]
    return found + list(check.documents(files)) + list(check.mutants(files)) + list(check.sources(files))


def main(arguments):
    commands = {"site": make_site, "man": make_man, "check": make_check}
    if not arguments or arguments[0] not in commands:
        print(__doc__)
        return 2
    problems = commands[arguments[0]](*arguments[1:])
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
