/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator that counts, checks and fails on demand.
 *
 * It fills new memory with rubbish, notices when a block is given back with another size or
 * alignment than it was asked for, or twice, and can be told to fail the nth call from now on.
 */
#ifndef BLZ_TESTS_MEMORY_H
#define BLZ_TESTS_MEMORY_H

#include <blitz/base.h>

struct memory {
    blz_allocator allocator;
    int64_t blocks; /* not given back */
    int64_t bytes;
    int64_t peak_bytes;
    int64_t calls;   /* allocations asked for */
    int64_t fail_at; /* the call that fails; 0: none */
    bool fail_on;    /* and all after it */
    bool failed;     /* one did */
};

void memory_init(struct memory *m);

/* From now on, the nth allocation (1: the next one) fails; `all`: and those after it. 0: none. */
void memory_fail_at(struct memory *m, int64_t n, bool all);

int64_t memory_blocks(const struct memory *m);
int64_t memory_bytes(const struct memory *m);

/* The one whose balance is checked at the end of each test. */
struct memory *the_memory(void);
const blz_allocator *test_memory(void);

#endif
