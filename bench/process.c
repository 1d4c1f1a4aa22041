/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting processes from a large parent: /bin/true, one after the other, each waited for. A
 * gibibyte of memory is touched first, so that anything that copies page tables shows. The plain
 * one is what a program without a runtime would write.
 */
#include "bench.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BALLAST = 1 << 30, PAGE = 4096 };

static char *grow_parent(void)
{
    char *memory = malloc(BALLAST);

    bench_check(memory ? 0 : -ENOMEM, "ballast");
    for (size_t i = 0; i < BALLAST; i += PAGE)
        ((volatile char *)memory)[i] = 1;
    return memory;
}

struct spawn_true {
    BLZ_FRAME;
    struct run *run;
    uint64_t i;
    int64_t rc;
    blz_command cmd;
    blz_child child;
    blz_child_await_op wait;
};

BLZ_ASYNC(spawn_true)
{
    BLZ_BEGIN;
    blz_command_init(&self->cmd, "/bin/true");
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        bench_check(blz_command_spawn(&self->cmd, &self->child, NULL), "spawn");
        BLZ_AWAIT(self->rc, blz_child_await(&self->wait, &self->child));
        bench_check(self->rc, "wait");
        blz_child_drop(&self->child);
    }
    bench_stop(self->run);
    blz_command_free(&self->cmd);
    BLZ_END(0);
}

static void process_spawn(struct run *run)
{
    char *ballast = grow_parent();

    bench_check(BLZ_BLOCK_ON(run->rt, spawn_true, .run = run), "process_spawn");
    free(ballast);
}

static void process_spawn_plain(struct run *run)
{
    char *ballast = grow_parent(), name[] = "/bin/true", *argv[] = {name, NULL};

    bench_start(run);
    for (uint64_t i = 0; i < run->n; i++) {
        pid_t pid;
        int status;
        bench_check(-posix_spawn(&pid, name, NULL, NULL, argv, environ), "posix_spawn");
        bench_check(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -ECHILD, "waitpid");
    }
    bench_stop(run);
    free(ballast);
}

const struct bench process_benches[] = {
    {"process_spawn", 1000, process_spawn, false},
    {"process_spawn_plain", 1000, process_spawn_plain, false},
    {NULL, 0, NULL, false},
};
