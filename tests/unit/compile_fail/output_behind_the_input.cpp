// SPDX-License-Identifier: Apache-2.0
/*
 * The result of a search behind what is searched: what a function fills in comes first.
 *
 * g++ -O0:     invalid conversion from .size_t. .*to .size_t\*.
 * g++ -O2:     invalid conversion from .size_t. .*to .size_t\*.
 * clang++ -O0: no matching function for call to 'is_zero_find_first'
 * clang++ -O2: no matching function for call to 'is_zero_find_first'
 */
#include <blitz/par_find.h>

BLZ_PAR_DEFINE_PREDICATE(is_zero, const int, v, i, v[i] == 0)

int first_zero(blz_par *par, const int *v, size_t n, size_t *index);
int first_zero(blz_par *par, const int *v, size_t n, size_t *index)
{
#ifdef BAD
    return is_zero_find_first(par, n, v, index, nullptr);
#else
    return is_zero_find_first(par, index, n, v, nullptr);
#endif
}
