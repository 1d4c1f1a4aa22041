/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel loops with a result: sums and other folds, counts, the smallest and the greatest.
 *
 *     BLZ_PAR_DEFINE_SUM(dot, double, const struct vectors, v, i, v->a[i] * v->b[i])
 *
 *     BLZ_PAR_DEFINE_REDUCE(product, double, const double, v, i, 1, acc * v[i], acc * right)
 *
 *     rc = dot(par, &result, n, &vectors, NULL);             // in a computation, see par.h
 *     rc = dot_deterministic(par, &result, n, &vectors, NULL);
 *
 * A thread folds the elements of a part into an accumulator, from left to right, beginning with the
 * identity; accumulators of neighbouring parts are combined, the left one first. So combining must
 * be associative, need not be commutative, and the identity must change nothing.
 *
 * Where the parts begin depends on which threads had time. With integers that makes no difference;
 * sums of floating-point numbers differ in their last bits from call to call. The deterministic
 * forms give the same bits for the same n and elements always, for any number of threads, and cost
 * a little more.
 *
 * Errors are those of the callbacks and of the cancellation. The result is then unspecified, but is
 * there: every accumulator that was begun has been combined, so nothing that they hold is lost.
 */
#ifndef BLITZ_PAR_REDUCE_H
#define BLITZ_PAR_REDUCE_H

#include <blitz/par_for.h>
#include <string.h>

BLZ_BEGIN_DECLS

/* ---- any type ---- */

/* How elements are added up, one after the other and part by part. */
typedef struct blz_par_reducer {
    size_t size;          /* of an accumulator, in bytes; it is aligned to 16 */
    const void *identity; /* copied to begin one */
    /* Adds the elements begin to end - 1. 0, or a negative error. */
    int (*fold)(blz_par *par, void *acc, size_t begin, size_t end, void *arg);
    /* Adds *right, which is not used again. 0, or a negative error. Any thread may be asked. */
    int (*combine)(void *acc, void *right, void *arg);
    uint64_t reserved[2]; /* 0 */
} blz_par_reducer;

/*
 * Folds [0, n) into *result, which is the identity if n is 0. 0; the first error of fold or
 * combine; the error of the cancellation; -ENOMEM, only if an accumulator has more than 64 bytes.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_reduce(blz_par *par, void *result, size_t n,
                                         const blz_par_reducer *reducer, void *arg,
                                         const blz_par_options *options);

/*
 * Folds [0, n) into *result, cut and combined in a way that depends on n alone (and not on
 * options->grain), so that sums of floats always have the same bits. 0; the first error of fold or
 * combine; the error of the cancellation; -ENOMEM, only if an accumulator has more than 64 bytes.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_deterministic_reduce(blz_par *par, void *result, size_t n,
                                                       const blz_par_reducer *reducer, void *arg,
                                                       const blz_par_options *options);

/* ---- a known type ---- */

/*
 * Defines name(par, result, n, ctx, options) and name_deterministic, with the same arguments, the
 * loop inlined. fold is an expression of acc, ctx and i: acc with element i added. combine is one
 * of acc and right.
 */
#define BLZ_PAR_DEFINE_REDUCE(name, type, ctx_type, ctx, i, identity, fold, combine)         \
    BLZ_PAR_DEFINED_ int name##_fold_(blz_par *par_, void *acc_, size_t begin_, size_t end_, \
                                      void *arg_)                                            \
    {                                                                                        \
        ctx_type *ctx = (ctx_type *)arg_;                                                    \
        type acc = *(type *)acc_;                                                            \
                                                                                             \
        (void)par_;                                                                          \
        (void)ctx;                                                                           \
        for (size_t i = begin_; i < end_; i++)                                               \
            acc = (fold);                                                                    \
        *(type *)acc_ = acc;                                                                 \
        return 0;                                                                            \
    }                                                                                        \
    BLZ_PAR_DEFINE_REDUCE_CALLS_(name, type, ctx_type, identity, combine)

/*
 * The sum of an expression of ctx and i, for numbers: the elements of a part are not added from
 * left to right but in rows, which do not wait for each other. Those of floating point are taken
 * from four places in turn, besides, because memory gives more to several streams than to one.
 */
