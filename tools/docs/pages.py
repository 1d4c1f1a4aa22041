# SPDX-License-Identifier: Apache-2.0
"""The static site: every document of the tree, the reference, and the sources that they speak of.

A document keeps its path (docs/guide/frames.md: guide/frames.html), README.md becomes index.html. A link
to a file that is no document, and a code span that is the name of one, lead to a page with its text.
"""

import html
import json
import os
import pathlib
import posixpath
import re
import shutil

import headers
import highlight
import markup
import reference
import tree

HERE = pathlib.Path(__file__).resolve().parent
VERSION = re.compile(r'#define BLZ_VERSION_STRING "([^"]+)"')

# The order in which documents are listed; those that are not named come after them by name.
ORDER = {
    "docs/guide": "README frames cancellation sharing blocking parallel shutdown debugging console other-code "
                  "from-libuv from-threads".split(),
    "docs/design": "README task state cancellation scheduler parking time operations io channels "
                   "combine sync par".split(),
}


def address_of(document):
    """Where a document is on the site: docs/guide/README.md is guide/index.html."""
    path = pathlib.PurePosixPath(document)
    if path.parts[0] == "docs":
        path = path.relative_to("docs")
    name = "index" if path.stem == "README" else path.stem.lower()
    return str(path.with_name(f"{name}.html"))


def relative(target, page):
    """An address from the top of the site, as seen from a page."""
    address, _, anchor = target.partition("#")
    path = posixpath.relpath(address, posixpath.dirname(page) or ".") if address else ""
    return path + (f"#{anchor}" if anchor else "")


