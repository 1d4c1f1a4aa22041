/* SPDX-License-Identifier: Apache-2.0 */
/* Where a channel keeps its messages: in a ring, or in a chain. */
#ifndef BLZ_CHANNEL_STORE_H
#define BLZ_CHANNEL_STORE_H

#include "channel/chain.h"
#include "channel/ring.h"

static inline void store_publish(blz_channel *ch, blz_slot_ slot)
{
    if (is_unbounded(ch))
        chain_publish(ch, slot);
    else
        ring_publish(ch, slot);
}

static inline blz_slot_ store_take(blz_channel *ch)
{
    return is_unbounded(ch) ? chain_take(ch) : ring_take(ch);
}

/* The caller looks after senders that wait, and after segments that are to be freed. */
static inline void store_release(blz_channel *ch, blz_slot_ slot)
{
    if (is_unbounded(ch))
        chain_release(ch, slot);
    else
        ring_release(ch, slot);
}

#endif
