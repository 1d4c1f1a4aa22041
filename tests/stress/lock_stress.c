/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutex, semaphore and rwlock under tasks of several workers and threads that are none, which give
 * up at random: by a limit of nothing, in a race that they lose, or because their task is
 * cancelled. Holders must exclude each other as promised, no permit may get lost, and in the end
 * all must be free. A lost wake-up hangs.
 */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>

enum { TASKS = 24, THREADS = 2, PERMITS = 5 };

/* What the locks guard: plain memory, so that the sanitizers see a lock that does not lock. */
static struct {
    blz_mutex mutex;
    uint64_t count;

    blz_rwlock rwlock;
    uint64_t left, right; /* equal, but for writers in the middle of their work */

    blz_semaphore semaphore;
    uint32_t in_use; /* permits; atomic */
} shared;

static void begin(void)
{
    blz_mutex_init(&shared.mutex);
    blz_rwlock_init(&shared.rwlock);
    blz_semaphore_init(&shared.semaphore, PERMITS);
    shared.count = shared.left = shared.right = shared.in_use = 0;
}

static void check_all_is_free(void)
{
    assert_int_equal(shared.mutex.word, 0);
    assert_int_equal(shared.rwlock.word, 0);
    assert_int_equal(blz_semaphore_available(&shared.semaphore), PERMITS);
    assert_int_equal(blz_semaphore_try_acquire(&shared.semaphore, PERMITS), 0);
    assert_int_equal(shared.left, shared.right);
    assert_int_equal(shared.in_use, 0);
}

static void use_permits(uint32_t n)
{
    check(__atomic_add_fetch(&shared.in_use, n, __ATOMIC_RELAXED) <= PERMITS);
}

static void give_permits(uint32_t n)
{
    __atomic_sub_fetch(&shared.in_use, n, __ATOMIC_RELAXED);
    check(blz_semaphore_release(&shared.semaphore, n) == 0);
}

static void check_reading(void)
{
    check(shared.left == shared.right);
}

/* ---- awaiting, with a chance to give up ---- */

enum patience { PATIENT, ONE_POLL, RACED, NR_PATIENCES };

struct attempt {
    BLZ_FRAME;
    blz_future *future;
    enum patience patience;
    int64_t rc;
    blz_timeout limit;
    blz_race_op race;
    blz_future yield;
};

/* 0: it has the lock. */
BLZ_ASYNC(attempt)
{
    BLZ_BEGIN;
    if (self->patience == PATIENT) {
        BLZ_AWAIT(self->rc, self->future);
    } else if (self->patience == ONE_POLL) {
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 0, self->future));
    } else {
        BLZ_AWAIT(self->rc, blz_race(&self->race, self->future, blz_yield(&self->yield)));
        self->rc = self->future->result; /* it may have won although it was not the first */
    }
    BLZ_END(self->rc);
}

/* ---- one task ---- */

struct visitor {
    uint64_t seed;
    uint64_t *locked; /* how often it had the mutex */
};

static enum patience some_patience(uint64_t *seed)
{
    return (enum patience)random_below(seed, NR_PATIENCES);
}

struct uses_mutex {
    BLZ_FRAME;
    struct visitor *visitor;
    int64_t rc;
    struct attempt attempt;
    blz_mutex_op op;
    blz_future yield;
};

BLZ_ASYNC(uses_mutex)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->attempt, attempt, .future = blz_mutex_lock(&self->op, &shared.mutex),
             .patience = some_patience(&self->visitor->seed));
    if (self->rc < 0)
        goto out;
    shared.count++;
    ++*self->visitor->locked;
    if (random_below(&self->visitor->seed, 4) == 0)
        BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->yield));
    blz_mutex_unlock(&shared.mutex);
out:
    BLZ_END(self->rc);
}

struct uses_semaphore {
    BLZ_FRAME;
    struct visitor *visitor;
    uint32_t n;
    int64_t rc;
    struct attempt attempt;
    blz_semaphore_op op;
    blz_future yield;
};

BLZ_ASYNC(uses_semaphore)
{
    BLZ_BEGIN;
    self->n = 1 + random_below(&self->visitor->seed, 3);
    BLZ_CALL(self->rc, self->attempt, attempt,
             .future = blz_semaphore_acquire(&self->op, &shared.semaphore, self->n),
             .patience = some_patience(&self->visitor->seed));
    if (self->rc < 0)
        goto out;
    use_permits(self->n);
    BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->yield));
    give_permits(self->n);
