/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel search.
 *
 *     BLZ_PAR_DEFINE_PREDICATE(is_zero, const int, v, i, v[i] == 0)
 *
 *     rc = is_zero_find_first(par, &index, n, v, NULL);     // in a computation, see par.h
 *     if (rc == 0 && index < n)
 *         ...                                               // found
 *     rc = is_zero_count(par, &zeros, n, v, NULL);
 *
 * A search ends as soon as its answer is known: no thread begins to look behind the first match
 * that was found, in front of the last one, or anywhere once any is known.
 *
 * Errors: a search fails only with the error of the cancellation in its options.
 */
#ifndef BLITZ_PAR_FIND_H
#define BLITZ_PAR_FIND_H

#include <blitz/par_reduce.h>

BLZ_BEGIN_DECLS

/* Whether element i is one. */
typedef bool (*blz_par_predicate_fn)(size_t i, void *arg);

/* Which of those that are found. */
typedef enum blz_par_which {
    BLZ_PAR_FIRST, /* the lowest index */
    BLZ_PAR_LAST,  /* the highest */
    BLZ_PAR_ANY,   /* the one that is found first, which need not be the same each time */
} blz_par_which;

/*
 * The index of the first, the last or any i below n for which the predicate holds; n if there is
 * none. 0, or the error of the cancellation; then the index is n. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_find(blz_par *par, size_t *index, size_t n, blz_par_which which,
                                       blz_par_predicate_fn predicate, void *arg,
                                       const blz_par_options *options);

/*
 * Finds the lowest i below n for which the predicate holds: 0 and *index, which is n if there is
 * none. [in a computation]
 */
static inline BLZ_NODISCARD int blz_par_find_first(blz_par *par, size_t *index, size_t n,
                                                   blz_par_predicate_fn predicate, void *arg,
                                                   const blz_par_options *options)
{
    return blz_par_find(par, index, n, BLZ_PAR_FIRST, predicate, arg, options);
}

/*
 * Finds the highest i below n for which the predicate holds: 0 and *index, which is n if there is
 * none. [in a computation]
 */
static inline BLZ_NODISCARD int blz_par_find_last(blz_par *par, size_t *index, size_t n,
                                                  blz_par_predicate_fn predicate, void *arg,
                                                  const blz_par_options *options)
{
    return blz_par_find(par, index, n, BLZ_PAR_LAST, predicate, arg, options);
}

/*
 * Finds any i below n for which the predicate holds: 0 and *index, which is n if there is none. It
 * need not be the same each time. [in a computation]
 */
static inline BLZ_NODISCARD int blz_par_find_any(blz_par *par, size_t *index, size_t n,
                                                 blz_par_predicate_fn predicate, void *arg,
                                                 const blz_par_options *options)
{
    return blz_par_find(par, index, n, BLZ_PAR_ANY, predicate, arg, options);
}

/* Whether the predicate holds for one index at least: 0 and *result. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_any(blz_par *par, bool *result, size_t n,
                                      blz_par_predicate_fn predicate, void *arg,
                                      const blz_par_options *options);

/* Whether the predicate holds for all indices: 0 and *result. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_all(blz_par *par, bool *result, size_t n,
                                      blz_par_predicate_fn predicate, void *arg,
                                      const blz_par_options *options);

/* For how many indices the predicate holds: 0 and *result. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_count(blz_par *par, size_t *result, size_t n,
                                        blz_par_predicate_fn predicate, void *arg,
                                        const blz_par_options *options);

/* ---- over ranges ---- */

/*
 * Looks through [begin, end), from its front or from its back, and returns the index of the first
 * match that it comes upon; end if there is none.
 */
typedef size_t (*blz_par_search_fn)(size_t begin, size_t end, bool from_the_back, void *arg);

/*
 * Finds the first, the last or any match, by a function that looks through ranges: 0 and *index,
 * which is n if there is none. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_find_by(blz_par *par, size_t *index, size_t n,
                                          blz_par_which which, blz_par_search_fn search_block,
                                          void *arg, const blz_par_options *options);

/* ---- inlined ---- */

/*
 * A condition on ctx and i: defines name_find_first, name_find_last, name_find_any(par, index, n,
 * ctx, options), name_any, name_all(par, result, n, ctx, options) and name_count.
 */
#define BLZ_PAR_DEFINE_PREDICATE(name, type, ctx, i, ...)                                         \
    BLZ_PAR_DEFINED_ bool name##_holds_(type *ctx, size_t i)                                      \
    {                                                                                             \
        (void)ctx;                                                                                \
        (void)i;                                                                                  \
        return (__VA_ARGS__);                                                                     \
    }                                                                                             \
    BLZ_PAR_DEFINE_SEARCH_(name, type, name##_holds_(arg_, i_))                                   \
    BLZ_PAR_DEFINE_SEARCH_(name##_not, type, !name##_holds_(arg_, i_))                            \
    BLZ_PAR_DEFINE_FIND_(name, first, BLZ_PAR_FIRST, type)                                        \
    BLZ_PAR_DEFINE_FIND_(name, last, BLZ_PAR_LAST, type)                                          \
    BLZ_PAR_DEFINE_FIND_(name, any, BLZ_PAR_ANY, type)                                            \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_any(blz_par *par_, bool *result_, size_t n_,        \
                                                  type *ctx_, const blz_par_options *options_)    \
    {                                                                                             \
        size_t index_;                                                                            \
        int rc_ = name##_find_any(par_, &index_, n_, ctx_, options_);                             \
                                                                                                  \
        *result_ = index_ < n_;                                                                   \
        return rc_;                                                                               \
    }                                                                                             \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_all(blz_par *par_, bool *result_, size_t n_,        \
                                                  type *ctx_, const blz_par_options *options_)    \
    {                                                                                             \
        size_t index_;                                                                            \
        int rc_ = blz_par_find_by(par_, &index_, n_, BLZ_PAR_ANY, name##_not_scan_,               \
                                  (void *)(uintptr_t)ctx_, options_);                             \
                                                                                                  \
        *result_ = index_ == n_;                                                                  \
        return rc_;                                                                               \
    }                                                                                             \
    BLZ_PAR_DEFINE_REDUCE(name##_count, size_t, type, ctx_, i_, 0, acc + name##_holds_(ctx_, i_), \
                          acc + right)

#define BLZ_PAR_DEFINE_SEARCH_(name, type, condition)                                            \
    BLZ_PAR_DEFINED_ size_t name##_scan_(size_t begin_, size_t end_, bool back_, void *context_) \
    {                                                                                            \
        type *arg_ = (type *)context_;                                                           \
                                                                                                 \
        if (back_) {                                                                             \
            for (size_t i_ = end_; i_-- > begin_;)                                               \
                if (condition)                                                                   \
                    return i_;                                                                   \
        } else {                                                                                 \
            for (size_t i_ = begin_; i_ < end_; i_++)                                            \
                if (condition)                                                                   \
                    return i_;                                                                   \
        }                                                                                        \
        return end_;                                                                             \
    }

#define BLZ_PAR_DEFINE_FIND_(name, suffix, which, type)                                        \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_find_##suffix(blz_par *par_, size_t *index_,     \
                                                            size_t n_, type *ctx_,             \
                                                            const blz_par_options *options_)   \
    {                                                                                          \
        return blz_par_find_by(par_, index_, n_, which, name##_scan_, (void *)(uintptr_t)ctx_, \
                               options_);                                                      \
    }

BLZ_END_DECLS
#endif
