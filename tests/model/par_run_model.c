/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computations that tasks await (src/par/bridge.c): the result arrives, the task is woken,
 * cancelled or not, and the memory of the op is the task's again as soon as it is told: it is freed
 * then, so that a pool that touches it afterwards is caught.
 */
#include "par/pool.h"

#include "support/memory.h"
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>
#include <blitz/par_run.h>

#include <errno.h>
#include <string.h>

enum { VALUE = 42 };

static blz_rt *rt;
static blz_pool *pool;
static blz_handle handle;
static unsigned calls;

static int64_t compute(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    unsigned *count = arg;

    (void)par, (void)cancel;
    blz__plain_write(count);
    model_assert(*count == 0);
    ++*count;
    return VALUE;
}

struct caller {
    BLZ_FRAME;
    blz_par_run_op *op;
    int64_t rc;
};

BLZ_ASYNC(caller)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_par_run(self->op, pool, compute, &calls));
    blz__plain_write(&self->op->value);
    blz__plain_write(&self->op->waker);
    model_free(self->op);
    blz__plain_read(&calls);
    model_assert(self->rc == (calls ? VALUE : -ECANCELED));
    BLZ_END(self->rc);
}

static void begin(void)
{
    blz_par_run_op *op = memset(model_alloc(sizeof *op, _Alignof(blz_par_run_op)), 0, sizeof *op);

    calls = 0;
    model_assert(blz_pool_new(&pool, &(blz_pool_options){.threads = 1,
                                                         .ring_size = 2,
                                                         .allocator = &model_memory}) == 0);
    rt = small_rt_new(1, NULL);
    small_rt_be(&rt->workers[0]);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, caller, .op = op)) == 0);
}

static void end(void)
{
    small_rt_join(&rt->workers[0], &handle);
    small_rt_be(NULL);
    model_assert(blz_pool_free(pool) == 0);
    small_rt_free(rt);
}

static void a_computation_gives_its_result_and_its_memory_back(void)
{
    begin();
    end();
    model_assert(calls == 1);
}

static void a_computation_that_is_cancelled_is_made_or_not(void)
{
    begin();
    small_rt_poll_all(&rt->workers[0]); /* it is under way */
    blz_handle_cancel(&handle);
    end();
}

static const struct model models[] = {
    MODEL(a_computation_gives_its_result_and_its_memory_back, .preemptions = 1, .stale_reads = 1,
          .reduce = true),
    MODEL(a_computation_that_is_cancelled_is_made_or_not, .preemptions = 1, .stale_reads = 1,
          .reduce = true),
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, models, sizeof models / sizeof *models);
}
