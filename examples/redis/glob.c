/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See glob.h. Where there are several stars only the last one can be of use: if what follows it
 * does not match here, it takes one more character, and those before it need not be tried again. So
 * there is nothing to recurse into, and no pattern takes exponential time.
 */
#include "glob.h"

/* One of [...], from behind the bracket: whether `c` is in it; *at is behind its end. */
static bool match_class(const char *pattern, size_t len, size_t *at, char c)
{
    bool negative = *at < len && pattern[*at] == '^', found = false;
    unsigned char byte = (unsigned char)c;

    *at += negative;
    while (*at < len && pattern[*at] != ']') {
        unsigned char low, high;
        if (pattern[*at] == '\\' && *at + 1 < len)
            ++*at;
        low = high = (unsigned char)pattern[(*at)++];
        if (*at + 1 < len && pattern[*at] == '-') {
            high = (unsigned char)pattern[*at + 1];
            *at += 2;
        }
        if (low > high) {
            unsigned char swap = low;
            low = high;
            high = swap;
        }
        found |= byte >= low && byte <= high;
    }
    if (*at < len)
        ++*at; /* the bracket; one that is missing is taken for granted */
    return found != negative;
}

/* One part of the pattern that is not a star, and one character; *at is behind the part. */
static bool match_one(const char *pattern, size_t len, size_t *at, char c)
{
    char part = pattern[(*at)++];

    if (part == '?')
        return true;
    if (part == '[')
        return match_class(pattern, len, at, c);
    if (part == '\\' && *at < len)
        part = pattern[(*at)++];
    return part == c;
}

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len)
{
    size_t at = 0, i = 0, star = 0, taken = 0; /* behind the last star; where it has got to */
    bool has_star = false;

    while (i < len || at < pattern_len) {
        if (at < pattern_len && pattern[at] == '*') {
            has_star = true;
            star = ++at;
            taken = i;
        } else if (i < len && at < pattern_len && match_one(pattern, pattern_len, &at, text[i])) {
            i++;
        } else if (has_star && taken < len) {
            i = ++taken;
            at = star;
        } else {
            return false;
        }
    }
    return true;
}
