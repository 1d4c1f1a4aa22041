/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking pool: an empty function, one at a time, and many at once. */
#include "bench.h"

#include <stdlib.h>

static int64_t nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* ---- one at a time ---- */

struct blocking_one_by_one {
    BLZ_FRAME;
    struct run *run;
    uint64_t i;
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(blocking_one_by_one)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        BLZ_AWAIT(self->rc, blz_blocking(&self->op, nothing, NULL));
        bench_check(self->rc, "blocking");
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void blocking_seq(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, blocking_one_by_one, .run = run), "blocking_seq");
}

/* ---- all at once, then awaited in order ---- */

struct blocking_all {
    BLZ_FRAME;
    struct run *run;
    blz_blocking_op *ops;
    uint64_t i;
    int64_t rc;
};

BLZ_ASYNC(blocking_all)
{
    BLZ_BEGIN;
    bench_start(self->run);
    self->ops = malloc(self->run->n * sizeof *self->ops);
    bench_check(self->ops ? 0 : -ENOMEM, "operations");
    for (uint64_t i = 0; i < self->run->n; i++)
        bench_check(blz_blocking_start(&self->ops[i], nothing, NULL, NULL), "start");
    for (self->i = 0; self->i < self->run->n; self->i++)
        BLZ_AWAIT(self->rc, blz_blocking_join(&self->ops[self->i]));
    free(self->ops);
    bench_stop(self->run);
    BLZ_END(0);
}

static void blocking_batch(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, blocking_all, .run = run), "blocking_batch");
}

const struct bench blocking_benches[] = {
    {"blocking_seq", 50000, blocking_seq, false},
    {"blocking_batch", 10000, blocking_batch, false},
    {NULL, 0, NULL, false},
};
