/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: bytes that grow, and what Redis puts into them.
 *
 * When there is no memory for a reply, or none left in the budget, or it is longer than any may be,
 * the bytes are `failed` and take no more. So a command writes its reply without looking, and the
 * connection asks once.
 */
#ifndef REDIS_REPLY_H
#define REDIS_REPLY_H

#include "budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BYTES_MAX = 128 << 20 }; /* of a reply, or of a request and what follows it */

struct bytes {
    char *data; /* NULL: no memory held */
    size_t len, size;
    bool failed;
    struct budget *budget; /* that the memory is taken from; NULL: what is soon freed */
};

/* Room for `len` more, which the caller then writes at data + len. False: failed. */
bool bytes_reserve(struct bytes *bytes, size_t len);
void bytes_add(struct bytes *bytes, const void *data, size_t len);
void bytes_print(struct bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Forgets all of it; keeps the memory if that is not much, for the next time. */
void bytes_clear(struct bytes *bytes);
void bytes_free(struct bytes *bytes);

/* Adds a text that is known when it is compiled. */
#define bytes_text(bytes, text) bytes_add((bytes), (text), sizeof(text) - 1)

/* Digits of a number and its sign; no more than 20. Returns how many. */
size_t format_int(char digits[24], int64_t n);

/* ---- Replies; `proto` is 2 or 3 where the two versions of the protocol differ ---- */

void reply_ok(struct bytes *out);
void reply_simple(struct bytes *out, const char *text);
/* `text` begins with its kind: "ERR syntax error". Control characters in it become spaces. */
void reply_error(struct bytes *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_int(struct bytes *out, int64_t n);
void reply_bulk(struct bytes *out, const void *data, size_t len);
void reply_text(struct bytes *out, const char *text);
void reply_null(struct bytes *out, int proto);

/* Heads of what is made of several; the parts follow. A map of RESP2 is an array. */
void reply_array(struct bytes *out, size_t nr);
void reply_map(struct bytes *out, int proto, size_t nr_pairs);
void reply_push(struct bytes *out, int proto, size_t nr);

#endif