#define BLZ_PAR_DEFINE_SUM(name, type, ctx_type, ctx, i, ...)                                \
    BLZ_PAR_DEFINED_ type name##_term_(ctx_type *ctx, size_t i)                              \
    {                                                                                        \
        (void)ctx;                                                                           \
        return (type)(__VA_ARGS__);                                                          \
    }                                                                                        \
    BLZ_PAR_DEFINED_ int name##_fold_(blz_par *par_, void *acc_, size_t begin_, size_t end_, \
                                      void *arg_)                                            \
    {                                                                                        \
        ctx_type *ctx_ = (ctx_type *)arg_;                                                   \
        type sum_ = *(type *)acc_, rows_[BLZ_PAR_ROWS_] = {0};                               \
        type r0_ = 0, r1_ = 0, r2_ = 0, r3_ = 0, r4_ = 0, r5_ = 0, r6_ = 0, r7_ = 0;         \
        size_t i_ = begin_, far_ = BLZ_PAR_STREAM_;                                          \
                                                                                             \
        (void)par_;                                                                          \
        for (; BLZ_PAR_IS_FLOAT_(type) && end_ - i_ >= 4 * far_; i_ += 4 * far_) {           \
            for (size_t j_ = i_; j_ < i_ + far_; j_ += 8) {                                  \
                BLZ_PAR_ADD_ROWS_(name, j_)                                                  \
                BLZ_PAR_ADD_ROWS_(name, j_ + far_)                                           \
                BLZ_PAR_ADD_ROWS_(name, j_ + 2 * far_)                                       \
                BLZ_PAR_ADD_ROWS_(name, j_ + 3 * far_)                                       \
            }                                                                                \
        }                                                                                    \
        for (; BLZ_PAR_IS_FLOAT_(type) && end_ - i_ >= 8; i_ += 8) {                         \
            BLZ_PAR_ADD_ROWS_(name, i_)                                                      \
        }                                                                                    \
        for (; !BLZ_PAR_IS_FLOAT_(type) && end_ - i_ >= BLZ_PAR_ROWS_; i_ += BLZ_PAR_ROWS_)  \
            for (size_t k_ = 0; k_ < BLZ_PAR_ROWS_; k_++)                                    \
                rows_[k_] += name##_term_(ctx_, i_ + k_);                                    \
        for (size_t k_ = 0; !BLZ_PAR_IS_FLOAT_(type) && k_ < BLZ_PAR_ROWS_; k_++)            \
            sum_ += rows_[k_];                                                               \
        sum_ += ((r0_ + r1_) + (r2_ + r3_)) + ((r4_ + r5_) + (r6_ + r7_));                   \
        for (; i_ < end_; i_++)                                                              \
            sum_ += name##_term_(ctx_, i_);                                                  \
        *(type *)acc_ = sum_;                                                                \
        return 0;                                                                            \
    }                                                                                        \
    BLZ_PAR_DEFINE_REDUCE_CALLS_(name, type, ctx_type, 0, acc + right)

/* Elements: so far apart are the places, a page or so; and so many integers make the rows, four
 * vectors of which gcc computes side by side. */
enum { BLZ_PAR_STREAM_ = 512, BLZ_PAR_ROWS_ = 16 };

#define BLZ_PAR_ADD_ROWS_(name, at)      \
    r0_ += name##_term_(ctx_, (at));     \
    r1_ += name##_term_(ctx_, (at) + 1); \
    r2_ += name##_term_(ctx_, (at) + 2); \
    r3_ += name##_term_(ctx_, (at) + 3); \
    r4_ += name##_term_(ctx_, (at) + 4); \
    r5_ += name##_term_(ctx_, (at) + 5); \
    r6_ += name##_term_(ctx_, (at) + 6); \
    r7_ += name##_term_(ctx_, (at) + 7);

#define BLZ_PAR_IS_FLOAT_(type) ((type)0.5 != 0)

