/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes by getrandom(2). */
#include "system/random.h"

#include "system/clock.h"
#include "system/env.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int blz__random_bytes(void *buf, size_t len)
{
    char *at = buf;

    while (len > 0) {
        ssize_t n = getrandom(at, len, GRND_NONBLOCK);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

uint64_t blz__random_seed(void)
{
    uint64_t seed;

    if (blz__random_bytes(&seed, sizeof seed) < 0)
        seed = (uint64_t)blz__clock_ns() ^ (uint64_t)blz__env_pid() << 32;
    return seed;
}
