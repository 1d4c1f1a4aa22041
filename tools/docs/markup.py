# SPDX-License-Identifier: Apache-2.0
"""The Markdown that our documents are written in, as HTML.

Headings, paragraphs, lists, tables, quotes, fenced and indented code; in a line: code, emphasis by
stars, links, images. Comments (<!-- -->) are left out. Anything else that Markdown may mean by
something (raw HTML, links by reference) is an error, so that a page is what GitHub shows, or fails.
"""

import html
import re
from dataclasses import dataclass, field

import highlight

FENCE = re.compile(r"^(\s*)```([\w+-]*)")
HEADING = re.compile(r"^(#{1,6}) +(.*?) *#*$")
ITEM = re.compile(r"^( {0,3})([-*+]|\d+\.) +(?=\S)")
RULE = re.compile(r"^\|?[ :|-]*-[ :|-]*$")
INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?P<body>.+?)(?P=ticks)(?!`))"
    r"|(?P<image>!\[(?P<alt>[^\]]*)\]\((?P<src>[^)\s]+)\))"
    r"|(?P<link>\[(?P<text>(?:[^\[\]]|`[^`]*`|\[[^\]]*\])+)\]\((?P<href>[^)\s]+)\))"
    r"|(?P<auto><(?P<url>https?://[^>\s]+)>)"
    r"|(?P<strong>\*\*(?P<bold>\S(?:.*?\S)?)\*\*)"
    r"|(?P<em>(?<![\w*])\*(?P<slanted>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*]))"
    r"|(?P<escape>\\(?P<char>[\\`*_{}\[\]()#+.!|<>-]))",
    re.DOTALL)
RAW = re.compile(r"<[a-zA-Z/][^>]*>|\]\[[^\]]+\]")


class Unknown(Exception):
    """Something that we do not take for Markdown."""


@dataclass
class Section:
    """A heading and the words below it, for the search."""
    level: int
    anchor: str
    title: str
    words: list = field(default_factory=list)


@dataclass
class Page:
    html: str
    title: str
    sections: list
    links: list         # (address as written, whether an image)
    code: list          # the code spans

    @property
    def anchors(self):
        return {section.anchor for section in self.sections}


def slug(text, taken):
    """The anchor that GitHub gives a heading."""
    base = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
    anchor, count = base, 0
    while anchor in taken:
        count += 1
        anchor = f"{base}-{count}"
    taken.add(anchor)
    return anchor


