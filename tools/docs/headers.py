# SPDX-License-Identifier: Apache-2.0
"""The public headers as a reference: what they declare, and what their comments say about it.

A header opens with an essay: the comment behind the licence line. After that a comment documents the
declarations that follow it without an empty line in between. A comment of the form `---- Title ----`
begins a section; marks in it ([any thread], [task]) hold for whatever in it has none of its own.

Names that end in an underscore, and all in a section "What ... made of", are the library's own.
Everything else must have a comment: `missing` lists what has none.
"""

import pathlib
import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/)"
    r"|(?P<line_comment>//[^\n]*)"
    r"|(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<open>[{(\[])|(?P<close>[})\]])|(?P<semicolon>;)"
    r"|(?P<space>\s+)|(?P<word>\w+)|(?P<other>.)",
    re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^---- (.*?) ----$", re.DOTALL)
MARK = re.compile(r"\[((?:any\s+thread|the\s+thread|task|worker|in\s+a\s+computation|any)\b[^\]]*)\]")
NAME = re.compile(r"\b(?:blz|BLZ)_\w+\b")
ATTRIBUTES = re.compile(r"\b(?:BLZ_API|BLZ_NODISCARD|BLZ_NORETURN|BLZ_COLD|BLZ_NOINLINE)\b\s*")
PLUMBING = re.compile(r"^BLZ_(?:BEGIN|END)_DECLS\b|^_Static_assert\b|^extern \"C\"")
INCLUDE_GUARD = re.compile(r"BLITZ_\w*H|BLZ_(?:BEGIN|END)_DECLS")


@dataclass
class Entry:
    """One declaration: its names (an enum has several), kind and text."""
    names: list
    kind: str           # function, macro, type, constant
    text: str
    line: int


@dataclass
class Group:
    """Declarations that share a comment."""
    comment: str
    entries: list
    section: str
    line: int
    own_mark: str = ""
    section_mark: str = ""

    @property
    def mark(self):
        """Where these may be called: what the comment says, or its section, of what can be called."""
        calls = any(entry.kind == "function" or "(" in entry.text for entry in self.entries
                    if entry.kind in ("function", "macro"))
        return self.own_mark or (self.section_mark if calls else "")

    @property
    def names(self):
        return [name for entry in self.entries for name in entry.names]


@dataclass
class Header:
    name: str           # tcp
    title: str          # the essay's first sentence
    essay: str
    groups: list = field(default_factory=list)
    missing: list = field(default_factory=list)     # (line, names)

    @property
    def names(self):
        return [name for group in self.groups for name in group.names]


def plain(comment):
    """The text of a comment, without its stars."""
    body = re.sub(r"^/\*|\*/$", "", comment)
    lines = [re.sub(r"^[ \t]*\* ?", "", line).rstrip() for line in body.split("\n")]
    lines[0] = lines[0].strip()
    return "\n".join(lines).strip("\n")


