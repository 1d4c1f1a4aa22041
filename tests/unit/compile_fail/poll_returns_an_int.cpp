// SPDX-License-Identifier: Apache-2.0
/*
 * A poll function written in C++ that returns an int.
 *
 * g++ -O0:     could not convert .0. from .int. to .blz_poll.
 * g++ -O2:     could not convert .0. from .int. to .blz_poll.
 * clang++ -O0: no viable conversion from returned value of type 'int'
 * clang++ -O2: no viable conversion from returned value of type 'int'
 */
#include <blitz/future.h>

blz_poll poll_it(blz_future *future, blz_cx *cx);
blz_poll poll_it(blz_future *future, blz_cx *cx)
{
    blz_poll child = future->child->ops->poll(future->child, cx);

    if (blz_is_ready(child))
        return BLZ_READY;
#ifdef BAD
    return 0;
#else
    return BLZ_PENDING;
#endif
}
