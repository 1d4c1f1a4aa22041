/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a pool: what the program says, then the environment, then the defaults. */
#include "par/pool.h"
#include "system/cpu.h"
#include "system/env.h"

#include <blitz/error.h>
#include <stdlib.h>

enum { DEFAULT_RING_SIZE = 4096, MAX_RING_SIZE = 1 << 24, DEFAULT_GUESTS = 8 };

static bool are_valid(const blz_pool_options *o)
{
    return o->threads <= BLZ_POOL_MAX_THREADS && o->guests <= BLZ_POOL_MAX_THREADS &&
           o->threads + o->guests <= BLZ_POOL_MAX_THREADS && o->ring_size <= MAX_RING_SIZE &&
           (o->ring_size & (o->ring_size - 1)) == 0 && (unsigned)o->waiting <= BLZ_PAR_WAIT_BLOCK &&
           (unsigned)o->spin <= BLZ_POOL_SPIN_LONG;
}

/* From BLZ_POOL_THREADS, or the CPUs of this process. */
static int resolve_threads(blz_pool_options *o)
{
    const char *text = blz__env_get("BLZ_POOL_THREADS");
    unsigned most = BLZ_POOL_MAX_THREADS - o->guests;
    long threads = 0;
    char *end;

    if (text && *text) {
        errno = 0;
        threads = strtol(text, &end, 10);
        if (*end != '\0' || errno == ERANGE || threads < 0 || threads > (long)most)
            return -EINVAL;
    }
    o->threads = threads ? (unsigned)threads : blz__cpu_count();
    if (o->threads > most)
        o->threads = most;
    return 0;
}

int blz__par_options_resolve(blz_pool_options *options, const blz_pool_options *given)
{
    *options = given ? *given : (blz_pool_options){0};
    if (!are_valid(options))
        return -EINVAL;
    if (options->ring_size == 0)
        options->ring_size = DEFAULT_RING_SIZE;
    if (options->guests == 0)
        options->guests = DEFAULT_GUESTS;
    if (options->waiting == BLZ_PAR_WAIT_DEFAULT)
        options->waiting = BLZ_PAR_WAIT_LEAPFROG;
    if (!options->name)
        options->name = "blz-par";
    if (!options->allocator)
        options->allocator = &blz__system_allocator;
    if (options->threads + options->guests > BLZ_POOL_MAX_THREADS ||
        options->guests == BLZ_POOL_MAX_THREADS) /* there is a thread at least */
        return -EINVAL;
    return options->threads ? 0 : resolve_threads(options);
}