def sentence(essay):
    """The first sentence of an essay, on one line: what a header is about."""
    first = " ".join(essay.split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\. ", first)[0].rstrip(".")


def items(text):
    """(kind, text, line, whether an empty line comes before it): what stands at the top level."""
    depth, begin, blank, begins_line = 0, None, True, True
    for token in TOKEN.finditer(text):
        kind, at = token.lastgroup, token.start()
        if begin is None:
            if kind == "space":
                blank = blank or token[0].count("\n") > 1
                begins_line = begins_line or "\n" in token[0]
                continue
            if kind in ("comment", "directive", "line_comment"):
                kind = "trailing" if kind == "comment" and not begins_line else kind
                yield kind, token[0], line_of(text, at), blank
                blank = begins_line = False
                continue
            begin = at
        depth += (kind == "open") - (kind == "close")
        if depth == 0 and ends_here(text, begin, token):
            yield "declaration", text[begin:token.end()].strip(), line_of(text, begin), blank
            begin, blank, begins_line = None, False, False


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def ends_here(text, begin, token):
    """Whether a declaration ends: by a semicolon, a function's body, or as a macro without either."""
    declaration = text[begin:token.end()]
    if token.lastgroup == "semicolon":
        return True
    if token[0] == "}":
        return re.search(r"\)\s*\{", declaration) is not None
    rest = text[token.end():token.end() + 1]
    return rest == "\n" and re.fullmatch(r"[A-Z][A-Z0-9_]*(\(.*\))?", declaration, re.DOTALL)


def macro(text):
    """(name, its parameters or None, its body)"""
    found = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?[ \t]*(.*)", text, re.DOTALL)
    parameters = found[2] and [p.strip() for p in found[2][1:-1].split(",")]
    return found[1], parameters, re.sub(r"\\\n", "\n", found[3]).strip()


def expand(invocation, macros):
    """The declarations that a call of one of the header's own macros makes, or ''."""
    found = re.fullmatch(r"(\w+)\((.*)\)", invocation, re.DOTALL)
    if not found or found[1] not in macros or not macros[found[1]][0]:
        return ""
    parameters, body = macros[found[1]]
    for parameter, value in zip(parameters, found[2].split(",")):
        body = re.sub(rf"\s*##\s*\b{parameter}\b|\b{parameter}\b\s*##\s*|\b{parameter}\b",
                      lambda _, v=value.strip(): v, body)
    return body


def entry_of_macro(text, line):
    name, parameters, body = macro(text)
    shown = f"#define {name}" + (f"({', '.join(parameters)})" if parameters else "")
    if parameters is None and "\n" not in body and len(strip_comments(body)) < 60:
        shown = f"{shown} {body}".rstrip()
    return Entry([name], "macro", shown, line)


def entry_of_declaration(text, line):
    """A declaration as it is shown: without a function's body, and without attributes."""
    if re.match(r"enum\b[^;]*\{", text):
        names = [name for name in NAME.findall(strip_comments(inside(text))) if name.startswith("BLZ_")]
        return Entry(unique(names), "constant", text, line)
    if text.startswith("typedef") or re.match(r"(struct|union)\s+\w+\s*(\{|;)", text):
        return Entry(type_names(text), "type", text, line)
    signature = re.sub(r"\s*\{.*", ";", text, flags=re.DOTALL) if text.endswith("}") else text
    signature = re.sub(r"__attribute__\(\(\w+\)\)\s*", "", signature)
    signature = ATTRIBUTES.sub("", signature)
    signature = re.sub(r"static (?:inline|BLZ_INLINE)\s+", "", signature)
    found = re.search(r"(\w+)\s*\(", signature)
    kind = "function" if found else "constant"
    name = found[1] if found else (NAME.findall(signature) or [signature])[-1]
    return Entry([name], kind, dedent_arguments(signature, name), line)


def dedent_arguments(signature, name):
    """Continuation lines under the opening parenthesis, now that the attributes are gone."""
    lines = signature.split("\n")
    margin = lines[0].find("(", lines[0].find(name)) + 1
    return "\n".join([lines[0]] + [" " * margin + line.strip() for line in lines[1:]])


def inside(text):
    return text[text.index("{"):text.rindex("}") + 1]


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def unique(names):
    return list(dict.fromkeys(names))


def type_names(text):
    """What a typedef or a struct defines; an enum with a name also defines its constants."""
    bare = strip_comments(text)
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", bare)
    if not text.startswith("typedef"):
        return [re.match(r"(?:struct|union)\s+(\w+)", bare)[1]]
    if pointer and "{" not in bare:
        return [pointer[1]]
    behind = bare[bare.rindex("}") + 1:] if "{" in bare else " ".join(bare.split()[2:])
    names = re.findall(r"(\w+)\s*(?:\[[^\]]*\])?\s*[,;]", behind)
    if re.match(r"typedef enum\b", bare):
        names += [name for name in NAME.findall(inside(bare)) if name.startswith("BLZ_")]
    return unique(names)


def is_public(entry):
    return any(NAME.fullmatch(name) and not name.endswith("_") for name in entry.names)


def is_forward(entry):
    """`typedef struct x x;` in front of the definition, which has the comment; or `struct x;`."""
    return re.fullmatch(r"typedef struct (\w+) \1;|struct \w+;", entry.text) is not None


def has_remark(entry):
    """A macro with a comment on its own line."""
    return entry.kind == "macro" and "/*" in entry.text


def parse(path):
    return parse_text(pathlib.Path(path).stem, pathlib.Path(path).read_text())


class Reader:
    """Goes through the items of a header and collects its groups."""

    def __init__(self, name):
        self.header = Header(name, "", "")
        self.section, self.section_mark = "", ""
        self.group = None
        self.macros = {}
        self.text = ""
        self.own = False        # in a section "What ... made of"

    def read(self, text):
        self.text = text
        for kind, item, line, blank in items(text):
            if blank:
                self.group = None
            if kind == "comment":
                self.comment(plain(item), line)
            elif kind == "trailing":
                self.trailing(plain(item))
            elif kind == "directive" and re.match(r"\s*#\s*define\b", item):
                name, parameters, body = macro(item)
                self.macros[name] = (parameters, body)
                if not INCLUDE_GUARD.fullmatch(name):
                    self.add(entry_of_macro(item, line))
            elif kind == "declaration" and not PLUMBING.match(item):
                made = expand(item, self.macros)
                if made:
                    self.expanded(made, line)
                else:
                    self.add(entry_of_declaration(item, line))
        return self.header

    def comment(self, text, line):
        section = SECTION.match(text)
        if text.startswith("SPDX") or text.startswith("clang-format"):
            return
        if not self.header.essay:
            self.header.essay, self.header.title = text, sentence(text)
        elif section:
            marks = MARK.findall(section[1])
            self.section = MARK.sub("", " ".join(section[1].split())).strip()
            self.section_mark = marks[0] if marks else ""
            self.own = re.match(r"[Ww]hat .*made of", self.section) is not None
            self.group = None
        else:
            self.group = self.new_group(text, line)

    def trailing(self, text):
        """A comment behind a declaration, on its line, is about that one alone."""
        if self.group and self.group.entries:
            entry = self.group.entries[-1]
            entry.text += f" /* {text} */"
            self.group.own_mark = self.group.own_mark or " ".join(MARK.findall(text)[:1])
            if self.header.missing and self.header.missing[-1][1] == entry.names:
                self.header.missing.pop()

    def new_group(self, text, line):
        marks = [" ".join(mark.split()) for mark in MARK.findall(text)]
        return Group(text, [], self.section, line, marks[-1] if marks else "", self.section_mark)

    def add(self, entry):
        if self.own or not is_public(entry):
            return
        if is_forward(entry) and not (self.group and self.group.comment):
            if entry.text.startswith("typedef") and not re.search(rf"^(typedef )?struct {entry.names[0]} \{{", self.text, re.MULTILINE):
                self.header.missing.append((entry.line, entry.names))
            return
        if self.group is None:
            self.group = self.new_group("", entry.line)
        if not self.group.entries:
            self.header.groups.append(self.group)
        if not self.group.comment and not has_remark(entry):
            self.header.missing.append((entry.line, entry.names))
        self.group.entries.append(entry)

    def expanded(self, text, line):
        """Functions that a macro of the header makes: its comment is in the macro, or before the calls."""
        outer = self.group
        for kind, item, _, _ in items(text + "\n"):
            if kind == "comment":
                self.group = self.new_group(plain(item), line)
            elif kind == "declaration":
                self.add(entry_of_declaration(item, line))
        self.group = outer


def parse_text(name, text):
    return Reader(name).read(text)


def public_headers(include):
    """The headers that blitz.h includes, in its order."""
    include = pathlib.Path(include)
    names = re.findall(r"#include <blitz/(\w+)\.h>", (include / "blitz.h").read_text())
    return [parse(include / "blitz" / f"{name}.h") for name in names]
