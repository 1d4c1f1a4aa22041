/* SPDX-License-Identifier: Apache-2.0 */
/* Models name their drivers; there is none to choose from. */
#include "sched/sched.h"

#include <errno.h>

int blz__io_choose(const blz_options *options, const blz__driver_ops **ops, blz__driver **drivers,
                   char *reason, size_t size)
{
    (void)options;
    (void)ops;
    (void)drivers;
    (void)reason;
    (void)size;
    return -ENOTSUP;
}
