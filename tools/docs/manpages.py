# SPDX-License-Identifier: Apache-2.0
"""The manual pages, in mdoc: one in section 3 for each public header, with a link for each function,
macro and type; and those that are written by hand, in docs/man, with @DATE@, @VERSION@ and @HEADERS@
filled in.
"""

import datetime
import os
import re

import reference
import tree

MONTHS = """January February March April May June July August September October November
December""".split()
WRITTEN = tree.ROOT / "docs" / "man"


def today():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    day = (datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds
           else datetime.datetime.now(datetime.timezone.utc))
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def version():
    text = (tree.ROOT / "include/blitz/version.h").read_text()
    return re.search(r'BLZ_VERSION_STRING "([^"]+)"', text)[1]


def page_name(header):
    return f"blz_{header.name}"


def escape(text):
    """Text as roff reads it, line by line."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def macro_argument(text):
    """A word or two behind a macro."""
    return escape(text).replace('"', "\\(dq")


def literal(code, offset=""):
    return f".Bd -literal{offset}\n{escape(code)}\n.Ed\n"


def prose(text):
    """A paragraph: backquotes say nothing on a terminal, and each sentence begins a line."""
    text = " ".join(text.replace("`", "").split())
    text = re.sub(r"(?<=[.!?]) +|(?<=[.!?][)\]\"']) +", "\n", text)
    return escape(text) + "\n"


def comment(text):
    out = []
    for kind, part in reference.joined(reference.pieces(text)):
        if kind == "code":
            out.append(literal(part, " -offset indent"))
        elif kind == "list":
            items = "".join(f".It\n{prose(item[2:])}" for item in part.split("\n"))
            out.append(f".Bl -bullet\n{items}.El\n")
        else:
            out.append((".Pp\n" if out else "") + prose(part))
    return "".join(out)


def group(entry):
    out = [literal("\n".join(e.text for e in entry.entries))]
    text = reference.without_marks(entry.comment)
    if text or entry.mark:
        mark = f"\\&[{escape(entry.mark)}]\n" if entry.mark else ""
        out.append(f".Bl -item -offset indent\n.It\n{comment(text)}{mark}.El\n")
    return "".join(out)


def page(header, pages_of, pages):
    out = [f'.\\" Made from include/blitz/{header.name}.h\n',
           f".Dd {today()}\n.Dt {page_name(header).upper()} 3\n.Os Blitz {version()}\n",
           ".Sh NAME\n", names(header, pages), f".Nd {macro_argument(header.title)}\n",
           f".Sh LIBRARY\nBlitz (libblitz, \\-lblitz)\n.Sh SYNOPSIS\n.In blitz/{header.name}.h\n",
           ".Sh DESCRIPTION\n", comment(header.essay)]
    section = ""
    for entry in header.groups:
        if entry.section != section:
            section = entry.section
            out.append(f".Ss {macro_argument(reference.title_case(section))}\n")
        out.append(group(entry))
    out.append(".Sh SEE ALSO\n" + see_also(header, pages_of))
    return "".join(out)


def names(header, pages):
    listed = [page_name(header)] + [name for name in linked(header) if name not in pages]
    return " ,\n".join(f".Nm {name}" for name in listed) + "\n"


def linked(header):
    """What has a link to its page: what can be called or declared."""
    found = []
    for entry in (entry for entry_group in header.groups for entry in entry_group.entries):
        if entry.kind in ("function", "type") or (entry.kind == "macro" and "(" in entry.text):
            found += [name for name in entry.names if entry.kind != "type" or not name.isupper()]
    return list(dict.fromkeys(found))


def is_called(header, name):
    return any(name in entry.names and entry.kind != "type"
               for entry_group in header.groups for entry in entry_group.entries)


def see_also(header, pages_of):
    text = header.essay + "".join(entry.comment for entry in header.groups)
    others = {pages_of[name] for name in reference.NAME.findall(text) if name in pages_of}
    others |= {f"blz_{name}" for name in re.findall(r"blitz/(\w+)\.h", text)}
    others -= {page_name(header)}
    refs = [f".Xr {name} 3" for name in sorted(others)] + [".Xr blitz 7"]
    return " ,\n".join(refs) + "\n"


def write(headers, out):
    """Writes them all to out/man1, man3, man7; what is wrong, one line each."""
    pages_of = {name: page_name(header) for header in headers for name in header.names}
    pages = {page_name(header): header for header in headers}
    problems = []
    (out / "man3").mkdir(parents=True, exist_ok=True)
    for name, header in pages.items():
        (out / "man3" / f"{name}.3").write_text(page(header, pages_of, pages))
    for header in headers:
        for name in linked(header):
            if name == page_name(header):
                continue
            if name in pages and is_called(header, name):
                problems.append(f"include/blitz/{header.name}.h: {name} is the page of another header")
            elif name not in pages:
                (out / "man3" / f"{name}.3").write_text(f".so man3/{page_name(header)}.3\n")
    for path in sorted(WRITTEN.glob("*.[0-9]")):
        folder = out / f"man{path.suffix[1:]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_text(filled(path.read_text(), headers))
    return problems


def filled(text, headers):
    listed = "".join(f".It Xr {page_name(header)} 3\n{macro_argument(header.title)}\n" for header in headers)
    return (text.replace("@DATE@", today()).replace("@VERSION@", version())
            .replace("@HEADERS@\n", listed))
