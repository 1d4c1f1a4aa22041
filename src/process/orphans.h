/* SPDX-License-Identifier: Apache-2.0 */
/* The orphans of the process: see orphans.c. */
#ifndef BLZ_PROCESS_ORPHANS_H
#define BLZ_PROCESS_ORPHANS_H

#include "base/lock.h"

#include <blitz/system.h>

struct orphans {
    blz__lock lock;
    struct blz__child *first;
    blz_sysfd set; /* valid while the thread runs */
    bool runs;
    uint32_t unwatched; /* how many are not in the set; read without the lock as a hint */
};

#endif
