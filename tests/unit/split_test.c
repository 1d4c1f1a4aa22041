/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and other parts: in every division into pieces, with hostile input, and cancelled. */
#include "net_probe.h"

#include "stream/reader.h"
#include "script.h"

/* Takes all parts there are, and writes them down with a bar behind each. */
struct takes {
    BLZ_FRAME;
    blz_split *split;
    char *text;
    size_t len;
    int64_t rc;
};

BLZ_ASYNC(takes)
{
    blz_view part;
    BLZ_BEGIN;
    for (;;) {
        while (blz_split_next(self->split, &part)) {
            memcpy(self->text + self->len, part.data, part.len);
            self->len += part.len;
            self->text[self->len++] = '|';
        }
        BLZ_AWAIT(self->rc, blz_split_more(self->split));
        if (self->rc <= 0)
            break;
    }
    self->text[self->len] = 0;
    BLZ_END(self->rc);
}

/* Splits a text that comes in pieces: what becomes of it, and the result. */
static int64_t split_text(const char *text, size_t piece, size_t size, char delimiter, bool crlf,
                          size_t max, char *out)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of(text, piece);
    blz_reader reader;
    blz_split split;
    blz_handle task;
    int64_t rc;

    script.slow = piece % 2;
    assert_int_equal(blz_reader_init_with(&reader, script_stream(&script), size, test_memory()), 0);
    blz_split_init(&split, &reader, delimiter, max);
    split.crlf = crlf;
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, takes, .split = &split, .text = out), 0);
    rc = FINISH(rt, &task);
    blz_reader_free(&reader);
    free_rt(rt);
    return rc;
}

static void expect(const char *text, char delimiter, bool crlf, const char *parts)
{
    size_t len = strlen(text);
    char out[256];

    for (size_t piece = 1; piece <= len + 1; piece++)
        for (size_t size = 8; size <= len + 8; size += 5) {
            assert_int_equal(split_text(text, piece, size, delimiter, crlf, 0, out), 0);
            assert_string_equal(out, parts);
        }
}

static void lines_come_out_in_every_division(void **state)
{
    (void)state;
    expect("", '\n', true, "");
    expect("\n", '\n', true, "|");
    expect("one\ntwo\n", '\n', true, "one|two|");
    expect("one\ntwo", '\n', true, "one|two|");
    expect("\n\none\n\n", '\n', true, "||one||");
    expect("a\r\nb\rc\r\n\r\nd\r", '\n', true, "a|b\rc||d\r|");
    expect("a\r\nb\n", '\n', false, "a\r|b|");
}

static void other_bytes_split_as_well(void **state)
{
    (void)state;
    expect("a,b,,c", ',', false, "a|b||c|");
    expect(",", ',', false, "|");
    expect("\xff"
           "a\xff",
           '\xff', false, "|a|");
}

/* Eight are allowed: eight pass, nine do not, wherever the pieces are cut. */
static void a_line_that_is_too_long_is_refused(void **state)
{
    char out[64];

    (void)state;
    for (size_t piece = 1; piece <= 24; piece++) {
        assert_int_equal(split_text("a\n12345678\nb\n", piece, 32, '\n', true, 8, out), 0);
        assert_string_equal(out, "a|12345678|b|");
        assert_int_equal(split_text("a\n12345678\r\nb", piece, 32, '\n', true, 8, out), 0);
        assert_string_equal(out, "a|12345678|b|");
        assert_int_equal(split_text("a\n12345678", piece, 32, '\n', true, 8, out), 0);
        assert_int_equal(split_text("a\n123456789\nb\n", piece, 32, '\n', true, 8, out), -EMSGSIZE);
        assert_string_equal(out, "a|");
        assert_int_equal(split_text("a\n123456789", piece, 32, '\n', true, 8, out), -EMSGSIZE);
        assert_int_equal(split_text("a\n12345678\r", piece, 32, '\n', true, 8, out), -EMSGSIZE);
        assert_int_equal(split_text("a\n123456789abcdefghijkl", piece, 16, '\n', true, 0, out),
                         -EMSGSIZE);
        assert_string_equal(out, "a|");
    }
}

/* An endless line costs no more than the buffer, and can be passed over. */
static void one_goes_on_behind_a_line_that_is_too_long(void **state)
{
    static char text[20000];
    blz_rt *rt = new_embedded_rt();
    struct script script;
    blz_reader reader;
    blz_split lines;
    blz_handle task;
    char out[64];

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 10, "\nback\n", 7);
    script = script_of(text, 1000);
    assert_int_equal(blz_reader_init_with(&reader, script_stream(&script), 256, test_memory()), 0);
    blz_lines_init(&lines, &reader, 100);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, takes, .split = &lines, .text = out), 0);
    assert_int_equal(FINISH(rt, &task), -EMSGSIZE);
    assert_true(script.at <= 1000);
    assert_int_equal(AWAIT(rt, blz_reader_skip_until(&reader, '\n')), 1);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, takes, .split = &lines, .text = out), 0);
    assert_int_equal(FINISH(rt, &task), 0);
    assert_string_equal(out, "back|");
    blz_reader_free(&reader);
    free_rt(rt);
}

