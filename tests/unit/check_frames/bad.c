/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blitz-check-frames must find, and nothing else: each mistake says in a comment on its line
 * what the finding looks like, as a regular expression. Read with -D BAD. Most of this compiles.
 */
#include <blitz/async.h>
#include <stdio.h>
#include <string.h>

#ifdef BAD

struct point {
    int x, y;
};

int next_number(void);
void use_number(int number);
int make_point(struct point *p);
void show_point(const struct point *p);
void make_line(char *line, size_t size);
blz_future *blz_fill(blz_future *op, char *buf, size_t size);

#define PAUSE() BLZ_AWAIT(self->rc, blz_yield(&self->pause))

/* ---- Set before BLZ_BEGIN ---- */

BLZ_ASYNC(reset_counter)
{
    int count = 0;

    BLZ_BEGIN;
    count++;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(count); // expect: `count` is used here, but it is set before BLZ_BEGIN
    BLZ_END(self->rc);
}

BLZ_ASYNC(clock_read_again)
{
    const int start = next_number();

    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(next_number() - start); // expect: `start` .* set before BLZ_BEGIN
    BLZ_END(self->rc);
}

BLZ_ASYNC(assigned_in_prologue)
{
    int n, m;
    n = self->n;
    make_point(&self->p), m = 0;

    BLZ_BEGIN;
    self->n = 0;
    PAUSE();
    use_number(n); // expect: `n` .* set before BLZ_BEGIN
    BLZ_END(m);    // expect: `m` .* set before BLZ_BEGIN
}

/* ---- Arrays, structs, pointers ---- */

BLZ_ASYNC(array_filled_by_hand)
{
    char line[80];

    BLZ_BEGIN;
    for (int i = 0; i < 80; i++)
        line[i] = (char)i;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(line[3]); // expect: `line` .* lost at the await in line 70
    BLZ_END(self->rc);
}

BLZ_ASYNC(array_filled_by_a_function)
{
    BLZ_BEGIN;
    char line[80];
    make_line(line, sizeof line);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    puts(line); // expect: `line` .* lost at the await
    BLZ_END(self->rc);
}

BLZ_ASYNC(struct_filled_by_members)
{
    struct point p;

    BLZ_BEGIN;
    p.x = 1;
    p.y = 2;
    BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->pause));
    show_point(&p); // expect: `p` .* lost at the await
    BLZ_END(self->rc);
}

BLZ_ASYNC(address_taken)
{
    int n;

    BLZ_BEGIN;
    sscanf(self->text, "%d", &n);
    BLZ_CALL(self->rc, self->child, address_taken, .text = "1");
    use_number(n); // expect: `n` .* lost at the await
    BLZ_END(self->rc);
}

BLZ_ASYNC(pointer_into_the_frame)
{
    BLZ_BEGIN;
    char *at = self->buf;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    *at = 'x'; // expect: `at` .* lost at the await
    BLZ_END(self->rc);
}

/* ---- Flow ---- */

BLZ_ASYNC(used_in_the_next_round)
{
    int last;

    BLZ_BEGIN;
    last = 0;
    for (;;) {
        if (last > 5) // expect: `last` .* lost at the await
            break;
        last = next_number();
        if (last < 0)
            goto out;
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    }
out:
    BLZ_END(self->rc);
}

BLZ_ASYNC(used_in_the_condition)
{
    int left;

    BLZ_BEGIN;
    left = 3;
    do
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    while (--left > 0); // expect: `left` .* lost at the await
    BLZ_END(self->rc);
}

BLZ_ASYNC(only_one_branch_awaits)
{
    BLZ_BEGIN;
    int n = next_number();
    if (self->n)
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(n); // expect: `n` .* lost at the await
    BLZ_END(self->rc);
}

BLZ_ASYNC(reached_by_goto)
{
    BLZ_BEGIN;
    int n = next_number();
again:
    use_number(n++); // expect: `n` .* lost at the await
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    if (self->rc == 0)
        goto again;
    BLZ_END(self->rc);
}

/* ---- Addresses that live on ---- */

