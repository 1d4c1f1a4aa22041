/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of the small Redis: requests one behind the other, the same ones however the bytes are
 * cut and however small the array for their words is at first; and its patterns, against a table.
 */
#include "fuzz.h"

#include "glob.h"
#include "resp.h"

/* ---- requests ---- */

enum { MAX_WORDS = 4096, MAX_STEPS = 512, ALL_CUTS = 128 };

/* What came out: all words one behind the other, and where each request ended. */
struct outcome {
    char *words;
    size_t len;
    uint32_t ends[MAX_STEPS];
    uint32_t nr_words[MAX_STEPS];
    int count, rc;
};

struct feed {
    char *buf; /* of the stream, from the first byte; the parser changes lines in place */
    size_t begin, given, size;
    struct resp_request request;
    uint32_t first_room;
    struct outcome *outcome;
};

static void begin_request(struct feed *f)
{
    free(f->request.args);
    f->request = (struct resp_request){.room = f->first_room};
    f->request.args = calloc(f->first_room ? f->first_room : 1, sizeof *f->request.args);
    require(f->request.args);
}

static void grow(struct feed *f)
{
    uint32_t room = f->request.room * 2 + 1;

    require(f->request.nr_args == f->request.room && room <= 2 * RESP_ARGS_MAX + 1);
    f->request.args = realloc(f->request.args, room * sizeof *f->request.args);
    require(f->request.args);
    f->request.room = room;
}

static void take(struct feed *f)
{
    const struct resp_request *r = &f->request;
    struct outcome *o = f->outcome;

    require(r->at > 0 && r->at <= f->given - f->begin);
    for (uint32_t i = 0; i < r->nr_args; i++) {
        require((size_t)r->args[i].at + r->args[i].len <= r->at);
        memcpy(o->words + o->len, f->buf + f->begin + r->args[i].at, r->args[i].len);
        o->len += r->args[i].len;
    }
    o->nr_words[o->count] = r->nr_args;
    f->begin += r->at;
    o->ends[o->count++] = (uint32_t)f->begin;
}

/* In a block that ends where the bytes do; the line that it may have changed is copied back. */
static int parse(struct feed *f)
{
    size_t len = f->given - f->begin;
    char *exact = exact_copy(f->buf + f->begin, len, 0);
    int rc = resp_parse(&f->request, exact, len);

    memcpy(f->buf + f->begin, exact, len);
    free(exact);
    return rc;
}

/* All requests in what has come. False: it is over. */
static bool drain(struct feed *f)
{
    while (f->outcome->count < MAX_STEPS) {
        int rc = parse(f);
        if (rc == RESP_FULL) {
            grow(f);
        } else if (rc == RESP_READY) {
            take(f);
            begin_request(f);
        } else {
            f->outcome->rc = rc;
            require(rc == RESP_MORE || (rc < 0 && *resp_error(rc)));
            return rc == RESP_MORE;
        }
    }
    return false;
}

static struct outcome run(const uint8_t *data, size_t size, size_t first, size_t piece,
                          uint32_t room)
{
    struct outcome o = {.words = malloc(size + 1)};
    struct feed f = {.buf = exact_copy(data, size, 0), .size = size, .outcome = &o};
    bool goes_on = true;

    require(o.words);
    f.first_room = room;
    begin_request(&f);
    for (size_t n = first; f.given < size && goes_on; n = piece) {
        f.given += n < size - f.given ? n : size - f.given;
        goes_on = drain(&f);
        if (goes_on)
            require(resp_missing(&f.request, f.given - f.begin) >= 1);
    }
    free(f.request.args);
    free(f.buf);
    return o;
}

static void check_same(const struct outcome *a, struct outcome b)
{
    require(a->rc == b.rc && a->count == b.count && a->len == b.len);
    require(memcmp(a->words, b.words, b.len) == 0);
    require(memcmp(a->ends, b.ends, sizeof *a->ends * (size_t)b.count) == 0);
    require(memcmp(a->nr_words, b.nr_words, sizeof *a->nr_words * (size_t)b.count) == 0);
    free(b.words);
}

static void check_requests(const uint8_t *data, size_t size)
{
    struct outcome whole = run(data, size, size, 1, MAX_WORDS);

    check_same(&whole, run(data, size, size, 1, 0));
    check_same(&whole, run(data, size, 1, 1, 1));
    for (size_t cut = 1; cut < size; cut += 1 + size / ALL_CUTS)
        check_same(&whole, run(data, size, cut, size, 3));
    free(whole.words);
}

/* ---- patterns ---- */

enum { MAX_PATTERN = 64, MAX_TEXT = 64 };

/* A star, or a set of characters. */
struct part {
    bool star;
    bool has[256];
};

static size_t read_class(struct part *part, const char *text, size_t len)
{
    size_t at = 0;
    bool negative = len > 0 && text[0] == '^';

    for (at = negative; at < len && text[at] != ']';) {
        at += text[at] == '\\' && at + 1 < len;
        unsigned low = (unsigned char)text[at++], high = low;
        if (at + 1 < len && text[at] == '-') {
            high = (unsigned char)text[at + 1];
            at += 2;
        }
        for (unsigned c = low < high ? low : high; c <= (low < high ? high : low); c++)
            part->has[c] = true;
    }
    for (unsigned c = 0; negative && c < 256; c++)
        part->has[c] = !part->has[c];
    return at < len ? at + 1 : at;
}

static int read_pattern(struct part *parts, const char *text, size_t len)
{
    int count = 0;

    for (size_t at = 0; at < len;) {
        struct part *part = &parts[count++];
        char c = text[at++];
        memset(part, 0, sizeof *part);
        if (c == '*')
            part->star = true;
        else if (c == '?')
            memset(part->has, true, sizeof part->has);
        else if (c == '[')
            at += read_class(part, text + at, len - at);
        else
            part->has[(unsigned char)(c == '\\' && at < len ? text[at++] : c)] = true;
    }
    return count;
}

/* can[i]: the first i characters match the parts so far. */
static bool simple_match(const char *pattern, size_t pattern_len, const char *text, size_t len)
{
    static struct part parts[MAX_PATTERN];
    bool can[MAX_TEXT + 1] = {true};
    int count = read_pattern(parts, pattern, pattern_len);

    for (int p = 0; p < count; p++) {
        if (parts[p].star) {
            for (size_t i = 1; i <= len; i++)
                can[i] |= can[i - 1];
            continue;
        }
        for (size_t i = len; i > 0; i--)
            can[i] = can[i - 1] && parts[p].has[(unsigned char)text[i - 1]];
        can[0] = false;
    }
    return can[len];
}

static void check_pattern(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    size_t wanted = take_byte(&in) % MAX_PATTERN, n = wanted < in.size ? wanted : in.size;
    size_t len = in.size - n < MAX_TEXT ? in.size - n : MAX_TEXT;
    char *pattern = exact_copy(in.data, n, 0), *text = exact_copy(in.data + n, len, 0);

    require(glob_match(pattern, n, text, len) == simple_match(pattern, n, text, len));
    free(pattern);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_requests(data, size);
    check_pattern(data, size);
    return 0;
}
