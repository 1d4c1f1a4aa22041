/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell: a place for a value that is overwritten while others read it, without a lock.
 *
 * Each value has a number. Writers take turns: they say which number they begin with, then write.
 * A reader knows, from the word that its owner publishes after the write, that value n is in the
 * cell, or was. It copies, and looks at the number afterwards: if that is still n, nobody had begun
 * with another value when the last word was copied, and what it has is value n, whole. Otherwise
 * it has rubbish, and knows.
 *
 * The content is read and written word by word with atomics, so that there is no data race. Each
 * word is written with release and read with acquire: who reads a word of a later value then also
 * sees that value's number. On x86 these are plain moves; the fence that is usual in their place is
 * one that the thread sanitizer does not understand.
 */
#ifndef BLZ_CHANNEL_CELL_H
#define BLZ_CHANNEL_CELL_H

#include "base/atomic.h"

#include <string.h>

typedef struct cell {
    uint64_t number; /* 0: nothing yet */
    uint64_t words[];
} cell;

static inline size_t cell_size(size_t size)
{
    return sizeof(cell) + (size + 7) / 8 * 8;
}

/* Of the last word of a value, what is not part of it stays zero. */
static inline void cell_put_word(cell *c, size_t i, const void *value, size_t bytes)
{
    uint64_t word = 0;

    memcpy(&word, (const char *)value + 8 * i, bytes);
    blz__store(&c->words[i], word, RELEASE); /* the number; pairs with cell_get_word */
}

static inline void cell_get_word(const cell *c, size_t i, void *value, size_t bytes)
{
    uint64_t word = blz__load(&c->words[i], ACQUIRE); /* pairs with cell_put_word */

    memcpy((char *)value + 8 * i, &word, bytes);
}

/* [one at a time] */
static inline void cell_write(cell *c, uint64_t number, const void *value, size_t size)
{
    blz__store(&c->number, number, RELAXED); /* published by each of the words */
    for (size_t i = 0; i < size / 8; i++)
        cell_put_word(c, i, value, 8);
    if (size % 8)
        cell_put_word(c, size / 8, value, size % 8);
}

/* True: *value is value number `number`. False: that has been overwritten. [any thread] */
static inline bool cell_read(const cell *c, uint64_t number, void *value, size_t size)
{
    for (size_t i = 0; i < size / 8; i++)
        cell_get_word(c, i, value, 8);
    if (size % 8)
        cell_get_word(c, size / 8, value, size % 8);
    return blz__load(&c->number, RELAXED) == number; /* after the words, by their acquires */
}

#endif