BLZ_ASYNC(buffer_of_an_operation)
{
    BLZ_BEGIN;
    {
        char buf[80];
        BLZ_AWAIT(self->rc, blz_fill(&self->pause, buf, 80)); // expect: `buf` goes to a future
    }
    BLZ_END(self->rc);
}

BLZ_ASYNC(argument_of_a_call)
{
    BLZ_BEGIN;
    struct point p;
    make_point(&p);
    BLZ_CALL(self->rc, self->child, argument_of_a_call, .where = &p); // expect: `p` goes to
    BLZ_END(self->rc);
}

BLZ_ASYNC(argument_of_a_task)
{
    BLZ_BEGIN;
    int n = 0;
    self->rc = BLZ_SPAWN(argument_of_a_call, .where = (void *)&n); // expect: `n` goes to a task
    BLZ_END(self->rc);
}

BLZ_ASYNC(kept_in_the_frame)
{
    char buf[80];

    BLZ_BEGIN;
    self->text = buf; // expect: address of `buf` is kept in the frame
    self->p = &self->q;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc);
}

/* ---- Control ---- */

BLZ_ASYNC(await_in_a_switch)
{
    BLZ_BEGIN;
    switch (self->n) {
    case 0:
        while (self->n++ < 3)
            BLZ_AWAIT(self->rc, blz_yield(&self->pause)); // expect: inside a `switch`
        break;
    default:
        PAUSE(); // expect: inside a `switch`
    }
    BLZ_END(self->rc);
}

BLZ_ASYNC(stray_break)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    if (self->rc < 0)
        break; // expect: `break` outside of a loop
    BLZ_END(self->rc);
}

BLZ_ASYNC(early_return)
{
    if (!self->n)
        return BLZ_READY; // expect: a `return` in an async function
    BLZ_BEGIN;
    if (self->n == 1)
        return BLZ_PENDING; // expect: a `return` in an async function
    BLZ_END(self->rc);
}

BLZ_ASYNC(no_end)
{
    BLZ_BEGIN; // expect: `no_end` has no BLZ_END
}

BLZ_ASYNC(no_begin)
{
    self->rc = 0;      // expect: `no_begin` has no BLZ_BEGIN
    BLZ_END(self->rc); // expect: BLZ_END without a BLZ_BEGIN
}

BLZ_ASYNC(two_ends)
{
    BLZ_BEGIN;
    if (self->n) {
        BLZ_END(0); // expect: BLZ_END must not be inside a block
    }
    BLZ_END(self->rc); // expect: a second BLZ_END
}

BLZ_ASYNC(after_the_end)
{
    BLZ_BEGIN;
    BLZ_END(self->rc);
    use_number(1); // expect: nothing after BLZ_END is reached
}

/* ---- Futures that nothing awaits ---- */

struct prepares {
    BLZ_FRAME;
    int64_t rc;
    blz_future *next;
    blz_future *both[2];
    blz_future pause, other;
};

BLZ_ASYNC(prepares)
{
    BLZ_BEGIN;
    self->next = blz_yield(&self->pause);    // expect: `next` holds a future that is never awaited
    self->both[0] = blz_yield(&self->other); // expect: `both` holds a future that is never awaited
    BLZ_END(self->rc);
}

BLZ_ASYNC(stores_in_a_local)
{
    BLZ_BEGIN;
    blz_future *write = blz_yield(&self->pause); // expect: `write` holds a future that is never
    (void)write;
    BLZ_END(self->rc);
}

BLZ_ASYNC(awaits_only_the_second)
{
    BLZ_BEGIN;
    blz_future *read;
    read = blz_yield(&self->pause); // expect: `read` holds a future that is never awaited
    read = blz_yield(&self->other);
    BLZ_AWAIT(self->rc, read);
    BLZ_END(self->rc);
}

BLZ_ASYNC(fills_an_array)
{
    BLZ_BEGIN;
    blz_future *list[2];
    list[0] = blz_yield(&self->pause); // expect: `list` holds a future that is never awaited
    BLZ_END(self->rc);
}

#endif
