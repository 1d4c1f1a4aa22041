/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over ranges, with or without a result (range.h has the pace).
 *
 * A walk halves its range until what is left is a leaf, forks the right halves on the way down, and
 * takes them back on the way up, folding everything into one accumulator from left to right.
 * Only a half that another thread has taken gets an accumulator of its own, which that thread walks
 * with from single elements on; so there are no more accumulators than thefts, and a loop that
 * nobody helps with is a serial one.
 *
 * The beginning is different, because most loops are short. Halving down to one element needs as
 * many forks as the size has bits, and as many looks at the clock. Instead pieces are cut off the
 * front while the rest waits as a single job: one element, then up to 64 times as many each time,
 * as the clock allows. Cheap loops of a thousand elements are over after a handful of pieces.
 *
 * A leaf cannot be cut while it runs. No guess from the elements before it makes one longer than a
 * fraction of the loop (`most`), so that a loop whose costs are all at its end is still shared.
 */
#include "par/range.h"

#include <blitz/error.h>
#include <string.h>

enum { INLINE_SIZE = 64, LEAST_MOST = 64, MOST_GROWTH = 64, LOOKS_IN_A_LEAF = 4 };

/* What a fork holds: a part of the range that may be taken, with room for its result. */
typedef struct part {
    blz_par_job job;
    range_loop *loop;
    size_t begin, end;
    void *acc; /* NULL: none was begun */
    _Alignas(16) unsigned char room[INLINE_SIZE];
} part;

/* ---- the loop ---- */

void blz__par_loop_init(range_loop *l, blz_par *par, size_t n, const blz_par_options *options)
{
    const blz_pool *pool = worker_of(par)->pool;

    l->cancel = options ? options->cancel : NULL;
    l->waiting = options ? options->waiting : BLZ_PAR_WAIT_DEFAULT;
    l->least = options && options->grain ? options->grain : 1;
    l->most = n / (4 * (size_t)pool_nr_in_use(pool));
    if (l->most < LEAST_MOST)
        l->most = LEAST_MOST;
    if (l->most < l->least)
        l->most = l->least;
    l->look_ticks = pool->look_ticks;
    l->target_ticks = LOOKS_IN_A_LEAF * pool->look_ticks;
    l->failure = (blz_par_cancel){0};
}

bool blz__par_loop_is_over(range_loop *l)
{
    int code = l->cancel ? blz_par_cancel_code(l->cancel) : 0;

    if (blz_unlikely(code))
        blz_par_cancel_set(&l->failure, code);
    return blz_par_cancel_code(&l->failure) != 0;
}

static void fold(blz_par *par, const range_walk *w, size_t begin, size_t end)
{
    range_loop *l = w->loop;

    range_check(l, l->reducer->fold(par, w->acc, begin, end, l->arg));
}

/* ---- parts that others take ---- */

static void begin_acc(blz_par *par, part *p)
{
    const blz_par_reducer *r = p->loop->reducer;

    p->acc = r->size <= INLINE_SIZE ? p->room : blz__par_alloc(par, r->size);
    if (!p->acc)
        blz_par_cancel_set(&p->loop->failure, -ENOMEM);
    else if (r->size)
        memcpy(p->acc, r->identity, r->size);
}

/* Adds what another thread has made of its part. */
static void absorb(blz_par *par, const range_walk *w, part *p)
{
    const blz_par_reducer *r = w->loop->reducer;

    if (!p->acc || !r->size)
        return;
    range_check(w->loop, r->combine(w->acc, p->acc, w->loop->arg));
    if (p->acc != p->room)
        blz__par_free(par, p->acc, r->size);
}

static void start_range(blz_par *par, range_walk *w, size_t begin, size_t end);

static void run_part(blz_par *par, blz_par_job *job)
{
    part *p = blz_container_of(job, part, job);
    range_walk w = {p->loop, NULL, p->loop->least, 0};

    p->acc = NULL;
    if (blz__par_loop_is_over(p->loop))
        return;
    begin_acc(par, p);
    w.acc = p->acc;
    w.last = range_now(par);
    if (p->acc)
        start_range(par, &w, p->begin, p->end);
}

static inline void fork_part(blz_par *par, part *p, const range_walk *w, size_t begin, size_t end)
{
    p->loop = w->loop;
    p->begin = begin;
    p->end = end;
    blz_par_fork(par, &p->job, run_part);
}

/* ---- walking ---- */