out:
    BLZ_END(self->rc);
}

struct uses_rwlock {
    BLZ_FRAME;
    struct visitor *visitor;
    uint32_t how;
    int64_t rc;
    struct attempt attempt;
    blz_rwlock_op op;
    blz_future yield;
};

static blz_future *lock_somehow(struct uses_rwlock *self)
{
    self->how = random_below(&self->visitor->seed, 6);
    if (self->how == 0)
        return blz_rwlock_write(&self->op, &shared.rwlock);
    if (self->how == 1)
        return blz_rwlock_upgradable(&self->op, &shared.rwlock);
    return blz_rwlock_read(&self->op, &shared.rwlock);
}

BLZ_ASYNC(uses_rwlock)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->attempt, attempt, .future = lock_somehow(self),
             .patience = some_patience(&self->visitor->seed));
    if (self->rc < 0)
        goto out;
    if (self->how == 1) {
        check_reading();
        BLZ_CALL(self->rc, self->attempt, attempt,
                 .future = blz_rwlock_upgrade(&self->op, &shared.rwlock),
                 .patience = some_patience(&self->visitor->seed));
        if (self->rc < 0) {
            blz_rwlock_upgradable_unlock(&shared.rwlock);
            goto out;
        }
    }
    if (self->how <= 1) {
        shared.left++;
        BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->yield));
        shared.right++;
        if (random_below(&self->visitor->seed, 2) == 0) {
            blz_rwlock_write_unlock(&shared.rwlock);
            goto out;
        }
        blz_rwlock_downgrade(&shared.rwlock);
    }
    check_reading();
    if (random_below(&self->visitor->seed, 2) == 0)
        BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->yield));
    check_reading();
    blz_rwlock_read_unlock(&shared.rwlock);
out:
    BLZ_END(self->rc);
}

struct visits {
    BLZ_FRAME;
    struct visitor visitor;
    int64_t left, rc;
    union {
        struct uses_mutex mutex;
        struct uses_semaphore semaphore;
        struct uses_rwlock rwlock;
    } call;
    uint32_t which;
};

/* Until it has visited often enough, or has been cancelled. */
BLZ_ASYNC(visits)
{
    BLZ_BEGIN;
    for (; self->left > 0 && !blz_cancelled(cx); self->left--) {
        self->which = random_below(&self->visitor.seed, 3);
        if (self->which == 0)
            BLZ_CALL(self->rc, self->call.mutex, uses_mutex, .visitor = &self->visitor);
        else if (self->which == 1)
            BLZ_CALL(self->rc, self->call.semaphore, uses_semaphore, .visitor = &self->visitor);
        else
            BLZ_CALL(self->rc, self->call.rwlock, uses_rwlock, .visitor = &self->visitor);
        check(self->rc >= 0 || self->rc == -ECANCELED || self->rc == -ETIMEDOUT);
    }
    BLZ_END(0);
}

/* ---- one thread ---- */

struct foreigner {
    uint64_t seed, locked;
    int64_t visits;
};

/* Waits, or looks once and gives up. */
static bool had(struct foreigner *self, blz_future *future)
{
    int64_t rc = random_below(&self->seed, 2) ? blz_wait(future) : blz_wait_until(future, 0);

    check(rc == 0 || rc == -ETIMEDOUT);
    return rc == 0;
}

static void visit_mutex(struct foreigner *self)
{
    blz_mutex_op op = {0};

    if (!had(self, blz_mutex_lock(&op, &shared.mutex)))
        return;
    shared.count++;
    self->locked++;
    blz_mutex_unlock(&shared.mutex);
}

static void visit_semaphore(struct foreigner *self)
{
    blz_semaphore_op op = {0};
    uint32_t n = 1 + random_below(&self->seed, PERMITS);

    if (!had(self, blz_semaphore_acquire(&op, &shared.semaphore, n)))
        return;
    use_permits(n);
    give_permits(n);
}

static void visit_rwlock(struct foreigner *self)
{
    blz_rwlock_op op = {0};

    if (random_below(&self->seed, 3) == 0) {
        if (!had(self, blz_rwlock_write(&op, &shared.rwlock)))
            return;
        shared.left++;
        shared.right++;
        blz_rwlock_write_unlock(&shared.rwlock);
    } else if (had(self, blz_rwlock_read(&op, &shared.rwlock))) {
        check_reading();
        blz_rwlock_read_unlock(&shared.rwlock);
    }
}

