/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See resp.h. An array is taken word by word: `at` stands before a length or, once that is known
 * (`begun`), before the bytes of the word; so no byte of a word is looked at twice, however small
 * the pieces are in which it comes. A line is searched for its end from where the last search
 * stopped, and split when it is whole.
 *
 * Everything is compared with what is left of the buffer (len - at) before it is added to `at`, so
 * that no sum can overflow: `at` never exceeds `len`.
 */
#include "resp.h"

#include <stdbool.h>
#include <string.h>

/* ---- numbers ---- */

/* The number in text[0..len), from -1 to `max`. False: none, or out of range. */
static bool parse_length(const char *text, size_t len, int32_t max, int32_t *n)
{
    int64_t value = 0;

    if (len == 2 && memcmp(text, "-1", 2) == 0) {
        *n = -1;
        return true;
    }
    if (len == 0 || len > 10)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (text[i] - '0');
    }
    *n = (int32_t)(value <= max ? value : 0);
    return value <= max;
}

/* The length behind a '*' or '$' at `at`, up to the end of its line; then `at` is behind that. */
static int take_length(struct resp_request *r, const char *buf, size_t len, int32_t max, int bad)
{
    const char *line = buf + r->at + 1;
    size_t left = len - r->at - 1;
    const char *end = memchr(line, '\n', left < RESP_LENGTH_MAX ? left : RESP_LENGTH_MAX);

    if (!end)
        return left < RESP_LENGTH_MAX ? RESP_MORE : bad;
    if (end == line || end[-1] != '\r' ||
        !parse_length(line, (size_t)(end - line) - 1, max, &r->word))
        return bad;
    r->at += (uint32_t)(end - line) + 2;
    return RESP_READY;
}

/* ---- arrays ---- */

static int begin_array(struct resp_request *r, const char *buf, size_t len)
{
    int rc = take_length(r, buf, len, RESP_ARGS_MAX, RESP_BAD_COUNT);

    if (rc == RESP_READY) {
        r->in_array = true;
        r->missing = r->word > 0 ? (uint32_t)r->word : 0;
    }
    return rc;
}

static int begin_word(struct resp_request *r, const char *buf, size_t len)
{
    int rc;

    if (r->at == len)
        return RESP_MORE;
    if (buf[r->at] != '$')
        return RESP_BAD_TYPE;
    rc = take_length(r, buf, len, RESP_WORD_MAX, RESP_BAD_LENGTH);
    if (rc != RESP_READY)
        return rc;
    if (r->word < 0)
        return RESP_BAD_LENGTH;
    if (r->at > RESP_REQUEST_MAX - 2 || (uint32_t)r->word > RESP_REQUEST_MAX - 2 - r->at)
        return RESP_LONG_REQUEST;
    r->begun = true;
    return RESP_READY;
}

static int take_word(struct resp_request *r, const char *buf, size_t len)
{
    uint32_t word;
    int rc;

    if (r->nr_args == r->room)
        return RESP_FULL;
    if (!r->begun && (rc = begin_word(r, buf, len)) != RESP_READY)
        return rc;
    word = (uint32_t)r->word;
    if (len - r->at < word + 2u)
        return RESP_MORE;
    if (buf[r->at + word] != '\r' || buf[r->at + word + 1] != '\n')
        return RESP_BAD_END;
    r->args[r->nr_args++] = (struct resp_span){r->at, word};
    r->at += word + 2;
    r->begun = false;
    r->missing--;
    return RESP_READY;
}

/* ---- lines ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands for a backslash and what follows it, within "": how many bytes that is, and *c. */
static size_t unescape(const char *text, size_t len, char *c)
{
    static const char names[] = "nrtba", meanings[] = "\n\r\t\b\a";
    const char *name;

    if (len >= 4 && text[1] == 'x' && hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0) {
        *c = (char)(hex_digit(text[2]) * 16 + hex_digit(text[3]));
        return 4;
    }
    name = text[1] ? strchr(names, text[1]) : NULL;
    *c = name ? meanings[name - names] : text[1];
    return 2;
}