static void walk_leaf(blz_par *par, range_walk *w, size_t begin, size_t end)
{
    uint64_t start = range_now(par);

    fold(par, w, begin, end);
    range_adapt(par, w, end - begin, range_now(par) - start);
}

static void walk_range(blz_par *par, range_walk *w, size_t begin, size_t end)
{
    while (!blz__par_loop_is_over(w->loop)) {
        size_t middle = begin + (end - begin) / 2;
        part right;

        if (end - begin <= w->grain || middle - begin < w->loop->least) {
            walk_leaf(par, w, begin, end);
            return;
        }
        fork_part(par, &right, w, middle, end);
        walk_range(par, w, begin, middle);
        if (!blz_par_unfork_with(par, &right.job, w->loop->waiting)) {
            absorb(par, w, &right);
            return;
        }
        begin = middle;
    }
}

/* ---- the beginning ---- */

/* After a piece of w->grain elements: as many as fit into a look. The time that it took. */
static uint64_t grow(blz_par *par, range_walk *w)
{
    uint64_t now = range_now(par), ticks = now - w->last;
    uint64_t times = w->loop->look_ticks / (ticks | 1);
    size_t most = w->loop->most;

    times = times > MOST_GROWTH ? MOST_GROWTH : times < 1 ? 1 : times;
    w->grain = w->grain > most / times ? most : w->grain * times;
    w->last = now;
    return ticks;
}

/* Whether a piece can be cut off without leaving too little. */
static bool has_next_piece(const range_walk *w, size_t len)
{
    return len > w->grain && len - w->grain >= w->loop->least;
}

/* From the front, until the pieces are long enough to be worth halving. */
static void start_half(blz_par *par, range_walk *w, size_t begin, size_t end)
{
    uint64_t look = w->loop->look_ticks, ticks = 0;

    while (has_next_piece(w, end - begin) && ticks < look / 2) {
        size_t next = begin + w->grain;
        part rest;

        if (blz__par_loop_is_over(w->loop))
            return;
        fork_part(par, &rest, w, next, end);
        fold(par, w, begin, next);
        if (!blz_par_unfork_with(par, &rest.job, w->loop->waiting)) {
            absorb(par, w, &rest);
            return;
        }
        begin = next;
        ticks = grow(par, w);
    }
    if (ticks >= look / 2) {
        range_look_soon(par);
        walk_range(par, w, begin, end);
    } else if (!blz__par_loop_is_over(w->loop)) {
        fold(par, w, begin, end);
    }
}

/* The right half first becomes a job, so that who comes early does not get nearly everything. */
static void start_range(blz_par *par, range_walk *w, size_t begin, size_t end)
{
    size_t middle = begin + (end - begin) / 2;
    part right;

    if (middle - begin < w->loop->least) {
        walk_range(par, w, begin, end);
        return;
    }
    fork_part(par, &right, w, middle, end);
    start_half(par, w, begin, middle);
    if (blz_par_unfork_with(par, &right.job, w->loop->waiting))
        start_half(par, w, middle, end);
    else
        absorb(par, w, &right);
}

/*
 * Whether the first forks are shown to others. At once, because the first element may take long;
 * unless what was shown lately was not worth it, and somebody looks after it: then not before this
 * has taken a while. Where there are older jobs, those are shown, and it does not matter.
 */
static void decide_on_sharing(blz_par *par, uint64_t now)
{
    worker *w = worker_of(par);

    if (par->tail != blz__load(&par->bottom, RELAXED))
        return;
    if (!blz__par_go_solo(w, now))
        range_look_soon(par);
}

int blz__par_range(blz_par *par, size_t n, const blz_par_reducer *reducer, void *arg, void *acc,
                   const blz_par_options *options)
{
    worker *self = worker_of(par);
    bool was_solo = self->is_solo;
    range_loop l;
    range_walk w = {&l, acc, 0, 0};

    l.reducer = reducer;
    l.arg = arg;
    blz__par_loop_init(&l, par, n, options);
    w.grain = l.least;
    if (n == 0) {
        blz__par_loop_is_over(&l);
    } else if (range_is_solo(&l, par)) {
        fold(par, &w, 0, n);
    } else {
        w.last = range_now(par);
        decide_on_sharing(par, w.last);
        start_range(par, &w, 0, n);
        if (self->is_solo && !was_solo)
            blz__par_end_solo(self);
    }
    return blz_par_cancel_code(&l.failure);
}
