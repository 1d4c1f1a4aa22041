#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that make the documentation: what they read, what they write, what they refuse."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "docs"
sys.path.insert(0, str(TOOLS))

# pylint: disable=wrong-import-position
import check
import headers
import manpages
import markup
import pages
import reference
import tree

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parrots: they say what they are told. See blitz/other.h.
 *
 *     blz_parrot_say(&parrot, "x;y");      // { not a body
 *
 * - one rule;
 *   that goes on
 * - another
 */
#ifndef BLITZ_PARROT_H
#define BLITZ_PARROT_H

#include <blitz/base.h>

BLZ_BEGIN_DECLS

typedef struct blz_parrot blz_parrot;

/* A bird; `name` is "}" at first. */
struct blz_parrot {
    const char *name; /* not a comment of the struct; */
    int (*on_word)(const char *word, void *arg);
};

/* How loud. */
enum { BLZ_QUIET = 1, /* not BLZ_SILENT */ BLZ_LOUD };

/* ---- Speaking [task] ---- */

/* Says it. */
BLZ_API BLZ_NODISCARD int blz_parrot_say(blz_parrot *parrot,
                                         const char *text);

/* Says it twice, from anywhere. [any
 * thread] */
static inline int blz_parrot_repeat(blz_parrot *parrot, const char *text)
{
    if (blz_parrot_say(parrot, text) < 0)
        return -1;
    return blz_parrot_say(parrot, text);
}

#define BLZ_WORDS 8 /* that it knows */

/* Calls back. */
typedef void (*blz_parrot_fn)(int (*inner)(int), void *arg);

/* Two names for one thing. */
typedef struct blz_cage {
    int bars[2];
} blz_cage, blz_prison;

BLZ_API int blz_parrot_count(void); /* of all there are [any thread] */

/*
 * Makes functions.
 */
#define BLZ_PARROT_DEFINE(name, type) \\
    static inline type name##_make(void) \\
    {                                    \\
        return 0;                        \\
    }

#define BLZ_PARROT_TYPED_(suffix, type)                    \\
    /* One of a type. [worker] */                          \\
    static inline type blz_parrot_of_##suffix(type value) \\
    {                                                      \\
        return value;                                      \\
    }
BLZ_PARROT_TYPED_(u8, uint8_t)
BLZ_PARROT_TYPED_(u16, uint16_t)

/* ---- What the macros are made of ---- */

BLZ_API void blz_parrot_feather(void);
BLZ_API void blz_parrot_hidden_(void);

/* ---- The end ---- */

/* Flies. */
BLZ_API void blz_parrot_fly(blz_parrot *parrot);

BLZ_END_DECLS
#endif
"""


def entry(header, name):
    return next((group, e) for group in header.groups for e in group.entries if name in e.names)


class LintCase(unittest.TestCase):
    """tools/lint-headers, on a header that is right, and with one thing wrong."""

    GOOD = ""

    def findings(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "parrot.h"
            path.write_text(text)
            done = subprocess.run([sys.executable, ROOT / "tools" / "lint-headers", path], text=True,
                                  stdout=subprocess.PIPE, check=False)
        lines = [line.split(":", 1)[1] for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 1 if lines else 0)
        return lines

    def changed(self, old, new):
        self.assertIn(old, self.GOOD)
        return self.findings(self.GOOD.replace(old, new))


class Comments(LintCase):
    """tools/lint-headers, on a header whose comments are right, and with one thing wrong."""

    GOOD = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parrots: they say what they are told.
 *
 *     whoever(&parrot);
 */

/* ---- Speaking [task] ---- */

/* Says a text: 0; -EAGAIN: it is asleep. */
BLZ_API int blz_parrot_say(blz_parrot *parrot, const char *text);

/* Wakes it. [any thread] */
BLZ_API void blz_parrot_wake(blz_parrot *parrot);
"""

    def test_good_comments_are_left_alone(self):
        self.assertEqual(self.findings(self.GOOD), [])

    def test_a_function_needs_a_comment(self):
        self.assertIn("13: blz_parrot_wake: no comment", self.changed("/* Wakes it. [any thread] */\n", ""))

    def test_a_function_needs_a_thread_of_its_own_or_of_its_section(self):
        found = self.changed(" [task] ----", " ----")
        self.assertEqual(found, ["11: blz_parrot_say: no thread: [any thread], [task], ..."])

    def test_errors_are_said(self):
        found = self.changed("0; -EAGAIN: it is asleep", "0")
        self.assertEqual(found, ["11: blz_parrot_say: its errors are not said"])

    def test_a_paragraph_about_errors_holds_for_the_header(self):
        text = self.GOOD.replace("0; -EAGAIN: it is asleep", "0").replace(
            " */\n\n/* ----", " *\n * Errors are those of birds.\n */\n\n/* ----", 1)
        self.assertEqual(self.findings(text), [])

    def test_a_comment_that_points_at_another_is_refused(self):
        for begin in ("The same for one that sleeps.", "As blz_parrot_say.", "As above.", "Both."):
            found = self.changed("Wakes it.", begin)
            self.assertEqual(len(found), 1, begin)
            self.assertIn("13: blz_parrot_wake: begins with", found[0])

    def test_nobody_is_called_who(self):
        found = self.changed("Wakes it.", "Wakes whoever sleeps.")
        self.assertEqual(found, ['13: "whoever": name the task, thread or program'])
        found = self.changed("they say what they are told.", "they say who they are.")
        self.assertEqual(found, ['3: "who": name the task, thread or program'])


