/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fuzz targets share. A target is one file, NAME_fuzz.c, that defines LLVMFuzzerTestOneInput
 * and calls require() for what must hold whatever the input is. It is built twice: with libFuzzer
 * (tools/fuzz), which invents inputs, and with driver.c, which feeds those of corpus/NAME and is an
 * ordinary unit test.
 *
 * What is parsed lies in a block of exactly its size, so that a sanitizer sees every step beyond.
 */
#ifndef BLZ_TESTS_FUZZ_H
#define BLZ_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition)                                                                 \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

/* A copy that ends with its memory; a string if `nul`. For free(). */
static inline char *exact_copy(const void *data, size_t size, int nul)
{
    char *copy = calloc(1, size + (nul ? 1 : size == 0));

    require(copy);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* Takes what a test is about from the front of its input; zeros when there is no more. */
struct input {
    const uint8_t *data;
    size_t size;
};

static inline uint8_t take_byte(struct input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

static inline uint64_t take_number(struct input *in, int bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0)
        value = value << 8 | take_byte(in);
    return value;
}

#endif
