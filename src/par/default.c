/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default pool. It is made without a lock: threads that ask for it first at the same time make
 * one each, and the one that is late frees its own. A lock could be held by another thread at the
 * moment of a fork, and the child would wait for ever. A child makes a new pool; the parent's stays
 * where it was for those who still have it, and says what it is.
 */
#include "par/par.h"
#include "par/pool.h"

#include "base/shared.h"

blz_pool *blz__pool_default_if_any(void)
{
    blz_pool *pool =
        blz__load(&blz__shared()->default_pool, ACQUIRE); /* pairs with the release below */

    return pool && !pool_is_forked(pool) ? pool : NULL;
}

blz_pool *blz_pool_default(void)
{
    /* acquire: pairs with the release below */
    blz_pool *pool = blz__load(&blz__shared()->default_pool, ACQUIRE), *made;

    if (blz_likely(pool && !pool_is_forked(pool)))
        return pool;
    if (blz_pool_new(&made, NULL) < 0)
        return NULL;
    made->older = pool;
    /* release: pairs with the acquire above; acquire: with the release of who was faster */
    if (blz__cas(&blz__shared()->default_pool, &pool, made, ACQ_REL, ACQUIRE))
        return made;
    blz_pool_free(made);
    return pool;
}
