# SPDX-License-Identifier: Apache-2.0
"""The reference: a page for each public header, one for all of them, one for all names."""

import html
import re

import headers
import highlight
import markup

AREAS = [
    ("Async functions and tasks", "async future task runtime waker combine time blocking"),
    ("Sharing between tasks", "mutex rwlock semaphore notify barrier once wait_group token"),
    ("Channels", "channel oneshot broadcast watch"),
    ("Networks", "tcp udp unix addr dns connect socket fd io"),
    ("Files and processes", "file fs pipe process stdio"),
    ("Streams", "stream bufio codec frames copy"),
    ("Ending", "signal shutdown"),
    ("Computing on all cores", "par par_for par_reduce par_find par_scan par_group par_sort par_scope "
                               "par_per_thread par_run"),
    ("Watching", "stats console look trace probes"),
    ("The rest", "base version waiter"),
]
KINDS = {"function": "function", "macro": "macro", "type": "type", "constant": "constant"}
NAME = re.compile(r"\b(?:blz|BLZ)_\w+\b|\bblitz/\w+\.h\b")


class Reference:
    def __init__(self, parsed):
        self.headers = {header.name: header for header in parsed}
        self.where = {}         # name -> (header, anchor, kind)
        for header in parsed:
            for group in header.groups:
                for entry in group.entries:
                    for name in entry.names:
                        self.where.setdefault(name, (header.name, name, entry.kind))

    def address(self, name):
        """Of a name, or of `blitz/tcp.h`, relative to the top of the site; or None."""
        header = re.fullmatch(r"blitz/(\w+)\.h", name)
        if header:
            return f"reference/{header[1]}.html" if header[1] in self.headers else None
        if name in self.where:
            return f"reference/{self.where[name][0]}.html#{self.where[name][1]}"
        return None

    def areas(self):
        """(title, headers), with those that no area knows among the rest."""
        left, found = dict(self.headers), []
        for title, names in AREAS:
            found.append((title, [left.pop(name) for name in names.split() if name in left]))
        found[-1][1].extend(left.values())
        return [(title, listed) for title, listed in found if listed]

    # ---- Pages: (title, body, sections for the search), links relative to reference/ ----

    def page(self, header):
        link = self.local_link(header.name)
        sections = [markup.Section(1, "", f"blitz/{header.name}.h", [header.essay])]
        out = [f'<h1><code>blitz/{header.name}.h</code></h1>', comment_html(header.essay, link)]
        out.append(self.contents(header))
        section = ""
        for group in header.groups:
            if group.section != section:
                section = group.section
                anchor = "section-" + markup.slug(section, set())
                out.append(f'<h2 id="{anchor}">{html.escape(title_case(section))}</h2>')
            out.append(self.group(group, link))
            sections += [markup.Section(3, name, name, [group.comment]) for name in group.names]
        return f"blitz/{header.name}.h", "\n".join(out), sections

    def contents(self, header):
        names = [f'<a href="#{name}">{name}</a>' for name in header.names]
        return f'<details class="names"><summary>{len(names)} names</summary><p>{" ".join(names)}</p></details>'

    def group(self, group, link):
        anchors = "".join(f'<a class="anchor" id="{name}"></a>' for name in group.names)
        own = set(group.names)
        code = highlight.c("\n".join(entry.text for entry in group.entries),
                           lambda name: f"#{name}" if name in own else link(name))
        mark = f'<span class="mark">{html.escape(group.mark)}</span>' if group.mark else ""
        text = comment_html(without_marks(group.comment), link)
        return (f'<section class="decl">{anchors}<pre class="c"><code>{code}</code></pre>'
                f'<div class="about">{mark}{text}</div></section>')

    def local_link(self, here):
        def link(name):
            address = self.address(name)
            if address is None:
                return None
            page, _, anchor = address.removeprefix("reference/").partition("#")
            if page == f"{here}.html":
                return f"#{anchor}" if anchor else None
            return f"{page}#{anchor}" if anchor else page
        return link

    def front(self):
        out = ["<h1>Reference</h1>",
               "<p>Made from the public headers, one page a header. <code>#include &lt;blitz.h&gt;</code> "
               "has them all. Names begin with <code>blz_</code> and <code>BLZ_</code>; errors are "
               "negative errno values. The mark at a declaration says where it may be called: "
               "<span class=\"mark\">any thread</span>, <span class=\"mark\">task</span> (in a poll: an "
               "async function awaits it), <span class=\"mark\">worker</span> (a thread of a runtime), "
               "<span class=\"mark\">in a computation</span> (of the fork-join pool). "
               '<a href="names.html">All names</a>.</p>']
        for title, listed in self.areas():
            rows = "".join(f'<tr><td><a href="{h.name}.html"><code>blitz/{h.name}.h</code></a></td>'
                           f"<td>{html.escape(h.title)}</td></tr>" for h in listed)
            out.append(f'<h2>{title}</h2><div class="table"><table><tbody>{rows}</tbody></table></div>')
        return "Reference", "\n".join(out), []

    def names_page(self):
        rows = "".join(
            f'<tr><td><a href="{header}.html#{anchor}"><code>{name}</code></a></td>'
            f'<td>{KINDS[kind]}</td><td><a href="{header}.html">{header}.h</a></td></tr>'
            for name, (header, anchor, kind) in sorted(self.where.items(), key=lambda i: i[0].lower()))
        return "All names", ("<h1>All names</h1>"
                             f'<div class="table"><table class="all"><tbody>{rows}</tbody></table></div>'), []


