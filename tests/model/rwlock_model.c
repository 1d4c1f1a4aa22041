/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rwlock: writers exclude everybody, readers see what writers did and writers come after what
 * readers did, upgrades and downgrades let nobody write in between, giving up leaves the line to
 * the others, and the last to unlock may free it. In the end the word is what it was in the
 * beginning.
 */
#include <blitz/rwlock.h>

#include "support/hand_polled.h"

static blz_rwlock *rwlock;
static uint32_t guarded; /* plain memory */

static void begin(void)
{
    rwlock = model_alloc(sizeof *rwlock, _Alignof(blz_rwlock));
    blz_rwlock_init(rwlock);
    guarded = 0;
}

static void end(void)
{
    model_assert(rwlock->word == 0);
    model_assert(!rwlock->waiters.first && !rwlock->waiters.last);
    model_free(rwlock);
}

typedef blz_future *(*locker)(blz_rwlock_op *op, blz_rwlock *rwlock);

static void lock(locker how)
{
    blz_rwlock_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    model_assert(hand_await(&hand, how(&op, rwlock)) == 0);
    hand_end(&hand);
}

/* Polls once, and gives up if that was not enough. */
static bool lock_or_give_up(locker how)
{
    blz_rwlock_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    blz_future *future = how(&op, rwlock);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        future->ops->cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    hand_end(&hand);
    model_assert(future->result == 0 || future->result == -ECANCELED);
    return future->result == 0;
}

static void write_it(void)
{
    blz__plain_write(&guarded);
    guarded++;
}

static uint32_t read_it(void)
{
    blz__plain_read(&guarded);
    return guarded;
}

static void reads(void *unused)
{
    (void)unused;
    lock(blz_rwlock_read);
    (void)read_it();
    blz_rwlock_read_unlock(rwlock);
}

static void writes(void *unused)
{
    (void)unused;
    lock(blz_rwlock_write);
    write_it();
    blz_rwlock_write_unlock(rwlock);
}

static void gives_up_writing(void *unused)
{
    (void)unused;
    if (lock_or_give_up(blz_rwlock_write)) {
        write_it();
        blz_rwlock_write_unlock(rwlock);
    }
}

/* ---- readers and writers ---- */

static void two_writers_exclude_each_other(void)
{
    begin();
    model_thread other = model_start_named(writes, NULL, "writes");
    writes(NULL);
    model_join(other);
    model_assert(guarded == 2);
    end();
}

static void a_reader_and_a_writer_exclude_each_other(void)
{
    begin();
    model_thread other = model_start_named(writes, NULL, "writes");
    reads(NULL);
    reads(NULL);
    model_join(other);
    end();
}

static void read_and_unlock(void *unused)
{
    (void)unused;
    (void)read_it();
    blz_rwlock_read_unlock(rwlock);
}

/* The writer comes after what both did, also the one who left without looking at the line. */
static void a_writer_waits_for_two_readers(void)
{
    begin();
    model_assert(blz_rwlock_try_read(rwlock) == 0 && blz_rwlock_try_read(rwlock) == 0);
    model_thread a = model_start_named(read_and_unlock, NULL, "reads");
    model_thread b = model_start_named(read_and_unlock, NULL, "also reads");
    writes(NULL);
    model_join(a);
    model_join(b);
    end();
}

static void tries_and_reads(void *unused)
{
    (void)unused;
    while (blz_rwlock_try_read(rwlock) < 0)
        blz__spin_hint();
    model_assert(read_it() == 1);
    blz_rwlock_read_unlock(rwlock);
}

/* The writer lets one in from the line, and the other comes by itself. */
static void two_readers_see_what_was_written(void)
{
    begin();
    model_assert(blz_rwlock_try_write(rwlock) == 0);
    model_thread a = model_start_named(reads, NULL, "reads");
    model_thread b = model_start_named(tries_and_reads, NULL, "tries");
    write_it();
    blz_rwlock_write_unlock(rwlock);
    model_join(a);
    model_join(b);
    end();
}

static void waits_and_reads(void *unused)
{
    (void)unused;
    model_assert(blz_rwlock_read_wait(rwlock) == 0);
    (void)read_it();
    blz_rwlock_read_unlock(rwlock);
}

static void a_thread_reads_what_a_task_writes(void)
{
    begin();
    model_thread a = model_start_named(waits_and_reads, NULL, "waits");
    writes(NULL);
    model_join(a);
    end();
}

/* ---- upgrades, downgrades ---- */

/* What it reads is still so when it has become the writer. */
static void upgrades(void *unused)
{
    (void)unused;
    lock(blz_rwlock_upgradable);
    uint32_t seen = read_it();
    lock(blz_rwlock_upgrade);
    model_assert(read_it() == seen);
    write_it();
    blz_rwlock_write_unlock(rwlock);
}

static void an_upgrade_lets_no_writer_pass(void)
{
    begin();
    model_thread other = model_start_named(writes, NULL, "writes");
    upgrades(NULL);
    model_join(other);
    model_assert(guarded == 2);
    end();
}

static void two_who_upgrade_do_not_wait_for_each_other(void)
{
    begin();
    model_thread other = model_start_named(upgrades, NULL, "upgrades");
    upgrades(NULL);
    model_join(other);
    model_assert(guarded == 2);
    end();
}

static void an_upgrade_waits_for_a_reader(void)
{
    begin();
    model_thread other = model_start_named(reads, NULL, "reads");
    upgrades(NULL);
    model_join(other);
    end();
}

