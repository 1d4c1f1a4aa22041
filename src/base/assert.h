/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preconditions and invariants that are checked where checks are on: BLZ_CHECKS, which the presets
 * debug, asan and tsan define, and the models. Elsewhere BLZ_ASSERT evaluates nothing.
 *
 *     BLZ_ASSERT(blz__lock_is_held(&entry->lock));
 *
 * A condition has no side effect. It reads atomics by blz__peek, which is no step of a model: so an
 * assert adds no interleavings, and the operations that order_mutants.txt counts keep their
 * numbers.
 *
 * What a program can do wrong is a panic in every build (base/panic.h), not an assert.
 */
#ifndef BLZ_BASE_ASSERT_H
#define BLZ_BASE_ASSERT_H

#include "base/atomic.h"

#include <blitz/base.h>

#ifndef BLZ_CHECKS
#define BLZ_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#elif defined(BLZ_MODEL)
#define BLZ_ASSERT(condition) model_assert(condition)
#else
#define BLZ_ASSERT(condition) \
    (blz_likely(condition) ? (void)0 : blz__assert_failed(#condition, __FILE__, __LINE__, __func__))
#endif

/*
 * Validators: a function named blz__STRUCTURE_check walks a structure that is at rest and returns
 * NULL, or the text of the first invariant that does not hold. Tests call them in every build;
 * where checks are on the library calls them at quiet points, by BLZ_ASSERT_VALID.
 */
#define BLZ_REQUIRE(condition)          \
    do {                                \
        if (blz_unlikely(!(condition))) \
            return #condition;          \
    } while (0)

#ifndef BLZ_CHECKS
#define BLZ_ASSERT_VALID(verdict) ((void)sizeof(verdict))
#else
#define BLZ_ASSERT_VALID(verdict) blz__assert_valid((verdict), __FILE__, __LINE__, __func__)
#endif

/* Panics with a sentence that names the condition and its place. [any thread] */
BLZ_NORETURN BLZ_COLD void blz__assert_failed(const char *condition, const char *file, int line,
                                              const char *function);

#ifdef BLZ_CHECKS
static inline void blz__assert_valid(const char *broken, const char *file, int line,
                                     const char *function)
{
    if (blz_likely(!broken))
        return;
#ifdef BLZ_MODEL
    model_fail("invariant %s is broken, found at %s:%d in %s", broken, model_basename(file), line,
               function);
#else
    blz__assert_failed(broken, file, line, function);
#endif
}
#endif

#endif
