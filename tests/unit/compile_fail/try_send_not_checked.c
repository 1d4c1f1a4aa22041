/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message that may not have been sent: the result of try_send is not looked at.
 *
 * gcc -O0:   warning: ignoring return value of .jobs_try_send. declared with attribute
 * gcc -O2:   warning: ignoring return value of .jobs_try_send. declared with attribute
 * clang -O0: warning: ignoring return value of function declared with 'warn_unused_result'
 * clang -O2: warning: ignoring return value of function declared with 'warn_unused_result'
 */
#include "case.h"
#include <blitz/channel.h>

BLZ_CHANNEL(jobs, int)

struct offers {
    BLZ_FRAME;
    jobs_sender tx;
};

BLZ_ASYNC(offers)
{
    BLZ_BEGIN;
#ifdef BAD
    jobs_try_send(&self->tx, 1);
#else
    if (jobs_try_send(&self->tx, 1) < 0)
        use_number(1);
    blz_ignore(jobs_try_send(&self->tx, 2));
#endif
    BLZ_END(0);
}
SPAWN_IT(offers)
