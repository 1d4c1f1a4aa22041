# SPDX-License-Identifier: Apache-2.0
"""Code as HTML: C in colours, and the names of the library as links to their place in the reference."""

import html
import re

KEYWORDS = """auto bool break case char const continue default do double else enum extern float for goto if
inline int int64_t long pid_t register return short signed size_t sizeof ssize_t static struct switch
typedef uint8_t uint32_t uint64_t union unsigned void volatile while true false NULL""".split()

TOKEN = re.compile(
    r"(?P<c>/\*.*?(?:\*/|\Z)|//[^\n]*)"
    r"|(?P<p>^[ \t]*\#[ \t]*\w+)"
    r"|(?P<s>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'|(?<=include )<[\w/.]+>)"
    r"|(?P<n>\b\d[\w.]*)"
    r"|(?P<w>\b[A-Za-z_]\w*)",
    re.DOTALL | re.MULTILINE)


def c(code, link=lambda name: None):
    """C as HTML. `link` gives the address of a name, or None."""
    out, end = [], 0
    for token in TOKEN.finditer(code):
        out.append(html.escape(code[end:token.start()], quote=False))
        out.append(marked(token, link))
        end = token.end()
    out.append(html.escape(code[end:], quote=False))
    return "".join(out)


def marked(token, link):
    text, kind = html.escape(token[0], quote=False), token.lastgroup
    if kind != "w":
        return f'<i class="{kind}">{text}</i>'
    if token[0] in KEYWORDS:
        return f'<i class="k">{text}</i>'
    address = link(token[0])
    return f'<a href="{address}">{text}</a>' if address else text


def block(code, language, link=lambda name: None):
    """A whole block; languages other than C stay as they are."""
    body = c(code, link) if language in ("c", "h", "cpp") else html.escape(code, quote=False)
    kind = f' class="{language}"' if language else ""
    return f"<pre{kind}><code>{body}</code></pre>"
