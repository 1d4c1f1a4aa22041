/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning and the end of a scope. Its tasks are in tasks.c.
 *
 * The thread that began it runs, at the end, what is in its own list; then it gives up its share of
 * the scope's count. From then on it only waits for blocks that others have; should it run one of
 * them meanwhile, then as any other thread would.
 *
 * A scope that a guest begins outside of everything else is a computation of its own.
 */
#include "par/pool.h"

#include "base/panic.h"

static bool is_outside(const worker *w)
{
    return !w->computes && w->index >= w->pool->nr_workers && w->tasks.frame == &w->tasks.base &&
           w->ring.own.tail == blz__load(&w->ring.own.bottom, RELAXED);
}

void blz_par_scope_begin(blz_par *par, blz_par_scope *scope)
{
    worker *w = worker_of(par);

    *scope = (blz_par_scope){.owner = par,
                             .out = 1,
                             .claim = PAR_UNCLAIMED,
                             .isolated = w->isolated,
                             .is_root = is_outside(w)};
    if (scope->is_root) {
        w->computes = true;
        blz__par_fresh_fuel(w, true);
    }
    blz__par_list_begin(w, &scope->tasks);
}

int blz_par_scope_end(blz_par *par, blz_par_scope *scope)
{
    worker *w = worker_of(par);

    if (w->tasks.innermost != &scope->tasks)
        blz__panic("blz_par_scope_end: not the scope that this thread began last");
    blz__par_run_own(w, scope);
    blz__par_list_end(w, &scope->tasks);
    scope->waiting = true;
    /* acquire: pairs with the releases of those who ran the blocks. No release: if another one is
     * the last, it wants nothing of ours but the latch */
    if (blz__fetch_sub(&scope->out, 1u, ACQUIRE) != 1)
        blz__par_wait_for_scope(w, scope);
    if (scope->is_root) {
        w->computes = false;
        blz__par_end_root(w);
    }
    return blz__load(&scope->code, RELAXED);
}

void blz_par_scope_cancel(blz_par_scope *scope, int error)
{
    int32_t none = 0;

    if (error < 0)
        blz__cas(&scope->code, &none, error, RELAXED, RELAXED);
}

int blz_par_scope_code(const blz_par_scope *scope)
{
    return blz__load(&scope->code, RELAXED);
}
