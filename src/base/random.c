/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes for programs. */
#include <blitz/random.h>

#include "system/random.h"

int blz_random_bytes(void *buf, size_t len)
{
    return blz__random_bytes(buf, len);
}
