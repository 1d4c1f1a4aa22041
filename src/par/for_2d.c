/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over two dimensions: as range.c, with tiles in place of ranges. The longer side is halved,
 * so that tiles become squares, with short borders to their neighbours.
 */
#include "par/range.h"

typedef struct tile_loop {
    range_loop loop;
    blz_par_tile_fn body;
} tile_loop;

typedef struct part {
    blz_par_job job;
    tile_loop *loop;
    blz_par_tile tile;
} part;

/* Of more cells than can be counted there are as many as can. */
static size_t cells(const blz_par_tile *t)
{
    size_t n;

    if (__builtin_mul_overflow(t->row_end - t->row, t->col_end - t->col, &n))
        return SIZE_MAX;
    return n;
}

/* The second half becomes *right. */
static void halve(blz_par_tile *left, blz_par_tile *right)
{
    size_t rows = left->row_end - left->row, cols = left->col_end - left->col;

    *right = *left;
    if (rows >= cols)
        left->row_end = right->row = left->row + rows / 2;
    else
        left->col_end = right->col = left->col + cols / 2;
}

static void walk_leaf(blz_par *par, range_walk *w, tile_loop *l, const blz_par_tile *tile)
{
    uint64_t start = range_now(par);

    range_check(&l->loop, l->body(par, tile, l->loop.arg));
    range_adapt(par, w, cells(tile), range_now(par) - start);
}

static void run_part(blz_par *par, blz_par_job *job);

static void walk_tile(blz_par *par, range_walk *w, tile_loop *l, blz_par_tile tile)
{
    while (!blz__par_loop_is_over(&l->loop)) {
        blz_par_tile left = tile;
        part right = {.loop = l};

        if (cells(&tile) > 1)
            halve(&left, &right.tile);
        if (cells(&tile) <= w->grain || cells(&left) < l->loop.least) {
            walk_leaf(par, w, l, &tile);
            return;
        }
        blz_par_fork(par, &right.job, run_part);
        walk_tile(par, w, l, left);
        if (!blz_par_unfork_with(par, &right.job, l->loop.waiting))
            return;
        tile = right.tile;
    }
}

static void run_part(blz_par *par, blz_par_job *job)
{
    part *p = blz_container_of(job, part, job);
    range_walk w = {&p->loop->loop, NULL, p->loop->loop.least, 0};

    walk_tile(par, &w, p->loop, p->tile);
}

int blz_par_for_2d(blz_par *par, size_t rows, size_t cols, blz_par_tile_fn body, void *arg,
                   const blz_par_options *options)
{
    blz_par_tile all = {0, rows, 0, cols};
    tile_loop l = {.body = body};
    range_walk w = {&l.loop, NULL, 0, 0};

    blz__par_loop_init(&l.loop, par, cells(&all), options);
    l.loop.arg = arg;
    w.grain = range_is_solo(&l.loop, par) ? SIZE_MAX : l.loop.least;
    if (rows == 0 || cols == 0)
        blz__par_loop_is_over(&l.loop);
    else
        walk_tile(par, &w, &l, all);
    return blz_par_cancel_code(&l.loop.failure);
}