class Site:
    def __init__(self, out, root=tree.ROOT):
        self.out, self.tree, self.root = pathlib.Path(out), tree.Tree(root), root
        self.reference = reference.Reference(headers.public_headers(root / "include"))
        self.documents = self.order([f for f in self.tree.files if f.endswith(".md") and is_document(f)])
        self.titles, self.index, self.sources = {}, [], set()
        self.problems = []
        self.version = VERSION.search((root / "include/blitz/version.h").read_text())[1]

    def order(self, documents):
        def key(document):
            folder, name = posixpath.split(document)
            known = ORDER.get(folder, [])
            stem = name.removesuffix(".md")
            return (folder, known.index(stem) if stem in known else len(known), stem)
        return sorted(documents, key=key)

    def build(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        pages = {document: self.convert(document) for document in self.documents}
        self.titles = {document: page.title or document for document, page in pages.items()}
        for document, page in pages.items():
            self.write(address_of(document), page.title, page.html)
            self.note(address_of(document), page.title, page.sections)
        self.write_reference()
        for source in sorted(self.sources):
            self.write_source(source)
        self.copy_files()
        return self.problems

    # ---- Documents ----

    def convert(self, document):
        page = address_of(document)
        text = (self.root / document).read_text()
        try:
            return markup.convert(
                text, link=lambda address: self.link(document, page, address),
                code=lambda span: self.code_link(page, span),
                name=lambda name: self.to(page, self.reference.address(name)))
        except markup.Unknown as error:
            self.problems.append(f"{document}: {error}")
            return markup.Page("", document, [], [], [])

    def to(self, page, address):
        return relative(address, page) if address else None

    def link(self, document, page, address):
        """A link in a document: to another one, to a file of the tree, or to somewhere else."""
        if re.match(r"[a-z]+:", address) or address.startswith("#"):
            return address
        path, _, anchor = address.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
        if target in self.tree.folders and f"{target}/README.md" in self.tree.files:
            target += "/README.md"
        if target in self.documents:
            found = address_of(target) + (f"#{anchor}" if anchor else "")
        elif target in self.tree.files:
            found = self.file(target)
        else:
            self.problems.append(f"{document}: no {address}")
            return "#"
        return relative(found, page)

    def file(self, path):
        """A file that is shown as it is: an image, or the text of a source."""
        if re.search(r"\.(png|svg|jpg|gif|json|csv)$", path):
            return path.removeprefix("docs/")
        self.sources.add(path)
        return f"source/{path}.html"

    def code_link(self, page, span):
        name = re.match(r"(?:blz|BLZ)_\w+(?=$|\()|blitz/\w+\.h$", span)
        if name and self.reference.address(name[0]):
            return relative(self.reference.address(name[0]), page)
        path = self.tree.find(span)
        if path in self.documents:
            return relative(address_of(path), page)
        return relative(self.file(path), page) if path else None

    # ---- The rest ----

    def write_reference(self):
        made = {f"reference/{name}.html": self.reference.page(header)
                for name, header in self.reference.headers.items()}
        made["reference/index.html"] = self.reference.front()
        made["reference/names.html"] = self.reference.names_page()
        for address, (title, body, sections) in made.items():
            self.write(address, title, body)
            self.note(address, title, sections)
        for header in self.reference.headers.values():
            for line, names in header.missing:
                self.problems.append(f"include/blitz/{header.name}.h:{line}: "
                                     f"{', '.join(names)} has no comment")

    def write_source(self, path):
        text = (self.root / path).read_text()
        language = "c" if re.search(r"\.[ch]$", path) else ""
        address = f"source/{path}.html"
        body = highlight.block(text, language, lambda name: self.to(address, self.reference.address(name)))
        self.write(address, path, f'<h1><code>{html.escape(path)}</code></h1><div class="source">{body}</div>')

    def copy_files(self):
        for name in ("site.css", "search.js"):
            shutil.copy(HERE / name, self.out / name)
        for path in self.tree.files:
            if path.startswith("docs/") and not path.startswith("docs/man/") and not path.endswith(".md"):
                target = self.out / path.removeprefix("docs/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.root / path, target)
        index = json.dumps(self.index, separators=(",", ":"), ensure_ascii=False)
        (self.out / "search-index.js").write_text(f"window.blitzIndex={index};\n")

    def note(self, address, title, sections):
        """For the search: each heading with the text below it."""
        for section in sections:
            words = " ".join(" ".join(section.words).split()).lower()[:1500]
            anchor = f"#{section.anchor}" if section.anchor and section.level > 1 else ""
            self.index.append([address + anchor, section.title, title, words])

    def navigation(self, page):
        def item(address, title):
            this = ' class="this" aria-current="page"' if address == page else ""
            return f'<li><a{this} href="{relative(address, page)}">{html.escape(title)}</a></li>'

        def part(title, entries):
            return f"<b>{title}</b><ul>{''.join(item(*entry) for entry in entries)}</ul>"

        def documents(folder):
            return [(address_of(d), self.titles[d]) for d in self.documents if posixpath.dirname(d) == folder]
        parts = [part("Guide", documents("docs/guide"))]
        parts.append(part("Reference", [("reference/index.html", "All headers"),
                                        ("reference/names.html", "All names")] +
                          ([(f"reference/{name}.html", f"{name}.h") for name in self.reference.headers]
                           if page.startswith("reference/") else [])))
        measured = [d for d in documents("docs") if d[0] == "performance.html"]
        parts.append(part("Measurements", measured + documents("docs/benchmarks")))
        parts.append(part("Inside", documents("docs/design")))
        others = [d for d in documents("docs") if d not in measured]
        parts.append(part("Project", documents("") + documents("examples") + others))
        return "".join(parts)

    def write(self, address, title, body):
        path = self.out / address
        path.parent.mkdir(parents=True, exist_ok=True)
        top = relative("index.html", address).removesuffix("index.html")
        full = "Blitz" if title == "Blitz" else f"{title} · Blitz"
        path.write_text(PAGE.format(title=html.escape(full), top=top, body=body, version=self.version,
                                    navigation=self.navigation(address)))


def is_document(path):
    """A page of the site: what is in docs/, at the top, and what introduces the examples."""
    return path.startswith("docs/") or "/" not in path or path == "examples/README.md"


PAGE = """<!doctype html>
<html lang="en" data-top="{top}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{top}site.css">
<script src="{top}search.js" defer></script>
</head>
<body>
<header class="top">
<a class="name" href="{top}index.html">Blitz</a>
<form role="search"><input id="question" type="search" placeholder="Search ( / )" aria-label="Search"
autocomplete="off" spellcheck="false"><ul id="found"></ul></form>
</header>
<div class="layout">
<nav class="side" aria-label="Pages">
<input type="checkbox" id="menu"><label for="menu">Pages</label>
<div class="stick">{navigation}</div>
</nav>
<main>
{body}
<footer>Blitz {version}</footer>
</main>
</div>
</body>
</html>
"""