static void tries_to_upgrade(void *unused)
{
    (void)unused;
    lock(blz_rwlock_read);
    if (blz_rwlock_try_upgrade_read(rwlock) == 0) {
        write_it();
        blz_rwlock_write_unlock(rwlock);
    } else {
        (void)read_it();
        blz_rwlock_read_unlock(rwlock);
    }
}

static void one_of_two_readers_becomes_the_writer(void)
{
    begin();
    model_thread other = model_start_named(tries_to_upgrade, NULL, "tries");
    tries_to_upgrade(NULL);
    model_join(other);
    end();
}

static void a_downgrade_lets_no_writer_pass(void)
{
    begin();
    model_thread other = model_start_named(writes, NULL, "writes");
    lock(blz_rwlock_write);
    write_it();
    uint32_t seen = read_it();
    blz_rwlock_downgrade(rwlock);
    model_assert(read_it() == seen);
    blz_rwlock_read_unlock(rwlock);
    model_join(other);
    model_assert(guarded == 2);
    end();
}

static void a_downgrade_lets_a_reader_in(void)
{
    begin();
    model_thread other = model_start_named(reads, NULL, "reads");
    lock(blz_rwlock_write);
    write_it();
    blz_rwlock_downgrade(rwlock);
    model_join(other); /* though we hold it */
    blz_rwlock_read_unlock(rwlock);
    end();
}

/* ---- giving up ---- */

static void cancel_against_unlock(void)
{
    begin();
    model_thread other = model_start_named(reads, NULL, "reads");
    gives_up_writing(NULL);
    model_join(other);
    end();
}

static void a_writer_that_gives_up_lets_a_reader_in(void)
{
    begin();
    model_assert(blz_rwlock_try_read(rwlock) == 0);
    model_thread other = model_start_named(reads, NULL, "reads");
    model_assert(!lock_or_give_up(blz_rwlock_write));
    model_join(other);
    blz_rwlock_read_unlock(rwlock);
    end();
}

static void an_upgrade_that_gives_up_lets_a_reader_in(void)
{
    begin();
    model_assert(blz_rwlock_try_upgradable(rwlock) == 0);
    model_thread other = model_start_named(reads, NULL, "reads");
    if (lock_or_give_up(blz_rwlock_upgrade)) {
        write_it();
        blz_rwlock_downgrade(rwlock);
        model_join(other);
        blz_rwlock_read_unlock(rwlock);
    } else {
        model_join(other);
        blz_rwlock_upgradable_unlock(rwlock);
    }
    end();
}

/* ---- freeing ---- */

static uint32_t left;

static void write_and_let_go(void *unused)
{
    (void)unused;
    lock(blz_rwlock_write);
    write_it();
    bool last = guarded == 2;
    blz_rwlock_write_unlock(rwlock);
    if (last)
        model_free(rwlock);
}

static void the_last_writer_frees_it(void)
{
    begin();
    model_thread other = model_start(write_and_let_go, NULL);
    write_and_let_go(NULL);
    model_join(other);
}

static void read_and_leave(void *unused)
{
    (void)unused;
    (void)read_it();
    blz__fetch_add(&left, 1u, RELAXED); /* the unlock orders it */
    blz_rwlock_read_unlock(rwlock);
}

/* One gave up, so that the last reader may have meant to serve somebody who is gone. */
static void an_unlock_is_over_when_it_can_be_locked(void)
{
    begin();
    left = 0;
    model_assert(blz_rwlock_try_read(rwlock) == 0);
    model_thread quitter = model_start_named(gives_up_writing, NULL, "gives up");
    model_thread reader = model_start_named(read_and_leave, NULL, "leaves");
    model_join(quitter);
    lock(blz_rwlock_write);
    model_assert(blz__load(&left, RELAXED) == 1);
    write_it();
    blz_rwlock_write_unlock(rwlock);
    model_free(rwlock);
    model_join(reader);
}

#define MODEL(name, ...) \
    {                    \
#name, name,     \
        {                \
            __VA_ARGS__  \
        }                \
    }

static const struct model models[] = {
    MODEL(two_writers_exclude_each_other, .preemptions = 3, .reduce = true),
    MODEL(a_reader_and_a_writer_exclude_each_other, .preemptions = 2, .reduce = true),
    MODEL(a_writer_waits_for_two_readers, .preemptions = 3, .reduce = true),
    MODEL(two_readers_see_what_was_written, .preemptions = 2, .stale_reads = 1, .reduce = true),
    MODEL(a_thread_reads_what_a_task_writes, .preemptions = 3, .reduce = true),
    MODEL(an_upgrade_lets_no_writer_pass, .preemptions = 3, .reduce = true),
    MODEL(two_who_upgrade_do_not_wait_for_each_other, .preemptions = 3, .reduce = true),
    MODEL(an_upgrade_waits_for_a_reader, .preemptions = 3, .reduce = true),
    MODEL(one_of_two_readers_becomes_the_writer, .preemptions = 3, .reduce = true),
    MODEL(a_downgrade_lets_no_writer_pass, .preemptions = 3, .reduce = true),
    MODEL(a_downgrade_lets_a_reader_in, .preemptions = 3, .reduce = true),
    MODEL(cancel_against_unlock, .preemptions = 3, .reduce = true),
    MODEL(a_writer_that_gives_up_lets_a_reader_in, .preemptions = 3, .reduce = true),
    MODEL(an_upgrade_that_gives_up_lets_a_reader_in, .preemptions = 3, .reduce = true),
    MODEL(the_last_writer_frees_it, .preemptions = 4, .reduce = true),
    MODEL(an_unlock_is_over_when_it_can_be_locked, .preemptions = 2, .stale_reads = 1,
          .reduce = true),
};

MODEL_MAIN(models)
