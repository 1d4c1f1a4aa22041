/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns as Redis has them: ? is any character, * any number of them, [a-z] and [^a-z] one of
 * some, and a backslash takes the meaning from what follows.
 */
#ifndef REDIS_GLOB_H
#define REDIS_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether all of `text` matches. Takes time proportional to both lengths multiplied, at worst. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len);

#endif
