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

/* The same by a fork-join pool. */
struct range {
    blz_par_job job;
    int from, to;
    int64_t total;
};

static void run_range(blz_par *par, blz_par_job *job);

static int64_t sum_range(blz_par *par, int from, int to)
{
    struct range right = {.from = from + (to - from) / 2, .to = to};
    int64_t left;

    if (to - from == 1)
        return from;
    blz_par_fork(par, &right.job, run_range);
    left = sum_range(par, from, right.from);
    if (blz_par_unfork(par, &right.job))
        right.total = sum_range(par, right.from, to);
    return left + right.total;
}

static void run_range(blz_par *par, blz_par_job *job)
{
    struct range *range = blz_container_of(job, struct range, job);

    range->total = sum_range(par, range->from, range->to);
}

static int64_t sum_in_pool(void)
{
    blz_pool *pool;
    blz_par *par;
    int64_t sum = -1;

    if (blz_pool_new(&pool, &(blz_pool_options){.threads = 2}) < 0)
        return -1;
    par = blz_pool_enter(pool);
    if (par)
        sum = sum_range(par, 0, 100);
    blz_pool_leave(par);
    return blz_pool_free(pool) == 0 ? sum : -1;
}

static int use_library(void)
{
    int64_t sum = BLZ_RUN(both), other = sum_in_pool();

    if (sum != 4950 || other != 4950)
        fprintf(stderr, "the sums are %lld and %lld\n", (long long)sum, (long long)other);
    return sum != 4950 || other != 4950;
}

int main(void)
{
    printf("blitz %s\n", blz_version());
    return use_library();
}
