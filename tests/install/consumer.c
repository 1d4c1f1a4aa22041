/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program by someone who has only the installed tree. The first line it prints is the version;
 * `use_library` does what a first user of the C API would try: an async function that spawns,
 * joins and calls others.
 */
#include <blitz.h>
#include <stdio.h>

struct sum {
    BLZ_FRAME;
    int from, to, i;
    int64_t total, rc;
    blz_future pause;
};

BLZ_ASYNC(sum)
{
    BLZ_BEGIN;
    for (self->i = self->from; self->i < self->to; self->i++) {
        self->total += self->i;
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        if (self->rc < 0)
            goto out;
    }
    self->rc = self->total;
out:
    BLZ_END(self->rc);
}

/* Half of it in another task, half of it here. */
struct both {
    BLZ_FRAME;
    blz_handle left;
    blz_handle_join_op join;
    struct sum right;
    int64_t rc, joined;
};

BLZ_ASYNC(both)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->left, sum, .from = 0, .to = 50);
    if (self->rc < 0)
        goto out;
    BLZ_CALL(self->rc, self->right, sum, .from = 50, .to = 100);
    BLZ_AWAIT(self->joined, blz_handle_join(&self->join, &self->left));
    if (self->joined < 0 || self->rc < 0 || self->left.result < 0)
        self->rc = -1;
    else
        self->rc += self->left.result;
out:
    BLZ_END(self->rc);
}

static int use_library(void)
{
    int64_t sum = BLZ_RUN(both);

    if (sum != 4950)
        fprintf(stderr, "the sum is %lld\n", (long long)sum);
    return sum != 4950;
}

int main(void)
{
    printf("blitz %s\n", blz_version());
    return use_library();
}