class Callbacks(LintCase):
    """tools/lint-headers, about the place of a callback's arg."""

    GOOD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Parrots: they say what they are told. */

/* What a parrot has heard. */
typedef void (*blz_parrot_fn)(const char *word, void *arg);

/* How it is fed. */
typedef struct blz_parrot_options {
    int (*feed)(void *seed, void *arg);
    void *(*alloc)(size_t size, size_t align, void *ctx);
    void *arg;
} blz_parrot_options;

/* ---- Speaking [task] ---- */

/* Listens. -EAGAIN: it is asleep. */
BLZ_API int blz_parrot_listen(blz_parrot *parrot, size_t *nr, void (*fn)(int word, void *arg),
                              void *arg, const blz_parrot_options *options);

/* Gives a seed away. -EAGAIN: it is asleep. */
BLZ_API int blz_parrot_give(blz_parrot *parrot, int64_t (*fn)(void *arg), void *arg,
                            void (*destroy)(void *arg));
"""

    def test_a_good_header_is_left_alone(self):
        self.assertEqual(self.findings(self.GOOD), [])

    def test_the_arg_of_a_type_of_callbacks_is_last(self):
        found = self.changed("(const char *word, void *arg)", "(void *arg, const char *word)")
        self.assertEqual(found, ["5: blz_parrot_fn: its arg is not the last parameter"])

    def test_the_arg_of_a_callback_in_a_struct_is_last(self):
        found = self.changed("(void *seed, void *arg)", "(void *arg, void *seed)")
        self.assertEqual(found, ["9: feed: its arg is not the last parameter"])
        found = self.changed("(size_t size, size_t align, void *ctx)", "(void *ctx, size_t size, size_t align)")
        self.assertEqual(found, ["10: alloc: its arg is not the last parameter"])

    def test_the_arg_of_a_callback_in_a_macro_is_last(self):
        made = "#define BLZ_PARROT(name, type) \\\n    struct name { \\\n        bool (*fn)(void *, type *);}\n"
        self.assertIn("25: fn: its arg is not the last parameter", self.findings(self.GOOD + made))

    def test_the_arg_of_a_parameter_is_last(self):
        found = self.changed("(int word, void *arg)", "(void *arg, int word)")
        self.assertEqual(found, ["17: fn: its arg is not the last parameter"])

    def test_an_arg_follows_its_callback(self):
        good = "size_t *nr, void (*fn)(int word, void *arg),\n                              void *arg,"
        found = self.changed(good, "void *arg, size_t *nr, void (*fn)(int word, void *arg),")
        self.assertIn("17: blz_parrot_listen: `void *arg` does not follow its callback", found)
        self.assertIn("17: blz_parrot_listen: no arg after `void (*fn)(int word, void *arg)`", found)

    def test_an_output_does_not_follow_the_arg(self):
        found = self.changed("void *arg, const blz_parrot_options *options", "void *arg, size_t *most")
        self.assertEqual(found, ["17: blz_parrot_listen: `size_t *most` comes after a callback's arg"])

    def test_destroy_follows_what_it_destroys(self):
        good = "int64_t (*fn)(void *arg), void *arg,\n                            void (*destroy)(void *arg)"
        found = self.changed(good, "void (*destroy)(void *arg), int64_t (*fn)(void *arg), void *arg")
        self.assertEqual(found, ["21: blz_parrot_give: destroy does not follow the arg"])


class Headers(unittest.TestCase):
    def setUp(self):
        self.header = headers.parse_text("parrot", HEADER)

    def test_the_essay_and_its_first_sentence_are_found(self):
        self.assertEqual(self.header.title, "Parrots: they say what they are told")
        self.assertIn("another", self.header.essay)

    def test_all_public_names_are_found_and_no_others(self):
        self.assertEqual(self.header.names, [
            "blz_parrot", "BLZ_QUIET", "BLZ_LOUD", "blz_parrot_say", "blz_parrot_repeat", "BLZ_WORDS",
            "blz_parrot_fn", "blz_cage", "blz_prison", "blz_parrot_count", "BLZ_PARROT_DEFINE",
            "blz_parrot_of_u8", "blz_parrot_of_u16", "blz_parrot_fly"])

    def test_nothing_lacks_a_comment(self):
        self.assertEqual(self.header.missing, [])

    def test_a_declaration_without_a_comment_is_reported_with_its_line(self):
        text = HEADER.replace("/* Says it. */\n", "")
        line = text[:text.index("BLZ_API BLZ_NODISCARD int blz_parrot_say")].count("\n") + 1
        self.assertEqual(headers.parse_text("parrot", text).missing, [(line, ["blz_parrot_say"])])

    def test_an_empty_line_ends_what_a_comment_is_about(self):
        text = HEADER.replace("/* Says it. */\n", "/* Says it. */\n\n")
        self.assertEqual(headers.parse_text("parrot", text).missing[0][1], ["blz_parrot_say"])

    def test_an_opaque_type_needs_a_comment(self):
        text = HEADER.replace("struct blz_parrot {", "struct blz_bird {")
        self.assertEqual(headers.parse_text("parrot", text).missing[0][1], ["blz_parrot"])

    def test_the_thread_is_that_of_the_comment_or_of_the_section(self):
        self.assertEqual(entry(self.header, "blz_parrot_say")[0].mark, "task")
        self.assertEqual(entry(self.header, "blz_parrot_repeat")[0].mark, "any thread")
        self.assertEqual(entry(self.header, "blz_parrot_of_u16")[0].mark, "worker")

    def test_functions_are_shown_without_bodies_and_attributes(self):
        self.assertEqual(entry(self.header, "blz_parrot_repeat")[1].text,
                         "int blz_parrot_repeat(blz_parrot *parrot, const char *text);")
        self.assertEqual(entry(self.header, "blz_parrot_say")[1].text,
                         "int blz_parrot_say(blz_parrot *parrot,\n                   const char *text);")

    def test_a_comment_behind_a_declaration_belongs_to_it(self):
        self.assertIn("/* of all there are", entry(self.header, "blz_parrot_count")[1].text)

    def test_the_real_headers_have_no_gaps(self):
        for header in headers.public_headers(tree.ROOT / "include"):
            self.assertTrue(header.essay, header.name)
            self.assertEqual(header.missing, [], header.name)


class Reference(unittest.TestCase):
    def setUp(self):
        self.header = headers.parse_text("parrot", HEADER)
        self.reference = reference.Reference([self.header])

    def test_a_page_has_an_anchor_for_each_name_and_links_names(self):
        _, body, sections = self.reference.page(self.header)
        for name in self.header.names:
            self.assertEqual(body.count(f'id="{name}"'), 1, name)
        self.assertIn('href="#blz_parrot_say"', body)
        self.assertIn('<span class="mark">any thread</span>', body)
        self.assertIn("blz_parrot_fn", [section.title for section in sections])

    def test_lists_and_code_of_a_comment_are_told_apart(self):
        body = reference.comment_html(self.header.essay, lambda name: None)
        self.assertIn("<li>one rule; that goes on</li><li>another</li>", body)
        self.assertIn('<pre class="c">', body)

    def test_a_manual_page_escapes_what_roff_would_read(self):
        self.assertEqual(manpages.escape(".x\n'y\n-1 \\n"), "\\&.x\n\\&'y\n\\-1 \\en")
        text = manpages.page(self.header, {}, {})
        self.assertIn(".Nm blz_parrot_say", text)
        self.assertNotIn("blz_parrot_feather", text)


class Markup(unittest.TestCase):
    def html(self, text):
        return markup.convert(text).html

    def test_blocks(self):
        self.assertIn('<h2 id="a-b-c">', self.html("## A `b`, c"))
        self.assertEqual(self.html("- a\n  b\n- c"), "<ul><li>a\nb</li>\n<li>c</li></ul>")
        self.assertEqual(self.html("2. a\n3. b").split(">")[0], '<ol start="2"')
        self.assertEqual(self.html("- a\n  - b\n- c").count("<ul>"), 2)
        self.assertIn("<pre><code>x &lt; y</code></pre>", self.html("    x < y\n"))
        self.assertIn("<blockquote><p>a</p></blockquote>", self.html("> a"))

    def test_tables_have_code_with_bars(self):
        body = self.html("| a | `b|c` |\n|---|---|\n| x \\| y | z |")
        self.assertIn("<th><code>b|c</code></th>", body)
        self.assertIn("<td>x | y</td><td>z</td>", body)

    def test_within_a_line(self):
        self.assertEqual(self.html("**a** *b* `*c*` 2 * 3 * 4"),
                         "<p><strong>a</strong> <em>b</em> <code>*c*</code> 2 * 3 * 4</p>")
        self.assertEqual(self.html("[`a`](b.md#c)"), '<p><a href="b.md#c"><code>a</code></a></p>')
        self.assertEqual(self.html("a_b_c & <3"), "<p>a_b_c &amp; &lt;3</p>")

    def test_equal_headings_have_different_anchors(self):
        self.assertEqual([s.anchor for s in markup.convert("# A\n# A").sections], ["a", "a-1"])

    def test_what_is_not_taken_is_refused(self):
        for text in ("<b>x</b>", "[a][b]", "```c\nint"):
            self.assertRaises(markup.Unknown, markup.convert, text)

    def test_comments_are_left_out(self):
        self.assertEqual(self.html("a\n\n<!-- b\n\nc -->\n\nd"), "<p>a</p>\n<p>d</p>")


class Links(unittest.TestCase):
    def problems(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (pathlib.Path(folder) / f"{name}.html").write_text(text)
            return list(check.site(folder))

    def test_good_links_are_good(self):
        self.assertEqual(self.problems(a='<a href="b.html#x">', b='<p id="x"><a href="#x">'), [])

    def test_missing_pages_and_anchors_are_found(self):
        self.assertEqual(len(self.problems(a='<a href="c.html"><a href="#y"><a href="b.html#z">', b="")), 3)

    def test_nothing_is_fetched_from_another_host(self):
        self.assertEqual(len(self.problems(a='<script src="https://example.org/x.js"></script>')), 1)
        self.assertEqual(self.problems(a='<a href="https://example.org/">'), [])

    def test_paths_in_a_document_are_looked_for(self):
        files = tree.Tree()
        self.assertTrue(files.matches("src/{base,sched}/*.h"))
        self.assertFalse(files.matches("src/{base,nowhere}/*.h"))
        self.assertTrue(files.matches("tests/fuzz/NAME_fuzz.c"))
        self.assertEqual(files.find("blitz/tcp.h"), "include/blitz/tcp.h")

    def test_mutants_of_a_design_note_are_looked_for(self):
        text = ("`a_b` `c.c`\n\n| mutants | of |\n|---|---|\n| `d_*` (2) | `e.c`, `f()` |\n\n"
                "| | |\n|---|---|\n| `tests/model/x.c` | `g_h` |\n| `tests/model/mutants/` | `i_j`, `k_l` |")
        self.assertEqual(list(check.named_mutants(text)), [(5, "d_*"), (10, "i_j"), (10, "k_l")])
        self.assertEqual(list(check.mutants(tree.Tree())), [])

    def test_addresses_of_documents(self):
        self.assertEqual(pages.address_of("docs/guide/README.md"), "guide/index.html")
        self.assertEqual(pages.address_of("CONTRIBUTING.md"), "contributing.html")
        self.assertEqual(pages.relative("guide/index.html#x", "design/a.html"), "../guide/index.html#x")


if __name__ == "__main__":
    unittest.main()
