/* SPDX-License-Identifier: Apache-2.0 */
/* Front door of src/par. What other modules need is public, but for this. */
#ifndef BLZ_PAR_PAR_H
#define BLZ_PAR_PAR_H

#include <blitz/base.h>

struct blz_pool;

/* The default pool, if somebody has asked for it before; else NULL. [any thread] */
struct blz_pool *blz__pool_default_if_any(void);

#endif
