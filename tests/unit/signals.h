/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions to signals. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include "io_fixture.h"

static inline blz_signal subscribed(int signal)
{
    blz_signal sub;

    check(blz_signal_open(&sub, signal) == 0);
    return sub;
}

static inline int64_t received(blz_signal *sub)
{
    int64_t count = blz_signal_try_recv(sub, NULL);

    check(count != 0); /* none is -EAGAIN */
    return count == -EAGAIN ? 0 : count;
}

#endif