static void *visit_all(void *arg)
{
    struct foreigner *self = arg;

    for (int64_t i = 0; i < self->visits; i++) {
        visit_mutex(self);
        visit_semaphore(self);
        visit_rwlock(self);
    }
    return NULL;
}

/* ---- all together ---- */

static void storm(unsigned workers, bool cancelling)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = workers});
    blz_handle handles[TASKS];
    uint64_t locked[TASKS] = {0}, total = 0, seed = workers;
    struct foreigner foreigners[THREADS];
    pthread_t threads[THREADS];

    begin();
    for (uint32_t i = 0; i < TASKS; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], visits, .left = scaled(5000),
                           .visitor = {.seed = i + 1, .locked = &locked[i]}) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        foreigners[i] = (struct foreigner){.seed = 1000 + i, .visits = scaled(5000)};
        threads[i] = start_thread(visit_all, &foreigners[i]);
    }
    for (uint32_t i = 0; cancelling && i < TASKS / 2; i++) {
        blz_handle_cancel(&handles[random_below(&seed, TASKS)]);
        sched_yield();
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        join_thread(threads[i]);
        total += foreigners[i].locked;
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        check(blz_handle_wait(&handles[i]) == 0);
        total += locked[i];
    }
    assert_int_equal(shared.count, total);
    check_all_is_free();
    free_rt(rt);
}

static void two_workers_and_two_threads_share_locks(void **state)
{
    (void)state;
    storm(2, false);
}

static void four_workers_and_two_threads_share_locks(void **state)
{
    (void)state;
    storm(4, false);
}

static void tasks_are_cancelled_wherever_they_are(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        storm(1 + i % 4, true);
}

/* ---- a lock that goes with what it guards ---- */

struct parcel {
    blz_mutex mutex;
    uint32_t users; /* guarded by the mutex */
};

struct uses_parcel {
    BLZ_FRAME;
    struct parcel *parcel;
    bool last;
    int64_t rc;
    blz_mutex_op op;
    blz_future yield;
};

/* The last to have had it frees it at once. */
BLZ_ASYNC(uses_parcel)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, &self->parcel->mutex));
    BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    self->last = --self->parcel->users == 0;
    blz_mutex_unlock(&self->parcel->mutex);
    if (self->last)
        free(self->parcel);
    BLZ_END(0);
}

struct sends_parcels {
    BLZ_FRAME;
    int64_t left, rc;
    blz_scope scope;
    blz_scope_op wait;
};

static void send_parcel(blz_scope *scope)
{
    struct parcel *parcel = malloc(sizeof *parcel);

    check(parcel != NULL);
    *parcel = (struct parcel){.mutex = BLZ_MUTEX_INIT, .users = 4};
    for (int i = 0; i < 4; i++)
        check(BLZ_SCOPE_SPAWN(scope, uses_parcel, .parcel = parcel) == 0);
}

BLZ_ASYNC(sends_parcels)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
        send_parcel(&self->scope);
        BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
        check(self->rc >= 0);
    }
    BLZ_END(0);
}

static void the_last_user_frees_a_mutex(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 3});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, sends_parcels, .left = scaled(5000)), 0);
    free_rt(rt);
}

struct signals {
    BLZ_FRAME;
    blz_semaphore *done;
};

BLZ_ASYNC(signals)
{
    BLZ_BEGIN;
    check(blz_semaphore_release(self->done, 1) == 0);
    BLZ_END(0);
}

/* On the stack of who waits: it is gone as soon as the permit has been had. */
static void signal_once(blz_rt *rt)
{
    blz_semaphore done = BLZ_SEMAPHORE_INIT(0);

    check(BLZ_SPAWN_ON(rt, NULL, signals, .done = &done) == 0);
    check(blz_semaphore_acquire_wait(&done, 1) == 0);
    __builtin_memset(&done, 0xff, sizeof done);
}

static void a_semaphore_on_the_stack_is_a_signal(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    for (int64_t i = 0; i < scaled(5000); i++)
        signal_once(rt);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_workers_and_two_threads_share_locks),
        TEST(four_workers_and_two_threads_share_locks),
        TEST(tasks_are_cancelled_wherever_they_are),
        TEST(the_last_user_frees_a_mutex),
        TEST(a_semaphore_on_the_stack_is_a_signal),
    };
    return RUN_TESTS(tests);
}
