/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budgets: how much memory there may be of something, and how much there is. Code that needs memory
 * takes it from the budget first, and gives it back when it has been freed:
 *
 *     if (!budget_take(budget, size))
 *         return NULL;                    // as if there were no memory
 *     data = malloc(size);
 *     if (!data)
 *         budget_give(budget, size);
 */
#ifndef REDIS_BUDGET_H
#define REDIS_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    size_t max;
    atomic_size_t used;
};

/* False: there would be more than `max`. [any thread] */
static inline bool budget_take(struct budget *budget, size_t size)
{
    size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);

    do
        if (size > budget->max || used > budget->max - size)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&budget->used, &used, used + size,
                                                  memory_order_relaxed, memory_order_relaxed));
    return true;
}

static inline void budget_give(struct budget *budget, size_t size)
{
    atomic_fetch_sub_explicit(&budget->used, size, memory_order_relaxed);
}

#endif