class Converter:
    """`link(address)` gives where a link leads, `code(text)` where a code span does, or None;
    `name(name)` the address of a name in a block of code."""

    def __init__(self, link=lambda a: a, code=lambda t: None, name=lambda n: None):
        self.link, self.code_link, self.name = link, code, name
        self.sections, self.links, self.code = [Section(0, "", "")], [], []
        self.taken = set()

    def page(self, text):
        text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
        body = self.blocks(text.expandtabs(4).split("\n"))
        titles = [section.title for section in self.sections if section.level == 1]
        return Page(body, titles[0] if titles else "", self.sections[1:], self.links, self.code)

    # ---- Blocks: each takes its lines from the front of the list ----

    def blocks(self, lines):
        out, lines = [], list(lines)
        while lines:
            if not lines[0].strip():
                lines.pop(0)
                continue
            for kind in (self.fence, self.indented, self.heading, self.table, self.quote, self.items):
                made = kind(lines)
                if made is not None:
                    out.append(made)
                    break
            else:
                out.append(self.paragraph(lines))
        return "\n".join(out)

    def fence(self, lines):
        begin = FENCE.match(lines[0])
        if not begin:
            return None
        lines.pop(0)
        code = []
        while lines and not lines[0].strip().startswith("```"):
            code.append(lines.pop(0)[len(begin[1]):])
        if not lines:
            raise Unknown("a code block without an end")
        lines.pop(0)
        return highlight.block("\n".join(code), begin[2], self.name)

    def indented(self, lines):
        if not lines[0].startswith("    "):
            return None
        code = []
        while lines and (lines[0].startswith("    ") or not lines[0].strip()):
            code.append(lines.pop(0)[4:])
        return highlight.block("\n".join(code).strip("\n"), "", self.name)

    def heading(self, lines):
        found = HEADING.match(lines[0])
        if not found:
            return None
        lines.pop(0)
        level, text = len(found[1]), self.inline(found[2])
        title = re.sub(r"<[^>]+>", "", text)
        plain = html.unescape(title)
        anchor = slug(plain, self.taken)
        self.sections.append(Section(level, anchor, plain))
        return f'<h{level} id="{anchor}">{text} <a class="here" href="#{anchor}">#</a></h{level}>'

    def table(self, lines):
        if not (lines[0].lstrip().startswith("|") and len(lines) > 1 and RULE.match(lines[1].strip())):
            return None
        head = self.row(lines.pop(0), "th")
        lines.pop(0)
        rows = []
        while lines and lines[0].lstrip().startswith("|"):
            rows.append(self.row(lines.pop(0), "td"))
        return ('<div class="table"><table><thead>' + head + "</thead><tbody>\n" + "\n".join(rows) +
                "</tbody></table></div>")

    def row(self, line, tag):
        cells, code = [""], False
        for part in re.split(r"(\\\||`+|\|)", line.strip().strip("|")):
            if part.startswith("`"):
                code = not code
            if part == "|" and not code:
                cells.append("")
            else:
                cells[-1] += "|" if part == "\\|" else part
        return "<tr>" + "".join(f"<{tag}>{self.inline(cell.strip())}</{tag}>" for cell in cells) + "</tr>"

    def quote(self, lines):
        if not lines[0].startswith(">"):
            return None
        inner = []
        while lines and lines[0].startswith(">"):
            inner.append(re.sub(r"^> ?", "", lines.pop(0)))
        return f"<blockquote>{self.blocks(inner)}</blockquote>"

    def items(self, lines):
        first = ITEM.match(lines[0])
        if not first:
            return None
        tag = "ol" if first[2][0].isdigit() else "ul"
        start = f' start="{first[2][:-1]}"' if tag == "ol" and first[2] != "1." else ""
        made, loose = [], False
        while lines:
            found = ITEM.match(lines[0])
            if not found or (found[2][0].isdigit()) != (tag == "ol"):
                break
            inner = self.item(lines, len(found[0]))
            loose = loose or "" in inner
            made.append(inner)
        body = "\n".join(f"<li>{self.item_body(inner, loose)}</li>" for inner in made)
        return f"<{tag}{start}>{body}</{tag}>"

    def item(self, lines, indent):
        """The lines of one item, without its mark and indentation."""
        inner = [lines.pop(0)[indent:]]
        while lines:
            if not lines[0].strip():
                after = next((line for line in lines if line.strip()), "")
                if not after.startswith(" " * min(indent, 2)):
                    break
                inner.append(lines.pop(0).strip())
            elif lines[0].startswith(" " * indent):
                inner.append(lines.pop(0)[indent:])
            elif ITEM.match(lines[0]) or HEADING.match(lines[0]) or FENCE.match(lines[0]):
                break
            else:
                inner.append(lines.pop(0).strip())
        return inner

    def item_body(self, inner, loose):
        body = self.blocks(inner)
        simple = re.fullmatch(r"<p>((?:(?!<p>).)*)</p>((?:(?!<p>).)*)", body, re.DOTALL)
        return simple[1] + simple[2] if simple and not loose else body

    def paragraph(self, lines):
        text = []
        while lines and lines[0].strip() and not HEADING.match(lines[0]) and not FENCE.match(lines[0]):
            if text and (re.match(r" {0,3}([-*+]|1\.) +\S", lines[0]) or lines[0].startswith("|")):
                break
            text.append(lines.pop(0).strip())
        return f"<p>{self.inline(chr(10).join(text))}</p>"

    # ---- Within a line ----

    def inline(self, text):
        out, end = [], 0
        for found in INLINE.finditer(text):
            out.append(self.plain(text[end:found.start()]))
            out.append(self.dispatch(found))
            end = found.end()
        out.append(self.plain(text[end:]))
        return "".join(out)

    def dispatch(self, found):
        for kind in ("code", "image", "link", "auto", "strong", "em", "escape"):
            if found[kind] is not None:
                return getattr(self, "make_" + kind)(found)
        raise AssertionError(found[0])

    def plain(self, text):
        raw = RAW.search(text)
        if raw:
            raise Unknown(f"{raw[0]!r}: HTML and links by reference are not taken")
        self.sections[-1].words.append(text)
        return html.escape(text, quote=False)

    def make_code(self, found):
        body = found["body"].strip() if found["ticks"] != "`" else found["body"]
        body = " ".join(body.split("\n"))
        self.code.append(body)
        self.sections[-1].words.append(body)
        address = self.code_link(body)
        text = f"<code>{html.escape(body, quote=False)}</code>"
        return f'<a href="{address}">{text}</a>' if address else text

    def make_image(self, found):
        self.links.append((found["src"], True))
        return f'<img src="{html.escape(self.link(found["src"]))}" alt="{html.escape(found["alt"])}">'

    def make_link(self, found):
        self.links.append((found["href"], False))
        outer, self.code_link = self.code_link, lambda text: None
        text = self.inline(found["text"])
        self.code_link = outer
        return f'<a href="{html.escape(self.link(found["href"]))}">{text}</a>'

    def make_auto(self, found):
        return f'<a href="{html.escape(found["url"])}">{html.escape(found["url"])}</a>'

    def make_strong(self, found):
        return f"<strong>{self.inline(found['bold'])}</strong>"

    def make_em(self, found):
        return f"<em>{self.inline(found['slanted'])}</em>"

    def make_escape(self, found):
        return html.escape(found["char"], quote=False)


def convert(text, **links):
    return Converter(**links).page(text)
