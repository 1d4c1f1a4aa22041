/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes that AddressSanitizer finds if the library was built with it, too: the library then says
 * which of its memory is free, and its own code is watched.
 */
#include <blitz.h>
#include <stdio.h>
#include <string.h>

/* ---- reading a frame whose task has ended ---- */

static int64_t *dead;

struct leaks_its_frame {
    BLZ_FRAME;
    int64_t value;
};

BLZ_ASYNC(leaks_its_frame)
{
    BLZ_BEGIN;
    self->value = 7;
    dead = &self->value;
    BLZ_END(0);
}

struct reads_a_dead_frame {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(reads_a_dead_frame)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, leaks_its_frame);
    if (self->rc == 0)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    printf("%lld\n", (long long)*dead);
    BLZ_END(self->rc);
}

/* ---- ending while a child of a scope in the frame still runs ---- */

struct yields {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(yields)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 10; self->i++)
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(0);
}

struct forgets_its_child {
    BLZ_FRAME;
    blz_scope scope;
    int64_t rc;
};

BLZ_ASYNC(forgets_its_child)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    self->rc = BLZ_SCOPE_SPAWN(&self->scope, yields);
    BLZ_END(self->rc); /* without blz_scope_join */
}

struct parent {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    blz_future pause;
    int i;
    int64_t rc;
};

BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, forgets_its_child);
    if (self->rc == 0)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    for (self->i = 0; self->i < 100; self->i++)
        BLZ_AWAIT(self->rc, blz_yield(&self->pause)); /* the child ends meanwhile */
    BLZ_END(self->rc);
}

int main(int argc, char **argv)
{
    const blz_options options = {.workers = 1};

    if (argc == 2 && strcmp(argv[1], "dead_frame") == 0)
        return BLZ_RUN_WITH(&options, reads_a_dead_frame) < 0;
    if (argc == 2 && strcmp(argv[1], "unjoined_scope") == 0)
        return BLZ_RUN_WITH(&options, parent) < 0;
    return 2;
}
