/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: alone, and with many tasks that want the same one, which is held over a yield or not. */
#include "bench.h"

#include <stdlib.h>

/* What the tasks of one run share. */
struct contest {
    _Alignas(64) blz_mutex mutex;
    _Alignas(64) blz_semaphore semaphore;
    _Alignas(64) blz_rwlock rwlock;
    _Alignas(64) uint64_t count; /* guarded by the mutex */
    uint64_t rounds;             /* of each task */
    bool yields;                 /* while holding it */
};

struct locker {
    BLZ_FRAME;
    struct contest *contest;
    uint64_t i;
    int64_t rc;
    blz_mutex_op op;
    blz_future yield;
};

BLZ_ASYNC(locker)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->contest->rounds; self->i++) {
        BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, &self->contest->mutex));
        self->contest->count++;
        if (self->contest->yields)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
        blz_mutex_unlock(&self->contest->mutex);
    }
    BLZ_END(0);
}

struct acquirer {
    BLZ_FRAME;
    struct contest *contest;
    uint64_t i;
    int64_t rc;
    blz_semaphore_op op;
    blz_future yield;
};

BLZ_ASYNC(acquirer)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->contest->rounds; self->i++) {
        BLZ_AWAIT(self->rc, blz_semaphore_acquire(&self->op, &self->contest->semaphore, 1));
        if (self->contest->yields)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
        blz_ignore(blz_semaphore_release(&self->contest->semaphore, 1));
    }
    BLZ_END(0);
}

struct reader {
    BLZ_FRAME;
    struct contest *contest;
    uint64_t i;
    int64_t rc;
    blz_rwlock_op op;
};

BLZ_ASYNC(reader)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->contest->rounds; self->i++) {
        BLZ_AWAIT_UNLESS(self->rc, blz_rwlock_try_read(&self->contest->rwlock),
                         blz_rwlock_read(&self->op, &self->contest->rwlock));
        blz_rwlock_read_unlock(&self->contest->rwlock);
    }
    BLZ_END(0);
}

/* ---- so many tasks of one kind ---- */

typedef int (*starter)(blz_handle *handle, struct contest *contest);

struct contestants {
    BLZ_FRAME;
    struct run *run;
    struct contest *contest;
    starter start;
    uint64_t tasks, i;
    blz_handle *handles;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(contestants)
{
    BLZ_BEGIN;
    self->handles = malloc(self->tasks * sizeof *self->handles);
    bench_check(self->handles ? 0 : -ENOMEM, "handles");
    bench_start(self->run);
    for (uint64_t i = 0; i < self->tasks; i++)
        bench_check(self->start(&self->handles[i], self->contest), "spawn");
    for (self->i = 0; self->i < self->tasks; self->i++)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
    bench_stop(self->run);
    free(self->handles);
    BLZ_END(0);
}

static int start_locker(blz_handle *handle, struct contest *contest)
{
    return BLZ_SPAWN_JOIN(handle, locker, .contest = contest);
}

static int start_acquirer(blz_handle *handle, struct contest *contest)
{
    return BLZ_SPAWN_JOIN(handle, acquirer, .contest = contest);
}

static int start_reader(blz_handle *handle, struct contest *contest)
{
    return BLZ_SPAWN_JOIN(handle, reader, .contest = contest);
}

static void run_contest(struct run *run, starter start, uint64_t tasks, bool yields)
{
    static struct contest contest;

    contest = (struct contest){.mutex = BLZ_MUTEX_INIT,
                               .semaphore = BLZ_SEMAPHORE_INIT(4),
                               .rwlock = BLZ_RWLOCK_INIT,
                               .rounds = run->n / tasks,
                               .yields = yields};
    run->n = contest.rounds * tasks;
    bench_check(BLZ_BLOCK_ON(run->rt, contestants, .run = run, .contest = &contest, .start = start,
                             .tasks = tasks),
                "contest");
    if (start == start_locker && contest.count != run->n)
        bench_check(-EPROTO, "the mutex does not exclude");
}

/* ---- alone, in the measuring task itself ---- */

/*
 * What is shared lies apart from the frames that use it, as it would in a program. In one cache
 * line with the op, a lock costs 4 ns more: an atomic operation waits for the stores around it.
 */
static struct contest alone;

struct locks_alone {
    BLZ_FRAME;
    blz_mutex_op op;
    struct run *run;
    uint64_t left;
    int64_t rc;
};

BLZ_ASYNC(locks_alone)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        BLZ_AWAIT_UNLESS(self->rc, blz_mutex_try_lock(&alone.mutex),
                         blz_mutex_lock(&self->op, &alone.mutex));
        alone.count++;
        blz_mutex_unlock(&alone.mutex);
    }
    bench_stop(self->run);
    bench_check(alone.count == self->run->n ? 0 : -EPROTO, "count");
    BLZ_END(0);
}

struct acquires_alone {
    BLZ_FRAME;
    blz_semaphore_op op;
    struct run *run;
    uint64_t left;
    int64_t rc;
};

BLZ_ASYNC(acquires_alone)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        BLZ_AWAIT_UNLESS(self->rc, blz_semaphore_try_acquire(&alone.semaphore, 1),
                         blz_semaphore_acquire(&self->op, &alone.semaphore, 1));
        blz_ignore(blz_semaphore_release(&alone.semaphore, 1));
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void mutex_uncontended(struct run *run)
{
    alone = (struct contest){.mutex = BLZ_MUTEX_INIT};
    bench_check(BLZ_BLOCK_ON(run->rt, locks_alone, .run = run), "mutex_uncontended");
}

static void sem_uncontended(struct run *run)
{
    alone = (struct contest){.semaphore = BLZ_SEMAPHORE_INIT(4)};
    bench_check(BLZ_BLOCK_ON(run->rt, acquires_alone, .run = run), "sem_uncontended");
}

static void mutex_100tasks(struct run *run)
{
    run_contest(run, start_locker, 100, false);
}

static void mutex_100tasks_yield(struct run *run)
{
    run_contest(run, start_locker, 100, true);
}

static void sem_64tasks_4permits_yield(struct run *run)
{
    run_contest(run, start_acquirer, 64, true);
}

static void rwlock_read_1(struct run *run)
{
    run_contest(run, start_reader, 1, false);
}

static void rwlock_read_8(struct run *run)
{
    run_contest(run, start_reader, 8, false);
}

const struct bench sync_benches[] = {
    {"mutex_uncontended", 5000000, mutex_uncontended, false},
    {"mutex_100tasks", 2000000, mutex_100tasks, false},
    {"mutex_100tasks_yield", 500000, mutex_100tasks_yield, false},
    {"rwlock_read_1", 5000000, rwlock_read_1, false},
    {"rwlock_read_8", 5000000, rwlock_read_8, false},
    {"sem_uncontended", 5000000, sem_uncontended, false},
    {"sem_64tasks_4permits_yield", 500000, sem_64tasks_4permits_yield, false},
    {NULL, 0, NULL, false},
};
