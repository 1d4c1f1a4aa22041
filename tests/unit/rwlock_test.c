/* SPDX-License-Identifier: Apache-2.0 */
/* Rwlocks: who goes in with whom, order, upgrades and downgrades, cancellation, misuse. */
#include "in_line.h"

#include <signal.h>
#include <unistd.h>

enum { MANY = 100 };

static blz_rwlock rwlock;
static blz_rwlock_op ops[MANY];

static void begin(void)
{
    begin_line();
    blz_rwlock_init(&rwlock);
}

static void end(void)
{
    assert_null(rwlock.waiters.first);
    assert_int_equal(rwlock.word, 0);
    end_line();
}

static void want_read(struct in_line *who, int i)
{
    join_line(who, blz_rwlock_read(&ops[i], &rwlock));
}

static void want_upgradable(struct in_line *who, int i)
{
    join_line(who, blz_rwlock_upgradable(&ops[i], &rwlock));
}

static void want_write(struct in_line *who, int i)
{
    join_line(who, blz_rwlock_write(&ops[i], &rwlock));
}

static void want_upgrade(struct in_line *who, int i)
{
    join_line(who, blz_rwlock_upgrade(&ops[i], &rwlock));
}

/* ---- who goes in with whom ---- */

static void readers_share_and_writers_do_not(void **state)
{
    blz_rwlock l = BLZ_RWLOCK_INIT;

    (void)state;
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    assert_int_equal(blz_rwlock_try_write(&l), -EAGAIN);
    blz_rwlock_read_unlock(&l);
    assert_int_equal(blz_rwlock_try_write(&l), -EAGAIN);
    blz_rwlock_read_unlock(&l);
    assert_int_equal(blz_rwlock_try_write(&l), 0);
    assert_int_equal(blz_rwlock_try_write(&l), -EAGAIN);
    assert_int_equal(blz_rwlock_try_read(&l), -EAGAIN);
    assert_int_equal(blz_rwlock_try_upgradable(&l), -EAGAIN);
    blz_rwlock_write_unlock(&l);
    assert_int_equal(l.word, 0);
}

static void one_upgradable_goes_with_readers(void **state)
{
    blz_rwlock l = BLZ_RWLOCK_INIT;

    (void)state;
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    assert_int_equal(blz_rwlock_try_upgradable(&l), 0);
    assert_int_equal(blz_rwlock_try_upgradable(&l), -EAGAIN);
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    blz_rwlock_read_unlock(&l);
    blz_rwlock_read_unlock(&l);
    assert_int_equal(blz_rwlock_try_write(&l), -EAGAIN);
    blz_rwlock_upgradable_unlock(&l);
    assert_int_equal(l.word, 0);
}

static void a_free_one_is_had_at_once(void **state)
{
    struct in_line a, b;

    (void)state;
    begin();
    want_read(&a, 0);
    want_read(&b, 1);
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(outcome_of(&b), 0);
    blz_rwlock_read_unlock(&rwlock);
    blz_rwlock_read_unlock(&rwlock);
    want_write(&a, 0);
    assert_int_equal(outcome_of(&a), 0);
    blz_rwlock_write_unlock(&rwlock);
    want_upgradable(&a, 0);
    assert_int_equal(outcome_of(&a), 0);
    blz_rwlock_upgradable_unlock(&rwlock);
    end();
}

/* ---- the line ---- */

static void readers_do_not_overtake_a_writer(void **state)
{
    struct in_line writer, reader;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    want_write(&writer, 0);
    want_read(&reader, 1);
    assert_int_equal(blz_rwlock_try_read(&rwlock), -EAGAIN);
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), -EAGAIN);
    assert_true(is_waiting(&reader));
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(outcome_of(&writer), 0);
    assert_true(is_waiting(&reader));
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of(&reader), 0);
    blz_rwlock_read_unlock(&rwlock);
    end();
}