#define BLZ_PAR_DEFINE_REDUCE_CALLS_(name, type, ctx_type, identity, combine)                      \
    BLZ_PAR_DEFINED_ int name##_combine_(void *acc_, void *right_, void *arg_)                     \
    {                                                                                              \
        type acc = *(type *)acc_, right = *(type *)right_;                                         \
                                                                                                   \
        (void)arg_;                                                                                \
        *(type *)acc_ = (combine);                                                                 \
        return 0;                                                                                  \
    }                                                                                              \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name(blz_par *par_, type *result_, size_t n_,               \
                                            ctx_type *ctx_, const blz_par_options *options_)       \
    {                                                                                              \
        const type identity_ = (identity);                                                         \
        const blz_par_reducer reducer_ = {                                                         \
            sizeof(type), &identity_, name##_fold_, name##_combine_, {0, 0}};                      \
                                                                                                   \
        return blz_par_reduce(par_, result_, n_, &reducer_, (void *)(uintptr_t)ctx_, options_);    \
    }                                                                                              \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_deterministic(blz_par *par_, type *result_,          \
                                                            size_t n_, ctx_type *ctx_,             \
                                                            const blz_par_options *options_)       \
    {                                                                                              \
        const type identity_ = (identity);                                                         \
        const blz_par_reducer reducer_ = {                                                         \
            sizeof(type), &identity_, name##_fold_, name##_combine_, {0, 0}};                      \
                                                                                                   \
        return blz_par_deterministic_reduce(par_, result_, n_, &reducer_, (void *)(uintptr_t)ctx_, \
                                            options_);                                             \
    }

/* ---- the smallest and the greatest ---- */

/*
 * Finds the smallest (greatest) of n elements of that size in bytes, of equal ones the first: 0 and
 * *index, which is n if there is no element; or the error of the cancellation. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_min(blz_par *par, size_t *index, const void *base, size_t n,
                                      size_t size, blz_par_compare_fn compare, void *arg,
                                      const blz_par_options *options);
BLZ_API BLZ_NODISCARD int blz_par_max(blz_par *par, size_t *index, const void *base, size_t n,
                                      size_t size, blz_par_compare_fn compare, void *arg,
                                      const blz_par_options *options);

/*
 * Defines the search for the smallest and the greatest element by a key, inlined: name_min and
 * name_max(par, index, n, ctx, options). The key is an expression of ctx and i, whose type is
 * compared by <.
 *
 *     BLZ_PAR_DEFINE_EXTREMES(by_age, int, const struct person, people, i, people[i].age)
 *
 *     rc = by_age_max(par, &oldest, n, people, NULL);
 */
#define BLZ_PAR_DEFINE_EXTREMES(name, key_type, ctx_type, ctx, i, ...)                     \
    BLZ_PAR_DEFINED_ key_type name##_key_(ctx_type *ctx, size_t i)                         \
    {                                                                                      \
        return (__VA_ARGS__);                                                              \
    }                                                                                      \
    BLZ_PAR_DEFINE_EXTREME_(name##_min, name##_key_, key_type, ctx_type, key_ < best_.key) \
    BLZ_PAR_DEFINE_EXTREME_(name##_max, name##_key_, key_type, ctx_type, best_.key < key_)

#define BLZ_PAR_DEFINE_EXTREME_(name, key_of, key_type, ctx_type, is_better)                  \
    struct name##_best_ {                                                                     \
        size_t index;                                                                         \
        key_type key;                                                                         \
    };                                                                                        \
    BLZ_PAR_DEFINED_ int name##_fold_(blz_par *par_, void *acc_, size_t begin_, size_t end_,  \
                                      void *arg_)                                             \
    {                                                                                         \
        struct name##_best_ best_ = *(struct name##_best_ *)acc_;                             \
        ctx_type *ctx_ = (ctx_type *)arg_;                                                    \
        size_t i_ = begin_;                                                                   \
                                                                                              \
        (void)par_;                                                                           \
        if (best_.index == SIZE_MAX) {                                                        \
            best_.index = begin_;                                                             \
            best_.key = key_of(ctx_, begin_);                                                 \
            i_++;                                                                             \
        }                                                                                     \
        for (; i_ < end_; i_++) {                                                             \
            key_type key_ = key_of(ctx_, i_);                                                 \
            if (is_better) {                                                                  \
                best_.index = i_;                                                             \
                best_.key = key_;                                                             \
            }                                                                                 \
        }                                                                                     \
        *(struct name##_best_ *)acc_ = best_;                                                 \
        return 0;                                                                             \
    }                                                                                         \
    BLZ_PAR_DEFINED_ int name##_combine_(void *acc_, void *right_, void *arg_)                \
    {                                                                                         \
        struct name##_best_ best_ = *(struct name##_best_ *)acc_;                             \
        struct name##_best_ other_ = *(struct name##_best_ *)right_;                          \
        key_type key_ = other_.key;                                                           \
                                                                                              \
        (void)arg_;                                                                           \
        if (other_.index != SIZE_MAX && (best_.index == SIZE_MAX || (is_better)))             \
            *(struct name##_best_ *)acc_ = other_;                                            \
        return 0;                                                                             \
    }                                                                                         \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name(blz_par *par_, size_t *index_, size_t n_,         \
                                            ctx_type *ctx_, const blz_par_options *options_)  \
    {                                                                                         \
        struct name##_best_ none_, best_;                                                     \
        const blz_par_reducer reducer_ = {                                                    \
            sizeof none_, &none_, name##_fold_, name##_combine_, {0, 0}};                     \
        int rc_;                                                                              \
                                                                                              \
        memset(&none_, 0, sizeof none_);                                                      \
        none_.index = SIZE_MAX;                                                               \
        rc_ = blz_par_reduce(par_, &best_, n_, &reducer_, (void *)(uintptr_t)ctx_, options_); \
        *index_ = best_.index == SIZE_MAX ? n_ : best_.index;                                 \
        return rc_;                                                                           \
    }

/*
 * Defines the search for the smallest and the greatest element by a comparison, inlined: name_min
 * and name_max(par, index, n, ctx, options). The condition is one of ctx, i and j: whether element
 * i is less than element j.
 *
 *     BLZ_PAR_DEFINE_EXTREMES_BY(by_name, const struct person, people, i, j,
 *                                strcmp(people[i].name, people[j].name) < 0)
 */
#define BLZ_PAR_DEFINE_EXTREMES_BY(name, ctx_type, ctx, i, j, ...)                  \
    BLZ_PAR_DEFINED_ bool name##_less_(ctx_type *ctx, size_t i, size_t j)           \
    {                                                                               \
        return (__VA_ARGS__);                                                       \
    }                                                                               \
    BLZ_PAR_DEFINE_EXTREME_BY_(name##_min, ctx_type, name##_less_(ctx_, i_, best_)) \
    BLZ_PAR_DEFINE_EXTREME_BY_(name##_max, ctx_type, name##_less_(ctx_, best_, i_))

#define BLZ_PAR_DEFINE_EXTREME_BY_(name, ctx_type, is_better)                                     \
    BLZ_PAR_DEFINED_ int name##_fold_(blz_par *par_, void *acc_, size_t begin_, size_t end_,      \
                                      void *arg_)                                                 \
    {                                                                                             \
        ctx_type *ctx_ = (ctx_type *)arg_;                                                        \
        size_t best_ = *(size_t *)acc_, i_ = begin_;                                              \
                                                                                                  \
        (void)par_;                                                                               \
        if (best_ == SIZE_MAX)                                                                    \
            best_ = i_++;                                                                         \
        for (; i_ < end_; i_++)                                                                   \
            best_ = (is_better) ? i_ : best_;                                                     \
        *(size_t *)acc_ = best_;                                                                  \
        return 0;                                                                                 \
    }                                                                                             \
    BLZ_PAR_DEFINED_ int name##_combine_(void *acc_, void *right_, void *arg_)                    \
    {                                                                                             \
        ctx_type *ctx_ = (ctx_type *)arg_;                                                        \
        size_t best_ = *(size_t *)acc_, i_ = *(size_t *)right_;                                   \
                                                                                                  \
        if (i_ != SIZE_MAX && (best_ == SIZE_MAX || (is_better)))                                 \
            *(size_t *)acc_ = i_;                                                                 \
        return 0;                                                                                 \
    }                                                                                             \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name(blz_par *par_, size_t *index_, size_t n_,             \
                                            ctx_type *ctx_, const blz_par_options *options_)      \
    {                                                                                             \
        const size_t none_ = SIZE_MAX;                                                            \
        const blz_par_reducer reducer_ = {                                                        \
            sizeof none_, &none_, name##_fold_, name##_combine_, {0, 0}};                         \
        int rc_ = blz_par_reduce(par_, index_, n_, &reducer_, (void *)(uintptr_t)ctx_, options_); \
                                                                                                  \
        *index_ = *index_ == SIZE_MAX ? n_ : *index_;                                             \
        return rc_;                                                                               \
    }

BLZ_END_DECLS
#endif
