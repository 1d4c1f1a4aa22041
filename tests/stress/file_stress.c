/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files under a storm of cancellations: tasks open, write, read and close files, each operation
 * under a limit of its own that is often too short, on two workers. In the end there are as many
 * descriptors as in the beginning. And what a write has reported is in the file: every task keeps
 * account of the bytes that `done` says, and reads them back.
 */
#include "io_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TASKS = 24, BLOCK = 8192 };

static char dir[64];

struct storm {
    BLZ_FRAME;
    int number;
    int64_t rounds;
    uint64_t seed;
    char path[96];
    blz_file file;
    blz_io io;
    blz_fs_op op;
    blz_timeout limit;
    blz_bytes all;
    int64_t rc;
    int64_t len; /* bytes that are in the file for certain */
    char *buf;
};

static int64_t short_while(uint64_t *seed)
{
    return random_below(seed, 4) == 0 ? 10 * BLZ_SEC : random_below(seed, 200) * BLZ_USEC;
}

#define LIMITED(future) blz_with_timeout(&self->limit, short_while(&self->seed), (future))

static bool is_expected(int64_t rc)
{
    return rc >= 0 || rc == -ETIMEDOUT || rc == -ECANCELED;
}

/* The bytes of a file are told by the number of the task and by where they are. */
static void fill_in(struct storm *s)
{
    for (int i = 0; i < BLOCK; i++)
        s->buf[i] = (char)((s->len + i) * 13 + s->number);
}

static void look_at(const struct storm *s)
{
    check((int64_t)s->all.len >= s->len);
    for (int64_t i = 0; i < s->len; i++)
        check(s->all.data[i] == (char)(i * 13 + s->number));
}

BLZ_ASYNC(storm)
{
    BLZ_BEGIN;
    self->buf = malloc(BLOCK);
    check(self->buf != NULL);
    snprintf(self->path, sizeof self->path, "%s/%d", dir, self->number);
    for (; self->rounds > 0; self->rounds--) {
        BLZ_AWAIT(self->rc,
                  LIMITED(blz_file_open(&self->io, &self->file, self->path,
                                        &(blz_open_options){.write = true, .create = true})));
        check(is_expected(self->rc));
        if (self->rc < 0) {
            check(blz_file_close(&self->file) == -EBADF);
            continue;
        }
        fill_in(self);
        BLZ_AWAIT(self->rc, LIMITED(blz_file_write_all_at(&self->io, &self->file, self->buf, BLOCK,
                                                          self->len)));
        check(is_expected(self->rc));
        check(self->rc < 0 || self->io.done == BLOCK);
        self->len += (int64_t)self->io.done;
        if (random_below(&self->seed, 8) == 0) {
            BLZ_AWAIT(self->rc, LIMITED(blz_fs_read(&self->op, self->path, &self->all, 1 << 30)));
            check(is_expected(self->rc));
            if (self->rc >= 0)
                look_at(self);
            blz_bytes_free(&self->all);
        }
        blz_file_close(&self->file);
    }
    BLZ_AWAIT(self->rc, blz_fs_read(&self->op, self->path, &self->all, 1 << 30));
    check(self->rc >= 0 || (self->rc == -ENOENT && self->len == 0));
    if (self->rc >= 0)
        look_at(self);
    blz_bytes_free(&self->all);
    free(self->buf);
    BLZ_END(0);
}

static void body(blz_rt *rt)
{
    blz_handle handles[TASKS];
    char command[128];

    strcpy(dir, "/tmp/blitz-storm-XXXXXX");
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], storm, .number = i, .rounds = scaled(60),
                                      .seed = (uint64_t)i + 1),
                         0);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void nothing_leaks_and_no_write_is_lost(void **state)
{
    (void)state;
    on_every_backend_of(2, body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(nothing_leaks_and_no_write_is_lost)};

    return RUN_TESTS(tests);
}