static void readers_in_front_go_in_together(void **state)
{
    static struct in_line readers[MANY - 2];
    struct in_line writer, late;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_write(&rwlock), 0);
    for (int i = 0; i < MANY - 2; i++)
        want_read(&readers[i], i);
    want_write(&writer, MANY - 2);
    want_read(&late, MANY - 1);
    blz_rwlock_write_unlock(&rwlock);
    for (int i = 0; i < MANY - 2; i++)
        assert_int_equal(outcome_of(&readers[i]), 0);
    assert_true(is_waiting(&writer) && is_waiting(&late));
    for (int i = 0; i < MANY - 2; i++) {
        assert_true(is_waiting(&writer));
        blz_rwlock_read_unlock(&rwlock);
    }
    assert_int_equal(outcome_of(&writer), 0);
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of(&late), 0);
    blz_rwlock_read_unlock(&rwlock);
    end();
}

static void a_second_upgradable_waits_for_the_first(void **state)
{
    struct in_line second;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), 0);
    want_upgradable(&second, 0);
    assert_true(is_waiting(&second));
    blz_rwlock_upgradable_unlock(&rwlock);
    assert_int_equal(outcome_of(&second), 0);
    blz_rwlock_upgradable_unlock(&rwlock);
    end();
}

/* ---- upgrading and downgrading ---- */

static void an_upgrade_waits_for_the_readers_and_lets_no_more_in(void **state)
{
    struct in_line upgrade, reader;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_upgrade(&rwlock), -EAGAIN);
    want_upgrade(&upgrade, 0);
    want_read(&reader, 1);
    blz_rwlock_read_unlock(&rwlock);
    assert_true(is_waiting(&upgrade) && is_waiting(&reader));
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(outcome_of(&upgrade), 0);
    assert_true(is_waiting(&reader));
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of(&reader), 0);
    blz_rwlock_read_unlock(&rwlock);
    end();
}

static void an_upgrade_goes_ahead_of_the_line(void **state)
{
    struct in_line writer, upgrade;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), 0);
    want_write(&writer, 0);
    want_upgrade(&upgrade, 1);
    assert_int_equal(outcome_of(&upgrade), 0);
    assert_true(is_waiting(&writer));
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of(&writer), 0);
    blz_rwlock_write_unlock(&rwlock);
    end();
}

static void an_upgrade_that_waits_is_in_front_of_the_line(void **state)
{
    struct in_line writer, upgrade;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    want_write(&writer, 0);
    want_upgrade(&upgrade, 1);
    assert_true(is_waiting(&upgrade));
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(outcome_of(&upgrade), 0);
    assert_true(is_waiting(&writer));
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of(&writer), 0);
    blz_rwlock_write_unlock(&rwlock);
    end();
}

static void a_second_upgrade_would_be_a_deadlock(void **state)
{
    struct in_line first, second;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), 0);
    want_upgrade(&first, 0);
    want_upgrade(&second, 1);
    assert_int_equal(outcome_of(&second), -EDEADLK);
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(outcome_of(&first), 0);
    blz_rwlock_write_unlock(&rwlock);
    end();
}

static void only_the_upgradable_one_can_be_upgraded(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_upgrade(&rwlock), -EPERM);
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_upgrade(&rwlock), -EPERM);
    want_upgrade(&a, 0);
    assert_int_equal(outcome_of(&a), -EPERM);
    blz_rwlock_read_unlock(&rwlock);
    end();
}

static void two_readers_cannot_both_become_the_writer(void **state)
{
    blz_rwlock l = BLZ_RWLOCK_INIT;

    (void)state;
    assert_int_equal(blz_rwlock_try_upgrade_read(&l), -EPERM);
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    assert_int_equal(blz_rwlock_try_upgrade_read(&l), -EAGAIN);
    assert_int_equal(blz_rwlock_try_upgrade_read(&l), -EAGAIN);
    blz_rwlock_read_unlock(&l); /* one of them steps back */
    assert_int_equal(blz_rwlock_try_upgrade_read(&l), 0);
    assert_int_equal(blz_rwlock_try_read(&l), -EAGAIN);
    blz_rwlock_write_unlock(&l);
    assert_int_equal(blz_rwlock_try_read(&l), 0);
    assert_int_equal(blz_rwlock_try_upgradable(&l), 0);
    assert_int_equal(blz_rwlock_try_upgrade_read(&l), -EAGAIN);
    blz_rwlock_read_unlock(&l);
    assert_int_equal(blz_rwlock_try_upgrade(&l), 0);
    blz_rwlock_write_unlock(&l);
    assert_int_equal(l.word, 0);
}