def title_case(text):
    return text[:1].upper() + text[1:]


def without_marks(text):
    """A comment without its [any thread] at the end, which is shown as a mark."""
    return re.sub(headers.MARK.pattern.join((r"\s*", r"\s*$")), "", text)


def pieces(text):
    """(kind, text) of a comment: paragraphs, code that is indented, lists."""
    for part in re.split(r"\n\s*\n", text):
        if not part.strip():
            continue
        lines = part.split("\n")
        indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        if indent >= 2:
            yield "code", "\n".join(line[indent:] for line in lines)
            continue
        plain = []
        for line in lines:
            if re.match(r"\s*- ", line):
                if plain and not plain[0].startswith("- "):
                    yield "text", "\n".join(plain)
                    plain = []
                plain.append(line.strip())
            elif plain and plain[0].startswith("- ") and line.startswith(" "):
                plain[-1] += " " + line.strip()
            else:
                plain.append(line)
        yield ("list" if plain[0].startswith("- ") else "text"), "\n".join(plain)


def joined(parts):
    """Pieces of code with an empty line between them are one piece; a table is another."""
    out = []
    for kind, text in parts:
        if out and kind == out[-1][0] == "code" and looks_like_c(text) == looks_like_c(out[-1][1]):
            out[-1] = ("code", out[-1][1] + "\n\n" + text)
        else:
            out.append((kind, text))
    return out


def comment_html(text, link):
    out = []
    for kind, part in joined(pieces(text)):
        if kind == "code":
            out.append(highlight.block(part, "c" if looks_like_c(part) else "", link))
        elif kind == "list":
            items = "".join(f"<li>{inline(item[2:], link)}</li>" for item in part.split("\n"))
            out.append(f"<ul>{items}</ul>")
        else:
            out.append(f"<p>{inline(part, link)}</p>")
    return "\n".join(out)


def looks_like_c(code):
    return re.search(r"[;{}()]", code) is not None and not re.search(r"^\s*-{8}", code, re.MULTILINE)


def inline(text, link):
    """A comment's line: names are links, `x` is code."""
    out = []
    for i, part in enumerate(text.split("`")):
        if i % 2 == 1:
            out.append(f"<code>{names(part, link)}</code>")
        else:
            out.append(names(part, link))
    return "".join(out)


def names(text, link):
    escaped = html.escape(text, quote=False)

    def replace(found):
        address = link(found[0])
        return f'<a href="{address}"><code>{found[0]}</code></a>' if address else found[0]
    return NAME.sub(replace, escaped)
