# SPDX-License-Identifier: Apache-2.0
"""Checks what the site and the tree refer to.

- Every link and image of the site leads to a page that is there, and to an anchor that it has.
- No page asks anything of another host.
- Paths in the code spans of documents, and in the comments of sources, are there.
- So are the mutants that the design notes name.
"""

import fnmatch
import html.parser
import pathlib
import posixpath
import re
import urllib.parse

import tree

# In a comment, a path with an ending; anything else is too often something else.
IN_SOURCES = re.compile(rf"(?<![\w/.<])(?:{'|'.join(tree.FOLDERS)})/[\w./-]*\.(?:md|c|h|py|sh|patch|txt)\b")
SPAN = re.compile(r"`([^`\n]+)`")


class Links(html.parser.HTMLParser):
    """The links, anchors and sources of a page."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors, self.fetched = [], set(), []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.anchors.add(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        for name in ("src", "srcset", "action", "data"):
            if name in attributes:
                self.fetched.append(attributes[name])
        if tag == "link" and "href" in attributes:
            self.fetched.append(attributes["href"])


def read(page):
    links = Links()
    links.feed(page.read_text())
    return links


def site(out):
    """What is wrong with the links of a site."""
    out = pathlib.Path(out)
    pages = {str(path.relative_to(out)): read(path) for path in sorted(out.rglob("*.html"))}
    for name, page in pages.items():
        for address in page.links + page.fetched:
            wrong = wrong_link(out, pages, name, address, address in page.fetched)
            if wrong:
                yield f"{name}: {address}: {wrong}"


def wrong_link(out, pages, name, address, fetched):
    if re.match(r"[a-z]+:|//", address):
        return "from another host" if fetched else None
    path, _, anchor = address.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), urllib.parse.unquote(path))) \
        if path else name
    if target not in pages:
        return None if (out / target).is_file() and not anchor else "is not there"
    if anchor and urllib.parse.unquote(anchor) not in pages[target].anchors:
        return "no such anchor"
    return None


def documents(files):
    """Paths in code spans that are not there."""
    for name in sorted(f for f in files.files if f.endswith(".md")):
        text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"),
                      (files.root / name).read_text(), flags=re.DOTALL | re.MULTILINE)
        for span in SPAN.finditer(text):
            for path in span[1].split():
                if tree.PATH.fullmatch(path) and not path.endswith(".zig") and not files.matches(path):
                    yield f"{name}:{text.count(chr(10), 0, span.start()) + 1}: no {path}"


def mutants(files):
    """Names of mutants, in the tables of the design notes, that are not there."""
    known = {pathlib.PurePath(name).stem for name in files.files if name.startswith("tests/model/mutants/")}
    orders = (files.root / "tests/model/order_mutants.txt").read_text()
    known.update(re.findall(r"^(\w+) +\|", orders, re.MULTILINE))
    for name in sorted(f for f in files.files if f.startswith("docs/design/")):
        for line, mutant in named_mutants((files.root / name).read_text()):
            if not fnmatch.filter(known, mutant):
                yield f"{name}:{line}: no mutant {mutant}"


def named_mutants(text):
    """In rows that name the folder or the list of mutants, and in tables whose head says that it is about them."""
    is_about = False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            is_about = False
        elif number < len(lines) and lines[number].startswith("|---"):
            is_about = "mutant" in line
        elif is_about or "tests/model/mutants/" in line or "tests/model/order_mutants.txt" in line:
            yield from ((number, span) for span in SPAN.findall(line) if re.fullmatch(r"[a-z]\w*_[\w*]*", span))


def sources(files):
    """Paths in sources and scripts that are not there."""
    for name in sorted(files.files):
        if not re.search(r"\.([ch]|cpp|cmake|sh|txt|yml)$|^(Makefile|tools/[\w-]+|\.ci/run)$", name):
            continue
        text = (files.root / name).read_text(errors="replace")
        for found in IN_SOURCES.finditer(text):
            here = posixpath.join(posixpath.dirname(name), found[0])
            if not files.matches(found[0]) and not files.has(here):
                yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}: no {found[0]}"