/*
 * A quoted part of a word, from the quote at *from: moves what it means to *to, which is not behind
 * it. False: it does not end, or goes on without a space.
 */
static bool take_quoted(char *line, size_t len, size_t *from, size_t *to)
{
    char quote = line[(*from)++], c;

    while (*from < len && line[*from] != quote) {
        size_t left = len - *from, used = 1;
        c = line[*from];
        if (c == '\\' && left >= 2) {
            if (quote == '"')
                used = unescape(line + *from, left, &c);
            else if (line[*from + 1] == '\'')
                used = 2, c = '\'';
        }
        *from += used;
        line[(*to)++] = c;
    }
    if (*from == len)
        return false;
    (*from)++;
    return *from == len || is_space(line[*from]);
}

/* One word of a line. False: its quotes are wrong. */
static bool split_word(char *line, size_t len, size_t *from, struct resp_span *word)
{
    size_t to = *from;

    word->at = (uint32_t)*from;
    while (*from < len && !is_space(line[*from])) {
        if (line[*from] == '"' || line[*from] == '\'') {
            if (!take_quoted(line, len, from, &to))
                return false;
            break;
        }
        line[to++] = line[(*from)++];
    }
    word->len = (uint32_t)to - word->at;
    return true;
}

/* Where there is no room for a word, the next call goes on with it: those before are taken. */
static int split_line(struct resp_request *r, char *buf, size_t end)
{
    size_t from = r->at;

    while (from < end) {
        if (is_space(buf[from])) {
            from++;
            continue;
        }
        if (r->nr_args == r->room)
            return RESP_FULL;
        if (!split_word(buf, end, &from, &r->args[r->nr_args]))
            return RESP_BAD_QUOTES;
        r->nr_args++;
        r->at = (uint32_t)from;
    }
    r->at = (uint32_t)end + 1;
    return RESP_READY;
}

/* `scanned` is where the line ends, once that is known: there is no other line feed before. */
static int take_line(struct resp_request *r, char *buf, size_t len)
{
    size_t max = len < RESP_LINE_MAX ? len : RESP_LINE_MAX;
    const char *end = memchr(buf + r->scanned, '\n', max - r->scanned);

    if (end) {
        r->scanned = (uint32_t)(end - buf);
        return split_line(r, buf, r->scanned);
    }
    r->scanned = (uint32_t)max;
    return max == RESP_LINE_MAX ? RESP_LONG_LINE : RESP_MORE;
}

/* ---- all of it ---- */

int resp_parse(struct resp_request *r, char *buf, size_t len)
{
    int rc = RESP_READY;

    if (len == 0)
        return RESP_MORE;
    if (!r->in_array) {
        /* A line may begin with a '*' after its first word, "*", has lost its quotes. */
        if (r->at > 0 || buf[0] != '*')
            return take_line(r, buf, len);
        rc = begin_array(r, buf, len);
    }
    while (rc == RESP_READY && r->missing > 0)
        rc = take_word(r, buf, len);
    return rc;
}

size_t resp_missing(const struct resp_request *r, size_t len)
{
    size_t need = r->begun ? r->at + (size_t)r->word + 2 : 0;

    return need > len ? need - len : 1;
}

const char *resp_error(int rc)
{
    switch (rc) {
    case RESP_BAD_COUNT:
        return "Protocol error: invalid multibulk length";
    case RESP_BAD_LENGTH:
        return "Protocol error: invalid bulk length";
    case RESP_BAD_TYPE:
        return "Protocol error: expected '$'";
    case RESP_BAD_END:
        return "Protocol error: expected CRLF behind a bulk";
    case RESP_BAD_QUOTES:
        return "Protocol error: unbalanced quotes in request";
    case RESP_LONG_LINE:
        return "Protocol error: too big inline request";
    case RESP_LONG_REQUEST:
        return "Protocol error: too big request";
    default:
        return "Protocol error";
    }
}