static void a_cancelled_wait_for_a_line_loses_nothing(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_stream a, b;
    blz_stream_op op = {0};
    blz_reader reader;
    blz_split lines;
    blz_view line;
    blz_handle waiting;
    char memory[32];

    (void)state;
    assert_int_equal(blz_stream_pair(&a, &b, 16, test_memory()), 0);
    assert_int_equal(blz_reader_init(&reader, a, memory, sizeof memory), 0);
    blz_lines_init(&lines, &reader, 0);
    assert_false(blz_split_next(&lines, &line));
    for (int i = 0; i < 3; i++) {
        START(rt, &waiting, blz_split_more(&lines));
        assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "ab", 2)), 2);
        turn_all(rt);
        assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
        assert_false(blz_split_next(&lines, &line));
    }
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "\nrest", 5)), 5);
    assert_int_equal(AWAIT(rt, blz_split_more(&lines)), 1);
    assert_true(blz_split_next(&lines, &line));
    assert_int_equal(line.len, 6);
    assert_memory_equal(line.data, "ababab", 6);
    assert_false(blz_split_next(&lines, &line));
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &b)), 0);
    assert_int_equal(AWAIT(rt, blz_split_more(&lines)), 1);
    assert_true(blz_split_next(&lines, &line));
    assert_memory_equal(line.data, "rest", 4);
    assert_int_equal(AWAIT(rt, blz_split_more(&lines)), 0);
    blz_stream_close(&a);
    blz_stream_close(&b);
    blz_reader_free(&reader);
    free_rt(rt);
}

/* A terminal's end is not for ever. */
static void lines_go_on_if_the_stream_does(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of("one\ntwo\n", 8);
    blz_reader reader;
    blz_split lines;
    blz_handle task;
    char memory[32], out[32];

    (void)state;
    script.len = 6;
    assert_int_equal(blz_reader_init(&reader, script_stream(&script), memory, sizeof memory), 0);
    blz_lines_init(&lines, &reader, 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, takes, .split = &lines, .text = out), 0);
    assert_int_equal(FINISH(rt, &task), 0);
    assert_string_equal(out, "one|tw|");
    script.len = 8;
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, takes, .split = &lines, .text = out), 0);
    assert_int_equal(FINISH(rt, &task), 0);
    assert_string_equal(out, "o|");
    free_rt(rt);
}

/* Against a simple loop: dense and sparse matches, all lengths, from anywhere. */
static void scanning_finds_what_a_simple_loop_finds(void **state)
{
    char text[400];
    uint64_t seed = 3;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t len = random_below(&seed, sizeof text), found[BLZ_READER_FOUND], to;
        size_t from = random_below(&seed, (uint32_t)len + 1), at = from;
        uint32_t density = 1 + random_below(&seed, 90);
        unsigned count = 99;
        for (size_t i = 0; i < len; i++)
            text[i] = random_below(&seed, density) == 0 ? '\n' : 'x';
        to = blz__scan(text, from, len, '\n', found, &count);
        for (unsigned i = 0; i < count; i++, at++) {
            while (at < len && text[at] != '\n')
                at++;
            assert_int_equal(found[i], at);
        }
        assert_true(count <= BLZ_READER_FOUND && to <= len && to >= at);
        assert_true(count == BLZ_READER_FOUND || to == len);
        for (; at < to; at++)
            assert_true(text[at] != '\n');
    }
}

/* Many short lines: more than are looked for in one go, across the blocks of the search. */
static void many_lines_come_out(void **state)
{
    static char text[4000], out[8000], parts[8000];
    size_t len = 0, parts_len = 0;
    uint64_t seed = 9;

    (void)state;
    while (len < 3900) {
        size_t n = random_below(&seed, 7) ? random_below(&seed, 4) : random_below(&seed, 200);
        memset(text + len, 'a' + (int)(len % 26), n);
        memset(parts + parts_len, 'a' + (int)(len % 26), n);
        len += n;
        parts_len += n;
        text[len++] = '\n';
        parts[parts_len++] = '|';
    }
    for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
        assert_int_equal(split_text(text, piece, 512, '\n', true, 0, out), 0);
        assert_string_equal(out, parts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_come_out_in_every_division),
        TEST(other_bytes_split_as_well),
        TEST(a_line_that_is_too_long_is_refused),
        TEST(one_goes_on_behind_a_line_that_is_too_long),
        TEST(a_cancelled_wait_for_a_line_loses_nothing),
        TEST(lines_go_on_if_the_stream_does),
        TEST(scanning_finds_what_a_simple_loop_finds),
        TEST(many_lines_come_out),
    };
    return RUN_TESTS(tests);
}
