/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of a channel that was never made, or that was dropped. */
#ifndef BLZ_CHANNEL_HANDLE_H
#define BLZ_CHANNEL_HANDLE_H

#include "base/panic.h"

#include <blitz/base.h>

/* `channel` is what the handle points to, `kind` what it should be: "a channel". */
static inline void check_handle(const void *channel, const char *kind)
{
    if (blz_unlikely(!channel))
        blz__panic("a handle of %s is all zero: it was never made, or it was dropped", kind);
}

#endif
