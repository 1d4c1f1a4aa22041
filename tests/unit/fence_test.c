/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the system refuses membarrier: from the start, when the library does without; and later,
 * when a lock would no longer keep threads apart. A system call filter cannot be taken back, so
 * each case is a program of its own: this one, started with the case's name.
 */
#include "harness.h"

#include "sched/rt.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NO_MEMBARRIER = 77 };

/* From now on membarrier fails on this thread, and on those that it starts. */
static void refuse_membarrier(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* ---- what uses fences ---- */

enum { MESSAGES = 2000 };

struct sends {
    BLZ_FRAME;
    blz_sender tx;
    int64_t i, rc;
    blz_channel_op op;
};

BLZ_ASYNC(sends)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < MESSAGES; self->i++) {
        BLZ_AWAIT(self->rc, blz_sender_send(&self->op, &self->tx, &self->i));
        check(self->rc == 0);
    }
    blz_sender_drop(&self->tx);
    BLZ_END(0);
}

struct receives {
    BLZ_FRAME;
    blz_sender tx;
    blz_receiver rx;
    int64_t message, sum, rc;
    blz_channel_op op;
    blz_sleep_op nap;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    check(blz_channel_new(&self->tx, &self->rx,
                          &(blz_channel_options){.capacity = 4,
                                                 .elem_size = sizeof self->message}) == 0);
    check(BLZ_SPAWN(sends, .tx = self->tx) == 0);
    for (;;) {
        BLZ_AWAIT(self->rc, blz_receiver_recv(&self->op, &self->rx, &self->message));
        if (self->rc < 0)
            break;
        self->sum += self->message;
    }
    blz_receiver_drop(&self->rx);
    BLZ_AWAIT(self->rc, blz_sleep(&self->nap, BLZ_MSEC));
    BLZ_END(self->sum);
}

static void count_calls(void *arg)
{
    event_post(arg);
}

/* A timer from outside takes the lock of a wheel that is biased to its worker. */
static void ring_a_timer(blz_rt *rt)
{
    struct event called = EVENT_INIT;
    blz_timer timer;

    blz_timer_init(&timer, count_calls, &called);
    check(blz_timer_start(&timer, 0, rt) == 0);
    event_wait(&called, 1);
}

/* ---- the cases ---- */

static int refused_from_the_start(void)
{
    blz_rt *rt;

    refuse_membarrier(ENOSYS);
    check(blz_rt_new(&rt, &(blz_options){.workers = 2}) == 0);
    check(!rt->asymmetric_fences);
    check(BLZ_BLOCK_ON(rt, receives) == (int64_t)MESSAGES * (MESSAGES - 1) / 2);
    ring_a_timer(rt);
    check(BLZ_SPAWN_ON(rt, NULL, sleeps) == 0);
    check(blz_rt_free(rt) == 0);
    return 0;
}

static int refused_later(void)
{
    blz_rt *rt;

    check(blz_rt_new(&rt, &(blz_options){.workers = 2}) == 0);
    if (!rt->asymmetric_fences)
        return NO_MEMBARRIER;
    check(BLZ_BLOCK_ON(rt, receives) == (int64_t)MESSAGES * (MESSAGES - 1) / 2);
    refuse_membarrier(EPERM);
    return blz_rt_shutdown(rt, 0); /* it does not come back */
}

/* ---- the tests ---- */

static void without_membarrier_everything_works(void **state)
{
    (void)state;
    in_own_process("start");
}

static void a_filter_that_comes_later_ends_the_process_with_a_sentence(void **state)
{
    char errors[4096];
    int status = run_self("later", errors, sizeof errors);

    (void)state;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_MEMBARRIER)
        skip();
    assert_non_null(strstr(errors, "blitz: membarrier worked at the start and fails now"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(without_membarrier_everything_works),
        TEST(a_filter_that_comes_later_ends_the_process_with_a_sentence),
    };

    if (argc > 1)
        return strcmp(argv[1], "start") == 0 ? refused_from_the_start() : refused_later();
    return RUN_TESTS(tests);
}
