/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of children: started by many tasks at once, waited for, killed, cancelled while they are
 * waited for, dropped. In the end there is no zombie. SOAK=1: more than 10,000.
 */
#include "io_fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

static bool has_no_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

enum { WAITS, KILLS, DROPS, CANCELLED, NR_WAYS };

struct starter {
    BLZ_FRAME;
    blz_command cmd;
    int left;
    uint64_t seed;
    int way;
    int64_t rc;
    blz_child child;
    blz_timeout limit;
    blz_child_await_op wait;
};

static void start(struct starter *self)
{
    self->way = (int)random_below(&self->seed, NR_WAYS);
    check(blz_command_spawn(&self->cmd, &self->child, NULL) == 0);
    if (self->way == KILLS)
        check(blz_child_kill(&self->child) == 0);
}

static blz_future *ends(struct starter *self)
{
    blz_future *wait = blz_child_await(&self->wait, &self->child);

    return self->way == CANCELLED ? blz_with_timeout(&self->limit, 100 * BLZ_USEC, wait) : wait;
}

static bool is_right(const struct starter *self)
{
    if (self->way == CANCELLED && self->rc == -ETIMEDOUT)
        return true;
    return self->rc == 0 || (self->way == KILLS && blz_exit_signal(self->rc) == SIGKILL);
}

BLZ_ASYNC(starter)
{
    BLZ_BEGIN;
    blz_command_init_with(&self->cmd, "/bin/true", test_memory());
    while (self->left-- > 0) {
        start(self);
        if (self->way != DROPS) {
            BLZ_AWAIT(self->rc, ends(self));
            check(is_right(self));
        }
        blz_child_drop(&self->child);
    }
    blz_command_free(&self->cmd);
    BLZ_END(0);
}

struct storm {
    BLZ_FRAME;
    int tasks, each;
    int i;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(storm)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (self->i = 0; self->i < self->tasks; self->i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, starter, .left = self->each,
                              .seed = (uint64_t)self->i + 1) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void storm_on(blz_rt *rt)
{
    int each = is_soak() ? 160 : is_sanitized() ? 3 : 8;

    assert_int_equal(BLZ_BLOCK_ON(rt, storm, .tasks = 16, .each = each), 0);
}

static void no_zombie_survives_a_storm(void **state)
{
    int64_t blocks = memory_blocks(the_memory());

    (void)state;
    allow_seconds(100);
    on_every_backend_of(2, storm_on);
    while (!has_no_children() || memory_blocks(the_memory()) != blocks)
        sched_yield();
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(no_zombie_survives_a_storm)};
    return RUN_TESTS(tests);
}
