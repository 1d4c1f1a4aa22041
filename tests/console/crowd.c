/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program to look at with the console. It says where, then does what it is told, line by line,
 * and answers each with "ok":
 *
 *   crowd N       N tasks more that wait for a channel, named "crowd", "member 7" and so on
 *   beat N        N tasks more that sleep and wake up, each some 100 times a second
 *   deadlock      two tasks that wait for each other's mutex
 *   unlock        ends them, by cancelling one
 *   patient       the same, but each waits with a limit, and until the crowd is dismissed
 *   spin          a task that does not let go of its worker ...
 *   enough        ... until now
 *   pool          a computation of the fork-join pool, and a job of the blocking pool
 *   dismiss       the crowd goes
 *
 *   crowd [ADDRESS]
 */
#include <blitz.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BEATS = 1000 };

static blz_rt *rt;
static blz_token *dismissed;

#define must(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "crowd: failed: %s\n", #condition), abort()))

/* ---- a crowd ---- */

struct member {
    BLZ_FRAME;
    int64_t rc;
    blz_token_op op;
};

BLZ_ASYNC(member)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_token_cancelled(&self->op, dismissed));
    BLZ_END(self->rc);
}

struct named_member {
    BLZ_FRAME;
    int64_t rc;
    struct member member;
};

BLZ_ASYNC(named_member)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->member, member);
    BLZ_END(self->rc);
}

/* Every tenth has a name of its own, and is a function deeper. */
static void gather(long count)
{
    char name[32];

    for (long i = 0; i < count; i++) {
        if (i % 10 == 0) {
            snprintf(name, sizeof name, "member %ld", i);
            must(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .name = name}), named_member) == 0);
        } else {
            must(BLZ_SPAWN_ON(rt, NULL, member) == 0);
        }
    }
}

/* ---- tasks that do something ---- */

struct beat {
    BLZ_FRAME;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(beat)
{
    BLZ_BEGIN;
    do
        BLZ_AWAIT(self->rc, blz_sleep(&self->op, 10 * BLZ_MSEC));
    while (self->rc == 0);
    BLZ_END(self->rc);
}

static _Atomic bool enough;

struct spin {
    BLZ_FRAME;
};

BLZ_ASYNC(spin)
{
    BLZ_BEGIN;
    while (!enough)
        sched_yield();
    BLZ_END(0);
}

/* ---- a deadlock ---- */

static blz_mutex left = BLZ_MUTEX_INIT, right = BLZ_MUTEX_INIT;
static blz_barrier both;
static blz_handle philosophers[2];

struct philosopher {
    BLZ_FRAME;
    const char *name;
    blz_mutex *first, *second;
    int64_t rc;
    blz_mutex_op op;
    blz_barrier_op arrive;
};

BLZ_ASYNC(philosopher)
{
    BLZ_BEGIN;
    must(blz_task_set_name(self->name) == 0);
    BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, self->first));
    BLZ_AWAIT(self->rc, blz_barrier_arrive(&self->arrive, &both));
    BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, self->second));
    if (self->rc == 0)
        blz_mutex_unlock(self->second);
    blz_mutex_unlock(self->first);
    BLZ_END(self->rc);
}

struct patient {
    BLZ_FRAME;
    const char *name;
    blz_mutex *first, *second;
    int64_t rc;
    blz_mutex_op op;
    blz_barrier_op arrive;
    blz_timeout limit;
    blz_token_op token;
    blz_select_op select;
};

BLZ_ASYNC(patient)
{
    BLZ_BEGIN;
    must(blz_task_set_name(self->name) == 0);
    BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, self->first));
    BLZ_AWAIT(self->rc, blz_barrier_arrive(&self->arrive, &both));
    BLZ_AWAIT(self->rc, blz_select(&self->select,
                                   blz_with_timeout(&self->limit, 3600 * BLZ_SEC,
                                                    blz_mutex_lock(&self->op, self->second)),
                                   blz_token_cancelled(&self->token, dismissed)));
    if (self->op.future.result == 0)
        blz_mutex_unlock(self->second);
    blz_mutex_unlock(self->first);
    BLZ_END(self->rc);
}

static void be_patient(void)
{
    must(blz_barrier_init(&both, 2) == 0);
    must(BLZ_SPAWN_ON(rt, NULL, patient, .name = "left philosopher", .first = &left,
                      .second = &right) == 0);
    must(BLZ_SPAWN_ON(rt, NULL, patient, .name = "right philosopher", .first = &right,
                      .second = &left) == 0);
}

static void deadlock(void)
{
    must(blz_barrier_init(&both, 2) == 0);
    must(BLZ_SPAWN_ON(rt, &philosophers[0], philosopher, .name = "left philosopher", .first = &left,
                      .second = &right) == 0);
    must(BLZ_SPAWN_ON(rt, &philosophers[1], philosopher, .name = "right philosopher",
                      .first = &right, .second = &left) == 0);
}

static void end_deadlock(void)
{
    blz_handle_cancel(&philosophers[0]);
    must(blz_handle_wait(&philosophers[0]) == 0);
    must(blz_handle_wait(&philosophers[1]) == 0);
}

/* ---- pools ---- */

static int64_t one_job(void *arg)
{
    (void)arg;
    return 0;
}

struct pools {
    BLZ_FRAME;
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(pools)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking(&self->op, one_job, NULL));
    BLZ_END(self->rc);
}

static void compute(blz_par *par, void *arg)
{
    (void)par;
    (void)arg;
}

static void use_pools(void)
{
    must(BLZ_BLOCK_ON(rt, pools) == 0);
    must(blz_pool_run(NULL, compute, NULL) == 0);
}

/* ---- orders ---- */

static void obey(const char *line)
{
    char word[16] = "";
    long n = 0;

    (void)sscanf(line, "%15s %ld", word, &n);
    if (strcmp(word, "crowd") == 0)
        gather(n);
    else if (strcmp(word, "beat") == 0)
        for (long i = 0; i < n && i < MAX_BEATS; i++)
            must(BLZ_SPAWN_ON(rt, NULL, beat) == 0);
    else if (strcmp(word, "deadlock") == 0)
        deadlock();
    else if (strcmp(word, "unlock") == 0)
        end_deadlock();
    else if (strcmp(word, "patient") == 0)
        be_patient();
    else if (strcmp(word, "spin") == 0)
        must(BLZ_SPAWN_ON(rt, NULL, spin) == 0);
    else if (strcmp(word, "enough") == 0)
        enough = true;
    else if (strcmp(word, "pool") == 0)
        use_pools();
    else if (strcmp(word, "dismiss") == 0)
        blz_token_cancel(dismissed);
    printf("ok\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *address = argc > 1 ? argv[1] : "127.0.0.1:0";
    char line[128], at[BLZ_ADDR_TEXT] = "?";
    blz_console *console;
    blz_addr addr;

    must(blz_rt_new(&rt, &(blz_options){.workers = 2}) == 0);
    must(blz_token_new(&dismissed) == 0);
    must(blz_console_new(&console, rt,
                         &(blz_console_options){.address = address, .title = "crowd"}) == 0);
    blz_console_addr(console, &addr);
    blz_addr_format(&addr, at, sizeof at);
    printf("%s\n", at);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        obey(line);
    enough = true;
    blz_token_cancel(dismissed);
    must(blz_console_free(console) == 0);
    must(blz_rt_free(rt) == 0);
    blz_token_unref(dismissed);
    return 0;
}
