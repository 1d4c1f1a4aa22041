/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest Blitz program: an async function that greets, lets others run, and greets again.
 *
 *     hello [NAME]...
 *
 * With several names each is greeted by a task of its own, and the greetings interleave.
 */
#include <blitz.h>
#include <stdio.h>

/* The frame of `greet`: its arguments, and what it must remember over an await. */
struct greet {
    BLZ_FRAME; /* first */
    const char *name;
    int i;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(greet) /* in the body, `self` is the frame */
{
    BLZ_BEGIN;
    for (self->i = 1; self->i <= 3; self->i++) {
        printf("hello %s, %d of 3\n", self->name, self->i);
        BLZ_AWAIT(self->rc, blz_yield(&self->pause)); /* others run; then we go on from here */
        if (self->rc < 0)
            break; /* cancelled */
    }
    BLZ_END(self->rc);
}

struct greet_all {
    BLZ_FRAME;
    char **names;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(greet_all)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (; *self->names; self->names++) {
        self->rc = BLZ_SCOPE_SPAWN(&self->scope, greet, .name = *self->names);
        if (self->rc < 0)
            break; /* out of memory: those who are there are greeted */
    }
    if (self->rc < 0)
        fprintf(stderr, "hello: %s\n", blz_strerror(self->rc));
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope)); /* all have been greeted */
    BLZ_END(self->rc);
}

int main(int argc, char **argv)
{
    int64_t rc = argc < 2 ? BLZ_RUN(greet, .name = "world") : BLZ_RUN(greet_all, .names = argv + 1);

    if (rc < 0)
        fprintf(stderr, "hello: %s\n", blz_strerror(rc));
    return rc < 0;
}
