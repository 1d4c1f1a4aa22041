/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An async function to walk through with gdb. run.py breaks at the lines that are marked and checks
 * where `next` goes from there.
 */
#include "hand.h"

struct walker {
    BLZ_FRAME;
    int i;
    int sum;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(walker)
{
    BLZ_BEGIN;
    self->sum = 0; /* start */
    for (self->i = 0; self->i < 2; self->i++) {
        self->sum += same_number(self->i);            /* top */
        BLZ_AWAIT(self->rc, blz_ready(&self->op, 5)); /* ready */
        self->sum += (int)self->rc;                   /* after ready */
        BLZ_AWAIT(self->rc, blz_yield(&self->op));    /* suspends */
        self->sum += 100;                             /* resumed */
    }
    {
        int local = self->sum * 2; /* local */
        self->sum = local;         /* after local */
    }
    BLZ_END(self->sum); /* end */
}

int main(void)
{
    return RUN_IT(walker) != 2 * (0 + 5 + 100 + 1 + 5 + 100);
}