static void the_only_reader_becomes_the_writer_ahead_of_the_line(void **state)
{
    struct in_line writer;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    want_write(&writer, 0);
    assert_int_equal(blz_rwlock_try_upgrade_read(&rwlock), 0);
    assert_true(is_waiting(&writer));
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of(&writer), 0);
    blz_rwlock_write_unlock(&rwlock);
    end();
}

static void a_downgrade_lets_the_readers_in_front_in(void **state)
{
    struct in_line reader, writer, late;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_write(&rwlock), 0);
    want_read(&reader, 0);
    want_write(&writer, 1);
    want_read(&late, 2);
    blz_rwlock_downgrade(&rwlock);
    assert_int_equal(outcome_of(&reader), 0);
    assert_true(is_waiting(&writer) && is_waiting(&late));
    blz_rwlock_read_unlock(&rwlock);
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(outcome_of(&writer), 0);
    blz_rwlock_downgrade(&rwlock);
    assert_int_equal(outcome_of(&late), 0);
    blz_rwlock_read_unlock(&rwlock);
    blz_rwlock_read_unlock(&rwlock);
    end();
}

static void nobody_writes_between_a_downgrade_and_its_unlock(void **state)
{
    struct in_line writer;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_write(&rwlock), 0);
    want_write(&writer, 0);
    blz_rwlock_downgrade(&rwlock);
    assert_true(is_waiting(&writer));
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(outcome_of(&writer), 0);
    blz_rwlock_write_unlock(&rwlock);
    end();
}

/* ---- cancelling ---- */

static void readers_behind_a_cancelled_writer_go_in(void **state)
{
    struct in_line writer, a, b;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    want_write(&writer, 0);
    want_read(&a, 1);
    want_upgradable(&b, 2);
    assert_int_equal(outcome_of_cancel(&writer), -ECANCELED);
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(outcome_of(&b), 0);
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0); /* there is no line any more */
    blz_rwlock_upgradable_unlock(&rwlock);
    for (int i = 0; i < 3; i++)
        blz_rwlock_read_unlock(&rwlock);
    end();
}

static void a_cancelled_upgrade_is_still_upgradable(void **state)
{
    struct in_line upgrade, reader;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_read(&rwlock), 0);
    assert_int_equal(blz_rwlock_try_upgradable(&rwlock), 0);
    want_upgrade(&upgrade, 0);
    want_read(&reader, 1);
    assert_int_equal(outcome_of_cancel(&upgrade), -ECANCELED);
    assert_int_equal(outcome_of(&reader), 0);
    blz_rwlock_read_unlock(&rwlock);
    blz_rwlock_read_unlock(&rwlock);
    assert_int_equal(blz_rwlock_try_upgrade(&rwlock), 0);
    blz_rwlock_write_unlock(&rwlock);
    end();
}

static void a_cancel_that_comes_too_late_has_the_lock(void **state)
{
    struct in_line writer, reader;

    (void)state;
    begin();
    assert_int_equal(blz_rwlock_try_write(&rwlock), 0);
    want_write(&writer, 0);
    want_read(&reader, 1);
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of_cancel(&writer), 0);
    assert_true(is_waiting(&reader));
    blz_rwlock_write_unlock(&rwlock);
    assert_int_equal(outcome_of_cancel(&reader), 0);
    blz_rwlock_read_unlock(&rwlock);
    end();
}

static void who_is_cancelled_before_its_first_poll_does_not_lock(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    spawn_line(&a, blz_rwlock_write(&ops[0], &rwlock));
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    end();
}

/* ---- the budget, threads, misuse ---- */

struct greedy {
    BLZ_FRAME;
    const bool *enough;
    int64_t rc;
    blz_rwlock_op op;
};

