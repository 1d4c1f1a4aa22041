/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stricter rules hold in async functions only: the same code is fine in the next function.
 *
 * gcc -O0:   switch jumps over variable initialization
 * gcc -O2:   switch jumps over variable initialization
 * clang -O0: variable 'n' may be uninitialized
 * clang -O2: variable 'n' may be uninitialized
 */
#include "case.h"

/* Correct, but not by the rules of an async function. */
#define FLOW(condition)            \
    do {                           \
        int n;                     \
        if (condition)             \
            n = next_number();     \
        switch (next_number()) {   \
        case 0:;                   \
            int m = next_number(); \
            use_number(m);         \
            break;                 \
        case 1:                    \
            break;                 \
        }                          \
        if (condition)             \
            use_number(n);         \
    } while (0)

struct strict {
    BLZ_FRAME;
    int condition;
};

BLZ_ASYNC(strict)
{
    BLZ_BEGIN;
#ifdef BAD
    FLOW(self->condition);
#endif
    BLZ_END(0);
}
SPAWN_IT(strict)

void plain(int condition);
void plain(int condition)
{
    FLOW(condition);
}
