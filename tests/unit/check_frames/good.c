/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correct async functions in many forms: blitz-check-frames must have nothing to say, and both
 * compilers must accept them.
 */
#include <blitz/async.h>
#include <stdio.h>
#include <string.h>

#define UNUSED        __attribute__((unused))
#define each(i, from) for ((i) = (from); (i) > 0; (i)--)
#define PAUSE()       BLZ_AWAIT(self->rc, blz_yield(&self->pause))

struct point {
    int x, y;
};

int next_number(void);
void use_number(int number);
int make_point(struct point *p);
void show_point(const struct point *p);
void make_line(char *line, size_t size);

struct worker {
    BLZ_FRAME;
    int n, i;
    char buf[64];
    char *text;
    struct point p;
    int64_t rc;
    blz_future pause;
    blz_handle handle;
    struct other *other;
};

/* Locals in blocks without an await. */
BLZ_ASYNC(worker)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 10; self->i++) {
        {
            int doubled = self->i * 2;
            char line[32];
            snprintf(line, sizeof line, "%d", doubled);
            puts(line);
        }
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        if (self->rc < 0)
            goto out;
        for (int k = 0; k < 3; k++)
            use_number(k);
    }
out:
    BLZ_END(self->rc);
}

/* A local that is filled anew after each await, by functions that we know or do not know. */
struct refill {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};
BLZ_ASYNC(refill)
{
    char line[80];
    char text[80];
    struct point p;
    int n;

    BLZ_BEGIN;
    for (;;) {
        make_line(line, sizeof line);
        puts(line);
        memset(text, 0, sizeof text);
        text[0] = line[1];
        fputs(text, stdout);
        if (make_point(&p) < 0)
            break;
        show_point(&p);
        n = next_number();
        use_number(n);
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        if (self->rc < 0)
            break;
    }
    BLZ_END(self->rc);
}

/* The result of an await in a local, as long as it is used before the next one. */
struct results {
    BLZ_FRAME;
    int64_t total;
    blz_future pause;
};
BLZ_ASYNC(results)
{
    BLZ_BEGIN;
    int64_t rc;
    do {
        BLZ_AWAIT(rc, blz_ready(&self->pause, next_number()));
        self->total += rc;
    } while (rc > 0 && self->total < 100);
    BLZ_AWAIT(rc, blz_yield(&self->pause));
    BLZ_END(rc < 0 ? rc : self->total);
}

/* Before BLZ_BEGIN: constants, shorthands for the frame, and what is never used after an await. */
struct prologue {
    BLZ_FRAME;
    struct point *p;
    int64_t rc;
    blz_future pause;
};
BLZ_ASYNC(prologue)
{
    static int calls;
    const int limit = 3 * sizeof(int);
    struct point *const p = self->p;
    int before = next_number();

    BLZ_BEGIN;
    use_number(before);
    while (p->x < limit) {
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        p->x += ++calls;
    }
    BLZ_END(self->rc);
}

/* A `switch` without an await, loops in it, a helper macro that awaits, a macro that loops. */
struct control {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_future pause;
};
BLZ_ASYNC(control)
{
    BLZ_BEGIN;
    each(self->i, 3)
    {
        switch (next_number()) {
        case 0:
            use_number(0);
            break;
        case 1 + 1: {
            int k = next_number();
            while (k-- > 0)
                if (next_number() == k)
                    break;
            break;
        }
        default:
            continue;
        }
        PAUSE();
    }
    if (self->rc < 0)
        PAUSE();
    else
        BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc);
}

/* Addresses that nobody keeps. */
struct addresses {
    BLZ_FRAME;
    int n, m;
    size_t len;
    int64_t rc;
    blz_handle handle;
    blz_future pause;
    struct worker child;
};
BLZ_ASYNC(addresses)
{
    BLZ_BEGIN;
    {
        char line[80];
        struct point p = {1, 2};
        blz_handle handle;
        show_point(&p);
        make_line(line, sizeof line);
        self->len = strlen(line);
        self->n = line[0] & p.x;
        self->m = make_point(&p);
        self->rc = BLZ_SPAWN_JOIN(&handle, worker, .n = p.y, .i = (int)strlen(line));
        if (self->rc == 0)
            blz_handle_detach(&handle);
    }
    BLZ_CALL(self->rc, self->child, worker, .n = self->n, .i = (int)self->len);
    BLZ_END(self->rc);
}

/* Shadowing, labels, member names that are also locals, sizeof. */
struct names {
    BLZ_FRAME;
    int n;
    struct point p;
    int64_t rc;
    blz_future pause;
};
BLZ_ASYNC(names)
{
    int n UNUSED;

    BLZ_BEGIN;
    n = 5;
    use_number(n);
    {
        int x = 1;
        self->p = (struct point){.x = x, .y = n};
    }
again:
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(self->n + (int)sizeof n + (int)sizeof(n));
    if (self->p.x-- > 0)
        goto again;
    BLZ_END(self->rc);
}

/* Silenced: the compilers' opinion is not ours. */
struct silenced {
    BLZ_FRAME;
    char *where;
    int64_t rc;
    blz_future pause;
};
BLZ_ASYNC(silenced)
{
    int start = next_number();

    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(start); // blitz-check: ignore
    // blitz-check: ignore
    use_number(start);
    BLZ_END(self->rc);
}

/* Futures that are stored first and awaited, selected or passed on later. */
void keep_future(blz_future *future);
void keep_futures(blz_future **futures, int n);

struct stores {
    BLZ_FRAME;
    int n;
    int64_t rc;
    blz_future *next, *last;
    blz_future *both[2];
    blz_future pause, other;
};

BLZ_ASYNC(stores)
{
    blz_future *now;

    BLZ_BEGIN;
    now = NULL;
    if (self->n)
        now = blz_yield(&self->pause);
    if (now)
        BLZ_AWAIT(self->rc, now);
    self->next = blz_yield(&self->pause);
    BLZ_AWAIT(self->rc, self->next);
    self->last = blz_yield(&self->other);
    keep_future(self->last);
    self->both[0] = blz_yield(&self->pause);
    self->both[1] = blz_yield(&self->other);
    keep_futures(self->both, 2);
    {
        blz_future *list[1];
        list[0] = blz_yield(&self->pause);
        keep_futures(list, 1);
    }
    {
        blz_future *one = blz_yield(&self->other);
        keep_futures(&one, 1);
    }
    BLZ_END(self->rc);
}

int spawn_all(void);
int spawn_all(void)
{
    return BLZ_SPAWN(worker) | BLZ_SPAWN(refill) | BLZ_SPAWN(results) | BLZ_SPAWN(prologue) |
           BLZ_SPAWN(control) | BLZ_SPAWN(addresses) | BLZ_SPAWN(names) | BLZ_SPAWN(silenced) |
           BLZ_SPAWN(stores);
}