BLZ_ASYNC(greedy)
{
    BLZ_BEGIN;
    while (!*self->enough) {
        BLZ_AWAIT(self->rc, blz_rwlock_read(&self->op, &rwlock));
        blz_rwlock_read_unlock(&rwlock);
    }
    BLZ_END(0);
}

static int64_t set(void *flag)
{
    *(bool *)flag = true;
    return 0;
}

static void a_loop_of_reads_lets_others_run(void **state)
{
    bool enough = false;

    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(line_rt, NULL, greedy, .enough = &enough), 0);
    assert_int_equal(BLZ_SPAWN_ON(line_rt, NULL, calls, .fn = set, .arg = &enough), 0);
    turn_all(line_rt);
    end();
}

static void *write_and_unlock(void *arg)
{
    check(blz_rwlock_write_wait(arg) == 0);
    blz_rwlock_write_unlock(arg);
    return NULL;
}

static void *read_and_unlock(void *arg)
{
    check(blz_rwlock_read_wait(arg) == 0);
    blz_rwlock_read_unlock(arg);
    return NULL;
}

static void threads_take_turns(void **state)
{
    blz_rwlock l = BLZ_RWLOCK_INIT;
    pthread_t threads[4];

    (void)state;
    assert_int_equal(blz_rwlock_upgradable_wait(&l), 0);
    assert_int_equal(blz_rwlock_upgrade_wait(&l), 0);
    for (int i = 0; i < 4; i++)
        threads[i] = start_thread(i % 2 ? read_and_unlock : write_and_unlock, &l);
    blz_rwlock_downgrade(&l);
    blz_rwlock_read_unlock(&l);
    for (int i = 0; i < 4; i++)
        join_thread(threads[i]);
    assert_int_equal(l.word, 0);
}

static void (*const unlocks[])(blz_rwlock *) = {blz_rwlock_read_unlock,
                                                blz_rwlock_upgradable_unlock,
                                                blz_rwlock_write_unlock, blz_rwlock_downgrade};

static void unlocking_what_is_not_held_that_way_aborts(void **state)
{
    (void)state;
    in_own_process("0");
    in_own_process("1");
    in_own_process("2");
    in_own_process("3");
}

static void end_well(int signal)
{
    (void)signal;
    _exit(0);
}

/* In a process of its own, which ends well if it aborts. */
static int unlock_the_wrong_way(int which)
{
    blz_rwlock l = BLZ_RWLOCK_INIT;

    signal(SIGABRT, end_well);
    if (which == 0 ? blz_rwlock_try_write(&l) : blz_rwlock_try_read(&l))
        return 2;
    unlocks[which](&l);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(readers_share_and_writers_do_not),
        TEST(one_upgradable_goes_with_readers),
        TEST(a_free_one_is_had_at_once),
        TEST(readers_do_not_overtake_a_writer),
        TEST(readers_in_front_go_in_together),
        TEST(a_second_upgradable_waits_for_the_first),
        TEST(an_upgrade_waits_for_the_readers_and_lets_no_more_in),
        TEST(an_upgrade_goes_ahead_of_the_line),
        TEST(an_upgrade_that_waits_is_in_front_of_the_line),
        TEST(a_second_upgrade_would_be_a_deadlock),
        TEST(only_the_upgradable_one_can_be_upgraded),
        TEST(two_readers_cannot_both_become_the_writer),
        TEST(the_only_reader_becomes_the_writer_ahead_of_the_line),
        TEST(a_downgrade_lets_the_readers_in_front_in),
        TEST(nobody_writes_between_a_downgrade_and_its_unlock),
        TEST(readers_behind_a_cancelled_writer_go_in),
        TEST(a_cancelled_upgrade_is_still_upgradable),
        TEST(a_cancel_that_comes_too_late_has_the_lock),
        TEST(who_is_cancelled_before_its_first_poll_does_not_lock),
        TEST(a_loop_of_reads_lets_others_run),
        TEST(threads_take_turns),
        TEST(unlocking_what_is_not_held_that_way_aborts),
    };

    if (argc > 1)
        return unlock_the_wrong_way(argv[1][0] - '0');
    return RUN_TESTS(tests);
}
