/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the cases of this folder. Each is an async function with a mistake that is there if BAD is
 * defined. Its first comment says which compiler must reject it at which optimisation level, and
 * with which words; run.py reads that.
 */
#ifndef CASE_H
#define CASE_H

#include <blitz/async.h>

int next_number(void);
void use_number(int number);

/* So that the function is used. */
#define SPAWN_IT(fn)          \
    int spawn_it(void);       \
    int spawn_it(void)        \
    {                         \
        return BLZ_SPAWN(fn); \
    }

#endif
